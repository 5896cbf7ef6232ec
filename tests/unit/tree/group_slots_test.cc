// The least occupied height of hierarchical k-nomial trees against every placement there is.
#include "daemon/tree/group_slots.h"

#include <algorithm>
#include <functional>
#include <random>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/slot_oracle.h"

namespace coppice::group_slots_test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kNoLimit = 1000;

// Hosts of these many ranks in one group: {3, 2, 2} = ranks 0-2, 3-4, 5-6.
NestedGroups Hosts(const std::vector<uint32_t>& sizes) {
  NestedGroups nested;
  std::vector<uint32_t> outer;
  for (const uint32_t size : sizes) nested.rank_count += size;
  uint32_t rank = 0;
  for (const uint32_t size : sizes) {
    if (size == 1) {
      outer.push_back(rank++);
      continue;
    }
    const auto begin = static_cast<uint32_t>(nested.parts.size());
    for (uint32_t i = 0; i < size; ++i) nested.parts.push_back(rank++);
    outer.push_back(nested.rank_count + static_cast<uint32_t>(nested.groups.size()));
    nested.groups.push_back({.begin = begin, .end = begin + size, .ordered = true});
  }
  if (outer.size() > 1) {
    const auto begin = static_cast<uint32_t>(nested.parts.size());
    nested.parts.insert(nested.parts.end(), outer.begin(), outer.end());
    nested.groups.push_back(
        {.begin = begin, .end = static_cast<uint32_t>(nested.parts.size()), .ordered = false});
  }
  return nested;
}

// Leaf switches of hosts: {{3, 2}, {1, 1}}.
NestedGroups Leaves(const std::vector<std::vector<uint32_t>>& leaves) {
  NestedGroups nested;
  for (const auto& hosts : leaves) {
    for (const uint32_t size : hosts) nested.rank_count += size;
  }
  std::vector<uint32_t> outer;
  uint32_t rank = 0;
  for (const auto& hosts : leaves) {
    const NestedGroups inner = Hosts(hosts);
    const auto groups = static_cast<uint32_t>(nested.groups.size());
    const auto begin = static_cast<uint32_t>(nested.parts.size());
    for (const uint32_t part : inner.parts) {
      nested.parts.push_back(part < inner.rank_count
                                 ? rank + part
                                 : nested.rank_count + groups + part - inner.rank_count);
    }
    for (const NestedGroups::Group& group : inner.groups) {
      nested.groups.push_back({group.begin + begin, group.end + begin, group.ordered});
    }
    outer.push_back(inner.groups.empty()
                        ? rank
                        : nested.rank_count + static_cast<uint32_t>(nested.groups.size()) - 1);
    rank += inner.rank_count;
  }
  if (outer.size() > 1) {
    const auto begin = static_cast<uint32_t>(nested.parts.size());
    nested.parts.insert(nested.parts.end(), outer.begin(), outer.end());
    nested.groups.push_back(
        {.begin = begin, .end = static_cast<uint32_t>(nested.parts.size()), .ordered = false});
  }
  return nested;
}

// Calls `body` with every non-increasing list of `count` sizes from 1 to `most`.
void ForEachList(uint32_t count, uint32_t most,
                 const std::function<void(const std::vector<uint32_t>&)>& body) {
  std::vector<uint32_t> sizes;
  const std::function<void(uint32_t)> extend = [&](uint32_t limit) {
    if (sizes.size() == count) return body(sizes);
    for (uint32_t size = 1; size <= limit; ++size) {
      sizes.push_back(size);
      extend(size);
      sizes.pop_back();
    }
  };
  extend(most);
}

std::string Text(const std::vector<uint32_t>& sizes) { return absl::StrJoin(sizes, ","); }

struct Tally {
  uint32_t compared = 0, limited = 0, bind = 0;
};

