// PairRounds against their verifier, exhaustively for few nodes and at random for many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/manager/distances/measurement.h"
#include "tests/support/tier.h"

namespace coppice::round_schedule_test {
namespace {

using ::testing::HasSubstr;

absl::Status Wrong(size_t round, absl::string_view what) {
  return absl::InternalError(absl::StrCat("round ", round, ": ", what));
}

// The verifier: INTERNAL, naming the round, if a node is not one of the n, is in two pairs of a
// round, a pair comes twice, or a round is empty; with `complete` also if a pair is missing or
// there are more rounds than the least.
absl::Status CheckRounds(uint32_t n, const PairRounds& rounds, bool complete) {
  absl::flat_hash_set<NodePair> met;
  std::vector<size_t> last(n, rounds.size());  // [node] round of its last pair
  for (size_t r = 0; r < rounds.size(); ++r) {
    if (rounds[r].empty()) return Wrong(r, "no pair");
    for (const auto& [a, b] : rounds[r]) {
      const std::string pair = absl::StrCat("pair ", a, ", ", b);
      if (a >= b || b >= n) return Wrong(r, absl::StrCat(pair, " of ", n, " nodes"));
      if (!met.insert({a, b}).second) return Wrong(r, absl::StrCat(pair, " again"));
      for (const uint32_t node : {a, b}) {
        if (last[node] == r) return Wrong(r, absl::StrCat("node ", node, " is in two pairs"));
        last[node] = r;
      }
    }
  }
  if (!complete) return absl::OkStatus();
  const uint64_t all = n < 2 ? 0 : uint64_t{n} * (n - 1) / 2;
  const size_t least = n < 2 ? 0 : n - 1 + n % 2;
  if (met.size() == all && rounds.size() == least) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(met.size(), " pairs in ", rounds.size(), " rounds, not ", all, " in ", least));
}

TEST(CompleteRounds, MeetEachOtherOnceInTheLeastRounds) {
  for (uint32_t n = 0; n <= 64; ++n) {
    const PairRounds rounds = CompleteRounds(n);
    EXPECT_TRUE(CheckRounds(n, rounds, true).ok()) << n << ": " << CheckRounds(n, rounds, true);
    for (const auto& round : rounds) EXPECT_EQ(round.size(), n / 2) << n;
  }
}

TEST(CompleteRounds, HoldForManyNodes) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < (FullTier() ? 100 : 5); ++i) {
    const uint32_t n = 65 + static_cast<uint32_t>(random() % 960);
    const absl::Status status = CheckRounds(n, CompleteRounds(n), true);
    EXPECT_TRUE(status.ok()) << n << ": " << status;
  }
}

