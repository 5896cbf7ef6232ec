// Tables of partitions as a real subnet manager writes them, against what smpquery prints of each
// port; and jobs and trees of three tenants under them, while they change, by the verifier over
// what smpquery prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/fabric/partitions.h"
#include "tests/support/partition_check.h"
#include "tests/support/tier.h"
#include "tests/system/live_manager.h"

namespace coppice::live_partitions_test {
namespace {

constexpr char kFabric[] = "fat-tree(leaves=4,spines=2,hosts-per-leaf=4)";

class LivePartitions : public LiveManager {
 protected:
  // "   0: 0xffff 0x8001 0x0000 ...", eight keys a line.
  PartitionTable TableBySmpquery(Lid lid, PortNum port) {
    const absl::StatusOr<std::string> text =
        subnet_->Run({"smpquery", "pkeys", absl::StrCat(lid.value()), absl::StrCat(port.value())});
    EXPECT_TRUE(text.ok()) << text.status();
    PartitionTable table;
    std::istringstream words(text.ok() ? *text : "");
    for (std::string word; words >> word;) {
      uint32_t key = 0;
      if (word.size() == 6 && absl::SimpleHexAtoi(word, &key)) {
        table.push_back(static_cast<uint16_t>(key));
      }
    }
    EXPECT_FALSE(table.empty()) << *text;
    while (!table.empty() && table.back() == 0) table.pop_back();
    return table;
  }

  void ExpectTablesOfSmpquery(const SweepResult& result) {
    const Fabric& fabric = *result.fabric;
    const Partitions& partitions = *result.partitions;
    EXPECT_EQ(partitions.port_count(), fabric.endpoint_count() + fabric.switch_count());
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
      EXPECT_EQ(partitions.TableOf(info.port_guid), TableBySmpquery(info.lid, info.port)) << e;
    }
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
      EXPECT_EQ(partitions.TableOf(info.guid), TableBySmpquery(info.lid, PortNum(0))) << s;
      for (uint32_t number = 1; number <= info.port_count; ++number) {
        const PortNum port(static_cast<uint8_t>(number));
        const Partitions::Enforcement* const at = partitions.EnforcedAt(info.guid, port);
        if (at == nullptr) continue;
        EXPECT_EQ(at->table, TableBySmpquery(info.lid, port)) << s << " port " << number;
        ++enforced_;
      }
    }
  }

  // As smpquery prints them, of all adapters' ports and switches.
  KeyTables TablesBySmpquery(const Fabric& fabric) {
    KeyTables tables;
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
      tables[info.port_guid.value()] = TableBySmpquery(info.lid, info.port);
    }
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
      tables[info.guid.value()] = TableBySmpquery(info.lid, PortNum(0));
    }
    return tables;
  }

  void ExpectAllSpeak(const KeyTables& tables) {
    for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      const TreeRecord& record = *tree.record;
      const auto guid = [&](size_t node) {
        return node < record.ranks.size()
                   ? tree.job->endpoints[record.ranks[node]].value()
                   : record.switches[node - record.ranks.size()].guid.value();
      };
      GuidEdges edges;
      for (size_t node = 0; node < record.parents.size(); ++node) {
        if (record.parents[node] < 0) continue;
        edges.emplace_back(guid(node), guid(static_cast<size_t>(record.parents[node])));
      }
      EXPECT_TRUE(AllSpeak(tables, edges, tree.job->partition.value()))
          << "tree " << record.id.value() << " in " << tree.job->partition.value();
    }
  }

  // One at least, ascending.
  static std::vector<uint32_t> SomeRanks(std::mt19937_64& random, uint32_t ranks) {
    std::vector<uint32_t> some;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (random() % 2 == 0) some.push_back(rank);
    }
    if (some.empty()) some.push_back(static_cast<uint32_t>(random() % ranks));
    return some;
  }

  bool AskForBatch(std::mt19937_64& random, JobId job, uint32_t ranks) {
    CreateBatchArgs args;
    args.job = job;
    for (int i = 0; i < 3; ++i) args.communicators.push_back(SomeRanks(random, ranks));
    args.accept_type1 = random() % 2 == 0;
    args.largest_part = random() % 2 == 0;
    const auto granted = Await<std::shared_ptr<const BatchView>>(
        [&](auto done) { manager_->BatchCreateTrees(std::move(args), {}, std::move(done)); });
    return granted.ok() && !(*granted)->trees.empty();
  }

  // A job on some hosts of a tenant and now and then on others, in his partition or that of its
  // ports, and a tree of it.
  bool AskForOne(std::mt19937_64& random, const Fabric& fabric, const KeyTables& tables) {
    const int tenant = 1 + static_cast<int>(random() % 3);
    RegisterJobArgs job;
    if (random() % 2 == 0) job.partition = PartitionNum(static_cast<uint16_t>(tenant));
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      const Guid port = fabric.endpoint(EndpointIndex(e)).port_guid;
      const bool is_his =
          HoldsKey(tables, port.value(), tenant) || HoldsKey(tables, port.value(), 0x8000 + tenant);
      if (random() % (is_his ? 2 : 40) == 0) job.endpoints.push_back(ToString(port));
      if (random() % 8 == 0 && !job.endpoints.empty()) {
        job.endpoints.push_back(job.endpoints.back());  // another rank on that port
      }
    }
    if (job.endpoints.empty()) return false;
    const auto registered = Register(std::move(job));
    if (!registered.ok()) return false;
    const auto ranks = static_cast<uint32_t>(registered->record->endpoints.size());
    if (random() % 4 == 0) return AskForBatch(random, registered->record->id, ranks);
    CreateTreeArgs args;
    args.job = registered->record->id;
    if (random() % 2 == 0) args.ranks = SomeRanks(random, ranks);
    if (random() % 3 == 0) args.type = random() % 2 == 0 ? TreeType::kTypeI : TreeType::kTypeII;
    return Create(std::move(args)).ok();
  }

  // "0x0002c9...=full" of the n-th endpoint.
  static std::string Member(const Fabric& fabric, uint32_t n, const std::string& membership) {
    return absl::StrCat("0x", ToString(fabric.endpoint(EndpointIndex(n)).port_guid), "=",
                        membership);
  }

  int enforced_ = 0;
  std::unique_ptr<TreeWatch> watch_;
};

