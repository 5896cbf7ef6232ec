#include "agents/node/ping_pong_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr absl::string_view kKinds = "ONDET";

size_t MostTextOf(PingPongWord::Kind kind) {
  return kind == PingPongWord::Kind::kData ? PingPongWord::kMaxData : PingPongWord::kMaxText;
}

absl::Status NoWord() {
  return absl::InvalidArgumentError("the peer says what no agent of this release says");
}

}  // namespace

std::string GreetingOf(PingPongProtocol protocol, absl::string_view token) {
  return absl::StrCat("coppice-ping-pong/", static_cast<int>(protocol), " ", token);
}

bool MayBeGreeting(absl::string_view said) {
  for (const PingPongProtocol protocol : {PingPongProtocol::kTcp, PingPongProtocol::kWords}) {
    const std::string greeting = GreetingOf(protocol, "");
    if (absl::StartsWith(said, absl::string_view(greeting).substr(0, said.size()))) return true;
  }
  return false;
}

absl::Status SendWord(MeasuringSocket& socket, PingPongWord::Kind kind, absl::string_view text) {
  text = text.substr(0, MostTextOf(kind));
  std::string bytes;
  bytes.push_back(static_cast<char>(kind));
  bytes.push_back(static_cast<char>(text.size() >> 8));
  bytes.push_back(static_cast<char>(text.size()));
  absl::StrAppend(&bytes, text);
  return socket.Send(bytes.data(), bytes.size());
}

absl::StatusOr<PingPongWord> ReceiveWord(MeasuringSocket& socket) {
  char head[3];
  if (absl::Status status = socket.Receive(head, sizeof head); !status.ok()) return status;
  if (!absl::StrContains(kKinds, head[0])) return NoWord();
  PingPongWord word;
  word.kind = static_cast<PingPongWord::Kind>(head[0]);
  const size_t size = static_cast<size_t>(static_cast<unsigned char>(head[1])) << 8 |
                      static_cast<unsigned char>(head[2]);
  if (size > MostTextOf(word.kind)) return NoWord();
  word.text.resize(size);
  if (absl::Status status = socket.Receive(word.text.data(), word.text.size()); !status.ok()) {
    return status;
  }
  if (word.kind != PingPongWord::Kind::kData) {
    std::replace_if(
        word.text.begin(), word.text.end(),
        [](char c) { return !absl::ascii_isprint(static_cast<unsigned char>(c)); }, '?');
  }
  return word;
}

}  // namespace coppice
