// gguf_fuzz: any file is refused with a sentence, or its keys can be asked for and its tensors'
// bytes be read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "model/gguf_check.h"
#include "model/gguf_file.h"

namespace shorthand {
namespace {

// A file that only this process sees.
class MemoryFile {
 public:
  explicit MemoryFile(const std::vector<uint8_t>& bytes) : fd_(memfd_create("gguf", 0)) {
    Require(
        fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "a file in memory cannot be made");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Writes files that are mostly sound: every field is now and then another one.
class Writer {
 public:
  explicit Writer(FuzzInput input) : input_(input) {}

  std::vector<uint8_t> File() {
    const int tensors = input_.Below(4), entries = input_.Below(5);
    for (const char c : {'G', 'G', 'U', 'F'}) bytes_.push_back(static_cast<uint8_t>(c));
    Add<uint32_t>(2 + input_.Below(2));
    Add<int64_t>(tensors);
    Add<int64_t>(entries);
    for (int i = 0; i < entries; ++i) Entry(i);
    for (int i = 0; i < tensors; ++i) Tensor(i);
    const size_t padded = (bytes_.size() + alignment_ - 1) / alignment_ * alignment_;
    bytes_.resize(padded + (input_.Once(8) ? input_.Below(256) : data_bytes_));
    return bytes_;
  }

 private:
  template <typename T>
  void Add(T value) {
    if (input_.Once(32)) value = static_cast<T>(Mix(input_.Byte()));
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  void Text(const std::string& text) {
    Add<uint64_t>(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }

  void Entry(int number) {
    constexpr uint32_t kScalarBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    constexpr uint32_t kUint32 = 4, kString = 8, kArray = 9;
    if (input_.Once(4)) {
      Text("general.alignment");
      Add<uint32_t>(kUint32);
      alignment_ = 32u << input_.Below(3);
      Add<uint32_t>(alignment_);
      return;
    }
    Text("key" + std::to_string(number));
    uint32_t type = input_.Below(13);
    Add(type);
    uint64_t count = 1;
    if (type == kArray) {
      Add(type = input_.Below(13));
      Add(count = input_.Below(9));
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (type == kString) {
        Text("text");
      } else {
        for (uint32_t byte = 0; byte < kScalarBytes[type]; ++byte) bytes_.push_back(input_.Byte());
      }
    }
  }

  void Tensor(int number) {
    constexpr int32_t kF32 = 0, kF16 = 1;
    const int dims = 1 + input_.Below(4);
    size_t elements = 1;
    Text("tensor" + std::to_string(number));
    Add<uint32_t>(dims);
    for (int d = 0; d < dims; ++d) {
      const int64_t size = 1 + input_.Below(5);
      elements *= size;
      Add(size);
    }
    const bool half = input_.Once(2);
    Add<int32_t>(half ? kF16 : kF32);
    Add<uint64_t>(data_bytes_);
    data_bytes_ += (elements * (half ? 2 : 4) + alignment_ - 1) / alignment_ * alignment_;
  }

  FuzzInput input_;
  std::vector<uint8_t> bytes_;
  uint64_t alignment_ = 32;
  uint64_t data_bytes_ = 0;
};

// What asking for a key of any type gives is an answer or a sentence.
void AskFor(const GgufFile& file, const std::string& key) {
  const Status answers[] = {file.Integer(key).status(),  file.Number(key).status(),
                            file.Text(key).status(),     file.Texts(key).status(),
                            file.Integers(key).status(), file.FloatCount(key).status()};
  for (const Status& status : answers) {
    Require(status.ok() || !status.message().empty(), "no sentence about " + key);
  }
}

uint64_t SumOf(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

void Check(const std::vector<uint8_t>& bytes) {
  const Status sound = CheckGguf(bytes);
  Require(sound.ok() || !sound.message().empty(), "refused without a sentence");
  if (!sound.ok()) return;
  const MemoryFile memory(bytes);
  const auto file = GgufFile::Open(memory.path());
  if (!file.ok()) return;
  for (int i = 0; i < 5; ++i) AskFor(**file, "key" + std::to_string(i));
  const std::span<const uint8_t> all = (*file)->bytes();
  for (const TensorInfo& tensor : (*file)->tensors()) {
    const bool inside = tensor.bytes.data() >= all.data() &&
                        tensor.bytes.data() + tensor.bytes.size() <= all.data() + all.size();
    Require(inside, tensor.name + " lies outside the file");
    volatile uint64_t sum = SumOf(tensor.bytes);
    static_cast<void>(sum);
  }
}

}  // namespace
}  // namespace shorthand

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shorthand;
  FuzzInput input({data, size});
  if (input.Once(8)) {
    Check({data, data + size});
  } else {
    Check(Writer(input).File());
  }
  return 0;
}
