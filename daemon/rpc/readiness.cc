#include "daemon/rpc/readiness.h"

#include <utility>

namespace coppice {
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
