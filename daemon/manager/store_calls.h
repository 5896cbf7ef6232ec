// Counts what was handed to the store and is not answered yet, so that the manager can wait for the
// last answer before its tables go away. Knows nothing of what the mutations mean.
#ifndef COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
#define COPPICE_DAEMON_MANAGER_STORE_CALLS_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "db/store.h"

namespace coppice {

// Thread-safe.
class StoreCalls {
 public:
  explicit StoreCalls(Store* store) : store_(store) {}
  ~StoreCalls() { AwaitAll(); }

  // As Store::Submit. Must not be called with a lock held that `done` takes.
  void Submit(Mutation mutation, Store::Done done);
  // Returns when every `done` has returned.
  void AwaitAll();

  Store& store() { return *store_; }

 private:
  void End();

  Store* const store_;
  std::mutex mu_;
  std::condition_variable idle_;
  uint64_t waiting_ = 0;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_STORE_CALLS_H_
