// The encoding of protocol buffers, as much of it as libcoppice needs.
//
// Why not the protobuf library: libcoppice is loaded into programs of all kinds. A second protobuf
// of another version in one process, or one that learns the same file twice, ends the process; and
// Debian's static one cannot be put into a shared library. Fields are few, so the numbers are
// written out in messages.cc; tests hold them to the generated classes.
//
// https://protobuf.dev/programming-guides/encoding
#ifndef COPPICE_CLIENT_LIBRARY_WIRE_H_
#define COPPICE_CLIENT_LIBRARY_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::wire {

// Appends fields to a message. As proto3 has it, 0 and empty values are left out, except in lists.
class Writer final {
 public:
  void Number(uint32_t field, uint64_t value);
  void Bytes(uint32_t field, std::string_view value);
  void Element(uint32_t field, std::string_view value);  // of a list of texts or messages
  void Numbers(uint32_t field, const uint32_t* values, size_t count);
  void Reals(uint32_t field, const double* values, size_t count);

  const std::string& text() const { return text_; }

 private:
  void Varint(uint64_t value);

  std::string text_;
};

// Walks through the fields of a message: while (reader.Next()) switch (reader.field()) ...
// A message that ends early or holds an unknown kind of field stops it, with ok() false. Values are
// asked for in any kind: one that was sent in another reads as 0 or empty.
class Reader final {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  bool Next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  double real() const;  // of a double
  // Appends the elements of a list of numbers, packed or one by one. Stops the walk if malformed.
  template <class Integer>
  void AppendTo(std::vector<Integer>& list) {
    if (kind_ != kBytes) {
      list.push_back(static_cast<Integer>(number_));
      return;
    }
    // Exact for the usual one chunk. A list in many grows as it does by itself, in linear time.
    if (list.empty()) list.reserve(CountVarints(bytes_));
    for (uint64_t value = 0; !bytes_.empty() && TakeVarint(bytes_, value);) {
      list.push_back(static_cast<Integer>(value));
    }
  }

 private:
  enum Kind : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  static size_t CountVarints(std::string_view bytes);
  bool TakeVarint(std::string_view& from, uint64_t& value);
  bool TakeFixed(size_t size);
  bool Stop();

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0;
  uint32_t kind_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace coppice::wire

#endif  // COPPICE_CLIENT_LIBRARY_WIRE_H_
