// MappedFile: a file's bytes, mapped read-only.
//
// The mapping lives as long as the object. A file that another program truncates meanwhile raises a
// signal on access, as with every mapping.
// Thread-safety: immutable once opened.
#ifndef SHORTHAND_BASE_MAPPED_FILE_H_
#define SHORTHAND_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "shorthand/status.h"

namespace shorthand {

class MappedFile {
 public:
  // Errors: kNotFound if there is no such regular file; kFailedPrecondition with the system's
  // reason.
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

}  // namespace shorthand

#endif  // SHORTHAND_BASE_MAPPED_FILE_H_
