#include "daemon/manager/tree_request.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "daemon/manager/named_requests.h"

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

TEST(TreeRequestTest, EveryPartOfTheContentChangesTheFingerprint) {
  using Args = CreateTreeArgs;
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