// Three tenants on 16 hosts: full and limited members and such as are both, every other host in two
// of them, the default partition limited to all but the first host.
class Tenants {
 public:
  Tenants(const Fabric& fabric, std::mt19937_64& random) : fabric_(fabric), random_(random) {
    for (auto& tenant : memberships_) tenant.assign(fabric.endpoint_count(), "");
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      memberships_[e % kTenants][e] = Some();
      if (e % 2 == 0) memberships_[(e + 1) % kTenants][e] = Some();
    }
  }

  // A member is added, removed, or becomes another.
  void Change() {
    std::string& member = memberships_[random_() % kTenants][random_() % fabric_.endpoint_count()];
    const std::string was = member;
    while (member == was) member = random_() % 3 == 0 ? "" : Some();
    if (random_() % 8 == 0) has_switches_[random_() % kTenants] ^= true;
  }

  std::string Text() const {
    std::string text =
        "Default=0x7fff,ipoib,defmember=limited: ALL, SELF=full, ALL_SWITCHES=full;\n";
    for (int t = 0; t < kTenants; ++t) {
      std::string members = has_switches_[t] ? "ALL_SWITCHES=full" : "";
      for (uint32_t e = 0; e < fabric_.endpoint_count(); ++e) {
        if (memberships_[t][e].empty()) continue;
        absl::StrAppend(&members, members.empty() ? "" : ", ", "0x",
                        ToString(fabric_.endpoint(EndpointIndex(e)).port_guid), "=",
                        memberships_[t][e]);
      }
      absl::StrAppend(&text, "t", t, "=0x000", t + 1, ": ", members, ";\n");
    }
    return text;
  }

 private:
  static constexpr int kTenants = 3;
  const char* Some() {
    constexpr const char* kAll[] = {"full", "full", "limited", "both"};
    return kAll[random_() % 4];
  }

  const Fabric& fabric_;
  std::mt19937_64& random_;
  std::vector<std::string> memberships_[kTenants];  // [tenant][endpoint]
  bool has_switches_[kTenants] = {true, false, true};
};

