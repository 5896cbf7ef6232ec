// The trade between time, entries and links: the front against every serving set of every root on
// small fabrics, what policies take, and what is refused.
#include "daemon/tree/trade.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type2_candidate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/plan_check.h"

namespace coppice::trade_test {
namespace {

using ::testing::HasSubstr;

TEST(TradeFront, KeepsWhatNoneBeats) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::vector<TradeFigures> all;
    TradeFront front;
    for (size_t i = 0; i < 30; ++i) {
      all.push_back({1.0 + static_cast<double>(random() % 6), static_cast<uint32_t>(random() % 6),
                     1.0 + static_cast<double>(random() % 6), 1});
      front.Offer(all.back(), i);
    }
    for (const TradeFigures& figures : all) {
      EXPECT_TRUE(std::any_of(front.points().begin(), front.points().end(),
                              [&](const auto& p) { return IsNoWorse(p.figures, figures); }));
    }
    for (const TradeFront::Point& a : front.points()) {
      for (const TradeFront::Point& b : front.points()) {
        EXPECT_EQ(IsNoWorse(a.figures, b.figures), &a == &b);
      }
    }
  }
}

TEST(TradePolicy, PureWeightsTakeTheExtremes) {
  const std::vector<TradeFront::Point> points = {
      {{1, 9, 5, 1}, 0}, {{2, 3, 6, 1}, 1}, {{3, 0, 7, 1}, 2}, {{4, 5, 1, 1}, 3}};
  const auto taken = [&](TradePolicy policy) { return *ChooseByPolicy(points, policy); };
  EXPECT_EQ((taken({.latency = 2})), 0U);
  EXPECT_EQ((taken({.entries = 1e300})), 2U);
  EXPECT_EQ((taken({.link_load = 1e-300})), 3U);
  EXPECT_EQ((taken({.latency = 1, .entries = 1})), 1U);
  EXPECT_EQ((taken({.latency = 1, .max_entries = 4})), 1U);
  EXPECT_EQ((taken({.latency = 1, .max_entries = 5, .max_busiest_link_us = 2})), 3U);
}

TEST(TradePolicy, SaysWhichLimitCannotBeKept) {
  const std::vector<TradeFront::Point> points = {{{1, 9, 5, 1}, 0}, {{2, 3, 6, 1}, 1}};
  const auto error = [&](const TradePolicy& policy) {
    const absl::Status status = ChooseByPolicy(points, policy).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT((error({.latency = 1, .max_entries = 2})),
              HasSubstr("policy: no tree takes 2 entries or fewer; the least is 3"));
  EXPECT_THAT((error({.latency = 1, .max_busiest_link_us = 0.5})),
              HasSubstr("no tree keeps its busiest link to 0.5 us; the least is 5 us"));
  EXPECT_THAT((error({.latency = 1, .max_entries = 3, .max_busiest_link_us = 5})),
              HasSubstr("with at most 3 entries the busiest link is busy for 6 us at least"));
}

TEST(TradePolicy, WeightsAreJudged) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(CheckPolicy({.entries = 1}).ok());
  EXPECT_THAT((std::string(CheckPolicy({}).message())), HasSubstr("are all 0"));
  EXPECT_THAT((std::string(CheckPolicy({.latency = -1}).message())),
              HasSubstr("policy: latency -1"));
  EXPECT_THAT((std::string(CheckPolicy({.entries = nan}).message())), HasSubstr("policy: entries"));
  EXPECT_THAT((std::string(CheckPolicy({.link_load = infinity}).message())),
              HasSubstr("policy: link load"));
  EXPECT_THAT((std::string(CheckPolicy({.latency = 1, .max_busiest_link_us = nan}).message())),
              HasSubstr("policy: most us of the busiest link"));
}

struct Case {
  Snapshot snapshot;
  CostProfile profile = *BuiltInProfile("hdr");
  std::vector<SwitchCapacity> capacity;
  TreeRequest request;
};