TEST(CheckRounds, FindsEveryMistake) {
  const auto refuses = [](uint32_t n, const PairRounds& rounds, bool complete, const char* words) {
    const absl::Status status = CheckRounds(n, rounds, complete);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  EXPECT_TRUE(CheckRounds(4, {{{0, 1}, {2, 3}}}, false).ok());
  refuses(4, {{{0, 1}, {2, 3}}}, true, "2 pairs in 1 rounds, not 6 in 3");
  refuses(4, {{{0, 4}}}, false, "pair 0, 4 of 4 nodes");
  refuses(4, {{{1, 0}}}, false, "pair 1, 0");
  refuses(4, {{{1, 1}}}, false, "pair 1, 1");
  refuses(4, {{{0, 1}, {1, 2}}}, false, "node 1 is in two pairs");
  refuses(4, {{{0, 1}}, {{0, 1}}}, false, "again");
  refuses(4, {{{0, 1}}, {}}, false, "round 1: no pair");
  // All pairs, but one to a round.
  refuses(3, {{{0, 1}}, {{0, 2}}, {{1, 2}}, {}}, true, "round 3");
  refuses(4, {{{0, 1}}, {{2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}}, true, "in 4 rounds");
}

// Levels as those of a tree whose groups hang below pods: 2 in a group, 4 in a pod, 6 beyond.
NodeLevels Tree(const std::vector<uint32_t>& nodes_of_group, uint32_t groups_per_pod) {
  NodeLevels levels;
  levels.group_count = static_cast<uint32_t>(nodes_of_group.size());
  for (uint32_t g = 0; g < levels.group_count; ++g) {
    levels.group.insert(levels.group.end(), nodes_of_group[g], g);
  }
  levels.level = [groups_per_pod](uint32_t a, uint32_t b) {
    return a == b ? 2u : a / groups_per_pod == b / groups_per_pod ? 4u : 6u;
  };
  return levels;
}

// What the header promises.
void ExpectGood(const NodeLevels& levels, const SampleOptions& options) {
  const uint32_t n = static_cast<uint32_t>(levels.group.size());
  const PairRounds rounds = SampledRounds(levels, options);
  const absl::Status status = CheckRounds(n, rounds, false);
  EXPECT_TRUE(status.ok()) << status;
  const auto level = [&](uint32_t a, uint32_t b) {
    return levels.level(levels.group[a], levels.group[b]);
  };
  std::map<uint32_t, size_t> there, sampled;
  for (uint32_t a = 0; a < n; ++a) {
    for (uint32_t b = a + 1; b < n; ++b) ++there[level(a, b)];
  }
  std::set<uint32_t> nodes;
  for (const auto& round : rounds) {
    for (const auto& [a, b] : round) {
      nodes.insert({a, b});
      ++sampled[level(a, b)];
    }
  }
  if (n >= 2) {
    EXPECT_EQ(nodes.size(), n);
  }
  for (const auto& [l, count] : there) {
    EXPECT_GE(sampled[l], std::min<size_t>(count, options.rounds_per_level)) << "level " << l;
  }
  EXPECT_LE(rounds.size(), there.size() * options.rounds_per_level + 2);
}

TEST(SampledRounds, HaveSomeOfEachLevelAndOfEachNode) {
  for (uint32_t n = 0; n <= 40; ++n) {
    for (const uint32_t per_group : {1u, 2u, 3u, 7u}) {
      std::vector<uint32_t> groups(n / per_group, per_group);
      if (n % per_group != 0) groups.push_back(n % per_group);
      SCOPED_TRACE(testing::Message() << n << " nodes, " << per_group << " a group");
      ExpectGood(Tree(groups, 3), {});
    }
  }
}

TEST(SampledRounds, HoldForRandomTrees) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < (FullTier() ? 200 : 20); ++i) {
    std::vector<uint32_t> groups(1 + random() % 60);
    for (uint32_t& nodes : groups) nodes = 1 + static_cast<uint32_t>(random() % 9);
    SampleOptions options;
    options.rounds_per_level = 1 + static_cast<uint32_t>(random() % 5);
    options.seed = random();
    ExpectGood(Tree(groups, 1 + static_cast<uint32_t>(random() % 8)), options);
  }
}

// 10,000 nodes of 500 leaf switches: rounds, and not pairs, by the million.
TEST(SampledRounds, AreFewForManyNodes) {
  const NodeLevels levels = Tree(std::vector<uint32_t>(500, 20), 20);
  const PairRounds rounds = SampledRounds(levels, {});
  EXPECT_TRUE(CheckRounds(10'000, rounds, false).ok());
  EXPECT_EQ(rounds.size(), 12u);
  for (const auto& round : rounds) EXPECT_GE(round.size(), 4'000u);
}

TEST(SampledRounds, AreTheSameForTheSameSeed) {
  const NodeLevels levels = Tree({5, 5, 5, 5}, 2);
  EXPECT_EQ(SampledRounds(levels, {4, 9}), SampledRounds(levels, {4, 9}));
  EXPECT_NE(SampledRounds(levels, {4, 9}), SampledRounds(levels, {4, 10}));
}

}  // namespace
}  // namespace coppice::round_schedule_test
