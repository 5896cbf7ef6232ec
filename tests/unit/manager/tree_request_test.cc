#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "daemon/base/fingerprint.h"
#include "daemon/manager/requests.h"
#include "db/json_lists.h"

namespace coppice::tree_request_test {
namespace {

TEST(FingerprintTest, IsTheSameInEveryRunOfEveryDaemon) {
  // A stored value: if this changes, retries over an upgrade are taken for misuse.
  EXPECT_EQ(Fingerprint().Add(uint64_t{1}).Add("abc").value(),
            Fingerprint().Add(uint64_t{1}).Add("abc").value());
  EXPECT_EQ(0x243f6a8885a308d3u, Fingerprint().value());
}

TEST(FingerprintTest, OrderAndBoundariesCount) {
  const std::set<uint64_t> values = {
      Fingerprint().Add("ab").Add("c").value(),
      Fingerprint().Add("a").Add("bc").value(),
      Fingerprint().Add("c").Add("ab").value(),
      Fingerprint().Add("abc").value(),
      Fingerprint().Add("abc").Add("").value(),
      Fingerprint().Add(absl::string_view("abc\0", 4)).value(),
      Fingerprint().Add(uint64_t{1}).Add(uint64_t{2}).value(),
      Fingerprint().Add(uint64_t{2}).Add(uint64_t{1}).value(),
  };
  EXPECT_EQ(8u, values.size());
}

using Args = CreateTreeArgs;

void SetAll(Args& a) {
  a.ranks = {4, 2};
  a.operation = Operation::kReduce;
  a.sizes = {{8, 1}, {1 << 20, 0.5}};
  a.type = TreeType::kTypeI;
  a.builder = TreeBuilder::kHierarchical;
  a.width = 4;
  a.nic_degree = 8;
  a.root_switch = Guid(0x0002c9020040b0e0);
  a.policy = TradePolicy{0.1, 2, 0.25, 0, 1.5};
  a.list_tradeoffs = true;
}

// What stands in databases: fingerprints are compared with those of retries after an upgrade, and
// records are planned anew. A line for every field of kTreeFields; a new one is added, none
// changes.
const struct {
  std::function<void(Args&)> change;
  uint64_t fingerprint;
  const char* text;
} kKept[] = {
    {[](Args&) {}, 0x78f549fd01b957ba, "{}"},
    {[](Args& a) {
       a.ranks = {4, 2, 7};
     },
     0x5168744ee3926eb7, "{}"},
    {[](Args& a) { a.operation = Operation::kBcast; }, 0x547006b831f14f82, "{}"},
    {[](Args& a) {
       a.sizes = {{8, 1}, {1 << 20, 0.5}};
     },
     0x8cf3e8d19ae2a925, "{}"},
    {[](Args& a) { a.type = TreeType::kTypeII; }, 0xd7d39543f14bd2d9, R"({"type":"II"})"},
    {[](Args& a) { a.builder = TreeBuilder::kKnomial; }, 0xe0286e86f1fa79b0,
     R"({"builder":"knomial"})"},
    {[](Args& a) { a.width = 7; }, 0xb2b849eede0dccb2, R"({"width":7})"},
    {[](Args& a) { a.nic_degree = 9; }, 0x4a0ec522999e8c00, R"({"nic_degree":9})"},
    {[](Args& a) { a.root_switch = Guid(0x0002c9020040b0e0); }, 0x190f7cbac8846e00,
     R"({"root":"0002c9020040b0e0"})"},
    {[](Args& a) {
       a.policy = TradePolicy{0.1, 2, 0.25, 3, 1.5};
     },
     0xa7aac08ea52ec745,
     R"({"latency":0.10000000000000001,"entries":2,"link_load":0.25,"max_entries":3,)"
     R"("max_busiest_link_us":1.5})"},
    {[](Args& a) { a.policy = TradePolicy{.latency = 1}; }, 0xc45865447e34318b,
     R"({"latency":1,"entries":0,"link_load":0,"max_busiest_link_us":0})"},
    {[](Args& a) { a.list_tradeoffs = true; }, 0x78f549fd01b957ba, "{}"},
    {[](Args& a) { a.carried = true; }, 0xd46436e21f0de3d6, R"({"carried":1})"},
    {[](Args& a) { a.max_trees = 16; }, 0xa98227329d15ceec, R"({"max_trees":16})"},
    {SetAll, 0x04464f9c71da4e3c,
     R"({"type":"I","builder":"hierarchical","width":4,"nic_degree":8,)"
     R"("root":"0002c9020040b0e0","latency":0.10000000000000001,"entries":2,"link_load":0.25,)"
     R"("max_entries":0,"max_busiest_link_us":1.5})"},
};

TEST(TreeRequestTest, FingerprintsAreThoseOfEarlierReleases) {
  for (const auto& kept : kKept) {
    Args args;
    kept.change(args);
    EXPECT_EQ(kept.fingerprint, FingerprintOf(args)) << kept.text;
  }
}

TEST(TreeRequestTest, RecordsAreThoseOfEarlierReleases) {
  for (const auto& kept : kKept) {
    Args args;
    kept.change(args);
    TreeRecord record, read;
    record.spec = args;
    EXPECT_EQ(kept.text, SpecText(record));
    ParseSpec(kept.text, read);
    static_cast<CollectiveMix&>(read.spec) = args;  // from columns of its own
    read.spec.list_tradeoffs = args.list_tradeoffs;
    EXPECT_EQ(record, read) << kept.text;
  }
}

TEST(TreeRequestTest, ARecordOfTypeIIThatAcceptsTypeI) {
  TreeRecord either;
  Args args;
  SetAll(args);
  either.spec = args;
  either.spec.type = TreeType::kTypeII;
  either.accepts_type1 = true;
  EXPECT_EQ(
      R"({"type":"II","builder":"hierarchical","width":4,"nic_degree":8,)"
      R"("root":"0002c9020040b0e0","latency":0.10000000000000001,"entries":2,"link_load":0.25,)"
      R"("max_entries":0,"max_busiest_link_us":1.5,"or_else":"I"})",
      SpecText(either));
}

TEST(TreeRequestTest, FingerprintsOfBatchesAreThoseOfEarlierReleases) {
  CreateBatchArgs args;
  EXPECT_EQ(0x4bd42a3c5a6cefdbu, FingerprintOf(args));
  args.grid.emplace();
  args.grid->sizes = {4, 5};
  args.grid->axes = {1};
  args.rank_order = {3, 1};
  args.communicators = {{1, 2}, {3}};
  args.operation = Operation::kBcast;
  args.sizes = {{8, 1}, {4096, 0.5}};
  args.largest_part = args.accept_type1 = true;
  EXPECT_EQ(0x3404f6e5903f7285u, FingerprintOf(args));
}

TEST(TreeRequestTest, EveryPartOfTheContentChangesTheFingerprint) {
  const std::vector<std::function<void(Args&)>> changes = {
      [](Args&) {},
      [](Args& a) { a.ranks = {0}; },
      [](Args& a) {
        a.ranks = {0, 1};
      },
      [](Args& a) {
        a.ranks = {1, 0};
      },
      [](Args& a) { a.operation = Operation::kBcast; },
      [](Args& a) {
        a.sizes = {{8, 1}};
      },
      [](Args& a) {
        a.sizes = {{8, 2}};
      },
      [](Args& a) { a.type = TreeType::kTypeI; },
      [](Args& a) { a.type = TreeType::kTypeII; },
      [](Args& a) { a.builder = TreeBuilder::kKary; },
      [](Args& a) { a.width = 2; },
      [](Args& a) { a.nic_degree = 2; },
      [](Args& a) { a.max_trees = 2; },
      [](Args& a) { a.root_switch = Guid(0); },
      [](Args& a) { a.root_switch = Guid(2); },
  };
  std::set<uint64_t> values;
  for (const auto& change : changes) {
    Args args;
    change(args);
    values.insert(FingerprintOf(args));
  }
  EXPECT_EQ(changes.size(), values.size());
  Args named;
  named.request_id = "x";
  named.job = JobId(3);
  EXPECT_EQ(FingerprintOf(Args()), FingerprintOf(named));
}

TEST(TreeRequestTest, MarksAreCleanAfterEveryVerdict) {
  std::vector<uint64_t> marks;
  for (const std::vector<uint32_t>& ranks :
       {std::vector<uint32_t>{0, 99, 64}, {5, 5}, {7, 100}, {}}) {
    CheckRanks(ranks, 100, marks).IgnoreError();
    EXPECT_EQ(std::vector<uint64_t>(2, 0), marks);
  }
  EXPECT_TRUE(CheckRanks({99, 0, 64, 63}, 100, marks).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRanks({1, 1}, 100, marks)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRanks({100}, 100, marks)));
}

}  // namespace
}  // namespace coppice::tree_request_test
