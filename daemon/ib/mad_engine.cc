#include "daemon/ib/mad_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr uint16_t kBusy = 1;  // status bit 0, IBA vol. 1, 13.4.7: ask again later
constexpr int kMaxWindow = 128;

}  // namespace

MadEngine::MadEngine(MadTransport& transport, const Clock& clock, MadEngineOptions options)
    : transport_(transport), clock_(clock), options_([&] {
        options.window = std::clamp(options.window, 1, kMaxWindow);
        options.max_attempts = std::clamp(options.max_attempts, 1, 16);
        return options;
      }()) {
  slots_.resize(options_.window + 1);
  Forget();
}

void MadEngine::Forget() {
  queue_.clear();
  slot_of_.clear();
  free_.clear();
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot] = Slot();
    free_.push_back(slot);
  }
  busy_ = 0;
  probing_ = false;
}

absl::Status MadEngine::Run(const Handler& handler) {
  last_reply_ = -absl::InfiniteDuration();
  is_abandoned_ = false;
  handler_ = &handler;
  absl::Status status;
  while (status.ok() && !is_abandoned_ && (busy_ > 0 || !queue_.empty())) {
    status = FillWindow();
    if (status.ok()) status = ReceiveBatch();
    if (status.ok()) status = Expire();
  }
  handler_ = nullptr;
  if (!status.ok() || is_abandoned_) Forget();
  return status;
}

absl::Status MadEngine::FillWindow() {
  while (!queue_.empty() && !probing_ && busy_ < options_.window &&
         (unheard() < options_.max_unheard || busy_ == 0)) {
    MadRequest request = std::move(queue_.front());
    queue_.pop_front();
    RETURN_IF_ERROR(Start(std::move(request), /*is_probe=*/false));
  }
  return absl::OkStatus();
}

absl::Status MadEngine::Start(MadRequest request, bool is_probe) {
  const uint32_t index = free_.back();
  free_.pop_back();
  ++busy_;
  Slot& slot = slots_[index];
  slot = Slot();
  slot.busy = true;
  slot.is_probe = is_probe;
  slot.first_sent = clock_.Monotonic();
  slot.request = std::move(request);
  return SendAttempt(index);
}

// Counts as an attempt even if nothing leaves, so that every request ends.
absl::Status MadEngine::SendAttempt(uint32_t index) {
  Slot& slot = slots_[index];
  const absl::Duration timeout = options_.first_timeout * (1 << slot.attempts);
  ++slot.attempts;
  slot.deadline = clock_.Monotonic() + timeout + options_.grace;
  if (slot.attempts > 1 && unheard() >= options_.max_unheard) return absl::OkStatus();
  slot.last_transaction = next_transaction_++;
  slot_of_[slot.last_transaction] = index;
  Mad mad;
  const MadRequest& request = slot.request;
  if (IsPerformance(request.attribute)) {
    EncodePerformanceGet(request.attribute, PortNum(static_cast<uint8_t>(request.modifier)),
                         slot.last_transaction, mad);
  } else {
    EncodeSubnGet(request.route, request.attribute, request.modifier, slot.last_transaction, mad);
  }
  ++counts_.sent;
  if (slot.attempts > 1) ++counts_.resent;
  const absl::Status status = transport_.Send(mad, request.lid, timeout);
  return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
}

// Sleeps until something happens, then takes all that is there.
absl::Status MadEngine::ReceiveBatch() {
  absl::Duration wait = UntilNextDeadline();
  for (int taken = 0; taken < options_.window && !is_abandoned_; ++taken) {
    Mad mad;
    ASSIGN_OR_RETURN(const MadEvent event, transport_.Receive(wait, mad));
    if (event == MadEvent::kNone) break;
    OnEvent(event, mad);
    wait = absl::ZeroDuration();
  }
  return absl::OkStatus();
}

absl::Duration MadEngine::UntilNextDeadline() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const Slot& slot : slots_) {
    if (slot.busy && !slot.suspended) next = std::min(next, slot.deadline);
  }
  return std::max(next - clock_.Monotonic(), absl::ZeroDuration());
}

void MadEngine::OnEvent(MadEvent event, const Mad& mad) {
  const uint32_t transaction = TransactionOf(mad);
  // Sends leave the simulator's port, which the limit is for, in order: whatever came before this
  // one has left it too. On hardware the two classes have a queue each; where one Run follows
  // another of the other class, sends may then count as gone a little early, which costs nothing: a
  // kernel's queue does not block. A number that was never given out is a stranger's.
  if (next_transaction_ - 1 - transaction < unheard()) heard_transaction_ = transaction;
  if (event == MadEvent::kReceived) {
    OnReply(mad);
    return;
  }
  const auto found = slot_of_.find(transaction);
  if (found == slot_of_.end()) return;
  Slot& slot = slots_[found->second];
  if (event == MadEvent::kTimedOut && slot.last_transaction == transaction) {
    slot.deadline = clock_.Monotonic();
  }
}

