#include "agents/node/verbs/verbs_ping_pong.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/node/ping_pong_words.h"
#include "agents/node/verbs/verbs_offer.h"
#include "agents/node/verbs/verbs_pair.h"
#include "agents/node/verbs/verbs_port.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = PingPongWord::Kind;

// A wait that polls leaves the processor this long when nothing comes.
constexpr std::chrono::milliseconds kNap{1};

// What the other side says instead of going on.
absl::Status Unexpected(const PingPongWord& word) {
  if (word.kind == Kind::kRefuse) {
    return absl::FailedPreconditionError(absl::StrCat("the peer: ", word.text));
  }
  return absl::UnavailableError("the peer does not keep to the order of a measurement");
}

// One side of a measurement over verbs.
class Side final {
 public:
  Side(MeasuringSocket& socket, const VerbsChoice& choice, const PingPongNumbers& numbers)
      : socket_(socket), choice_(choice), numbers_(numbers) {}

  absl::Status Open();
  // This side's offer, or why it has none: `mine`, of Open.
  absl::Status SayOffer(const absl::Status& mine);
  absl::StatusOr<VerbsOffer> HearOffer();
  absl::Status Connect(const VerbsOffer& peers);
  absl::Status SayReady(const absl::Status& mine);
  absl::Status HearReady();
  // Of the passive side: gets ready for the message of that number.
  absl::Status AwaitMessage(uint32_t number);
  absl::Status AnswerAll();
  absl::StatusOr<double> RoundTrip(size_t bytes);
  // What the peer said while this side polled; none: nothing.
  const std::optional<PingPongWord>& heard() const { return heard_; }

 private:
  uint32_t message_count() const { return numbers_.all_pings() + numbers_.all_transfers(); }
  absl::Status Look(bool is_quiet);
  VerbsPair::Look look() {
    return [this](bool is_quiet) { return Look(is_quiet); };
  }

  MeasuringSocket& socket_;
  const VerbsChoice& choice_;
  const PingPongNumbers& numbers_;
  std::unique_ptr<VerbsPair> pair_;
  std::optional<PingPongWord> heard_;
};

absl::Status Side::Open() {
  absl::StatusOr<VerbsPort> port = VerbsPort::Open(choice_);
  if (!port.ok()) return absl::FailedPreconditionError(port.status().message());
  auto pair = VerbsPair::Create(*std::move(port), numbers_.transfer_bytes);
  if (pair.ok()) pair_ = *std::move(pair);
  return pair.status();
}

absl::Status Side::SayOffer(const absl::Status& mine) {
  if (!mine.ok()) return SendWord(socket_, Kind::kRefuse, mine.message());
  return SendWord(socket_, Kind::kOffer, Encode(pair_->offer()));
}

absl::StatusOr<VerbsOffer> Side::HearOffer() {
  const absl::StatusOr<PingPongWord> word = ReceiveWord(socket_);
  if (!word.ok()) return word.status();
  if (word->kind != Kind::kOffer) return Unexpected(*word);
  return DecodeVerbsOffer(word->text);
}

absl::Status Side::Connect(const VerbsOffer& peers) {
  if (absl::Status reach = CheckReach(pair_->offer(), peers); !reach.ok()) return reach;
  return pair_->Connect(peers);
}

absl::Status Side::SayReady(const absl::Status& mine) {
  if (!mine.ok()) return SendWord(socket_, Kind::kRefuse, mine.message());
  return SendWord(socket_, Kind::kReady);
}

absl::Status Side::HearReady() {
  const absl::StatusOr<PingPongWord> word = ReceiveWord(socket_);
  if (!word.ok()) return word.status();
  return word->kind == Kind::kReady ? absl::OkStatus() : Unexpected(*word);
}

absl::Status Side::Look(bool is_quiet) {
  const auto news = socket_.HasNews(is_quiet ? kNap : std::chrono::milliseconds(0));
  if (!news.ok()) return news.status();
  if (!*news) return absl::OkStatus();
  absl::StatusOr<PingPongWord> word = ReceiveWord(socket_);
  if (!word.ok()) return word.status();
  heard_ = *std::move(word);
  return Unexpected(*heard_);
}

absl::Status Side::AwaitMessage(uint32_t number) {
  if (number >= message_count()) return absl::OkStatus();
  return pair_->PostMessage(number < numbers_.all_pings() ? PingPongNumbers::kPingBytes
                                                          : numbers_.transfer_bytes);
}

