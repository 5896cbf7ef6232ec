#include "daemon/rpc/calls/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr double kBurstSeconds = 2;
constexpr int64_t kMega = 1'000'000;

std::string Megabytes(int64_t bytes) { return absl::StrCat(bytes / kMega + 1, " MB"); }

}  // namespace

std::string Caller::Key() const {
  return absl::StrCat(name, is_administrator ? "\nadministrator\n" : "\n", by);
}

// What one caller has.
struct AdmittedCaller {
  Caller who;
  Admission::Agent* agent = nullptr;  // that calls for it
  Admission::Counts counts;
  Admission::Allowance allowance;
  Admission::Memory requests, answers;
  std::deque<std::shared_ptr<AdmittedCall>> waiting, waiting_streams;
  bool is_listed = false;  // in turns_
  bool is_in_use() const {
    return counts.calls + counts.streams + counts.readings > 0 || !waiting.empty() ||
           is_listed;  // streams: also waiting
  }
};

struct Admission::MemoryKind {
  AdmittedCall::Held AdmittedCall::*of_call;
  Memory AdmittedCaller::*of_caller;
  Memory Admission::*of_all;
  AdmittedCall* (Admission::*large)[2];
  int64_t CallerBounds::*most;
  int64_t AdmissionBounds::*all_most;
  absl::string_view what, have, what_to_do;
};

const Admission::MemoryKind Admission::kRequests = {&AdmittedCall::request_,
                                                    &AdmittedCaller::requests,
                                                    &Admission::requests_,
                                                    &Admission::large_request_,
                                                    &CallerBounds::request_memory,
                                                    &AdmissionBounds::request_memory,
                                                    "request",
                                                    "have requests under way",
                                                    "call again when some have ended"};

const Admission::MemoryKind Admission::kAnswers = {&AdmittedCall::answer_,
                                                   &AdmittedCaller::answers,
                                                   &Admission::answers_,
                                                   &Admission::large_answer_,
                                                   &CallerBounds::answer_memory,
                                                   &AdmissionBounds::answer_memory,
                                                   "answer",
                                                   "have answers that are not read yet",
                                                   "call again when they have been read"};

Admission::Admission(const AdmissionBounds& bounds, const Clock* clock)
    : clock_(clock), bounds_(bounds) {}

Admission::~Admission() = default;

void Admission::SetBounds(const AdmissionBounds& bounds) {
  std::lock_guard lock(mutex_);
  bounds_ = bounds;
}

const CallerBounds& Admission::BoundsOf(const AdmittedCaller& caller) const {
  return caller.who.is_administrator ? bounds_.administrator : bounds_.caller;
}

AdmittedCaller& Admission::Find(const Caller& who) {
  std::unique_ptr<AdmittedCaller>& place = callers_[who.Key()];
  if (place != nullptr) return *place;
  place = std::make_unique<AdmittedCaller>();
  place->who = who;
  const absl::Duration now = clock_->Monotonic();
  place->allowance = {BoundsOf(*place).calls_per_second * kBurstSeconds, now};
  if (!who.is_by_agent) return *place;
  std::unique_ptr<Agent>& agent = agents_[who.by];
  if (agent == nullptr) {
    agent = std::make_unique<Agent>();
    agent->allowance = {kCallersOfAgent * bounds_.caller.calls_per_second * kBurstSeconds, now};
  }
  ++agent->callers;
  place->agent = agent.get();
  return *place;
}

void Admission::Count(AdmittedCaller& caller, uint32_t Counts::*what, int by) {
  Count(caller.counts, what, by);
  Count(all_, what, by);
  if (caller.agent != nullptr) Count(caller.agent->counts, what, by);
}

Admission::Whose Admission::Bound(const AdmittedCaller& caller, uint32_t Counts::*what,
                                  uint32_t CallerBounds::*own,
                                  uint32_t AdmissionBounds::*all) const {
  const uint32_t most = BoundsOf(caller).*own;
  const uint32_t has = caller.counts.*what;
  if (has >= most) return Whose::kCallers;
  if (caller.agent != nullptr &&
      caller.agent->counts.*what >= kCallersOfAgent * (bounds_.caller.*own)) {
    return Whose::kAgents;
  }
  const bool is_free = caller.who.is_administrator ||
                       int64_t{has} < ShareOf(most, bounds_.*all, int64_t{all_.*what} - has);
  return is_free ? Whose::kNobodys : Whose::kAll;
}