TEST_F(LivePartitions, TablesOfThreeTenantsEqualTheReference) {
  ASSERT_NO_FATAL_FAILURE(Start(kFabric, "minhop"));
  const SweepResult before = SweepOrFail();
  ASSERT_NE(before.partitions, nullptr);
  const Fabric& fabric = *before.fabric;
  const auto port = [&](uint32_t n) { return fabric.endpoint(EndpointIndex(n)).port_guid; };
  EXPECT_EQ(before.partitions->Of(port(5), kDefaultPartition), Membership::kFull);
  // The first host, where OpenSM and we are, stays full; n4 is in two, n5 in one both ways.
  std::string text = "Default=0x7fff,ipoib,defmember=limited: ALL, SELF=full, ALL_SWITCHES=full;\n";
  absl::StrAppend(&text, "red=0x0001: ", Member(fabric, 1, "full"), ", ",
                  Member(fabric, 2, "limited"), ", ", Member(fabric, 4, "full"), ";\n");
  absl::StrAppend(&text, "green=0x0002: ALL_SWITCHES=full, ", Member(fabric, 4, "limited"), ", ",
                  Member(fabric, 5, "both"), ";\n");
  absl::StrAppend(&text, "blue=0x7000: ", Member(fabric, 6, "full"), ", ",
                  Member(fabric, 7, "full"), ";\n");
  const absl::Status managed = subnet_->RunSubnetManager("minhop", text);
  ASSERT_TRUE(managed.ok()) << managed;
  const SweepResult result = SweepOrFail();
  ASSERT_NE(result.partitions, nullptr);
  const Partitions& partitions = *result.partitions;
  EXPECT_NE(partitions, *before.partitions);
  const PartitionNum red(1), green(2), blue(0x7000);
  EXPECT_EQ(partitions.Of(port(1), red), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(2), red), Membership::kLimited);
  EXPECT_EQ(partitions.Of(port(3), red), Membership::kNone);
  EXPECT_EQ(partitions.Of(port(4), red), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(4), green), Membership::kLimited);
  EXPECT_EQ(partitions.Of(port(5), green), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(6), blue), Membership::kFull);
  EXPECT_EQ(partitions.Of(port(8), kDefaultPartition), Membership::kLimited);
  EXPECT_EQ(partitions.Of(fabric.switch_info(SwitchIndex(0)).guid, green), Membership::kFull);
  EXPECT_EQ(partitions.Of(fabric.switch_info(SwitchIndex(0)).guid, red), Membership::kNone);
  ExpectTablesOfSmpquery(result);
  std::printf("%d ports of switches look at keys\n", enforced_);
}

TEST_F(LivePartitions, TreesOfThreeTenantsWhileTablesChange) {
  ASSERT_NO_FATAL_FAILURE(Start(kFabric, "minhop"));
  const SweepResult first = SweepOrFail();
  const Fabric& fabric = *first.fabric;
  std::mt19937_64 random(TestSeed());
  Tenants tenants(fabric, random);
  const int changes = FullTier() ? 200 : 40, requests_each = 5;
  int granted = 0, refused = 0, revised = 0, revoked = 0, told = 0;
  for (int change = 0; change < changes; ++change) {
    if (change > 0) tenants.Change();
    const absl::Status managed = subnet_->RunSubnetManager("minhop", tenants.Text());
    ASSERT_TRUE(managed.ok()) << managed;
    const KeyTables tables = TablesBySmpquery(fabric);
    if (manager_ == nullptr) {
      ASSERT_NO_FATAL_FAILURE(Boot(/*entries=*/16));
      watch_ = *manager_->WatchTrees(JobId(), "", [] {});
    } else {
      ASSERT_TRUE(manager_->Sweep().ok());
    }
    ExpectAllSpeak(tables);
    for (int i = 0; i < requests_each; ++i) {
      AskForOne(random, fabric, tables) ? ++granted : ++refused;
    }
    ExpectAllSpeak(tables);
    const auto changed = watch_->Next(1000);
    ASSERT_TRUE(changed.ok()) << changed.status();
    for (const TreeChange& seen : *changed) {
      revised += seen.kind == TreeChangeKind::kRevised ? 1 : 0;
      revoked += seen.kind == TreeChangeKind::kRevoked ? 1 : 0;
      const bool is_for_gain = seen.reason.find("planned again") != std::string::npos;
      told += is_for_gain || seen.reason.find("partition 0x") != std::string::npos ? 1 : 0;
    }
  }
  std::printf("%d granted, %d refused, %d revised, %d revoked\n", granted, refused, revised,
              revoked);
  EXPECT_GT(granted, changes * requests_each / 4);
  EXPECT_GT(refused, 0);
  EXPECT_GT(revised, 0);
  EXPECT_GT(revoked, 0);
  // What breaks a tree here is a table.
  EXPECT_EQ(told, revised + revoked);
}

}  // namespace
}  // namespace coppice::live_partitions_test
