// Records for the tests of stores, each built in one line, and a store on a file of its own.
#ifndef COPPICE_TESTS_UNIT_DB_STORE_RECORDS_H_
#define COPPICE_TESTS_UNIT_DB_STORE_RECORDS_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "db/sqlite_store.h"
#include "db/store.h"

namespace coppice {

inline absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }

inline Guid Switch(uint64_t number) { return Guid(0x0002c90200400000 + number); }

inline JobRecord Job(int64_t id, std::string request_id = "") {
  JobRecord job;
  job.id = JobId(id);
  job.request_id = std::move(request_id);
  job.request_fingerprint = 0xfedcba9876543210 + static_cast<uint64_t>(id);
  job.name = "lattice";
  job.owner = "ada";
  job.endpoints = {Guid(0x0002c9030010a001), Guid(0xfffffffffffffff0)};
  job.lease = absl::Seconds(30);
  job.created = At(id);
  job.ended = absl::InfiniteFuture();
  return job;
}

// A star: members and all switches but the last below the last node.
inline TreeRecord Tree(int64_t id, int64_t job, std::vector<uint64_t> switches = {},
                       uint32_t members = 4) {
  TreeRecord tree;
  tree.id = TreeId(id);
  tree.job = JobId(job);
  tree.type = switches.empty() ? 1 : 2;
  tree.fabric_version = 0x8000000000000001;
  tree.builder = switches.empty() ? "kary" : "minimum-cost";
  tree.width = 3, tree.height = 1, tree.radius = 4;
  tree.spec.operation = Operation::kReduce;
  tree.spec.sizes = {{8, 1.0}, {4096, 0.1}};
  for (uint32_t rank = 0; rank < members; ++rank) tree.ranks.push_back(rank * 2);
  for (uint64_t number : switches) tree.switches.push_back({Switch(number), members});
  const size_t nodes = members + switches.size();
  for (size_t node = 0; node < nodes; ++node) {
    const bool root = node + 1 == nodes;
    tree.parents.push_back(root ? -1 : static_cast<int32_t>(nodes) - 1);
    tree.edge_links_up.push_back(root ? 0 : 2);
    tree.edge_links_down.push_back(root ? 0 : 3);
    if (!switches.empty()) {
      tree.physical.push_back(0xf000000000000000 + node);
      tree.physical.push_back(root ? 0 : nodes);
    }
    tree.links.push_back(static_cast<int64_t>(node) + 1);
  }
  tree.aggregate_us = 1.25, tree.distribute_us = 2.5, tree.total_us = 0.1 + 0.2;
  tree.reason = "type I: 3.75 us, \"type II\" 4 us";
  tree.spec.type = TreeType::kTypeII;
  tree.accepts_type1 = switches.empty();
  tree.alternatives = {{TreeType::kTypeII, TreeBuilder::kMinimumCost, 0, {}, "switch 1 is full"}};
  tree.created = At(id);
  return tree;
}

inline CapabilityRecord Capability(uint64_t number, uint32_t total, uint32_t reserved = 0) {
  return {Switch(number), total, reserved, 32};
}

inline PutCapabilities Capabilities(uint64_t switches, uint32_t total, uint32_t reserved = 0) {
  PutCapabilities put;
  for (uint64_t n = 0; n < switches; ++n) {
    put.capabilities.push_back(Capability(n, total, reserved));
  }
  return put;
}

// By value: a range-for may run over the result.
inline std::vector<EntryUse> EntriesOf(Store& store) {
  absl::StatusOr<std::vector<EntryUse>> entries = store.Entries();
  EXPECT_TRUE(entries.ok()) << entries.status();
  return entries.ok() ? *std::move(entries) : std::vector<EntryUse>();
}

inline PlacementRecord Placement(int64_t id, std::vector<std::string> nodes,
                                 std::string request_id = "") {
  PlacementRecord placement;
  placement.id = PlacementId(id);
  placement.request_id = std::move(request_id);
  placement.request_fingerprint = 0xfedcba9876543210 + static_cast<uint64_t>(id);
  placement.name = "lattice";
  placement.owner = "ada";
  placement.nodes = std::move(nodes);
  placement.ranks_per_node = 2;
  placement.permutation = {1, 0};
  placement.term = absl::Minutes(5);
  placement.fabric_version = 0x8000000000000001;
  placement.reason = "one leaf switch, \"L1\"";
  placement.measures.leaf_switches = 1;
  placement.measures.mean_distance = 1.0 / 3;
  placement.is_optimal = true;
  placement.created = At(id);
  placement.ended = absl::InfiniteFuture();
  return placement;
}

inline EventRecord Event(std::string severity, std::string kind, std::string object = "job:1") {
  return {0, At(1), std::move(severity), std::move(kind), std::move(object), "words"};
}

// A directory that goes away with its contents.
class StoreDirectory {
 public:
  StoreDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "coppice-db-XXXXXX";
    path_ = mkdtemp(pattern.data());
    // Tests that drop privileges still have to get in.
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~StoreDirectory() { std::filesystem::remove_all(path_); }
  StoreDirectory(const StoreDirectory&) = delete;
  StoreDirectory& operator=(const StoreDirectory&) = delete;
  std::string File(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open(const SqliteOptions& options = {}) {
    store_.reset();
    auto store = SqliteStore::Open(path_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Loads; it must load the same after it was closed and opened again.
  StoredState Load() {
    absl::StatusOr<StoredState> state = store_->Load();
    EXPECT_TRUE(state.ok()) << state.status();
    if (!state.ok()) return {};
    Open();
    if (store_ == nullptr) return {};
    absl::StatusOr<StoredState> again = store_->Load();
    EXPECT_TRUE(again.ok()) << again.status();
    if (again.ok()) {
      EXPECT_TRUE(*again == *state);
    }
    return *std::move(state);
  }

  const StoreDirectory directory_;
  const std::string path_ = directory_.File("coppice.db");
  std::unique_ptr<Store> store_;
};

}  // namespace coppice

#define EXPECT_STATUS(expression, wanted_code, wanted_message)                                 \
  do {                                                                                         \
    const absl::Status status_under_test = (expression);                                       \
    EXPECT_EQ(status_under_test.code(), wanted_code) << status_under_test;                     \
    EXPECT_THAT(std::string(status_under_test.message()), testing::HasSubstr(wanted_message)); \
  } while (false)
#define ASSERT_APPLIED(expression)                      \
  do {                                                  \
    const absl::Status applied_status = (expression);   \
    ASSERT_TRUE(applied_status.ok()) << applied_status; \
  } while (false)

#endif  // COPPICE_TESTS_UNIT_DB_STORE_RECORDS_H_
