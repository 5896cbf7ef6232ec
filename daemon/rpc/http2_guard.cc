#include "daemon/rpc/http2_guard.h"

#include <algorithm>

namespace coppice {
namespace {

// RFC 9113, section 6.
constexpr uint8_t kData = 0, kHeaders = 1, kResetStream = 3, kSettings = 4, kPing = 6,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;  // flags

}  // namespace

// gRPC's own clients stay far below: they reset a stream for each call that is cancelled, change
// their settings with the window (a few times a second while much is received), and ping once for
// each round trip at most while they measure it, otherwise every few seconds.
const Http2Guard::Allowance Http2Guard::kAllowances[kLimited] = {
    {kResetStream, 1'000, 200, "calls are opened and cancelled too fast"},
    {kSettings, 200, 20, "settings change too fast"},
    {kPing, 2'000, 500, "too many pings"},
};

absl::string_view Http2Guard::Take(absl::string_view bytes, absl::Time now) {
  while (why_.empty() && !bytes.empty()) {
    size_t& left = preface_left_ > 0 ? preface_left_ : payload_left_;
    if (left > 0) {
      const size_t passed = std::min(left, bytes.size());
      if (is_data_) TakeData(bytes.substr(0, passed));
      left -= passed;
      bytes.remove_prefix(passed);
      if (is_data_ && left == 0 && !EndData()) break;
      continue;
    }
    const size_t taken = std::min(kFrameHeaderSize - header_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, header_.begin() + header_size_);
    header_size_ += taken;
    bytes.remove_prefix(taken);
    if (header_size_ < kFrameHeaderSize) break;
    header_size_ = 0;
    if (!BeginFrame(now)) break;
  }
  return why_;
}

bool Http2Guard::BeginFrame(absl::Time now) {
  payload_left_ = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
  const uint8_t type = header_[3], flags = header_[4];
  if (type == kData) return BeginData(flags);
  if (type == kResetStream) ForgetStream(StreamOfFrame());
  if (type == kHeaders || type == kContinuation) return TakeHeaderBlock(payload_left_, flags);
  return CountLimited(type, now);
}

uint32_t Http2Guard::StreamOfFrame() const {
  return (uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 | uint32_t{header_[7]} << 8 |
          header_[8]) &
         0x7fffffff;
}

void Http2Guard::ForgetStream(uint32_t stream) {
  const auto found = half_messages_.find(stream);
  if (found == half_messages_.end()) return;
  half_sent_ -= found->second.got;
  half_messages_.erase(found);
}

bool Http2Guard::BeginData(uint8_t flags) {
  // Padding, which gRPC takes from nobody.
  if ((flags & ~kEndStream) != 0) {
    why_ = "data of a kind that gRPC does not know";
    return false;
  }
  is_data_ = true;
  is_last_ = (flags & kEndStream) != 0;
  message_ = {};
  if (const auto found = half_messages_.find(StreamOfFrame()); found != half_messages_.end()) {
    message_ = found->second;
    half_messages_.erase(found);
  }
  return payload_left_ > 0 || EndData();
}

void Http2Guard::TakeData(absl::string_view bytes) {
  while (!bytes.empty()) {
    size_t taken = 1;
    if (message_.header_size < kMessageHeaderSize) {
      // The flag is shifted out by the four bytes of the length.
      message_.left = message_.left << 8 | static_cast<uint8_t>(bytes.front());
      ++message_.header_size;
    } else {
      taken = std::min<size_t>(message_.left, bytes.size());
      message_.left -= static_cast<uint32_t>(taken);
    }
    bytes.remove_prefix(taken);
    message_.got += static_cast<int64_t>(taken);
    half_sent_ += static_cast<int64_t>(taken);
    if (message_.header_size < kMessageHeaderSize || message_.left > 0) continue;
    half_sent_ -= message_.got;
    message_ = {};
  }
}

bool Http2Guard::EndData() {
  is_data_ = false;
  if (is_last_) {
    half_sent_ -= message_.got;
  } else if (message_.got > 0) {
    if (half_messages_.size() >= kMaxHalfMessages) {
      why_ = "too many messages are left half sent";
      return false;
    }
    half_messages_[StreamOfFrame()] = message_;
  }
  return true;
}

bool Http2Guard::TakeHeaderBlock(size_t length, uint8_t flags) {
  block_size_ += length;
  if (block_size_ > kMaxHeaderBlock || ++block_frames_ > kMaxHeaderFrames) {
    why_ = "the headers of a call are too long";
    return false;
  }
  if ((flags & kEndHeaders) != 0) block_size_ = block_frames_ = 0;
  return true;
}

bool Http2Guard::CountLimited(uint8_t type, absl::Time now) {
  for (size_t i = 0; i < kLimited; ++i) {
    const Allowance& allowance = kAllowances[i];
    if (allowance.frame_type != type) continue;
    Used& used = used_[i];
    const double rested = absl::ToDoubleSeconds(std::max(now - used.since, absl::ZeroDuration()));
    used.frames = std::max(0.0, used.frames - rested * allowance.per_second) + 1;
    used.since = now;
    if (used.frames <= allowance.most) continue;
    why_ = allowance.refusal;
    return false;
  }
  return true;
}

}  // namespace coppice