Case RandomCase(std::mt19937_64& random) {
  const std::vector<FabricPtr> fabrics = {TwoLevelFatTree(3, 2, 2), TwoLevelFatTree(4, 2, 3),
                                          ThreeLevelFatTree(2, 2, 2, 1, 2), Ring(5, 2),
                                          Chain(4, 3)};
  Case c;
  c.snapshot = **MakeSnapshot(fabrics[random() % fabrics.size()], nullptr);
  const Fabric& fabric = *c.snapshot.fabric;
  if (random() % 2 == 0) {
    std::vector<float> load(fabric.channel_count());
    const uint64_t most = random() % 2 == 0 ? 90 : 1;
    for (float& u : load) u = static_cast<float>(random() % 100 * most) / 10000;
    c.snapshot.load = std::make_shared<const LinkLoad>(load);
  }
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    c.capacity.push_back({4, random() % 6 == 0 ? 0U : 1U, static_cast<uint32_t>(2 + random() % 5)});
  }
  for (const EndpointIndex e : AllEndpoints(fabric)) {
    if (random() % 4 != 0) c.request.members.push_back(e);
  }
  if (c.request.members.empty()) c.request.members.emplace_back(0);
  c.request.operation = static_cast<Operation>(random() % 4);
  c.request.sizes = {{random() % 3 == 0 ? 50'000U : 8U, 1}};
  c.request.list_tradeoffs = true;
  return c;
}

// Packets on every channel, counted edge by edge in the plainest way.
double BusiestUs(const Case& c, const AggregationTree& tree, const PhysicalTree* physical) {
  const Fabric& fabric = *c.snapshot.fabric;
  std::map<uint32_t, double> bytes;
  const MessageBytes message = BytesOfMessages(c.profile, c.request);
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] < 0) continue;
    const VertexIndex child = tree.vertices[node], parent = tree.vertices[tree.parents[node]];
    std::vector<ChannelIndex> up, down;
    if (physical == nullptr) {
      EXPECT_TRUE(c.snapshot.routes->Append(child, parent, up).ok());
      EXPECT_TRUE(c.snapshot.routes->Append(parent, child, down).ok());
    } else {
      const auto begin = physical->vertices.begin();
      for (auto at = std::find(begin, physical->vertices.end(), child); *at != parent;
           at = begin + physical->parents[static_cast<size_t>(at - begin)]) {
        up.push_back(physical->up[static_cast<size_t>(at - begin)]);
        down.push_back(Fabric::Reverse(up.back()));
      }
    }
    for (const ChannelIndex channel : up) bytes[channel.value()] += message.up;
    for (const ChannelIndex channel : down) bytes[channel.value()] += message.down;
  }
  double most = 0;
  for (const auto& [channel, sum] : bytes) {
    const double left = 1 - double{c.snapshot.utilisation(ChannelIndex(channel))};
    most = std::max(most, sum * 8e-3 / (fabric.capacity_gbps(ChannelIndex(channel)) * left));
  }
  return most;
}

class Exhaustive {
 public:
  // `planned` may have any root.
  Exhaustive(const Case& c, const TreePlan& planned)
      : c_(c), places_(*FindMemberPlaces(c.snapshot, c.request.members)) {
    Offer(planned.tree, planned.physical ? &*planned.physical : nullptr);
    OfferType1();
    if (c.request.members.size() > 1) OfferType2();
    front_.Sort();
  }
  const TradeFront& front() const { return front_; }

 private:
  void Offer(const AggregationTree& tree, const PhysicalTree* physical) {
    const Snapshot predicting = ForPrediction(c_.snapshot, c_.profile);
    const auto edges = EdgeCosts(predicting, c_.profile, tree);
    ASSERT_TRUE(edges.ok());
    Prediction predicted = EvaluateMix(c_.profile, tree, *edges, c_.request);
    EXPECT_TRUE(AddContention(predicting, c_.profile, tree, *edges, c_.request, predicted).ok());
    front_.Offer(
        {predicted.total_us, tree.serving_switch_count(), BusiestUs(c_, tree, physical), 0}, 0);
  }

  void OfferType1() {
    TreeRequest request = c_.request;
    for (const std::optional<TreeBuilder> builder :
         {std::optional<TreeBuilder>(), std::optional(TreeBuilder::kKary),
          std::optional(TreeBuilder::kKnomial), std::optional(TreeBuilder::kHierarchical),
          std::optional(TreeBuilder::kPostal)}) {
      request.builder = builder;
      const auto best =
          ChooseType1(ForPrediction(c_.snapshot, c_.profile), c_.profile, request, places_);
      if (best.ok()) Offer(best->best->tree, nullptr);
    }
  }

