#include "daemon/rpc/calls/admission.h"

#include <algorithm>

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
  Admission::Account* agent = nullptr;  // that calls for it
  Admission::Account account;
  Admission::Taken taken[2];  // [Memory]
  std::deque<std::shared_ptr<AdmittedCall>> waiting, waiting_streams;
  bool is_listed = false;  // in turns_
  bool is_in_use() const {
    const Admission::Counts& counts = account.counts;
    return counts.calls + counts.streams + counts.readings > 0 || !waiting.empty() ||
           is_listed;  // streams: also waiting
  }
};

const Admission::Bounded Admission::kCalls = {&Counts::calls, &CallerBounds::calls,
                                              &AdmissionBounds::calls, "calls"};
const Admission::Bounded Admission::kStreams = {&Counts::streams, &CallerBounds::streams,
                                                &AdmissionBounds::streams, "streams open"};
const Admission::Bounded Admission::kWaiting = {&Counts::waiting, &CallerBounds::waiting,
                                                &AdmissionBounds::waiting, "calls waiting"};

struct Admission::MemoryKind {
  int64_t CallerBounds::*most;
  int64_t AdmissionBounds::*all_most;
  absl::string_view what, have, what_to_do;
};

const Admission::MemoryKind Admission::kMemory[2] = {
    {&CallerBounds::request_memory, &AdmissionBounds::request_memory, "request",
     "have requests under way", "call again when some have ended"},
    {&CallerBounds::answer_memory, &AdmissionBounds::answer_memory, "answer",
     "have answers that are not read yet", "call again when they have been read"}};

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
  std::unique_ptr<Account>* agent = who.is_by_agent ? &agents_[who.by] : nullptr;
  const bool is_new_agent = agent != nullptr && *agent == nullptr;
  if (is_new_agent) *agent = std::make_unique<Account>();
  if (agent != nullptr) {
    place->agent = agent->get();
    ++place->agent->callers;
  }
  ForAccounts(*place, [&](Account& account, double rate) {
    if (&account == place->agent && !is_new_agent) return;
    account.left = rate * kBurstSeconds;
    account.filled = clock_->Monotonic();
  });
  return *place;
}

template <class Use>
void Admission::ForAccounts(AdmittedCaller& caller, Use use) {
  use(caller.account, BoundsOf(caller).calls_per_second);
  if (caller.agent == nullptr) return;
  use(*caller.agent, kCallersOfAgent * bounds_.caller.calls_per_second);
}

void Admission::Count(AdmittedCaller& caller, uint32_t Counts::*what, int by) {
  all_.*what += static_cast<uint32_t>(by);
  ForAccounts(caller,
              [&](Account& account, double) { account.counts.*what += static_cast<uint32_t>(by); });
}

Admission::Whose Admission::Bound(const AdmittedCaller& caller, const Bounded& kind) const {
  const uint32_t most = BoundsOf(caller).*kind.own;
  const uint32_t has = caller.account.counts.*kind.what;
  if (has >= most) return Whose::kCallers;
  if (caller.agent != nullptr &&
      caller.agent->counts.*kind.what >= kCallersOfAgent * (bounds_.caller.*kind.own)) {
    return Whose::kAgents;
  }
  const bool is_free =
      caller.who.is_administrator ||
      int64_t{has} < ShareOf(most, bounds_.*kind.all, int64_t{all_.*kind.what} - has);
  return is_free ? Whose::kNobodys : Whose::kAll;
}

absl::Status Admission::Refused(AdmittedCaller& caller, absl::string_view why) {
  ++refused_;
  Charge(caller);
  return absl::ResourceExhaustedError(why);
}

absl::Status Admission::Refused(AdmittedCaller& caller, Whose whose, const Bounded& kind) {
  std::string who = "all callers together have";
  const Counts* counts = &all_;
  if (whose == Whose::kCallers) {
    who = absl::StrCat(caller.who.name, " has");
    counts = &caller.account.counts;
  } else if (whose == Whose::kAgents) {
    who = absl::StrCat("those for whom ", caller.who.by, " calls have");
    counts = &caller.agent->counts;
  }
  return Refused(caller,
                 absl::StrCat(who, " ", counts->*kind.what, " ", kind.words,
                              " already, and may have no more; let some end, and call again"));
}

absl::Status Admission::LeftUnread(const AdmittedCaller& caller) const {
  const int64_t unread = caller.taken[kAnswers].bytes;
  if (unread <= BoundsOf(caller).answer_memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(caller.who.name, " has not read answers of ",
                                                   Megabytes(unread),
                                                   "; read them, and call again"));
}

bool Admission::Refill(Account& account, double rate) {
  const absl::Duration now = clock_->Monotonic();
  account.left = std::min(rate * kBurstSeconds,
                          account.left + rate * absl::ToDoubleSeconds(now - account.filled));
  account.filled = now;
  return account.left >= rate * kBurstSeconds;
}

bool Admission::MayCall(AdmittedCaller& caller) {
  bool may = true;
  ForAccounts(caller, [&](Account& account, double rate) {
    if (account.left < 1) Refill(account, rate);
    may = may && account.left >= 1;
  });
  return may;
}

