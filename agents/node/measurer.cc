#include "agents/node/measurer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr std::chrono::milliseconds kPreset{30'000}, kMaxTimeout{600'000};

// Of the task; one that says none, or none of sense, gets the preset.
std::chrono::milliseconds TimeoutOf(const v1::PingPongTask& task) {
  const int64_t seconds = task.timeout().seconds();
  if (seconds < 0 || seconds > kMaxTimeout.count() / 1000) return kMaxTimeout;
  const std::chrono::milliseconds timeout(seconds * 1000 + task.timeout().nanos() / 1'000'000);
  return timeout.count() <= 0 ? kPreset : std::min(timeout, kMaxTimeout);
}

void SetError(const v1::PingPongTask& task, absl::string_view why, v1::PingPongResult& result) {
  const absl::string_view side = task.active() ? "measuring the way to " : "being measured from ";
  result.set_error(absl::StrCat(side, task.peer(), ": ", why));
}

void SetFigures(const PingPongFigures& figures, v1::PingPongResult& result) {
  result.set_transport(figures.transport == PingPongTransport::kVerbs ? v1::TRANSPORT_VERBS
                                                                      : v1::TRANSPORT_TCP);
  result.set_remark(figures.remark);
  result.set_latency_us(figures.latency_us.mean);
  result.set_latency_spread_us(figures.latency_us.deviation);
  result.set_bandwidth_gbps(figures.bandwidth_gbps.mean);
  result.set_bandwidth_spread_gbps(figures.bandwidth_gbps.deviation);
  result.set_samples(figures.latency_us.samples);
}

}  // namespace

Measurer::Measurer(std::optional<PingPongListener> listener, PortChoice port, OnResult on_result)
    : listener_(std::move(listener)),
      port_(std::move(port)),
      on_result_(std::move(on_result)),
      thread_([this] { RunUntilStopped(); }) {}

Measurer::~Measurer() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    is_stopped_ = true;
    is_broken_off_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Measurer::Take(const v1::PingPongTask& task, uint64_t stream) {
  std::optional<v1::PingPongTask> dropped;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    const std::pair<uint64_t, uint64_t> place(stream, task.id());
    if (place < newest_) {
      dropped = task;
    } else {
      newest_ = place;
      if (waiting_) dropped = std::move(waiting_->task);
      waiting_ = Waiting{task, std::chrono::steady_clock::now() + TimeoutOf(task)};
      is_broken_off_ = true;
      changed_.notify_all();
    }
  }
  if (!dropped) return;
  v1::PingPongResult result;
  result.set_id(dropped->id());
  SetError(*dropped, "a newer measurement took its place", result);
  on_result_(result);
}

void Measurer::Stop(uint64_t id, uint64_t stream) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (newest_ != std::pair<uint64_t, uint64_t>(stream, id)) return;
  if (waiting_) waiting_->is_taken_back = true;
  is_broken_off_ = true;  // also of what is over: the next task puts it back
}

void Measurer::RunUntilStopped() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || waiting_; });
    if (is_stopped_) return;
    const Waiting next = *std::exchange(waiting_, std::nullopt);
    is_broken_off_ = next.is_taken_back;
    lock.unlock();
    const v1::PingPongResult result = Measure(next);
    lock.lock();
    if (is_stopped_) return;
    if (!next.task.active() && result.error().empty()) continue;
    lock.unlock();
    on_result_(result);
    lock.lock();
  }
}

v1::PingPongResult Measurer::Measure(const Waiting& waiting) {
  const v1::PingPongTask& task = waiting.task;
  PingPongPlan plan{task.token(),           task.latency_samples(), task.bandwidth_samples(),
                    task.bandwidth_bytes(), waiting.deadline,       &is_broken_off_};
  if (task.transport() == v1::TRANSPORT_VERBS) plan.transport = PingPongTransport::kVerbs;
  plan.or_tcp = task.or_tcp();
  plan.port = port_;
  plan.port.partition = static_cast<uint16_t>(task.partition() & 0x7fff);
  v1::PingPongResult result;
  result.set_id(task.id());
  if (task.active()) {
    const auto figures = MeasureTo(task.peer_address(), plan);
    if (figures.ok()) {
      SetFigures(*figures, result);
    } else {
      SetError(task, figures.status().message(), result);
    }
  } else {
    const absl::Status served =
        listener_ ? listener_->Serve(plan)
                  : absl::FailedPreconditionError("this agent takes no part (measure_listen)");
    if (!served.ok()) SetError(task, served.message(), result);
  }
  return result;
}

}  // namespace coppice
