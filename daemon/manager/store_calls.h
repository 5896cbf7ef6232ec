// Counts what was handed to the store and is not answered yet, so that the manager can wait for the
// last answer before its tables go away. Knows nothing of what the mutations mean, but whose deed
// one is: who wants to know hears of each that has become durable.
#ifndef COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
#define COPPICE_DAEMON_MANAGER_STORE_CALLS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "db/store.h"

namespace coppice {

// Thread-safe.
class StoreCalls {
 public:
  using OnDeed = std::function<void(const DeedRecord&)>;
  // `on_deed` may be null; it must not block.
  explicit StoreCalls(Store* store, OnDeed on_deed = nullptr)
      : store_(store), on_deed_(std::move(on_deed)) {}
  ~StoreCalls() { AwaitAll(); }

  // As Store::Submit. Must not be called with a lock held that `done` takes.
  void Submit(Mutation mutation, Store::Done done);
  // Returns when every `done` has returned.
  void AwaitAll();

  Store& store() { return *store_; }

 private:
  void End();

  Store* const store_;
  const OnDeed on_deed_;
  std::mutex mu_;
  std::condition_variable idle_;
  uint64_t waiting_ = 0;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
