// The fixture of system tests that ask a manager in this process: its store on disk, its port on
// the subnet.
#ifndef COPPICE_TESTS_SYSTEM_LIVE_MANAGER_H_
#define COPPICE_TESTS_SYSTEM_LIVE_MANAGER_H_

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/manager/manager.h"
#include "db/sqlite_store.h"
#include "tests/system/live_subnet.h"

namespace coppice {

class LiveManager : public LiveSubnet {
 protected:
  ~LiveManager() override {
    manager_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  // After Start; sweeps. To be called through ASSERT_NO_FATAL_FAILURE.
  void Boot(uint32_t entries = 4) {
    std::string pattern = std::filesystem::temp_directory_path() / "coppice-live-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    auto store = SqliteStore::Open(directory_ + "/coppice.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ManagerOptions options;
    options.profile = *BuiltInProfile("hdr");
    CapabilityRule rule;
    rule.entries = entries;
    rule.degree_limit = 24;
    options.capability_rules.push_back(rule);
    auto manager = Manager::Create(store_.get(), port_.get(), &SystemClock(), options);
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
    const auto view = manager_->Sweep();
    ASSERT_TRUE(view.ok()) << view.status();
  }

  // What `call` answers to the callback that it is given.
  template <class T, class Call>
  static absl::StatusOr<T> Await(Call call) {
    std::promise<absl::StatusOr<T>> answer;
    call([&](absl::StatusOr<T> value) { answer.set_value(std::move(value)); });
    return answer.get_future().get();
  }
  absl::StatusOr<JobView> Register(RegisterJobArgs args) {
    return Await<JobView>(
        [&](auto done) { manager_->RegisterJob(std::move(args), std::move(done)); });
  }
  absl::StatusOr<TreeView> Create(CreateTreeArgs args) {
    return Await<TreeView>(
        [&](auto done) { manager_->CreateTree(std::move(args), std::move(done)); });
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Manager> manager_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_LIVE_MANAGER_H_
