// The fixture of tests in which the subnet changes under a running daemon: ibsim, OpenSM that
// stays, and in this process a manager with its threads on a database of its own.
#ifndef COPPICE_TESTS_SYSTEM_LIVING_DAEMON_H_
#define COPPICE_TESTS_SYSTEM_LIVING_DAEMON_H_

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/manager/manager.h"
#include "tests/support/child_process.h"
#include "tests/support/stepped_clock.h"
#include "tests/system/counter_gate.h"
#include "tests/system/live_subnet.h"

namespace coppice {

// 64 hosts on 8 leaf and 4 spine switches: OpenSM routes it in a tenth of a second.
inline constexpr char kLivingFabric[] = "fat-tree(leaves=8,spines=4,hosts-per-leaf=8)";

// An OpenSM.
struct SubnetManager {
  std::string routing = "ftree";
  std::string host = {};                    // that it runs on; empty: the daemon's
  std::vector<std::string> arguments = {};  // besides
};

class LivingDaemon : public LiveSubnet {
 protected:
  ~LivingDaemon() override;

  // ibsim and OpenSM on the fabric, and the daemon, which has swept once. To be called through
  // ASSERT_NO_FATAL_FAILURE.
  void Begin(const SweepPeriods& periods, const std::string& routing = "ftree",
             const std::string& model = kLivingFabric);
  // A daemon on the database in directory_, after one that is gone; it has not swept.
  absl::Status OpenDaemon();
  // OpenSM that goes on, instead of the one that runs. Returns when it has set up the subnet.
  void ManageSubnet(const SubnetManager& manager);
  // The same beside the one that runs, which it takes over from. Each starts without a memory of
  // LIDs.
  std::unique_ptr<ChildProcess> StartManager(const SubnetManager& manager);
  void Console(const std::string& command);  // from any thread

  // Waits, for two minutes at most; fails the test with `what` if it does not come.
  void Await(const std::string& what, const std::function<bool()>& condition);
  // Until tables have settled, every node answers and the fabric is what ibnetdiscover sees, on
  // that host (empty: the daemon's).
  void AwaitSettled(const std::string& reference_host = "");

  absl::StatusOr<JobId> Register(std::vector<std::string> hosts);
  absl::StatusOr<TreeView> Grant(JobId job, TreeType type);
  std::vector<EventRecord> EventsOf(const std::string& kind) const;
  // Rows that the sqlite3 shell finds in the daemon's database.
  std::string Sql(const std::string& query);
  // With the daemon's threads stopped: trees stand on live links, entries are exact, in memory and
  // to the sqlite3 shell.
  void ExpectAllRight();

  // Made-up traffic on some links, and the loads that it has to make; needs ForgetAtOnce. Of how
  // many links could be compared.
  size_t CheckLoads(size_t links, std::mt19937_64* random);
  // For Begin: averages are those of the last interval.
  void ForgetAtOnce() { options_.load.time_constant = absl::Milliseconds(1); }

  // A cable between switches that the tree crosses, as EndOf; empty: none.
  std::string CableOf(const TreeRecord& record) const;
  // As the console names an end of the link: "L3"[9].
  static std::string EndOf(const Fabric& fabric, LinkIndex link);

  SteppedClock clock_;     // of the daemon
  std::string directory_;  // its database's; if it is empty, Begin makes one
  std::unique_ptr<ChildProcess> manager_of_subnet_;
  std::unique_ptr<CounterGate> gate_;  // open
  std::unique_ptr<Store> store_;
  std::unique_ptr<Manager> manager_;

 private:
  ManagerOptions options_;
  std::mutex console_;
  int managers_started_ = 0, programs_run_ = 0;
};

template <class T, class Call>
absl::StatusOr<T> AwaitAnswer(Call call) {
  std::promise<absl::StatusOr<T>> answer;
  call([&](absl::StatusOr<T> value) { answer.set_value(std::move(value)); });
  return answer.get_future().get();
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_LIVING_DAEMON_H_