void MadEngine::OnReply(const Mad& mad) {
  const std::optional<MadReply> reply = DecodeReply(mad);
  if (!reply) return;
  last_reply_ = clock_.Monotonic();
  const auto found = slot_of_.find(reply->transaction);
  if (found == slot_of_.end()) return;
  const uint32_t index = found->second;
  const MadRequest& request = slots_[index].request;
  const bool other_modifier =
      !IsPerformance(request.attribute) && reply->modifier != request.modifier;
  if (reply->attribute != request.attribute || other_modifier || (reply->status & kBusy) != 0) {
    return;
  }
  if (slots_[index].is_probe) {
    OnLocalPortAlive();
    return;
  }
  MadOutcome outcome;
  outcome.kind = reply->status == 0 ? MadOutcome::Kind::kAnswered : MadOutcome::Kind::kRefused;
  outcome.status = reply->status;
  outcome.data = reply->data;
  Complete(index, std::move(outcome));
}

absl::Status MadEngine::Expire() {
  const absl::Duration now = clock_.Monotonic();
  for (uint32_t index = 0; index < slots_.size() && !is_abandoned_; ++index) {
    Slot& slot = slots_[index];
    if (!slot.busy || slot.suspended || slot.deadline > now) continue;
    ++counts_.timed_out;
    if (slot.attempts < AttemptsOf(slot.request.max_attempts)) {
      RETURN_IF_ERROR(SendAttempt(index));
    } else {
      RETURN_IF_ERROR(OnExhausted(index));
    }
  }
  return absl::OkStatus();
}

int MadEngine::AttemptsOf(int max_attempts) const {
  return max_attempts > 0 ? std::min(max_attempts, options_.max_attempts) : options_.max_attempts;
}

absl::Duration MadEngine::Patience(int max_attempts) const {
  const int attempts = AttemptsOf(max_attempts);
  return options_.first_timeout * ((1 << attempts) - 1) + options_.grace * attempts;
}

absl::Status MadEngine::OnExhausted(uint32_t index) {
  Slot& slot = slots_[index];
  if (last_reply_ >= slot.first_sent) {
    if (slot.is_probe) {
      OnLocalPortAlive();
    } else {
      Complete(index, MadOutcome());
    }
    return absl::OkStatus();
  }
  const MadAttribute attribute = slot.request.attribute;
  const bool is_local = !IsPerformance(attribute) && slot.request.route.hop_count == 0 &&
                        attribute != MadAttribute::kSubnetManagerInfo;  // the manager's to answer
  if (slot.is_probe || is_local) {
    return absl::UnavailableError(
        absl::StrCat("the local port does not answer management packets (", options_.max_attempts,
                     " attempts); check that its link is up and its driver and firmware run"));
  }
  slot.suspended = true;
  if (probing_) return absl::OkStatus();
  probing_ = true;
  return Start(MadRequest(), /*is_probe=*/true);
}

// The port lives: those that wait for this sign are silent themselves.
void MadEngine::OnLocalPortAlive() {
  probing_ = false;
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].is_probe || slots_[index].suspended) Complete(index, MadOutcome());
  }
}

void MadEngine::Complete(uint32_t index, MadOutcome outcome) {
  Slot& slot = slots_[index];
  if (slot.attempts == 1) {
    slot_of_.erase(slot.last_transaction);
  } else {
    absl::erase_if(slot_of_, [&](const auto& entry) { return entry.second == index; });
  }
  outcome.waited = clock_.Monotonic() - slot.first_sent;
  const MadRequest request = std::move(slot.request);
  const bool is_told = handler_ != nullptr && !slot.is_probe;
  slot.busy = slot.suspended = slot.is_probe = false;
  free_.push_back(index);
  --busy_;
  if (is_told) (*handler_)(request, outcome);
}

void MadEngine::Drain(absl::Duration limit) {
  const absl::Duration end = clock_.Monotonic() + limit;
  Mad mad;
  while (unheard() > 0) {
    const absl::Duration left = end - clock_.Monotonic();
    if (left <= absl::ZeroDuration()) return;
    const absl::StatusOr<MadEvent> event = transport_.Receive(left, mad);
    if (!event.ok()) return;
    if (*event != MadEvent::kNone) OnEvent(*event, mad);
  }
}

}  // namespace coppice