absl::Status Side::AnswerAll() {
  for (uint32_t i = 0; i < message_count(); ++i) {
    if (absl::Status status = pair_->AwaitMessages(look()); !status.ok()) return status;
    // Before the answer, which sets the active side going again.
    if (absl::Status status = AwaitMessage(i + 1); !status.ok()) return status;
    absl::Status status = pair_->Send(PingPongNumbers::kPingBytes, look());
    if (!status.ok()) return status;
  }
  return pair_->Drain(look());
}

absl::StatusOr<double> Side::RoundTrip(size_t bytes) {
  absl::Status status = pair_->PostMessage(PingPongNumbers::kPingBytes);
  const Clock::time_point start = Clock::now();
  if (status.ok()) status = pair_->Send(bytes, look());
  if (status.ok()) status = pair_->AwaitMessages(look());
  const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  if (status.ok()) status = pair_->Drain(look());
  if (!status.ok()) return status;
  return took;
}

// Both sides connect, and each knows of both that they have. `hears_first`: the passive side, so
// that it has all it needs before it is sent anything.
absl::Status Prepare(Side& side, bool hears_first) {
  absl::Status mine = side.Open();
  absl::StatusOr<VerbsOffer> peers = VerbsOffer();
  if (hears_first) peers = side.HearOffer();
  if (!peers.ok() && !absl::IsFailedPrecondition(peers.status())) return peers.status();
  if (absl::Status said = side.SayOffer(mine); !said.ok()) return said;
  if (!hears_first) peers = side.HearOffer();
  if (!mine.ok() && (peers.ok() || absl::IsFailedPrecondition(peers.status()))) return mine;
  if (!peers.ok()) return peers.status();
  mine = side.Connect(*peers);
  if (mine.ok() && hears_first) mine = side.AwaitMessage(0);
  if (absl::Status said = side.SayReady(mine); !said.ok()) return said;
  const absl::Status theirs = side.HearReady();
  const bool is_mine = !mine.ok() && absl::IsFailedPrecondition(theirs);
  return theirs.ok() || is_mine ? mine : theirs;
}

// What the active side says in the end: that it has all it wanted, or that it goes on over TCP.
absl::StatusOr<Kind> HearEnd(MeasuringSocket& socket, std::optional<PingPongWord> heard) {
  for (;;) {
    if (heard && (heard->kind == Kind::kEnd || heard->kind == Kind::kTcp)) return heard->kind;
    if (heard && heard->kind != Kind::kRefuse) return Unexpected(*heard);
    absl::StatusOr<PingPongWord> word = ReceiveWord(socket);
    if (!word.ok()) return word.status();
    heard = *std::move(word);
  }
}

}  // namespace

absl::StatusOr<PingPongFigures> MeasureOverVerbs(MeasuringSocket& socket, const VerbsChoice& choice,
                                                 const PingPongNumbers& numbers) {
  Side side(socket, choice, numbers);
  if (absl::Status ready = Prepare(side, /*hears_first=*/false); !ready.ok()) return ready;
  auto figures = TakeSamples(numbers, [&side](size_t bytes) { return side.RoundTrip(bytes); });
  if (!figures.ok()) return figures;
  if (absl::Status said = SendWord(socket, Kind::kEnd); !said.ok()) return said;
  figures->transport = PingPongTransport::kVerbs;
  return figures;
}

absl::Status TurnToTcp(MeasuringSocket& socket) {
  if (absl::Status said = SendWord(socket, Kind::kTcp); !said.ok()) return said;
  for (;;) {
    // What the peer said before it heard that.
    const absl::StatusOr<PingPongWord> word = ReceiveWord(socket);
    if (!word.ok()) return word.status();
    if (word->kind == Kind::kTcp) return absl::OkStatus();
  }
}

absl::StatusOr<bool> AnswerOverVerbs(MeasuringSocket& socket, const VerbsChoice& choice,
                                     const PingPongNumbers& numbers) {
  Side side(socket, choice, numbers);  // to the end: a packet may have to be acknowledged again
  absl::Status status = Prepare(side, /*hears_first=*/true);
  if (status.ok()) {
    status = side.AnswerAll();
    // Of a failure that is this side's own the active one has to hear.
    if (absl::IsFailedPrecondition(status) && !side.heard()) {
      if (absl::Status said = side.SayReady(status); !said.ok()) return said;
    }
  }
  if (!status.ok() && !absl::IsFailedPrecondition(status) && !side.heard()) return status;
  const absl::StatusOr<Kind> end = HearEnd(socket, side.heard());
  if (absl::IsUnavailable(end.status()) && !status.ok()) return status;
  if (!end.ok()) return end.status();
  if (*end == Kind::kEnd) return true;
  if (absl::Status said = SendWord(socket, Kind::kTcp); !said.ok()) return said;
  return false;
}

}  // namespace coppice