// Compares with the oracle, without limit and under every limit that binds.
void Compare(const NestedGroups& groups, uint32_t width, const std::string& what, Tally& tally) {
  const auto whole = static_cast<uint32_t>(groups.rank_count + groups.groups.size() - 1);
  if (BlockSlots(groups, whole, width) > kOracleSlots) return;
  const auto free = ArrangeGroups(groups, width, kNoLimit);
  ASSERT_TRUE(free.ok()) << what;
  EXPECT_EQ(WrongInArrangement(groups, width, kNoLimit, *free), "") << what << " k=" << width;
  const auto least_within = LeastHeightsByTrial(groups, width);
  EXPECT_EQ(free->height, least_within.back()) << what << " k=" << width;
  ++tally.compared;
  for (uint32_t limit = 1; limit < groups.rank_count; ++limit) {
    const std::optional<uint32_t> least = least_within[limit];
    const auto limited = ArrangeGroups(groups, width, limit);
    ++tally.limited;
    tally.bind += !limited.ok() || limited->parents != free->parents ? 1 : 0;
    ASSERT_EQ(limited.ok(), least.has_value()) << what << " k=" << width << " limit " << limit;
    if (!limited.ok()) {
      EXPECT_EQ(limited.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(limited.status().message(), HasSubstr("no other arrangement of width"));
      EXPECT_THAT(limited.status().message(), HasSubstr(" exists")) << what;
      continue;
    }
    EXPECT_EQ(WrongInArrangement(groups, width, limit, *limited), "") << what << " k=" << width;
    EXPECT_EQ(limited->height, *least) << what << " k=" << width << " limit " << limit;
    EXPECT_TRUE(limited->is_least) << what << " k=" << width << " limit " << limit;
  }
}

void Report(const Tally& tally) {
  std::printf("%u lists least; under %u limits, of which %u bind\n", tally.compared, tally.limited,
              tally.bind);
}

TEST(GroupSlots, MeetsTheExamplesOfTheRule) {
  const auto height = [](const std::vector<uint32_t>& sizes) {
    return ArrangeGroups(Hosts(sizes), 2, kNoLimit)->height;
  };
  EXPECT_EQ(height({4, 4, 3, 3}), 3U);  // the paper's figure 9
  EXPECT_EQ(height({3, 2, 2}), 2U);
  EXPECT_EQ(height({3, 5, 4}), 3U);
  EXPECT_EQ(height({1, 5, 1, 3, 2}), 3U);
}

TEST(GroupSlots, RankZeroIsTheRootAmongEqualGroups) {
  const auto arrangement = ArrangeGroups(Hosts({4, 4, 4, 4}), 4, kNoLimit);
  ASSERT_TRUE(arrangement.ok());
  EXPECT_EQ(arrangement->parents[0], -1);
  EXPECT_EQ(arrangement->slots[4], 4U);
  EXPECT_EQ(arrangement->slot_exponent, 2U);
}

TEST(GroupSlots, IsLeastForAllSmallListsOfHosts) {
  const uint32_t most_groups = FullTier() ? 6 : 5;
  Tally tally;
  for (const uint32_t width : {2U, 3U, 4U}) {
    for (uint32_t count = 1; count <= most_groups; ++count) {
      const uint32_t most_size = FullTier() && count < 6 ? 8 : 6;
      ForEachList(count, most_size, [&](const std::vector<uint32_t>& sizes) {
        if (count == 1 && sizes[0] == 1) return;
        Compare(Hosts(sizes), width, Text(sizes), tally);
      });
    }
  }
  Report(tally);
}

// The scale of a machine: 80 supernodes of 32 leaf switches of 16 ports, a NIC's usual limit.
TEST(GroupSlots, KeepsTheLeastHeightAtScaleUnderALimit) {
  const std::vector<uint32_t> leaf(16, 1);
  NestedGroups nested = Leaves(std::vector<std::vector<uint32_t>>(32 * 80, leaf));
  // The last group holds the 2,560 leaf switches: cut it into 80 supernodes.
  const NestedGroups::Group all = nested.groups.back();
  nested.groups.pop_back();
  std::vector<uint32_t> supernodes;
  for (uint32_t pod = 0; pod < 80; ++pod) {
    supernodes.push_back(nested.rank_count + static_cast<uint32_t>(nested.groups.size()));
    nested.groups.push_back({all.begin + 32 * pod, all.begin + 32 * (pod + 1), false});
  }
  const auto begin = static_cast<uint32_t>(nested.parts.size());
  nested.parts.insert(nested.parts.end(), supernodes.begin(), supernodes.end());
  nested.groups.push_back({begin, begin + 80, false});
  for (const uint32_t width : {2U, 4U, 8U, 16U, 32U, 64U}) {
    const auto free = ArrangeGroups(nested, width, UINT32_MAX - 1);
    ASSERT_TRUE(free.ok());
    EXPECT_EQ(WrongInArrangement(nested, width, UINT32_MAX, *free), "") << width;
    const auto limited = ArrangeGroups(nested, width, 64);
    ASSERT_TRUE(limited.ok()) << limited.status();
    EXPECT_EQ(WrongInArrangement(nested, width, 64, *limited), "") << width;
    // With k = 64 all 79 other supernodes would stand directly below the root's.
    EXPECT_EQ(limited->height, free->height + (width == 64 ? 1 : 0)) << width;
  }
}

// Too large for the oracle: within the rule and the limit, and a higher limit never costs height.
TEST(GroupSlots, KeepsRandomMachinesWithinTheirLimits) {
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 400 : 40;
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<uint32_t>> leaves(2 + random() % 12);
    for (auto& leaf : leaves) {
      leaf.resize(1 + random() % 12);
      for (uint32_t& ranks : leaf) ranks = 1 + random() % 8;
    }
    const NestedGroups groups = Leaves(leaves);
    const auto width = static_cast<uint32_t>(2 + random() % 16);
    SCOPED_TRACE(testing::Message() << "round " << round << " k=" << width);
    const auto free = ArrangeGroups(groups, width, kNoLimit);
    ASSERT_TRUE(free.ok());
    std::vector<uint32_t> children(groups.rank_count, 0);
    for (const int32_t parent : free->parents) {
      if (parent >= 0) ++children[parent];
    }
    uint32_t height = free->height;
    for (uint32_t limit = *std::max_element(children.begin(), children.end()); limit > 0; --limit) {
      const auto limited = ArrangeGroups(groups, width, limit);
      if (!limited.ok()) {
        EXPECT_EQ(limited.status().code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      EXPECT_EQ(WrongInArrangement(groups, width, limit, *limited), "") << limit;
      EXPECT_TRUE(!limited->is_least || limited->height >= height) << limit;
      height = limited->is_least ? limited->height : height;
    }
  }
}

TEST(GroupSlots, IsLeastForSmallNestings) {
  std::vector<std::vector<uint32_t>> leaves;
  for (uint32_t count = 1; count <= 3; ++count) {
    ForEachList(count, FullTier() ? 4 : 3,
                [&](const std::vector<uint32_t>& sizes) { leaves.push_back(sizes); });
  }
  Tally tally;
  std::mt19937_64 random(TestSeed());
  const uint32_t rounds = FullTier() ? 5000 : 600;
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<uint32_t>> chosen(2 + random() % 2);
    for (auto& leaf : chosen) leaf = leaves[random() % leaves.size()];
    const NestedGroups groups = Leaves(chosen);
    const uint32_t width = 2 + random() % 3;
    const auto whole = static_cast<uint32_t>(groups.rank_count + groups.groups.size() - 1);
    if (BlockSlots(groups, whole, width) > 64) continue;
    std::string what;
    for (const auto& leaf : chosen) what += "{" + Text(leaf) + "}";
    Compare(groups, width, what, tally);
  }
  Report(tally);
}

}  // namespace
}  // namespace coppice::group_slots_test
