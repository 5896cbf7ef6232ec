// Puts an Http2Guard before gRPC on connections that we accepted ourselves, and bounds what those
// of one client, and of all, have sent of messages that have not come whole.
//
//   gRPC --recvmsg(fd)--> ours, in this program --recvmsg(2)--> bytes --guard of fd--> gRPC
//                                                                          |
//                                                       bad: shut down, gRPC reads ECONNRESET
//
// The program has a `recvmsg` of its own, which libgrpc's calls find before the C library's: for a
// descriptor with a guard it looks at what was read; for all others it is the system call.
#ifndef COPPICE_DAEMON_RPC_LISTEN_GUARDED_READS_H_
#define COPPICE_DAEMON_RPC_LISTEN_GUARDED_READS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace coppice {

// Of all clients, of which one has at most half of what the others leave: below what gRPC may take
// for all connections (server.cc), since beyond that it gives up anybody's.
inline constexpr int64_t kMaxHalfSent = int64_t{384} << 20;

// What is read from `fd`, a connected socket, is looked at from now on, until the socket is closed.
// `who` is at the other end: "uid 7". Thread-safe; before `fd` is given to gRPC.
// Beyond the process's limit of descriptors at the first call it does nothing.
void GuardReads(int fd, std::string who);

// Looks at the frames that a client sends on one HTTP/2 connection, before gRPC reads them.
// Debian's gRPC 1.51.1 bounds neither a block of headers that is never ended (CONTINUATION frames,
// RFC 9113 section 6.10; CVE-2023-33953: 45 bytes of memory for each that was sent) nor how often a
// client opens a stream and resets it, pings, or changes its settings (section 10.5).
//
//   bytes --> preface (24) --> frame header (9) --> payload, passed over --> frame header ...
//                                   |
//                                   +-- HEADERS, CONTINUATION: bytes of the block so far
//                                   +-- RST_STREAM, SETTINGS, PING: so many, so many a second
//                                   +-- DATA: bytes of messages that have not come whole
//
// Decodes no headers and keeps no payload: what else a client may do wrong, gRPC finds.
// Used by one thread at a time.
class Http2Guard final {
 public:
  // gRPC itself refuses more than 8 KiB of decoded metadata, in words and for the one call.
  static constexpr size_t kMaxHeaderBlock = 16 << 10;
  static constexpr uint32_t kMaxHeaderFrames = 16;  // of one block: empty ones add no bytes

  // Takes the next bytes that came, at `now`. Empty: they are good; otherwise why the connection is
  // to be closed, and from then on the same whatever comes. O(frames), not O(bytes).
  absl::string_view Take(absl::string_view bytes, absl::Time now);

  // Bytes that have come of messages whose ends have not. Also of streams that the server has given
  // up since, of which nobody tells us.
  int64_t half_sent() const { return half_sent_; }

 private:
  // Streams that have been left in the middle of a message.
  static constexpr size_t kMaxHalfMessages = 4096;
  static constexpr uint8_t kMessageHeaderSize = 5;  // a flag, then its length

  struct Message {
    uint8_t header_size = 0;  // bytes of it that have come
    uint32_t left = 0;        // after the header
    int64_t got = 0;
  };
  // What may come all at once, and what is let through again each second.
  struct Allowance {
    uint8_t frame_type;
    double most, per_second;
    const char* refusal;
  };
  struct Used {
    double frames = 0;
    absl::Time since = absl::InfinitePast();
  };
  static constexpr size_t kLimited = 3;
  static const Allowance kAllowances[kLimited];

  static constexpr size_t kPrefaceSize = 24, kFrameHeaderSize = 9;

  // False: `why_` says why not.
  bool BeginFrame(absl::Time now);
  bool BeginData(uint8_t flags);
  void TakeData(absl::string_view bytes);
  bool EndData();
  uint32_t StreamOfFrame() const;
  void ForgetStream(uint32_t stream);
  bool TakeHeaderBlock(size_t length, uint8_t flags);
  bool CountLimited(uint8_t type, absl::Time now);

  size_t preface_left_ = kPrefaceSize;
  std::array<uint8_t, kFrameHeaderSize> header_ = {};
  size_t header_size_ = 0;   // bytes of header_ that are there
  size_t payload_left_ = 0;  // of the frame that is passed over
  size_t block_size_ = 0;    // of the block of headers that is open
  uint32_t block_frames_ = 0;
  std::array<Used, kLimited> used_;
  bool is_data_ = false;                                  // the frame that is passed over
  bool is_last_ = false;                                  // of its stream
  Message message_;                                       // of the stream of that frame
  absl::flat_hash_map<uint32_t, Message> half_messages_;  // by stream
  int64_t half_sent_ = 0;
  absl::string_view why_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_GUARDED_READS_H_