absl::Status Admission::Refused(AdmittedCaller& caller, Whose whose, uint32_t Counts::*what,
                                absl::string_view words) {
  ++refused_;
  Charge(caller);
  const std::string& by = caller.who.by;
  const auto [who, has] =
      whose == Whose::kCallers
          ? std::pair(absl::StrCat(caller.who.name, " has"), caller.counts.*what)
      : whose == Whose::kAgents ? std::pair(absl::StrCat("those for whom ", by, " calls have"),
                                            caller.agent->counts.*what)
                                : std::pair(std::string("all callers together have"), all_.*what);
  return absl::ResourceExhaustedError(absl::StrCat(
      who, " ", has, " ", words, " already, and may have no more; let some end, and call again"));
}

bool Admission::Refill(Allowance& allowance, double rate) {
  const absl::Duration now = clock_->Monotonic();
  allowance.left = std::min(rate * kBurstSeconds,
                            allowance.left + rate * absl::ToDoubleSeconds(now - allowance.filled));
  allowance.filled = now;
  return allowance.left >= rate * kBurstSeconds;
}

bool Admission::MayCall(AdmittedCaller& caller) {
  if (caller.allowance.left < 1) Refill(caller.allowance, BoundsOf(caller).calls_per_second);
  if (caller.allowance.left < 1) return false;
  if (caller.agent == nullptr) return true;
  Allowance& of_agent = caller.agent->allowance;
  if (of_agent.left < 1) Refill(of_agent, kCallersOfAgent * bounds_.caller.calls_per_second);
  return of_agent.left >= 1;
}

// Also of calls that are refused: who goes on then waits for longer, but not for ever.
void Admission::Charge(AdmittedCaller& caller) {
  const auto charge = [](Allowance& allowance, double rate) {
    allowance.left = std::max(-rate * kBurstSeconds, allowance.left - 1);
  };
  charge(caller.allowance, BoundsOf(caller).calls_per_second);
  if (caller.agent == nullptr) return;
  charge(caller.agent->allowance, kCallersOfAgent * bounds_.caller.calls_per_second);
}

bool Admission::MayStart(AdmittedCaller& caller, bool is_stream) {
  if (caller.counts.readings >= kReadings) return false;
  if (caller.agent != nullptr && caller.agent->counts.readings >= kReadingsOfAgent) return false;
  if (!is_stream && Bound(caller, &Counts::calls, &CallerBounds::calls, &AdmissionBounds::calls) !=
                        Whose::kNobodys) {
    return false;
  }
  return MayCall(caller);
}

std::deque<std::shared_ptr<AdmittedCall>>* Admission::Startable(AdmittedCaller& caller) {
  for (auto* const queue : {&caller.waiting_streams, &caller.waiting}) {
    if (!queue->empty() && MayStart(caller, queue == &caller.waiting_streams)) return queue;
  }
  return nullptr;
}

void Admission::Begin(AdmittedCall& call) {
  AdmittedCaller& caller = *call.caller_;
  call.state_ = AdmittedCall::State::kReading;
  call.since_ = clock_->Monotonic();
  if (!call.is_stream_) Count(caller, &Counts::calls, 1);
  Count(caller, &Counts::readings, 1);
  Charge(caller);
  slow_.insert(&call);
}

void Admission::EndReading(AdmittedCall& call) {
  if (call.state_ != AdmittedCall::State::kReading) return;
  call.state_ = AdmittedCall::State::kRunning;
  slow_.erase(&call);
  Count(*call.caller_, &Counts::readings, -1);
}

absl::StatusOr<Admission::Verdict> Admission::Arrive(const std::shared_ptr<AdmittedCall>& call,
                                                     const Caller& who, Kind kind) {
  std::lock_guard lock(mutex_);
  AdmittedCaller& caller = Find(who);
  const bool is_stream = kind != Kind::kCall;
  if (is_stream) {
    const Whose whose =
        Bound(caller, &Counts::streams, &CallerBounds::streams, &AdmissionBounds::streams);
    if (whose != Whose::kNobodys) return Refused(caller, whose, &Counts::streams, "streams open");
  }
  // One answer that nobody reads is enough before the next.
  if (caller.answers.bytes > BoundsOf(caller).answer_memory) {
    ++refused_;
    Charge(caller);
    return absl::ResourceExhaustedError(absl::StrCat(caller.who.name, " has not read answers of ",
                                                     Megabytes(caller.answers.bytes),
                                                     "; read them, and call again"));
  }
  if (kind == Kind::kDialogue && !MayCall(caller)) {
    ++refused_;
    Charge(caller);
    return absl::ResourceExhaustedError(
        absl::StrCat(caller.who.name, " opens streams too often; open one, and keep it"));
  }
  auto& queue = is_stream ? caller.waiting_streams : caller.waiting;
  const bool may_start =
      kind == Kind::kDialogue ||
      (queue.empty() && all_.readings < kAllReadings && MayStart(caller, is_stream));
  if (!may_start && !is_stream) {
    const Whose whose =
        Bound(caller, &Counts::waiting, &CallerBounds::waiting, &AdmissionBounds::waiting);
    if (whose != Whose::kNobodys) return Refused(caller, whose, &Counts::waiting, "calls waiting");
  }
  call->caller_ = &caller;
  call->is_stream_ = is_stream;
  if (is_stream) Count(caller, &Counts::streams, 1);
  if (kind == Kind::kDialogue) {
    Charge(caller);
    call->state_ = AdmittedCall::State::kRunning;
    return Verdict::kStart;
  }
  if (may_start) {
    Begin(*call);
    return Verdict::kStart;
  }
  call->state_ = AdmittedCall::State::kWaiting;
  queue.push_back(call);
  if (!is_stream) Count(caller, &Counts::waiting, 1);
  Enlist(caller);
  return Verdict::kWait;
}

