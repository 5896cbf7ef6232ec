// What two sides that measure say to each other over the measuring socket, beside the samples:
// greetings, and from the second protocol on words. A word is a kind (1 B), a length (1 B) and so
// many bytes of text.
#ifndef COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_
#define COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/measuring_socket.h"

namespace coppice {

// The protocols that there are: of TCP alone, which agents before this release know only, and the
// one that agrees on what is measured over.
enum class PingPongProtocol { kTcp = 1, kWords = 2 };

constexpr size_t kTokenBytes = 32;
constexpr size_t kGreetingBytes = 20 + kTokenBytes;
constexpr char kWelcome = 'K';

// "coppice-ping-pong/1 " and the token: kGreetingBytes for a token of kTokenBytes.
std::string GreetingOf(PingPongProtocol protocol, absl::string_view token);
// Whether it is one or its beginning, with whatever token.
bool MayBeGreeting(absl::string_view said);

struct PingPongWord {
  enum class Kind : char {
    kOffer = 'O',   // verbs can be used; text: VerbsOffer
    kRefuse = 'N',  // they cannot, or not any more; text: why, for people
    kReady = 'R',   // the connection over verbs stands on this side
    kTcp = 'T',     // the active side goes on over TCP, and the passive one has understood
    kEnd = 'E',     // the active side has all it wanted
  };
  static constexpr size_t kMostText = 255;

  Kind kind = Kind::kEnd;
  std::string text;
};

// Longer text is cut. Errors of the socket.
absl::Status SendWord(MeasuringSocket& socket, PingPongWord::Kind kind,
                      absl::string_view text = "");
// INVALID_ARGUMENT: no word that there is. The text has no control characters, unless it is an
// offer.
absl::StatusOr<PingPongWord> ReceiveWord(MeasuringSocket& socket);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PING_PONG_WORDS_H_
