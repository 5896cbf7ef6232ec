// The store of a test that wants none of its own making: a real one, on a file in memory, where a
// flush costs nothing, gone with the object.
#ifndef COPPICE_TESTS_SUPPORT_SCRATCH_STORE_H_
#define COPPICE_TESTS_SUPPORT_SCRATCH_STORE_H_

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "db/sqlite_store.h"
#include "tests/support/child_process.h"
#include "tests/support/passing_store.h"

namespace coppice {

class ScratchStore final : public PassingStore {
 public:
  // Ends the process if it cannot be opened.
  ScratchStore() : ScratchStore(Open()) {}

 private:
  struct Opened {
    // glibc's shm_open wants it, so Linux has it; else a disk does.
    ScratchDirectory directory{access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : ""};
    std::unique_ptr<SqliteStore> store;
  };
  explicit ScratchStore(std::unique_ptr<Opened> opened)
      : PassingStore(opened->store.get()), opened_(std::move(opened)) {}

  static std::unique_ptr<Opened> Open() {
    auto opened = std::make_unique<Opened>();
    auto store = SqliteStore::Open(opened->directory.path() + "/coppice.db");
    if (!store.ok()) {
      std::cerr << store.status() << "\n";
      std::abort();
    }
    opened->store = *std::move(store);
    return opened;
  }

  const std::unique_ptr<Opened> opened_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_SCRATCH_STORE_H_
