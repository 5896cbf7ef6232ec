#include "client/library/wire.h"

#include <algorithm>
#include <cstring>

namespace coppice::wire {
namespace {

constexpr uint32_t kKindBits = 3;
constexpr uint32_t kVarintKind = 0, kBytesKind = 2;
constexpr int kMaxVarintBits = 64;

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value > 0x7f; value >>= 7) ++size;
  return size;
}

}  // namespace

void Writer::Varint(uint64_t value) {
  for (; value > 0x7f; value >>= 7) text_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  text_.push_back(static_cast<char>(value));
}

void Writer::Number(uint32_t field, uint64_t value) {
  if (value == 0) return;
  Varint(field << kKindBits | kVarintKind);
  Varint(value);
}

void Writer::Bytes(uint32_t field, std::string_view value) {
  if (!value.empty()) Element(field, value);
}

void Writer::Element(uint32_t field, std::string_view value) {
  Varint(field << kKindBits | kBytesKind);
  Varint(value.size());
  text_.append(value);
}

void Writer::Numbers(uint32_t field, const uint32_t* values, size_t count) {
  if (count == 0) return;
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += VarintSize(values[i]);
  Varint(field << kKindBits | kBytesKind);
  Varint(size);
  for (size_t i = 0; i < count; ++i) Varint(values[i]);
}

void Writer::Reals(uint32_t field, const double* values, size_t count) {
  if (count == 0) return;
  Varint(field << kKindBits | kBytesKind);
  Varint(count * sizeof(double));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof bits);
    for (int shift = 0; shift < 64; shift += 8) text_.push_back(static_cast<char>(bits >> shift));
  }
}

bool Reader::Stop() {
  ok_ = false;
  rest_ = bytes_ = {};
  return false;
}

size_t Reader::CountVarints(std::string_view bytes) {
  const auto is_last = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  return static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), is_last));
}

bool Reader::TakeVarint(std::string_view& from, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < kMaxVarintBits; shift += 7) {
    if (from.empty()) return Stop();
    const uint64_t byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return Stop();
}

bool Reader::TakeFixed(size_t size) {
  if (rest_.size() < size) return Stop();
  number_ = 0;
  for (size_t i = 0; i < size; ++i) {
    number_ |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  }
  rest_.remove_prefix(size);
  return true;
}

bool Reader::Next() {
  number_ = 0;
  bytes_ = {};
  uint64_t tag = 0;
  if (rest_.empty() || !TakeVarint(rest_, tag)) return false;
  field_ = static_cast<uint32_t>(tag >> kKindBits);
  kind_ = tag & ((1u << kKindBits) - 1);
  if (tag >> 32 != 0 || field_ == 0) return Stop();
  switch (kind_) {
    case kVarint:
      return TakeVarint(rest_, number_);
    case kFixed64:
      return TakeFixed(8);
    case kFixed32:
      return TakeFixed(4);
    case kBytes: {
      uint64_t size = 0;
      if (!TakeVarint(rest_, size)) return false;
      if (size > rest_.size()) return Stop();
      bytes_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
    default:
      return Stop();
  }
}

double Reader::real() const {
  double value = 0;
  if (kind_ == kFixed64) std::memcpy(&value, &number_, sizeof value);
  return value;
}

}  // namespace coppice::wire
