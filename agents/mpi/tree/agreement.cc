#include "agents/mpi/tree/agreement.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace coppice::mpi {
namespace {

using Kind = AgreementMessage::Kind;

// A message begins with these bytes, little endian, and ends with the result:
//   0 kind   1 has a result   2 zero (2)   4 member (4)   8 number (8)   16 bytes of the result (8)
constexpr size_t kHeadBytes = 24;

template <class Number>
Number NumberAt(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

bool GoesToCoordinator(Kind kind) {
  return kind == Kind::kBroken || kind == Kind::kAnswer || kind == Kind::kResult ||
         kind == Kind::kLeft;
}

// What a kind has no use for is 0.
bool IsSensible(Kind kind, bool has_result, uint32_t member, uint64_t number, uint64_t bytes) {
  const bool may_have_result = kind == Kind::kResult || kind == Kind::kDecision;
  if (has_result && !may_have_result) return false;
  if (!has_result && (kind == Kind::kResult || bytes != 0)) return false;
  if (kind != Kind::kLost && member != 0) return false;
  const bool has_number = kind == Kind::kAnswer || kind == Kind::kDecision;  // may be 0, too
  if (kind == Kind::kFetch || kind == Kind::kResult) return number != 0;
  return has_number || number == 0;
}

}  // namespace

std::vector<SharedBytes> PayloadsOf(const AgreementMessage& message) {
  const std::string_view result = message.result ? *message.result : std::string_view();
  std::string head(kHeadBytes, '\0');
  head[0] = static_cast<char>(message.kind);
  head[1] = message.result ? 1 : 0;
  const uint64_t bytes = result.size();
  std::memcpy(head.data() + 4, &message.member, sizeof message.member);
  std::memcpy(head.data() + 8, &message.number, sizeof message.number);
  std::memcpy(head.data() + 16, &bytes, sizeof bytes);
  size_t at = std::min(result.size(), kMaxPayloadBytes - kHeadBytes);
  head.append(result.substr(0, at));
  std::vector<SharedBytes> payloads = {std::make_shared<const std::string>(std::move(head))};
  for (; at < result.size(); at += kMaxPayloadBytes) {
    payloads.push_back(std::make_shared<const std::string>(result.substr(at, kMaxPayloadBytes)));
  }
  return payloads;
}

AgreementReader::State AgreementReader::Begin(std::string_view payload) {
  if (payload.size() < kHeadBytes) return State::kMalformed;
  const auto kind = NumberAt<uint8_t>(payload, 0), has_result = NumberAt<uint8_t>(payload, 1);
  if (kind == 0 || kind >= AgreementMessage::kKinds || has_result > 1 ||
      NumberAt<uint16_t>(payload, 2) != 0) {
    return State::kMalformed;
  }
  message_ = {static_cast<Kind>(kind), NumberAt<uint32_t>(payload, 4),
              NumberAt<uint64_t>(payload, 8), nullptr};
  awaited_ = NumberAt<uint64_t>(payload, 16);
  is_begun_ = true;
  const bool is_sensible =
      IsSensible(message_.kind, has_result == 1, message_.member, message_.number, awaited_);
  if (!is_sensible || awaited_ > max_result_) return State::kMalformed;
  if (has_result == 1) message_.result = std::make_shared<const std::string>();
  return State::kNeedsMore;
}

AgreementReader::State AgreementReader::Take(std::string_view payload, AgreementMessage* message) {
  const bool is_first = !is_begun_;
  if (is_first && !is_malformed_) is_malformed_ = Begin(payload) == State::kMalformed;
  if (is_malformed_) return State::kMalformed;
  const std::string_view part = is_first ? payload.substr(kHeadBytes) : payload;
  // All parts but the last are full, so that a message has a bounded number of them.
  const uint64_t room = is_first ? kMaxPayloadBytes - kHeadBytes : kMaxPayloadBytes;
  if (part.size() != std::min<uint64_t>(awaited_ - result_.size(), room)) {
    is_malformed_ = true;
    return State::kMalformed;
  }
  result_.append(part);
  if (result_.size() < awaited_) return State::kNeedsMore;
  if (message_.result) message_.result = std::make_shared<const std::string>(std::move(result_));
  result_ = std::string();
  is_begun_ = false;
  *message = std::exchange(message_, {});
  return State::kMessage;
}

using A = Agreement;

// By phase and kind of message, the first for what cannot come from there at all.
// clang-format off
const Agreement::Handler Agreement::kHandlers[kPhases][AgreementMessage::kKinds] = {
    // none, broken, ask, answer, fetch, result, decision, lost, left
    {&A::Refuse, &A::TakeBroken, &A::TakeAsk, &A::Refuse,      // whole
     &A::Refuse, &A::Refuse, &A::Refuse, &A::TakeLost, &A::TakeLeft},
    {&A::Refuse, &A::Refuse, &A::TakeAsk, &A::Refuse,          // told
     &A::Refuse, &A::Refuse, &A::Refuse, &A::TakeLost, &A::Refuse},
    {&A::Refuse, &A::Refuse, &A::Refuse, &A::Refuse,           // answered
     &A::TakeFetch, &A::Refuse, &A::TakeDecision, &A::TakeLost, &A::Refuse},
    {&A::Refuse, &A::TakeBroken, &A::Refuse, &A::TakeAnswer,   // asking
     &A::Refuse, &A::Refuse, &A::Refuse, &A::Refuse, &A::TakeLeft},
    {&A::Refuse, &A::Refuse, &A::Refuse, &A::Refuse,           // fetching
     &A::Refuse, &A::TakeResult, &A::Refuse, &A::Refuse, &A::TakeLeft},
    {},                                                        // natively
    {},                                                        // failed
};
// clang-format on

Agreement::Agreement(uint32_t self, uint32_t members) : self_(self) {
  state_.gone.resize(members);
  if (!Coordinates()) return;
  state_.answers.resize(members);
  state_.left.resize(members);
}

AgreementActions Agreement::Take() { return std::exchange(actions_, {}); }

void Agreement::Send(std::vector<uint32_t> to, AgreementMessage message) {
  if (to.empty()) return;
  AgreementAction& action = actions_.emplace_back();
  action.to = std::move(to);
  action.message = std::move(message);
}

AgreementActions Agreement::Enter(uint64_t result_bytes) {
  state_.is_in = true;
  state_.awaited_bytes = result_bytes;
  if (state_.phase == Phase::kWhole) Do(AgreementAction::Kind::kContribute);
  if (state_.phase == Phase::kNatively) GoNatively(state_.finished, nullptr);
  if (state_.phase == Phase::kFailed) Fail(state_.lost);
  return Take();
}

AgreementActions Agreement::Leave() {
  state_.has_left = true;
  if (Coordinates()) {
    state_.left[0] = true;
  } else if (state_.phase != Phase::kNatively && state_.phase != Phase::kFailed) {
    Send({0}, {Kind::kLeft, 0, 0, nullptr});
  }
  EndIfLeft();
  return Take();
}

// Where it is needed no more: all is decided, or nothing is to be decided any more.
void Agreement::EndIfLeft() {
  if (!state_.has_left) return;
  const bool have_all_left =
      Coordinates() && std::ranges::all_of(state_.left, [](bool has_left) { return has_left; });
  const bool is_alone = !Coordinates() && state_.gone[0];
  const bool is_over = state_.phase == Phase::kNatively || state_.phase == Phase::kFailed ||
                       (state_.phase == Phase::kWhole && (have_all_left || is_alone));
  if (is_over) Do(AgreementAction::Kind::kEnd);
}

AgreementActions Agreement::ResultCame(SharedBytes result) {
  if (state_.phase != Phase::kWhole) return {};
  if (!state_.is_in || result == nullptr || result->size() != state_.awaited_bytes) {
    return TreeBroke();
  }
  Complete(std::move(result));
  return Take();
}

void Agreement::Complete(SharedBytes result) {
  ++state_.finished;
  state_.is_in = false;
  state_.result = result;
  Do(AgreementAction::Kind::kComplete);
  actions_.back().result = std::move(result);
}

AgreementActions Agreement::TreeBroke() {
  if (state_.phase == Phase::kWhole) Break();
  return Take();
}

// Leaves the tree and sees to it that all others do.
void Agreement::Break() {
  Do(AgreementAction::Kind::kLeaveTree);
  state_.phase = Coordinates() ? Phase::kAsking : Phase::kTold;
  const auto gone = std::find(state_.gone.begin(), state_.gone.end(), true);
  if (gone != state_.gone.end()) return Fail(static_cast<uint32_t>(gone - state_.gone.begin()));
  if (!Coordinates()) return Send({0}, {Kind::kBroken, 0, 0, nullptr});
  state_.answers[0] = state_.finished;
  std::vector<uint32_t> others;
  for (uint32_t member = 1; member < state_.gone.size(); ++member) others.push_back(member);
  Send(others, {Kind::kAsk, 0, 0, nullptr});
  if (others.empty()) Decide();
}

AgreementActions Agreement::MessageFrom(uint32_t member, const AgreementMessage& message) {
  const auto kind = static_cast<size_t>(message.kind);
  const bool may_come = GoesToCoordinator(message.kind) == Coordinates() && member != self_;
  const Handler handler = kHandlers[static_cast<size_t>(state_.phase)][may_come ? kind : 0];
  if (handler != nullptr) (this->*handler)(member, message);
  return Take();
}

void Agreement::Refuse(uint32_t from, const AgreementMessage& /*message*/) { Fail(from); }

void Agreement::TakeBroken(uint32_t from, const AgreementMessage& /*message*/) {
  if (state_.phase == Phase::kWhole) return Break();
  // It had not been asked yet when it said so.
  if (state_.answers[from]) Fail(from);
}

void Agreement::TakeAsk(uint32_t /*from*/, const AgreementMessage& /*message*/) {
  if (state_.phase == Phase::kWhole) Do(AgreementAction::Kind::kLeaveTree);
  state_.phase = Phase::kAnswered;
  Send({0}, {Kind::kAnswer, 0, state_.finished, nullptr});
}

void Agreement::TakeAnswer(uint32_t from, const AgreementMessage& message) {
  if (state_.answers[from]) return Fail(from);
  state_.answers[from] = message.number;
  const bool are_all_there =
      std::all_of(state_.answers.begin(), state_.answers.end(),
                  [](const std::optional<uint64_t>& answer) { return answer.has_value(); });
  if (are_all_there) Decide();
}

// All answers are there.
void Agreement::Decide() {
  const auto last = std::max_element(state_.answers.begin(), state_.answers.end());
  const auto source = static_cast<uint32_t>(last - state_.answers.begin());
  for (uint32_t member = 0; member < state_.answers.size(); ++member) {
    // Of two who have ended numbers further apart one says what cannot be.
    if (*state_.answers[member] + 1 < **last) return Fail(member == 0 ? source : member);
  }
  if (state_.finished == **last) return HandOn(state_.result);
  // Nobody has a result to which this member has not contributed.
  if (!state_.is_in) return Fail(source);
  state_.source = source;
  state_.phase = Phase::kFetching;
  Send({source}, {Kind::kFetch, 0, **last, nullptr});
}

void Agreement::TakeFetch(uint32_t from, const AgreementMessage& message) {
  if (message.number != state_.finished) return Fail(from);
  Send({0}, {Kind::kResult, 0, state_.finished, state_.result});
}

void Agreement::TakeResult(uint32_t from, const AgreementMessage& message) {
  const bool is_it = from == state_.source && message.number == state_.finished + 1 &&
                     message.result != nullptr && message.result->size() == state_.awaited_bytes;
  if (!is_it) return Fail(from);
  HandOn(message.result);
}

// `result`: of the last along the tree.
void Agreement::HandOn(const SharedBytes& result) {
  uint64_t last = 0;
  for (const auto& answer : state_.answers) last = std::max(last, *answer);
  std::vector<uint32_t> have, lack;
  for (uint32_t member = 1; member < state_.answers.size(); ++member) {
    (*state_.answers[member] == last ? have : lack).push_back(member);
  }
  Send(std::move(have), {Kind::kDecision, 0, last, nullptr});
  Send(std::move(lack), {Kind::kDecision, 0, last, result});
  GoNatively(last, result);
}

void Agreement::TakeDecision(uint32_t from, const AgreementMessage& message) {
  const bool has_it = message.number == state_.finished;
  const bool lacks_it = message.number == state_.finished + 1 && state_.is_in;
  const bool is_result = message.result != nullptr;
  if (!(has_it && !is_result) && !(lacks_it && is_result)) return Fail(from);
  if (is_result && message.result->size() != state_.awaited_bytes) return Fail(from);
  GoNatively(message.number, message.result);
}

// From `last` + 1 on. Who is in `last` has its result now.
void Agreement::GoNatively(uint64_t last, SharedBytes result) {
  state_.phase = Phase::kNatively;
  if (last == state_.finished + 1) Complete(std::move(result));
  if (state_.is_in) Do(AgreementAction::Kind::kGoNatively);
  state_.is_in = false;
  state_.result = nullptr;
  EndIfLeft();
}

void Agreement::TakeLost(uint32_t from, const AgreementMessage& message) {
  Fail(message.member < state_.gone.size() ? message.member : from);
}

void Agreement::Fail(uint32_t member) {
  if (state_.phase == Phase::kWhole) Do(AgreementAction::Kind::kLeaveTree);
  if (Coordinates() && state_.phase != Phase::kFailed) {
    std::vector<uint32_t> others;
    for (uint32_t other = 1; other < state_.gone.size(); ++other) {
      if (!state_.gone[other]) others.push_back(other);
    }
    Send(std::move(others), {Kind::kLost, member, 0, nullptr});
  }
  state_.phase = Phase::kFailed;
  state_.lost = member;
  EndIfLeft();
  if (!std::exchange(state_.is_in, false)) return;
  Do(AgreementAction::Kind::kAbort);
  actions_.back().member = member;
}

void Agreement::TakeLeft(uint32_t from, const AgreementMessage& /*message*/) {
  if (state_.left[from]) return Fail(from);
  state_.left[from] = true;
  EndIfLeft();
}

AgreementActions Agreement::LinkGone(uint32_t member) {
  state_.gone[member] = true;
  const bool is_needed = state_.phase != Phase::kWhole && state_.phase != Phase::kNatively &&
                         state_.phase != Phase::kFailed;
  if (is_needed) Fail(member);
  if (state_.phase == Phase::kWhole) EndIfLeft();
  return Take();
}

Agreement::Wait Agreement::wait() const {
  switch (state_.phase) {
    case Phase::kWhole:
      return state_.is_in ? Wait::kResult : Wait::kNothing;
    case Phase::kTold:
    case Phase::kAnswered:
    case Phase::kAsking:
    case Phase::kFetching:
      return Wait::kAgreement;
    case Phase::kNatively:
    case Phase::kFailed:
      break;
  }
  return Wait::kNothing;
}

AgreementActions Agreement::PatienceOver() {
  if (wait() == Wait::kResult) return TreeBroke();
  if (wait() == Wait::kNothing) return {};
  uint32_t silent = 0;
  if (state_.phase == Phase::kFetching) silent = state_.source;
  if (state_.phase == Phase::kAsking) {
    while (state_.answers[silent]) ++silent;
  }
  Fail(silent);
  return Take();
}

}  // namespace coppice::mpi