  void OfferType2() {
    for (uint32_t root = 0; root < c_.snapshot.fabric->switch_count(); ++root) {
      if (!IsNear(root)) continue;
      auto physical = BuildPhysicalTree(c_.snapshot, places_.endpoints, SwitchIndex(root));
      ASSERT_TRUE(physical.ok());
      const Type2Candidate candidate =
          MakeType2Candidate(*c_.snapshot.fabric, c_.capacity, places_, 6, *std::move(physical));
      for (uint32_t mask = 1; mask < 1U << candidate.switch_count(); ++mask)
        OfferMask(candidate, mask);
    }
  }

  // As many hops from the farthest member as the nearest switch, or one more.
  bool IsNear(uint32_t root) const {
    const auto farthest = [&](uint32_t s) {
      uint32_t most = 0;
      for (const SwitchIndex leaf : places_.leaf_switches) {
        most =
            std::max<uint32_t>(most, c_.snapshot.routes->distances().Between(SwitchIndex(s), leaf));
      }
      return most;
    };
    uint32_t least = 255;
    for (uint32_t s = 0; s < c_.snapshot.fabric->switch_count(); ++s) {
      least = std::min(least, farthest(s));
    }
    return farthest(root) <= least + 1;
  }

  void OfferMask(const Type2Candidate& candidate, uint32_t mask) {
    std::vector<uint32_t> serving;
    std::vector<uint32_t> items(candidate.members_on.begin(), candidate.members_on.end());
    for (uint32_t v = 0; v < items.size(); ++v) {
      if ((mask >> v & 1) == 0) continue;
      serving.push_back(v);
      if (candidate.degrees[v] < 2) return;
    }
    for (size_t v = items.size(); v-- > 0;) {
      if ((mask >> v & 1) != 0) {
        if (items[v] < 2) return;
        items[v] -= std::min(items[v], candidate.degrees[v]) - 1;
      }
      if (v > 0) items[static_cast<size_t>(candidate.physical->parents[v])] += items[v];
    }
    if (items[0] != 1) return;
    Offer(HangRanks(*c_.snapshot.fabric, c_.request.members, places_, *candidate.physical,
                    candidate.members, candidate.degrees, serving),
          candidate.physical.get());
  }

  const Case& c_;
  const MemberPlaces places_;
  TradeFront front_;
};

TEST(Trade, FrontIsTheExhaustiveOneOnSmallFabrics) {
  std::mt19937_64 random(TestSeed());
  size_t points = 0;
  const int rounds = FullTier() ? 2000 : 100;
  for (int round = 0; round < rounds; ++round) {
    const Case c = RandomCase(random);
    const absl::StatusOr<TreePlan> plan = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Exhaustive oracle(c, *plan);
    ASSERT_EQ(plan->tradeoffs.size(), oracle.front().points().size()) << "round " << round;
    // Times that differ by rounding may stand in either order.
    for (const auto& tradeoff : plan->tradeoffs) {
      const auto is_it = [&](const auto& point) {
        return std::abs(tradeoff.total_us - point.figures.total_us) <= 1e-6 &&
               tradeoff.entries == point.figures.entries &&
               std::abs(tradeoff.busiest_link_us - point.figures.busiest_link_us) <= 1e-9;
      };
      const auto& points_of_oracle = oracle.front().points();
      EXPECT_EQ(std::count_if(points_of_oracle.begin(), points_of_oracle.end(), is_it), 1)
          << "round " << round << ": " << tradeoff.total_us << " us, " << tradeoff.entries
          << " entries, link " << tradeoff.busiest_link_us << " us";
      EXPECT_FALSE(tradeoff.chosen);
    }
    points += plan->tradeoffs.size();
  }
  EXPECT_GT(points, static_cast<size_t>(rounds));  // there is something to trade
}

TEST(Trade, EveryTreeOfTheFrontCanBeHadByItsFigures) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 500 : 40); ++round) {
    Case c = RandomCase(random);
    const absl::StatusOr<TreePlan> all = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
    ASSERT_TRUE(all.ok()) << all.status();
    for (const Tradeoff& wanted : all->tradeoffs) {
      c.request.policy = TradePolicy{.latency = 1,
                                     .max_entries = wanted.entries,
                                     .max_busiest_link_us = wanted.busiest_link_us};
      const auto plan = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->predicted.total_us, wanted.total_us);
      EXPECT_EQ(plan->tree.serving_switch_count(), wanted.entries);
      EXPECT_EQ(plan->tree.type, wanted.type);
      EXPECT_EQ(std::count_if(plan->tradeoffs.begin(), plan->tradeoffs.end(),
                              [](const Tradeoff& t) { return t.chosen; }),
                1);
      TreeRequest request = c.request;
      request.policy.reset();
      const Snapshot predicting = ForPrediction(c.snapshot, c.profile);
      EXPECT_TRUE(CheckPlan(predicting, c.profile, *plan, request, c.capacity).ok())
          << CheckPlan(predicting, c.profile, *plan, request, c.capacity);
    }
  }
}

