// Frames of the socket between a node's agent and its processes: a length (4 bytes, little-endian)
// and so many bytes of one message (proto/coppice/v1/local.proto). Used on both sides; knows
// neither sockets nor what the messages mean.
#ifndef COPPICE_CLIENT_LIBRARY_FRAME_H_
#define COPPICE_CLIENT_LIBRARY_FRAME_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coppice {

// A job of a million ranks takes about 20 MB.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

// Appends the frame of `message`, which has at most kMaxFrameBytes.
void AppendFrame(std::string_view message, std::string& out);

// Cuts a stream of bytes into messages. Memory grows as bytes arrive, never by what a length
// claims.
class FrameReader final {
 public:
  explicit FrameReader(size_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  // Takes what was read. Ends the life of views from Next().
  void Append(std::string_view bytes);
  // The next whole message; nullopt: more bytes are needed, or the stream is broken.
  std::optional<std::string_view> Next();
  // A length was over the maximum: nothing that follows means anything.
  bool is_broken() const { return is_broken_; }
  // Held for messages that are not whole yet, or that nobody took.
  size_t buffered() const { return buffer_.size() - taken_; }

 private:
  const size_t max_bytes_;
  std::string buffer_;
  size_t taken_ = 0;  // bytes of buffer_ that were given out
  bool is_broken_ = false;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_FRAME_H_
