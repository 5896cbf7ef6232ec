// Orders of ranks, trees over them, and exchanges, which are played by all ranks together.
#include "agents/mpi/tree/rank_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "agents/mpi/tree/tree_shape.h"
#include "tests/support/tier.h"

namespace coppice::mpi {
namespace {

struct Ranks {
  std::vector<int32_t> parents;
  std::vector<int> hosts;
};

Ranks RandomRanks(int count, std::mt19937_64& random) {
  std::vector<int> place(count);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), random);
  Ranks ranks = {std::vector<int32_t>(count, -1), std::vector<int>(count)};
  for (int rank = 1; rank < count; ++rank) ranks.parents[place[rank]] = place[random() % rank];
  const uint64_t hosts = 1 + random() % count;
  for (int& host : ranks.hosts) host = 100 + static_cast<int>(random() % hosts);
  return ranks;
}

RankOrder OrderDownwards(const std::vector<int32_t>& parents, const std::vector<int>& hosts) {
  return OrderByHosts(DepthFirst(parents), hosts);
}

TEST(RankOrder, GoesDownTheTreeWithTheRanksOfAHostTogether) {
  //      2          hosts a: 2 5 1, b: 0 3, c: 4
  //     / \.
  //    0   5
  //   / \   \.
  //  3   4   1
  const RankOrder order = OrderDownwards({2, 5, -1, 0, 0, 2}, {7, 6, 6, 7, 9, 6});
  EXPECT_EQ(order.ranks, (std::vector<int>{2, 5, 1, 0, 3, 4}));
  EXPECT_EQ(order.first_place, (std::vector<int>{0, 3, 5, 6}));
  EXPECT_FALSE(order.IsAscending());
  EXPECT_TRUE(OrderDownwards({-1, 0, 1}, {1, 1, 2}).IsAscending());
}

TEST(RankOrder, HasEachRankOnceAndHostsInOnePiece) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const Ranks ranks = RandomRanks(1 + static_cast<int>(random() % 20), random);
    const RankOrder order = OrderDownwards(ranks.parents, ranks.hosts);
    EXPECT_EQ(ranks.parents[order.ranks[0]], -1);
    std::vector<int> sorted = order.ranks, all(order.ranks.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
    std::set<int> seen;
    for (size_t host = 0; host + 1 < order.first_place.size(); ++host) {
      const int number = ranks.hosts[order.ranks[order.first_place[host]]];
      EXPECT_TRUE(seen.insert(number).second);
      for (int place = order.first_place[host]; place < order.first_place[host + 1]; ++place) {
        EXPECT_EQ(ranks.hosts[order.ranks[place]], number);
      }
    }
    EXPECT_EQ(order.first_place.back(), static_cast<int>(order.ranks.size()));
  }
}

TEST(RankOrder, TreesOverItAreTreesOfItsNeighbours) {
  std::mt19937_64 random(TestSeed());
  for (int count = 1; count < 40; ++count) {
    const Ranks ranks = RandomRanks(count, random);
    const RankOrder order = OrderDownwards(ranks.parents, ranks.hosts);
    TreeShape shape;
    ASSERT_TRUE(MakeTreeShape(ChainParents(order), 0, &shape));
    EXPECT_EQ(shape.root, order.ranks[0]);
    EXPECT_EQ(shape.height, count - 1);
    ASSERT_TRUE(MakeTreeShape(BinomialParents(order), 0, &shape));
    EXPECT_EQ(shape.root, order.ranks[0]);
    EXPECT_LE(1 << shape.height, count);
  }
}

// What an element of a rank's result holds: the places from first to before last, each once.
using Span = std::pair<int, int>;
using Result = std::vector<Span>;