void Admission::Enlist(AdmittedCaller& caller) {
  if (caller.is_listed || Startable(caller) == nullptr) return;
  caller.is_listed = true;
  turns_.push_back(&caller);
}

Admission::Calls Admission::Next() {
  Calls started;
  while (!turns_.empty() && all_.readings < kAllReadings) {
    AdmittedCaller& caller = *turns_.front();
    turns_.pop_front();
    caller.is_listed = false;
    auto* const queue = Startable(caller);
    if (queue == nullptr) continue;
    started.push_back(std::move(queue->front()));
    queue->pop_front();
    if (!started.back()->is_stream_) Count(caller, &Counts::waiting, -1);
    Begin(*started.back());
    Enlist(caller);
  }
  return started;
}

void Admission::StartAll(const Calls& calls) {
  for (const std::shared_ptr<AdmittedCall>& call : calls) call->Start();
}

void Admission::Read(AdmittedCall& call) {
  Calls started;
  {
    std::lock_guard lock(mutex_);
    if (call.state_ != AdmittedCall::State::kReading) return;
    EndReading(call);
    Enlist(*call.caller_);
    if (turns_.empty()) return;
    started = Next();
  }
  StartAll(started);
}

void Admission::GiveBack(AdmittedCall& call, const MemoryKind& kind) {
  const AdmittedCall::Held held = std::exchange(call.*kind.of_call, {});
  for (Memory* const memory : {&(call.caller_->*kind.of_caller), &(this->*kind.of_all)}) {
    memory->bytes -= held.bytes;
    if (held.is_shared) memory->shared -= held.bytes;
  }
  AdmittedCall*& large = (this->*kind.large)[call.caller_->who.is_administrator];
  if (large == &call) large = nullptr;
}

absl::Status Admission::Take(AdmittedCall& call, const MemoryKind& kind, int64_t bytes, bool must) {
  if (bytes <= kSmall) return absl::OkStatus();
  AdmittedCaller& caller = *call.caller_;
  Memory& own = caller.*kind.of_caller;
  Memory& all = this->*kind.of_all;
  const int64_t share =
      ShareOf(BoundsOf(caller).*kind.most, bounds_.*kind.all_most, all.shared - own.shared);
  AdmittedCall*& large = (this->*kind.large)[caller.who.is_administrator];
  const bool is_shared = own.bytes + bytes <= share;
  if (!is_shared && !must) {
    if (own.bytes > 0 || large != nullptr) {
      ++refused_;
      return absl::ResourceExhaustedError(absl::StrCat(
          "this ", kind.what, " takes ", Megabytes(bytes), " of memory, and ",
          own.bytes > 0 ? absl::StrCat("others of ", caller.who.name) : "others", " ", kind.have,
          ", of ", Megabytes(own.bytes > 0 ? own.bytes : all.bytes), "; ", kind.what_to_do));
    }
    large = &call;
  }
  call.*kind.of_call = {bytes, is_shared};
  for (Memory* const memory : {&own, &all}) {
    memory->bytes += bytes;
    if (is_shared) memory->shared += bytes;
  }
  return absl::OkStatus();
}

absl::Status Admission::TakeRequest(AdmittedCall& call, int64_t bytes) {
  std::lock_guard lock(mutex_);
  GiveBack(call, kRequests);
  return Take(call, kRequests, bytes, /*must=*/false);
}

