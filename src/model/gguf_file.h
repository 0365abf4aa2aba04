// GgufFile: a checked, mapped GGUF file: typed metadata and a table of tensors whose bytes stay in
// the mapping.
//
// Metadata comes from strangers: every getter says so when a value has the wrong type, instead of
// trusting it.
// Thread-safety: immutable once opened.
#ifndef SHORTHAND_MODEL_GGUF_FILE_H_
#define SHORTHAND_MODEL_GGUF_FILE_H_

#include <ggml-cpp.h>
#include <ggml.h>
#include <gguf.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "shorthand/status.h"

namespace shorthand {

struct TensorInfo {
  std::string name;
  ggml_type type = GGML_TYPE_F32;
  std::array<int64_t, GGML_MAX_DIMS> dims = {1, 1, 1, 1};  // dims[0] is the row
  std::span<const uint8_t> bytes;                          // within the mapping
  int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

class GgufFile {
 public:
  // Errors: those of MappedFile::Open and CheckGguf, with the path.
  static Result<std::unique_ptr<GgufFile>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const uint8_t> bytes() const { return file_->bytes(); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Null if there is none of that name.
  const TensorInfo* Tensor(std::string_view name) const;

  bool Has(const std::string& key) const;
  // A key that is absent is kNotFound; one of another type kDataLoss. The sentences name the key,
  // not the file.
  Result<int64_t> Integer(const std::string& key) const;
  Result<double> Number(const std::string& key) const;
  Result<std::string> Text(const std::string& key) const;
  Result<std::vector<std::string_view>> Texts(const std::string& key) const;
  Result<std::vector<int64_t>> Integers(const std::string& key) const;
  // The number of elements of a float array.
  Result<int64_t> FloatCount(const std::string& key) const;

  // The same, with `absent` for a key that is absent.
  Result<int64_t> IntegerOr(const std::string& key, int64_t absent) const;
  Result<double> NumberOr(const std::string& key, double absent) const;

 private:
  GgufFile(std::string path, std::unique_ptr<MappedFile> file, gguf_context* metadata);
  Result<int64_t> Find(const std::string& key) const;
  Result<int64_t> FindArray(const std::string& key) const;
  Status WrongType(const std::string& key, std::string_view expected) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  gguf_context_ptr metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_GGUF_FILE_H_
