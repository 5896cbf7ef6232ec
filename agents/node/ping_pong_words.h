// What two sides that measure say to each other over the measuring socket, beside the samples:
// greetings, and where verbs are wanted words. A word is a kind (1 B), a length (2 B, the greater
// one first) and so many bytes of text.
#ifndef COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_
#define COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/measuring_socket.h"

namespace coppice {

// The protocols that there are: of TCP alone, and the one with which perftest measures over verbs.
// The second was that of agents with a ping-pong of their own over verbs, and is turned away.
enum class PingPongProtocol { kTcp = 1, kWords = 3 };

constexpr size_t kTokenBytes = 32;
constexpr size_t kGreetingBytes = 20 + kTokenBytes;
constexpr char kWelcome = 'K';

// "coppice-ping-pong/1 " and the token: kGreetingBytes for a token of kTokenBytes.
std::string GreetingOf(PingPongProtocol protocol, absl::string_view token);
// Whether it is one or its beginning, with whatever token.
bool MayBeGreeting(absl::string_view said);

struct PingPongWord {
  enum class Kind : char {
    kOffer = 'O',   // this side has a port for verbs; text: its subnet's prefix
    kRefuse = 'N',  // verbs cannot be used, or not any more; text: why, for people
    kData = 'D',    // text: what this side's program says to the peer's
    kEnd = 'E',     // this side's program has ended well
    kTcp = 'T',     // the active side goes on over TCP, and the passive one has understood
  };
  // Of data, and of all others.
  static constexpr size_t kMaxData = 16'384, kMaxText = 512;

  Kind kind = Kind::kEnd;
  std::string text;
};

// Longer text is cut. Errors of the socket.
absl::Status SendWord(MeasuringSocket& socket, PingPongWord::Kind kind,
                      absl::string_view text = "");
// INVALID_ARGUMENT: no word that there is. The text has no control characters, unless it is data.
absl::StatusOr<PingPongWord> ReceiveWord(MeasuringSocket& socket);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_
