#include "daemon/rpc/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr double kBurstSeconds = 2;
constexpr int64_t kMega = 1'000'000;

std::string Megabytes(int64_t bytes) { return absl::StrCat(bytes / kMega + 1, " MB"); }

}  // namespace

// What one caller has.
struct AdmittedCaller {
  Caller who;
  uint32_t calls = 0, streams = 0, readings = 0;
  std::deque<std::shared_ptr<AdmittedCall>> waiting, waiting_streams;
  int64_t request_bytes = 0, answer_bytes = 0;
  double left = 0;         // of its rate
  absl::Duration filled;   // when
  bool is_listed = false;  // in turns_
  bool is_in_use() const {
    return calls + streams + readings > 0 || !waiting.empty() ||
           is_listed;  // streams: also waiting
  }
};

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

absl::Status Admission::Refused(const AdmittedCaller& caller, absl::string_view what,
                                int64_t most) {
  ++refused_;
  return absl::ResourceExhaustedError(
      absl::StrCat(caller.who.name, " has ", most, " ", what,
                   " already, and may have no more; let some end, and call again"));
}

void Admission::Refill(AdmittedCaller& caller) {
  const double rate = BoundsOf(caller).calls_per_second;
  const absl::Duration now = clock_->Monotonic();
  caller.left = std::min(rate * kBurstSeconds,
                         caller.left + rate * absl::ToDoubleSeconds(now - caller.filled));
  caller.filled = now;
}

bool Admission::MayStart(AdmittedCaller& caller, bool is_stream) {
  if (caller.readings >= kReadings) return false;
  if (!is_stream && caller.calls >= BoundsOf(caller).calls) return false;
  if (caller.left < 1) Refill(caller);
  return caller.left >= 1;
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
  if (!call.is_stream_) {
    ++caller.calls;
    ++calls_;
  }
  ++caller.readings;
  ++readings_;
  caller.left -= 1;
  slow_.insert(&call);
}

absl::StatusOr<Admission::Verdict> Admission::Arrive(const std::shared_ptr<AdmittedCall>& call,
                                                     const Caller& who, Kind kind) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<AdmittedCaller>& place = callers_[who.name];
  if (place == nullptr) {
    place = std::make_unique<AdmittedCaller>();
    place->who = who;
    place->filled = clock_->Monotonic();
    place->left = BoundsOf(*place).calls_per_second * kBurstSeconds;
  }
  AdmittedCaller& caller = *place;
  caller.who.is_administrator = who.is_administrator;
  const CallerBounds& bounds = BoundsOf(caller);
  const bool is_stream = kind != Kind::kCall;
  if (!is_stream && caller.waiting.size() >= bounds.waiting) {
    return Refused(caller, "calls waiting", bounds.waiting);
  }
  if (is_stream && caller.streams >= bounds.streams) {
    return Refused(caller, "streams open", bounds.streams);
  }
  // One answer that nobody reads is enough before the next.
  if (caller.answer_bytes > bounds.answer_memory) {
    ++refused_;
    return absl::ResourceExhaustedError(absl::StrCat(caller.who.name, " has not read answers of ",
                                                     Megabytes(caller.answer_bytes),
                                                     "; read them, and call again"));
  }
  call->caller_ = &caller;
  call->is_stream_ = is_stream;
  if (is_stream) {
    ++caller.streams;
    ++streams_;
  }
  if (kind == Kind::kDialogue) {
    call->state_ = AdmittedCall::State::kRunning;
    return Verdict::kStart;
  }
  auto& queue = is_stream ? caller.waiting_streams : caller.waiting;
  if (queue.empty() && readings_ < kAllReadings && MayStart(caller, is_stream)) {
    Begin(*call);
    return Verdict::kStart;
  }
  call->state_ = AdmittedCall::State::kWaiting;
  queue.push_back(call);
  ++waiting_;
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
  while (!turns_.empty() && readings_ < kAllReadings) {
    AdmittedCaller& caller = *turns_.front();
    turns_.pop_front();
    caller.is_listed = false;
    auto* const queue = Startable(caller);
    if (queue == nullptr) continue;
    started.push_back(std::move(queue->front()));
    queue->pop_front();
    --waiting_;
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
    AdmittedCaller& caller = *call.caller_;
    call.state_ = AdmittedCall::State::kRunning;
    slow_.erase(&call);
    --caller.readings;
    --readings_;
    Enlist(caller);
    if (turns_.empty()) return;
    started = Next();
  }
  StartAll(started);
}

