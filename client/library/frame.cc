#include "client/library/frame.h"

#include <cstdint>

namespace coppice {
namespace {

constexpr size_t kLengthBytes = 4;

size_t LengthAt(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return length;
}

}  // namespace

void AppendFrame(std::string_view message, std::string& out) {
  const uint32_t length = static_cast<uint32_t>(message.size());
  for (size_t i = 0; i < kLengthBytes; ++i) {
    out.push_back(static_cast<char>(length >> (8 * i) & 0xff));
  }
  out.append(message);
}

void FrameReader::Append(std::string_view bytes) {
  if (is_broken_) return;
  if (taken_ > 0) {
    buffer_.erase(0, taken_);
    taken_ = 0;
    // One large frame does not keep its memory for good.
    if (buffer_.empty()) std::string().swap(buffer_);
  }
  buffer_.append(bytes);
}

std::optional<std::string_view> FrameReader::Next() {
  if (is_broken_ || buffered() < kLengthBytes) return std::nullopt;
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  const size_t length = LengthAt(rest);
  if (length > max_bytes_) {
    is_broken_ = true;
    std::string().swap(buffer_);
    taken_ = 0;
    return std::nullopt;
  }
  if (rest.size() - kLengthBytes < length) return std::nullopt;
  taken_ += kLengthBytes + length;
  return rest.substr(kLengthBytes, length);
}

}  // namespace coppice