// Also of calls that are refused: who goes on then waits for longer, but not for ever.
void Admission::Charge(AdmittedCaller& caller) {
  ForAccounts(caller, [](Account& account, double rate) {
    account.left = std::max(-rate * kBurstSeconds, account.left - 1);
  });
}

bool Admission::MayStart(AdmittedCaller& caller, bool is_stream) {
  if (caller.account.counts.readings >= kReadings) return false;
  if (caller.agent != nullptr && caller.agent->counts.readings >= kReadingsOfAgent) return false;
  if (!is_stream && Bound(caller, kCalls) != Whose::kNobodys) return false;
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
    const Whose whose = Bound(caller, kStreams);
    if (whose != Whose::kNobodys) return Refused(caller, whose, kStreams);
  }
  // One answer that nobody reads is enough before the next.
  if (const absl::Status unread = LeftUnread(caller); !unread.ok()) {
    return Refused(caller, unread.message());
  }
  if (kind == Kind::kDialogue && !MayCall(caller)) {
    return Refused(
        caller, absl::StrCat(caller.who.name, " opens streams too often; open one, and keep it"));
  }
  auto& queue = is_stream ? caller.waiting_streams : caller.waiting;
  const bool may_start =
      kind == Kind::kDialogue ||
      (queue.empty() && all_.readings < kAllReadings && MayStart(caller, is_stream));
  if (!may_start && !is_stream) {
    const Whose whose = Bound(caller, kWaiting);
    if (whose != Whose::kNobodys) return Refused(caller, whose, kWaiting);
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

void Admission::GiveBack(AdmittedCall& call, Memory kind) {
  const AdmittedCall::Held held = std::exchange(call.held_[kind], {});
  for (Taken* const taken : {&call.caller_->taken[kind], &taken_[kind]}) {
    taken->bytes -= held.bytes;
    if (held.is_shared) taken->shared -= held.bytes;
  }
  AdmittedCall*& large = large_[kind][call.caller_->who.is_administrator];
  if (large == &call) large = nullptr;
}

absl::Status Admission::Take(AdmittedCall& call, Memory kind, int64_t bytes, bool must) {
  if (bytes <= kSmall) return absl::OkStatus();
  AdmittedCaller& caller = *call.caller_;
  const MemoryKind& words = kMemory[kind];
  Taken& own = caller.taken[kind];
  Taken& all = taken_[kind];
  const int64_t share =
      ShareOf(BoundsOf(caller).*words.most, bounds_.*words.all_most, all.shared - own.shared);
  AdmittedCall*& large = large_[kind][caller.who.is_administrator];
  const bool is_shared = own.bytes + bytes <= share;
  if (!is_shared && !must) {
    if (own.bytes > 0 || large != nullptr) {
      ++refused_;
      return absl::ResourceExhaustedError(absl::StrCat(
          "this ", words.what, " takes ", Megabytes(bytes), " of memory, and ",
          own.bytes > 0 ? absl::StrCat("others of ", caller.who.name) : "others", " ", words.have,
          ", of ", Megabytes(own.bytes > 0 ? own.bytes : all.bytes), "; ", words.what_to_do));
    }
    large = &call;
  }
  call.held_[kind] = {bytes, is_shared};
  for (Taken* const taken : {&own, &all}) {
    taken->bytes += bytes;
    if (is_shared) taken->shared += bytes;
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
  absl::Status unread = LeftUnread(*call.caller_);
  if (!unread.ok()) ++refused_;
  return unread;
}

absl::Status Admission::HoldAnswer(AdmittedCall& call, int64_t bytes, Answer otherwise) {
  std::lock_guard lock(mutex_);
  if (call.caller_ == nullptr) return absl::OkStatus();
  GiveBack(call, kAnswers);
  absl::Status status = Take(call, kAnswers, bytes, /*must=*/otherwise == Answer::kKept);
  if (call.held_[kAnswers].bytes > 0) {
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
                       caller.account.counts.readings > 1 ? kMaxReadingOfMany : kMaxReadingOfOne);
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
    absl::erase_if(callers_, [this](auto& entry) {
      AdmittedCaller& caller = *entry.second;
      const bool is_full = Refill(caller.account, BoundsOf(caller).calls_per_second);
      Enlist(caller);
      // Its rate must not begin anew by that.
      const bool is_over = is_full && !caller.is_in_use();
      if (is_over && caller.agent != nullptr) --caller.agent->callers;
      return is_over;
    });
    absl::erase_if(agents_, [this](auto& entry) {
      Account& agent = *entry.second;
      return Refill(agent, kCallersOfAgent * bounds_.caller.calls_per_second) && agent.callers == 0;
    });
    started = Next();
  }
  StartAll(started);
  for (const auto& [call, why] : late) call->Abort(why);
}

Admission::Numbers Admission::numbers() const {
  std::lock_guard lock(mutex_);
  return {callers_.size(),         agents_.size(),         all_.calls, all_.waiting, all_.streams,
          taken_[kRequests].bytes, taken_[kAnswers].bytes, refused_};
}

}  // namespace coppice