absl::Status Admission::TakeRequest(AdmittedCall& call, int64_t bytes) {
  std::lock_guard lock(mutex_);
  AdmittedCaller& caller = *call.caller_;
  if (bytes > kSmall) {
    const int64_t own = BoundsOf(caller).request_memory;
    // A request alone may be as large as any, or it never could be sent.
    const bool is_too_much = caller.request_bytes > kSmall && caller.request_bytes + bytes > own;
    if (is_too_much || (request_bytes_ > own && request_bytes_ + bytes > bounds_.request_memory)) {
      ++refused_;
      return absl::ResourceExhaustedError(absl::StrCat(
          "this request takes ", Megabytes(bytes), " of memory, and ",
          is_too_much ? absl::StrCat("others of ", caller.who.name) : "those of others", " have ",
          Megabytes(is_too_much ? caller.request_bytes : request_bytes_),
          " under way; call again when some have ended"));
    }
  }
  call.request_bytes_ += bytes;
  caller.request_bytes += bytes;
  request_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status Admission::HoldAnswer(AdmittedCall& call, int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (call.caller_ == nullptr) return absl::OkStatus();
  AdmittedCaller& caller = *call.caller_;
  caller.answer_bytes -= call.answer_bytes_;
  answer_bytes_ -= std::exchange(call.answer_bytes_, 0);
  if (bytes > kSmall) {
    const int64_t own = BoundsOf(caller).answer_memory;
    const bool is_too_much = caller.answer_bytes > kSmall && caller.answer_bytes + bytes > own;
    if (is_too_much || (answer_bytes_ > own && answer_bytes_ + bytes > bounds_.answer_memory)) {
      ++refused_;
      slow_.erase(&call);
      return absl::ResourceExhaustedError(absl::StrCat(
          "this answer takes ", Megabytes(bytes), " of memory, and ",
          is_too_much ? absl::StrCat(caller.who.name, " has") : "others have",
          " not read answers of ", Megabytes(is_too_much ? caller.answer_bytes : answer_bytes_),
          "; read them, and call again"));
    }
    call.since_ = clock_->Monotonic();
    slow_.insert(&call);
  } else if (call.state_ == AdmittedCall::State::kRunning) {
    slow_.erase(&call);
  }
  call.answer_bytes_ = bytes;
  caller.answer_bytes += bytes;
  answer_bytes_ += bytes;
  return absl::OkStatus();
}

void Admission::Leave(AdmittedCall& call) {
  Calls started;
  {
    std::lock_guard lock(mutex_);
    if (call.caller_ == nullptr) return;
    AdmittedCaller& caller = *std::exchange(call.caller_, nullptr);
    slow_.erase(&call);
    if (call.state_ == AdmittedCall::State::kReading) {
      --caller.readings;
      --readings_;
    }
    if (call.is_stream_) {
      --caller.streams;
      --streams_;
    } else {
      --caller.calls;
      --calls_;
    }
    call.state_ = AdmittedCall::State::kOutside;
    caller.request_bytes -= call.request_bytes_;
    request_bytes_ -= std::exchange(call.request_bytes_, 0);
    caller.answer_bytes -= call.answer_bytes_;
    answer_bytes_ -= std::exchange(call.answer_bytes_, 0);
    Enlist(caller);
    if (turns_.empty()) return;
    started = Next();
  }
  StartAll(started);
}

void Admission::Tick() {
  Calls started, late;
  {
    std::lock_guard lock(mutex_);
    const absl::Duration now = clock_->Monotonic();
    const bool others_wait = !turns_.empty() && readings_ >= kAllReadings;
    for (AdmittedCall* call : slow_) {
      const bool blocks = others_wait && call->state_ == AdmittedCall::State::kReading;
      const absl::Duration longest = blocks ? kLongestReadingOfMany : bounds_.longest_reading;
      if (now - call->since_ <= longest) continue;
      if (std::shared_ptr<AdmittedCall> held = call->weak_from_this().lock()) {
        late.push_back(std::move(held));
      }
    }
    for (auto place = callers_.begin(); place != callers_.end();) {
      AdmittedCaller& caller = *place->second;
      Refill(caller);
      Enlist(caller);
      // Its rate must not begin anew by that.
      const bool is_full = caller.left >= BoundsOf(caller).calls_per_second * kBurstSeconds;
      if (!caller.is_in_use() && is_full) {
        callers_.erase(place++);
      } else {
        ++place;
      }
    }
    started = Next();
  }
  StartAll(started);
  for (const std::shared_ptr<AdmittedCall>& call : late) call->Abort();
}

Admission::Numbers Admission::numbers() const {
  std::lock_guard lock(mutex_);
  return {callers_.size(), calls_, waiting_, streams_, request_bytes_, answer_bytes_, refused_};
}

}  // namespace coppice
