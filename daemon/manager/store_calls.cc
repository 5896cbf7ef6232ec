#include "daemon/manager/store_calls.h"

#include <utility>
#include <variant>

namespace coppice {
namespace {

DeedPtr DeedIn(const Mutation& mutation) {
  return std::visit(
      [](const auto& what) -> DeedPtr {
        if constexpr (requires { what.deed; }) return what.deed;
        return nullptr;
      },
      mutation);
}

}  // namespace

void StoreCalls::Submit(Mutation mutation, Store::Done done) {
  {
    std::lock_guard lock(mu_);
    ++waiting_;
  }
  DeedPtr deed = on_deed_ == nullptr ? nullptr : DeedIn(mutation);
  store_->Submit(std::move(mutation), [this, deed = std::move(deed),
                                       callback = std::move(done)](absl::Status status) mutable {
    if (deed != nullptr && status.ok()) on_deed_(*deed);
    {
      // What the callback holds goes before it counts as answered.
      Store::Done last = std::move(callback);
      std::move(last)(std::move(status));
    }
    End();
  });
}

void StoreCalls::AwaitAll() {
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return waiting_ == 0; });
}

void StoreCalls::End() {
  // Notified under the lock: the waiter may destroy this as soon as it can take it.
  std::lock_guard lock(mu_);
  if (--waiting_ == 0) idle_.notify_all();
}

}  // namespace coppice