// All ranks' exchanges at once. Messages between two ranks come in their order. False: ranks wait
// for each other for ever, or something does not fit together.
class Played final {
 public:
  Played(const RankOrder& order, int count, bool halves)
      : next_(order.ranks.size()), is_sent_(order.ranks.size()) {
    for (size_t rank = 0; rank < order.ranks.size(); ++rank) {
      steps_.push_back(ExchangeSteps(order, static_cast<int>(rank), count, halves));
    }
    results_.resize(order.ranks.size());
    for (size_t place = 0; place < order.ranks.size(); ++place) {
      const int at = static_cast<int>(place);
      results_[order.ranks[place]].assign(count, {at, at + 1});
    }
  }

  bool Run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t rank = 0; rank < steps_.size(); ++rank) moves |= Move(static_cast<int>(rank));
    }
    for (size_t rank = 0; rank < steps_.size(); ++rank) {
      if (next_[rank] != steps_[rank].size()) return false;
    }
    return fits_ && std::all_of(sent_.begin(), sent_.end(),
                                [](const auto& queue) { return queue.second.empty(); });
  }
  const std::vector<Result>& results() const { return results_; }
  size_t steps(int rank) const { return steps_[rank].size(); }

 private:
  bool Move(int rank) {
    if (next_[rank] == steps_[rank].size()) return false;
    const ExchangeStep& step = steps_[rank][next_[rank]];
    bool moves = false;
    if (step.send.is_there && !is_sent_[rank]) {
      const auto first = results_[rank].begin() + step.send.first;
      sent_[{rank, step.peer}].emplace_back(first, first + step.send.count);
      moves = is_sent_[rank] = true;
    }
    if (step.receive.is_there) {
      std::deque<Result>& queue = sent_[{step.peer, rank}];
      if (queue.empty()) return moves;
      Take(step, queue.front(), &results_[rank]);
      queue.pop_front();
    }
    ++next_[rank];
    is_sent_[rank] = false;
    return true;
  }

  void Take(const ExchangeStep& step, const Result& came, Result* result) {
    fits_ &= static_cast<int>(came.size()) == step.receive.count;
    for (size_t i = 0; fits_ && i < came.size(); ++i) {
      Span& own = (*result)[step.receive.first + i];
      if (!step.combines) {
        own = came[i];
        continue;
      }
      const Span& earlier = step.is_peer_later ? own : came[i];
      const Span& later = step.is_peer_later ? came[i] : own;
      fits_ &= earlier.second == later.first;
      own = {earlier.first, later.second};
    }
  }

  std::vector<std::vector<ExchangeStep>> steps_;
  std::vector<size_t> next_;
  std::vector<bool> is_sent_;
  std::vector<Result> results_;
  std::map<std::pair<int, int>, std::deque<Result>> sent_;
  bool fits_ = true;
};

TEST(Exchange, GivesAllRanksEverythingInOrder) {
  std::mt19937_64 random(TestSeed());
  for (int count = 1; count <= 40; ++count) {
    for (int round = 0; round < 8; ++round) {
      Ranks ranks = RandomRanks(count, random);
      if (round == 0) std::iota(ranks.hosts.begin(), ranks.hosts.end(), 0);
      const RankOrder order = OrderDownwards(ranks.parents, ranks.hosts);
      for (const int elements : {0, 1, 7, 64}) {
        for (const bool halves : {false, true}) {
          Played played(order, elements, halves);
          ASSERT_TRUE(played.Run()) << count << " ranks, " << elements << " elements";
          for (const Result& result : played.results()) {
            EXPECT_EQ(result, Result(elements, {0, count}));
          }
        }
      }
    }
  }
}

TEST(Exchange, TakesAStepForEachDoubling) {
  std::vector<int32_t> parents(16, 0);
  parents[0] = -1;
  std::vector<int> hosts(16);
  std::iota(hosts.begin(), hosts.end(), 0);
  const RankOrder order = OrderDownwards(parents, hosts);
  EXPECT_EQ(ExchangeSteps(order, 5, 100, false).size(), 4U);
  int elements = 0;
  for (const ExchangeStep& step : ExchangeSteps(order, 5, 160, true)) elements += step.send.count;
  EXPECT_EQ(elements, 2 * 150);
}

}  // namespace
}  // namespace coppice::mpi
