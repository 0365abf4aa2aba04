#include "model/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/gguf_check.h"

namespace shorthand {
namespace {

template <typename T>
int64_t IntegerAt(const void* data, size_t index) {
  return static_cast<int64_t>(static_cast<const T*>(data)[index]);
}

// Element `index` of integers of metadata type `type`; false for other types.
bool ReadInteger(gguf_type type, const void* data, size_t index, int64_t* value) {
  switch (type) {
    case GGUF_TYPE_UINT8:
      *value = IntegerAt<uint8_t>(data, index);
      return true;
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
      *value = IntegerAt<int8_t>(data, index);
      return true;
    case GGUF_TYPE_UINT16:
      *value = IntegerAt<uint16_t>(data, index);
      return true;
    case GGUF_TYPE_INT16:
      *value = IntegerAt<int16_t>(data, index);
      return true;
    case GGUF_TYPE_UINT32:
      *value = IntegerAt<uint32_t>(data, index);
      return true;
    case GGUF_TYPE_INT32:
      *value = IntegerAt<int32_t>(data, index);
      return true;
    case GGUF_TYPE_UINT64:
      *value = IntegerAt<uint64_t>(data, index);
      return true;
    case GGUF_TYPE_INT64:
      *value = IntegerAt<int64_t>(data, index);
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  Result<std::unique_ptr<MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::span<const uint8_t> bytes = (*file)->bytes();
  if (Status status = CheckGguf(bytes); !status.ok()) {
    return Status(status.code(), fmt::format("{}: {}", path, status.message()));
  }
  gguf_context* metadata =
      gguf_init_from_buffer(bytes.data(), bytes.size(), {.no_alloc = true, .ctx = nullptr});
  if (metadata == nullptr) {
    return DataLoss(fmt::format("{}: the GGUF reader refuses this file", path));
  }
  return std::unique_ptr<GgufFile>(new GgufFile(path, std::move(*file), metadata));
}

GgufFile::GgufFile(std::string path, std::unique_ptr<MappedFile> file, gguf_context* metadata)
    : path_(std::move(path)), file_(std::move(file)), metadata_(metadata) {
  const size_t data_begin = gguf_get_data_offset(metadata);
  const int64_t count = gguf_get_n_tensors(metadata);
  tensors_.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    TensorInfo info;
    info.name = gguf_get_tensor_name(metadata, i);
    info.type = gguf_get_tensor_type(metadata, i);
    std::copy_n(gguf_get_tensor_ne(metadata, i), GGML_MAX_DIMS, info.dims.begin());
    info.bytes = file_->bytes().subspan(data_begin + gguf_get_tensor_offset(metadata, i),
                                        gguf_get_tensor_size(metadata, i));
    tensors_.push_back(std::move(info));
  }
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

const TensorInfo* GgufFile::Tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

bool GgufFile::Has(const std::string& key) const { return Find(key).ok(); }

Result<int64_t> GgufFile::Find(const std::string& key) const {
  const int64_t id = gguf_find_key(metadata_.get(), key.c_str());
  if (id < 0) return NotFound(fmt::format("there is no metadata '{}'", key));
  return id;
}

Result<int64_t> GgufFile::FindArray(const std::string& key) const {
  const Result<int64_t> id = Find(key);
  if (id.ok() && gguf_get_kv_type(metadata_.get(), *id) != GGUF_TYPE_ARRAY) {
    return WrongType(key, "an array");
  }
  return id;
}

Status GgufFile::WrongType(const std::string& key, std::string_view expected) const {
  return DataLoss(fmt::format("metadata '{}' is not {}", key, expected));
}

Result<int64_t> GgufFile::Integer(const std::string& key) const {
  const Result<int64_t> id = Find(key);
  if (!id.ok()) return id;
  const gguf_type type = gguf_get_kv_type(metadata_.get(), *id);
  int64_t value = 0;
  if (type == GGUF_TYPE_ARRAY || type == GGUF_TYPE_STRING ||
      !ReadInteger(type, gguf_get_val_data(metadata_.get(), *id), 0, &value)) {
    return WrongType(key, "an integer");
  }
  return value;
}

Result<double> GgufFile::Number(const std::string& key) const {
  const Result<int64_t> id = Find(key);
  if (!id.ok()) return id.status();
  switch (gguf_get_kv_type(metadata_.get(), *id)) {
    case GGUF_TYPE_FLOAT32:
      return static_cast<double>(gguf_get_val_f32(metadata_.get(), *id));
    case GGUF_TYPE_FLOAT64:
      return gguf_get_val_f64(metadata_.get(), *id);
    default: {
      const Result<int64_t> integer = Integer(key);
      if (!integer.ok()) return WrongType(key, "a number");
      return static_cast<double>(*integer);
    }
  }
}

Result<std::string> GgufFile::Text(const std::string& key) const {
  const Result<int64_t> id = Find(key);
  if (!id.ok()) return id.status();
  if (gguf_get_kv_type(metadata_.get(), *id) != GGUF_TYPE_STRING) return WrongType(key, "a text");
  return std::string(gguf_get_val_str(metadata_.get(), *id));
}

Result<std::vector<std::string_view>> GgufFile::Texts(const std::string& key) const {
  const Result<int64_t> id = FindArray(key);
  if (!id.ok()) return id.status();
  if (gguf_get_arr_type(metadata_.get(), *id) != GGUF_TYPE_STRING) {
    return WrongType(key, "an array of texts");
  }
  std::vector<std::string_view> texts(gguf_get_arr_n(metadata_.get(), *id));
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] = gguf_get_arr_str(metadata_.get(), *id, i);
  }
  return texts;
}

Result<std::vector<int64_t>> GgufFile::Integers(const std::string& key) const {
  const Result<int64_t> id = FindArray(key);
  if (!id.ok()) return id.status();
  const gguf_type type = gguf_get_arr_type(metadata_.get(), *id);
  if (type == GGUF_TYPE_STRING) return WrongType(key, "an array of integers");
  std::vector<int64_t> values(gguf_get_arr_n(metadata_.get(), *id));
  const void* data = gguf_get_arr_data(metadata_.get(), *id);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!ReadInteger(type, data, i, &values[i])) return WrongType(key, "an array of integers");
  }
  return values;
}

Result<int64_t> GgufFile::FloatCount(const std::string& key) const {
  const Result<int64_t> id = FindArray(key);
  if (!id.ok()) return id;
  if (gguf_get_arr_type(metadata_.get(), *id) != GGUF_TYPE_FLOAT32) {
    return WrongType(key, "an array of floats");
  }
  return static_cast<int64_t>(gguf_get_arr_n(metadata_.get(), *id));
}

Result<int64_t> GgufFile::IntegerOr(const std::string& key, int64_t absent) const {
  return Has(key) ? Integer(key) : absent;
}

Result<double> GgufFile::NumberOr(const std::string& key, double absent) const {
  return Has(key) ? Number(key) : absent;
}

}  // namespace shorthand