// Where sets are too many, chains stand in for them.
TEST(Trade, ChainsComeNearTheExhaustiveFront) {
  std::mt19937_64 random(TestSeed());
  double worst_us = 1, worst_link = 1, sum_us = 0;
  int count = 0;
  for (int round = 0; round < (FullTier() ? 500 : 40); ++round) {
    Case c = RandomCase(random);
    const absl::StatusOr<TreePlan> plan = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
    ASSERT_TRUE(plan.ok());
    TradeBounds bounds;
    bounds.trees = 400;
    bounds.all_sets = false;
    const Snapshot predicting = ForPrediction(c.snapshot, c.profile);
    const absl::StatusOr<Trade> trade =
        FindTrade({c.snapshot, predicting, c.profile, c.capacity, c.request,
                   *FindMemberPlaces(c.snapshot, c.request.members)},
                  *plan, bounds);
    ASSERT_TRUE(trade.ok());
    for (const Tradeoff& exact : plan->tradeoffs) {
      double us = 1e9, link = 1e9, least_us = 1e9, least_link = 1e9;
      for (const TradeTree& tree : trade->trees) {
        const TradeFigures f = tree.figures();
        if (f.entries > exact.entries) continue;
        us = std::min(us, f.total_us);
        link = std::min(link, f.busiest_link_us);
      }
      for (const Tradeoff& other : plan->tradeoffs) {
        if (other.entries > exact.entries) continue;
        least_us = std::min(least_us, other.total_us);
        least_link = std::min(least_link, other.busiest_link_us);
      }
      worst_us = std::max(worst_us, us / least_us);
      sum_us += us / least_us;
      ++count;
      if (least_link > 0) worst_link = std::max(worst_link, link / least_link);
    }
  }
  // Entry for entry, how much slower or heavier on links than the best of all sets.
  EXPECT_LE(sum_us / count, 1.01);
  EXPECT_LE(worst_us, 1.25);
  EXPECT_LE(worst_link, 1.6);
  RecordProperty("mean_us", std::to_string(sum_us / count));
  RecordProperty("worst_us", std::to_string(worst_us));
  RecordProperty("worst_link", std::to_string(worst_link));
}

TEST(Trade, WithoutAPolicyNothingChanges) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    Case c = RandomCase(random);
    const auto listed = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
    c.request.list_tradeoffs = false;
    const auto plain = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
    ASSERT_TRUE(listed.ok() && plain.ok());
    EXPECT_EQ(listed->tree.parents, plain->tree.parents);
    EXPECT_EQ(listed->reason, plain->reason);
    EXPECT_TRUE(plain->tradeoffs.empty());
  }
}

TEST(Trade, ReasonSaysWhatThePolicyGivesUp) {
  Case c;
  c.snapshot = **MakeSnapshot(TwoLevelFatTree(4, 2, 4), nullptr);
  c.capacity.assign(6, {4, 4, 16});
  c.request.members = AllEndpoints(*c.snapshot.fabric);
  c.request.type = TreeType::kTypeII;
  c.request.policy = TradePolicy{.link_load = 1};
  const auto light = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
  ASSERT_TRUE(light.ok()) << light.status();
  EXPECT_EQ(light->tree.serving_switch_count(), 5U);  // every leaf and a spine: one packet a link
  EXPECT_THAT(light->reason, HasSubstr("by the policy (latency 0, entries 0, link load 1)"));
  EXPECT_THAT(light->reason, HasSubstr("4 of 5 entries against the tree with fewest"));
  c.request.policy->max_entries = 1;
  const auto cheap = PlanTree(c.snapshot, c.profile, c.capacity, c.request);
  ASSERT_TRUE(cheap.ok()) << cheap.status();
  EXPECT_EQ(cheap->tree.serving_switch_count(), 1U);
  c.request.policy->max_entries = 0;
  EXPECT_THAT(
      std::string(PlanTree(c.snapshot, c.profile, c.capacity, c.request).status().message()),
      HasSubstr("policy: no tree takes 0 entries"));
}

}  // namespace
}  // namespace coppice::trade_test
