// HTTP/2 as a client writes it, by hand: RFC 9113, sections 3.4 and 4.1.
#ifndef COPPICE_TESTS_UNIT_RPC_HTTP2_FRAMES_H_
#define COPPICE_TESTS_UNIT_RPC_HTTP2_FRAMES_H_

#include <cstdint>
#include <string>

namespace coppice {

inline constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Http2FrameType : uint8_t {
  kDataFrame = 0,
  kHeadersFrame = 1,
  kResetStreamFrame = 3,
  kSettingsFrame = 4,
  kPingFrame = 6,
  kContinuationFrame = 9
};
inline constexpr uint8_t kEndHeadersFlag = 4;

inline std::string Http2Frame(Http2FrameType type, uint8_t flags, uint8_t stream,
                              const std::string& payload) {
  const size_t length = payload.size();
  return std::string{static_cast<char>(length >> 16),
                     static_cast<char>(length >> 8),
                     static_cast<char>(length),
                     static_cast<char>(type),
                     static_cast<char>(flags),
                     0,
                     0,
                     0,
                     static_cast<char>(stream)} +
         payload;
}

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_HTTP2_FRAMES_H_
