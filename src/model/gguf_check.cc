#include "model/gguf_check.h"

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

namespace shorthand {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxAlignment = 1 << 20;
// The fewest bytes that a metadata entry and a tensor description can take.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// Bytes of a scalar of a metadata type; 0 for strings, arrays and unknown types.
uint64_t ScalarBytes(uint32_t type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
      return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
      return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
      return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

class Walker {
 public:
  explicit Walker(std::span<const uint8_t> file) : file_(file) {}

  Status Run() {
    if (Status status = Header(); !status.ok()) return status;
    for (int64_t i = 0; i < entries_; ++i) {
      if (Status status = Entry(); !status.ok()) return status;
    }
    for (int64_t i = 0; i < tensors_; ++i) {
      if (Status status = Tensor(); !status.ok()) return status;
    }
    return DataSection();
  }

 private:
  uint64_t remaining() const { return file_.size() - offset_; }

  Status Damaged(std::string_view what) const {
    return DataLoss(fmt::format("the model file is damaged or truncated: {} at byte {} of {}", what,
                                offset_, file_.size()));
  }

  template <typename T>
  bool Read(T* value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, file_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return true;
  }

  bool ReadString(std::string_view* text) {
    uint64_t length = 0;
    if (!Read(&length) || length > remaining()) return false;
    *text = {reinterpret_cast<const char*>(file_.data()) + offset_, static_cast<size_t>(length)};
    offset_ += length;
    return true;
  }

  Status Header() {
    constexpr std::array<uint8_t, 4> kMagic = {'G', 'G', 'U', 'F'};
    std::array<uint8_t, 4> magic = {};
    uint32_t version = 0;
    if (!Read(&magic) || magic != kMagic) {
      return DataLoss("this is not a GGUF model file: it does not begin with the letters GGUF");
    }
    if (!Read(&version)) return Damaged("no version");
    if (version != 2 && version != 3) {
      return Unimplemented(
          fmt::format("GGUF version {} is not supported; versions 2 and 3 are", version));
    }
    if (!Read(&tensors_) || !Read(&entries_)) return Damaged("no tensor and metadata counts");
    if (tensors_ < 0 || tensors_ > kMaxGgufEntries) {
      return Damaged(fmt::format("an impossible number of tensors, {},", tensors_));
    }
    if (entries_ < 0 || entries_ > kMaxGgufEntries) {
      return Damaged(fmt::format("an impossible number of metadata entries, {},", entries_));
    }
    if (remaining() / kMinEntryBytes < static_cast<uint64_t>(entries_) ||
        remaining() / kMinTensorBytes < static_cast<uint64_t>(tensors_)) {
      return Damaged("fewer bytes than the counts need");
    }
    return OkStatus();
  }

  Status Entry() {
    std::string_view key;
    uint32_t type = 0;
    if (!ReadString(&key) || key.empty() || key.size() > kMaxKeyBytes) {
      return Damaged("a metadata key");
    }
    if (!keys_.insert(key).second) return Damaged(fmt::format("metadata key '{}' twice", key));
    if (!Read(&type)) return Damaged("a metadata type");
    if (key == GGUF_KEY_GENERAL_ALIGNMENT) return Alignment(type);
    return type == GGUF_TYPE_ARRAY ? Array(key) : Value(key, type, 1);
  }

  Status Alignment(uint32_t type) {
    uint32_t alignment = 0;
    if (type != GGUF_TYPE_UINT32 || !Read(&alignment) || !std::has_single_bit(alignment) ||
        alignment < GGUF_DEFAULT_ALIGNMENT || alignment > kMaxAlignment) {
      return Damaged("an alignment that is not a power of two from 32");
    }
    alignment_ = alignment;
    return OkStatus();
  }

  Status Array(std::string_view key) {
    uint32_t type = 0;
    uint64_t count = 0;
    if (!Read(&type) || !Read(&count)) return Damaged(fmt::format("the array '{}'", key));
    return Value(key, type, count);
  }

  Status Value(std::string_view key, uint32_t type, uint64_t count) {
    if (type == GGUF_TYPE_STRING) {
      for (uint64_t i = 0; i < count; ++i) {
        std::string_view text;
        if (!ReadString(&text)) return Damaged(fmt::format("a text of '{}'", key));
      }
      return OkStatus();
    }
    const uint64_t bytes = ScalarBytes(type);
    if (bytes == 0) return Damaged(fmt::format("the unknown type {} of '{}'", type, key));
    if (count > remaining() / bytes) return Damaged(fmt::format("the value of '{}'", key));
    offset_ += count * bytes;
    return OkStatus();
  }

  Status Tensor() {
    std::string_view name;
    uint32_t dims = 0;
    if (!ReadString(&name) || name.empty() || name.size() >= GGML_MAX_NAME ||
        name.find('\0') != name.npos) {
      return Damaged("a tensor name");
    }
    if (!names_.insert(name).second) return Damaged(fmt::format("tensor '{}' twice", name));
    if (!Read(&dims) || dims < 1 || dims > GGML_MAX_DIMS) {
      return Damaged(fmt::format("the number of dimensions of tensor '{}'", name));
    }
    uint64_t rows = 1;
    int64_t row = 0;
    for (uint32_t d = 0; d < dims; ++d) {
      int64_t size = 0;
      if (!Read(&size) || size < 1) {
        return Damaged(fmt::format("dimension {} of tensor '{}'", d, name));
      }
      if (d == 0) {
        row = size;
      } else if (__builtin_mul_overflow(rows, static_cast<uint64_t>(size), &rows)) {
        return Damaged(fmt::format("impossible dimensions of tensor '{}'", name));
      }
    }
    return Storage(name, row, rows);
  }

  Status Storage(std::string_view name, int64_t row, uint64_t rows) {
    uint32_t type = 0;
    uint64_t offset = 0;
    if (!Read(&type) || type >= GGML_TYPE_COUNT ||
        ggml_blck_size(static_cast<ggml_type>(type)) == 0) {
      return Damaged(fmt::format("the type {} of tensor '{}'", type, name));
    }
    const int64_t block = ggml_blck_size(static_cast<ggml_type>(type));
    if (row % block != 0) {
      return Damaged(fmt::format("rows of {} numbers in tensor '{}', not whole blocks of {},", row,
                                 name, block));
    }
    uint64_t bytes = ggml_type_size(static_cast<ggml_type>(type));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(row / block), &bytes) ||
        __builtin_mul_overflow(bytes, rows, &bytes) || bytes > file_.size()) {
      return Damaged(fmt::format("more bytes in tensor '{}' than the file has", name));
    }
    // Tensors follow each other in order, each padded to the alignment.
    if (!Read(&offset) || offset != data_bytes_) {
      return Damaged(fmt::format("the offset of tensor '{}', expected {},", name, data_bytes_));
    }
    data_end_ = offset + bytes;
    data_bytes_ = (data_end_ + alignment_ - 1) / alignment_ * alignment_;
    return OkStatus();
  }

  Status DataSection() const {
    const uint64_t begin = (offset_ + alignment_ - 1) / alignment_ * alignment_;
    if (tensors_ > 0 && (begin > file_.size() || data_end_ > file_.size() - begin)) {
      return DataLoss(fmt::format(
          "the model file is truncated: its tensors end at byte {}, but it has {} bytes",
          begin + data_end_, file_.size()));
    }
    return OkStatus();
  }

  std::span<const uint8_t> file_;
  uint64_t offset_ = 0;
  int64_t tensors_ = 0;
  int64_t entries_ = 0;
  uint64_t alignment_ = GGUF_DEFAULT_ALIGNMENT;
  uint64_t data_end_ = 0;    // of the last tensor, from the data section's begin
  uint64_t data_bytes_ = 0;  // the same, padded
  std::unordered_set<std::string_view> keys_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

Status CheckGguf(std::span<const uint8_t> file) { return Walker(file).Run(); }

}  // namespace shorthand