absl::Status Admission::CanAnswer(AdmittedCall& call) {
  std::lock_guard lock(mutex_);
  if (call.caller_ == nullptr) return absl::OkStatus();
  const AdmittedCaller& caller = *call.caller_;
  if (caller.answers.bytes <= BoundsOf(caller).answer_memory) return absl::OkStatus();
  ++refused_;
  return absl::ResourceExhaustedError(absl::StrCat(caller.who.name, " has not read answers of ",
                                                   Megabytes(caller.answers.bytes),
                                                   "; read them, and call again"));
}

absl::Status Admission::HoldAnswer(AdmittedCall& call, int64_t bytes, Answer otherwise) {
  std::lock_guard lock(mutex_);
  if (call.caller_ == nullptr) return absl::OkStatus();
  GiveBack(call, kAnswers);
  absl::Status status = Take(call, kAnswers, bytes, /*must=*/otherwise == Answer::kKept);
  if (call.answer_.bytes > 0) {
    call.since_ = clock_->Monotonic();
    slow_.insert(&call);
  } else if (call.state_ == AdmittedCall::State::kRunning) {
    slow_.erase(&call);
  }
  return status;
}

void Admission::Leave(AdmittedCall& call) {
  Calls started;
  {
    std::lock_guard lock(mutex_);
    if (call.caller_ == nullptr) return;
    AdmittedCaller& caller = *call.caller_;
    EndReading(call);
    slow_.erase(&call);
    Count(caller, call.is_stream_ ? &Counts::streams : &Counts::calls, -1);
    GiveBack(call, kRequests);
    GiveBack(call, kAnswers);
    call.state_ = AdmittedCall::State::kOutside;
    call.caller_ = nullptr;
    Enlist(caller);
    if (turns_.empty()) return;
    started = Next();
  }
  StartAll(started);
}

absl::Status Admission::TooSlow(const AdmittedCall& call, absl::Duration now) const {
  const AdmittedCaller& caller = *call.caller_;
  const absl::Duration took = now - call.since_;
  if (call.state_ != AdmittedCall::State::kReading) {
    if (took <= bounds_.longest_reading) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the answer was not read in ",
                                               absl::FormatDuration(bounds_.longest_reading),
                                               "; read it, or ask for less at once"));
  }
  const bool blocks_all = !turns_.empty() && all_.readings >= kAllReadings;
  const bool blocks_agent = caller.agent != nullptr && caller.agent->counts.waiting > 0 &&
                            caller.agent->counts.readings >= kReadingsOfAgent;
  absl::Duration longest = bounds_.longest_reading;
  if (blocks_all || blocks_agent) {
    longest = std::min(longest,
                       caller.counts.readings > 1 ? kLongestReadingOfMany : kLongestReadingOfOne);
  }
  if (took <= longest) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the request had not come after ",
                                             absl::FormatDuration(longest),
                                             "; send fewer at once, and call again"));
}

void Admission::Tick() {
  Calls started;
  std::vector<std::pair<std::shared_ptr<AdmittedCall>, absl::Status>> late;
  {
    std::lock_guard lock(mutex_);
    const absl::Duration now = clock_->Monotonic();
    for (AdmittedCall* call : slow_) {
      absl::Status why = TooSlow(*call, now);
      if (why.ok()) continue;
      if (std::shared_ptr<AdmittedCall> held = call->weak_from_this().lock()) {
        late.emplace_back(std::move(held), std::move(why));
      }
    }
    for (auto place = callers_.begin(); place != callers_.end();) {
      AdmittedCaller& caller = *place->second;
      const bool is_full = Refill(caller.allowance, BoundsOf(caller).calls_per_second);
      Enlist(caller);
      // Its rate must not begin anew by that.
      if (caller.is_in_use() || !is_full) {
        ++place;
        continue;
      }
      if (caller.agent != nullptr) --caller.agent->callers;
      callers_.erase(place++);
    }
    for (auto place = agents_.begin(); place != agents_.end();) {
      Agent& agent = *place->second;
      const bool is_full =
          Refill(agent.allowance, kCallersOfAgent * bounds_.caller.calls_per_second);
      if (agent.callers > 0 || !is_full) {
        ++place;
      } else {
        agents_.erase(place++);
      }
    }
    started = Next();
  }
  StartAll(started);
  for (const auto& [call, why] : late) call->Abort(why);
}

Admission::Numbers Admission::numbers() const {
  std::lock_guard lock(mutex_);
  return {callers_.size(), agents_.size(),  all_.calls,     all_.waiting,
          all_.streams,    requests_.bytes, answers_.bytes, refused_};
}

}  // namespace coppice
