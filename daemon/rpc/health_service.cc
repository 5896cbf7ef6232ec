#include "daemon/rpc/health_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/calls/unary.h"

namespace coppice {
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Of one watch: tells each state once.
class HealthService::Source final : public MessageSource<HealthCheckResponse> {
 public:
  Source(HealthService* health, bool is_known, std::function<void()> wake)
      : health_(health), is_known_(is_known), wake_(std::move(wake)) {
    std::lock_guard lock(health_->mutex_);
    id_ = ++health_->last_id_;
  }
  ~Source() override {
    std::lock_guard lock(health_->mutex_);
    health_->asleep_.erase(id_);
  }

  absl::StatusOr<bool> Next(HealthCheckResponse& message) override {
    std::lock_guard lock(health_->mutex_);
    const Status now = !is_known_             ? HealthCheckResponse::SERVICE_UNKNOWN
                       : health_->is_serving_ ? HealthCheckResponse::SERVING
                                              : HealthCheckResponse::NOT_SERVING;
    if (told_ == now) {
      health_->asleep_[id_] = wake_;
      return false;
    }
    told_ = now;
    message.set_status(now);
    return true;
  }

 private:
  HealthService* const health_;
  const bool is_known_;
  const std::function<void()> wake_;
  uint64_t id_ = 0;
  std::optional<Status> told_;
};

HealthService::HealthService(std::vector<std::string> services, MethodStatistics* statistics)
    : services_(std::move(services)),
      check_(statistics->AddUnary("Health.Check")),
      watches_(statistics->AddStream("Health.Watch"), "watch again") {}

bool HealthService::IsKnown(absl::string_view service) const {
  return service.empty() ||
         std::find(services_.begin(), services_.end(), service) != services_.end();
}

void HealthService::SetServing(bool is_serving) {
  absl::flat_hash_map<uint64_t, std::function<void()>> woken;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_serving_, is_serving) == is_serving) return;
    woken = std::exchange(asleep_, {});
  }
  for (const auto& [id, wake] : woken) wake();
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext*,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  return AnswerNow(check_, "health", [&] {
    if (!IsKnown(request->service())) {
      return absl::NotFoundError(absl::StrCat("service: ", request->service(), " is none here"));
    }
    std::lock_guard lock(mutex_);
    response->set_status(is_serving_ ? HealthCheckResponse::SERVING
                                     : HealthCheckResponse::NOT_SERVING);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  return watches_.Open("health", [&](std::function<void()> wake) {
    return std::make_unique<Source>(this, IsKnown(request->service()), std::move(wake));
  });
}

namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(20);

}  // namespace

Readiness::Readiness(const Manager* manager, absl::AnyInvocable<void()> ready)
    : thread_([this, manager, ready = std::move(ready)]() mutable {
        Watch(manager, std::move(ready));
      }) {}

Readiness::~Readiness() { Stop(); }

void Readiness::Stop() {
  if (!stop_.HasBeenNotified()) stop_.Notify();
  if (thread_.joinable()) thread_.join();
}

void Readiness::Watch(const Manager* manager, absl::AnyInvocable<void()> ready) {
  while (manager->fabric() == nullptr) {
    if (stop_.WaitForNotificationWithTimeout(kPeriod)) return;
  }
  ready();
}

}  // namespace coppice
