// The planner on generated fabrics: every plan is checked against the definitions by code that
// shares nothing with the builders, and roots against distances counted one by one.
#include "daemon/tree/planner.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type2_candidate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/plan_check.h"

namespace coppice::planner_test {
namespace {

using ::testing::HasSubstr;

// Two levels: 32 leaf switches of 16 ports, 16 spines (Chen 2024, 6.1.1).
constexpr char kPaperFabric[] = "model:fat-tree(leaves=32,spines=16,hosts-per-leaf=16)";

std::shared_ptr<const Snapshot> Snap(const std::string& spec) {
  absl::StatusOr<std::shared_ptr<const Fabric>> fabric = LoadFabric(spec);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = MakeSnapshot(*fabric, nullptr);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  return *snapshot;
}

CostProfile Profile(const char* name = "paper") { return *BuiltInProfile(name); }

std::vector<SwitchCapacity> Uniform(const Snapshot& snapshot, uint32_t entries, uint32_t degree) {
  return std::vector<SwitchCapacity>(snapshot.fabric->switch_count(), {entries, entries, degree});
}

TreeRequest RequestFor(std::vector<EndpointIndex> members) {
  TreeRequest request;
  request.members = std::move(members);
  return request;
}

// Hops from every switch to the members' switches, one search per member.
uint32_t Eccentricity(const Fabric& fabric, SwitchIndex from, absl::Span<const EndpointIndex> to) {
  std::vector<uint32_t> hops(fabric.switch_count(), UINT32_MAX);
  std::deque<SwitchIndex> open = {from};
  hops[from.value()] = 0;
  while (!open.empty()) {
    const SwitchIndex s = open.front();
    open.pop_front();
    for (const Channel& channel : fabric.switch_channels(s)) {
      const SwitchIndex t = fabric.AsSwitch(channel.to);
      if (hops[t.value()] != UINT32_MAX) continue;
      hops[t.value()] = hops[s.value()] + 1;
      open.push_back(t);
    }
  }
  uint32_t most = 0;
  for (const EndpointIndex e : to) most = std::max(most, hops[fabric.attached_switch(e)->value()]);
  return most;
}

void ExpectValid(const Snapshot& snapshot, const CostProfile& profile, const TreePlan& plan,
                 const TreeRequest& request, absl::Span<const SwitchCapacity> capacity) {
  const absl::Status valid = CheckPlan(snapshot, profile, plan, request, capacity);
  EXPECT_TRUE(valid.ok()) << valid;
}

TEST(RootChoice, FindsTheSwitchesWithTheLeastGreatestDistance) {
  std::mt19937_64 random(TestSeed());
  for (const char* spec :
       {kPaperFabric, "model:torus(dims=5x4x3,hosts=2)", "model:dragonfly",
        "model:fat-tree(leaves=90,spines=6,hosts-per-leaf=2)", "model:mesh(dims=9x9,hosts=1)"}) {
    const std::shared_ptr<const Snapshot> snapshot = Snap(spec);
    const Fabric& fabric = *snapshot->fabric;
    for (int round = 0; round < 10; ++round) {
      const size_t count = 1 + random() % fabric.endpoint_count();
      std::vector<EndpointIndex> members = AllEndpoints(fabric);
      std::shuffle(members.begin(), members.end(), random);
      members.resize(count);
      std::set<SwitchIndex> leaves;
      for (const EndpointIndex e : members) leaves.insert(*fabric.attached_switch(e));
      const std::vector<SwitchIndex> leaf_switches(leaves.begin(), leaves.end());
      std::vector<SwitchIndex> expected;
      uint32_t least = UINT32_MAX;
      for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
        const uint32_t hops = Eccentricity(fabric, SwitchIndex(s), members);
        if (hops < least) expected.clear();
        least = std::min(least, hops);
        if (hops == least) expected.emplace_back(s);
      }
      ASSERT_EQ(NearestSwitches(*snapshot, leaf_switches), expected) << spec << " " << count;
    }
  }
}

TEST(RootChoice, SortsByLoadThenEntriesThenGuid) {
  const std::shared_ptr<const Snapshot> idle = Snap(kPaperFabric);
  Snapshot snapshot = *idle;
  std::vector<SwitchIndex> roots = {SwitchIndex(0), SwitchIndex(1), SwitchIndex(2)};
  std::vector<SwitchCapacity> capacity = Uniform(snapshot, 16, 64);
  capacity[2].entries_free = 15;
  std::vector<float> load(snapshot.fabric->channel_count(), 0.0F);
  load[snapshot.fabric->channels(VertexIndex(0))[0].index.value()] = 0.5F;
  snapshot.load = std::make_shared<const LinkLoad>(load);
  SortRoots(snapshot, capacity, roots);
  EXPECT_EQ(roots, (std::vector<SwitchIndex>{SwitchIndex(1), SwitchIndex(2), SwitchIndex(0)}));
}

TEST(PhysicalTree, TakesTheLessLoadedOfEqualPaths) {
  const std::shared_ptr<const Snapshot> idle =
      Snap("model:fat-tree(leaves=2,spines=2,hosts-per-leaf=2,uplinks-per-leaf=2)");
  Snapshot snapshot = *idle;
  const Fabric& fabric = *snapshot.fabric;
  const EndpointIndex a(0);
  const SwitchIndex from = *fabric.attached_switch(a);
  EndpointIndex far(0);
  while (*fabric.attached_switch(far) == from) far = EndpointIndex(far.value() + 1);
  const SwitchIndex root = *fabric.attached_switch(far);
  const std::vector<EndpointIndex> members = {a, far};
  for (const Channel& busy : fabric.switch_channels(from)) {
    std::vector<float> load(fabric.channel_count(), 0.0F);
    load[busy.index.value()] = 0.9F;
    snapshot.load = std::make_shared<const LinkLoad>(load);
    const absl::StatusOr<PhysicalTree> tree = BuildPhysicalTree(snapshot, members, root);
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_EQ(std::count(tree->up.begin(), tree->up.end(), busy.index), 0);
  }
}

// A loop between two switches for the root's LID, then a hole.
TEST(PhysicalTree, RefusesARootWhoseRoutesLoopOrBreakOff) {
  const std::shared_ptr<const Snapshot> plain = Snap("model:mesh(dims=3,hosts=1,lids=1)");
  const std::shared_ptr<const Fabric> fabric = plain->fabric;
  const std::vector<EndpointIndex> members = AllEndpoints(*fabric);
  const SwitchIndex root(0);
  const Channel first = fabric->switch_channels(SwitchIndex(1))[0];
  for (const bool loop : {true, false}) {
    auto tables = std::make_shared<ForwardingTables>(fabric->switch_count());
    const uint16_t lid = fabric->switch_info(root).lid.value();
    if (loop) {
      std::vector<uint8_t> row(lid + size_t{1}, ForwardingTables::kNoRoute);
      for (uint32_t s = 1; s < 3; ++s) {
        for (const Channel& c : fabric->switch_channels(SwitchIndex(s))) {
          if (c.to.value() != 0) row[lid] = c.port.value();
        }
        tables->SetRow(SwitchIndex(s), row);
      }
    }
    const absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = MakeSnapshot(fabric, tables);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    const absl::StatusOr<PhysicalTree> tree = BuildPhysicalTree(**snapshot, members, root);
    EXPECT_EQ(tree.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(tree.status().message()), HasSubstr(loop ? "loops" : "breaks off"));
  }
  EXPECT_TRUE(fabric->IsSwitch(first.to));
}

TEST(Planner, EveryPlanHoldsItsConstraints) {
  std::mt19937_64 random(TestSeed() + 5);
  const int rounds = FullTier() ? 400 : 40;
  for (const char* spec : {kPaperFabric, "model:torus(dims=4x4x3,hosts=2)", "model:dragonfly",
                           "model:fat-tree(leaves=7,spines=3,hosts-per-leaf=5)"}) {
    const std::shared_ptr<const Snapshot> base = Snap(spec);
    const Fabric& fabric = *base->fabric;
    for (int round = 0; round < rounds; ++round) {
      Snapshot snapshot = *base;
      std::vector<float> load;
      if (round % 2 == 1) {
        load.resize(fabric.channel_count());
        for (float& u : load) u = static_cast<float>(random() % 100) / 100.0F;
      }
      snapshot.load = std::make_shared<const LinkLoad>(load);
      std::vector<SwitchCapacity> capacity(fabric.switch_count());
      for (SwitchCapacity& c : capacity) {
        c = {16, static_cast<uint32_t>(random() % 5 == 0 ? 0 : random() % 16),
             static_cast<uint32_t>(2 + random() % 40)};
      }
      TreeRequest request;
      for (size_t i = 0, n = 1 + random() % 150; i < n; ++i) {
        request.members.emplace_back(static_cast<uint32_t>(random() % fabric.endpoint_count()));
      }
      request.operation = static_cast<Operation>(random() % 4);
      request.sizes = {{8, 2}, {uint64_t{1} << random() % 20, 1}};
      if (random() % 3 == 0)
        request.type = random() % 2 == 0 ? TreeType::kTypeI : TreeType::kTypeII;
      const CostProfile profile = Profile(round % 3 == 0 ? "hdr" : "paper");
      const absl::StatusOr<TreePlan> plan = PlanTree(snapshot, profile, capacity, request);
      if (!plan.ok()) {
        ASSERT_EQ(request.type, TreeType::kTypeII) << plan.status();
        ASSERT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
        continue;
      }
      if (request.type) {
        ASSERT_EQ(plan->tree.type, *request.type);
      }
      ExpectValid(snapshot, profile, *plan, request, capacity);
      ASSERT_FALSE(HasFailure()) << spec << " round " << round;
      const absl::StatusOr<TreePlan> again = PlanTree(snapshot, profile, capacity, request);
      ASSERT_EQ(again->tree.parents, plan->tree.parents);
      ASSERT_EQ(again->reason, plan->reason);
    }
  }
}

TEST(Planner, AutoTypeIIsNeverWorseThanAnyBuilderAtAWidthItTries) {
  std::mt19937_64 random(TestSeed() + 6);
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 0, 0);
  const CostProfile profile = Profile();
  for (const size_t count : {2U, 5U, 33U, 64U, 200U, 512U}) {
    TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
    std::shuffle(request.members.begin(), request.members.end(), random);
    request.members.resize(count);
    request.type = TreeType::kTypeI;
    const absl::StatusOr<TreePlan> best = PlanTree(*snapshot, profile, capacity, request);
    ASSERT_TRUE(best.ok()) << best.status();
    std::set<uint32_t> widths = {best->tree.width};
    for (const Alternative& alternative : best->alternatives) widths.insert(alternative.width);
    for (const uint32_t width : widths) {
      for (const TreeBuilder builder :
           {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
        TreeRequest one = request;
        one.builder = builder;
        one.width = width;
        const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, profile, capacity, one);
        if (!plan.ok()) continue;
        EXPECT_EQ(plan->tree.builder, builder);
        EXPECT_EQ(plan->tree.width, width);
        EXPECT_GE(plan->predicted.total_us, best->predicted.total_us - 1e-9);
      }
    }
  }
}

TEST(Planner, AutoTakesTheFasterTypeAndSaysBothFigures) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{1} << 20}) {
    request.sizes = {{bytes, 1}};
    std::vector<double> totals;
    for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
      request.type = type;
      const absl::StatusOr<TreePlan> plan =
          PlanTree(*snapshot, Profile(), Uniform(*snapshot, 16, 64), request);
      ASSERT_TRUE(plan.ok()) << plan.status();
      totals.push_back(plan->predicted.total_us);
    }
    request.type.reset();
    const absl::StatusOr<TreePlan> plan =
        PlanTree(*snapshot, Profile(), Uniform(*snapshot, 16, 64), request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->tree.type, totals[1] < totals[0] ? TreeType::kTypeII : TreeType::kTypeI);
    EXPECT_DOUBLE_EQ(plan->predicted.total_us, std::min(totals[0], totals[1]));
    EXPECT_THAT(plan->reason, HasSubstr("against"));
    EXPECT_THAT(plan->reason, HasSubstr("for type I"));
  }
}

// Who may have more of them for a faster tree is told that it has the fewest.
TEST(Planner, SaysThatMoreSwitchesCouldServe) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const Fabric& fabric = *snapshot->fabric;
  TreeRequest request = RequestFor(AllEndpoints(fabric));
  request.type = TreeType::kTypeII;
  const auto capacity = [&](uint32_t degree) { return Uniform(*snapshot, 16, degree); };
  const absl::StatusOr<TreePlan> one =
      PlanTree(*snapshot, Profile(), capacity(fabric.endpoint_count()), request);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->tree.serving_switch_count(), 1u);
  EXPECT_THAT(one->reason, HasSubstr("(1 switch, the fewest)"));
  request.members.resize(2);  // of one leaf switch, which is all that could serve
  const absl::StatusOr<TreePlan> all = PlanTree(*snapshot, Profile(), capacity(64), request);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->reason, testing::Not(HasSubstr("the fewest")));
}

TEST(Planner, FullSwitchesKeepTypeIIAwayAndAreNamed) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const Fabric& fabric = *snapshot->fabric;
  TreeRequest request = RequestFor(AllEndpoints(fabric));
  std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 64);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (!fabric.endpoint_channels(SwitchIndex(s)).empty()) continue;
    capacity[s].entries_free = 0;
    if (!request.root_switch) request.root_switch = fabric.switch_info(SwitchIndex(s)).guid;
  }
  const std::string root = ToString(*request.root_switch);
  request.type = TreeType::kTypeII;
  const absl::Status refused = PlanTree(*snapshot, Profile(), capacity, request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(root));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("16 entries"));
  request.type.reset();
  request.root_switch.reset();
  for (SwitchCapacity& c : capacity) c.entries_free = 0;
  const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, Profile(), capacity, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tree.type, TreeType::kTypeI);
  EXPECT_EQ(plan->full_switches.size(), fabric.switch_count());
  EXPECT_THAT(plan->reason, HasSubstr("no type II tree: no switch works as the root"));
  EXPECT_THAT(plan->reason, HasSubstr(ToString(fabric.switch_info(SwitchIndex(0)).guid)));
}

TEST(Planner, AForwardOnlyLeafSwitchDoesNotKeepTypeIIAway) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 128);
  const Fabric& fabric = *snapshot->fabric;
  capacity[fabric.attached_switch(EndpointIndex(0))->value()] = {0, 0, 0};
  TreeRequest request = RequestFor(AllEndpoints(fabric));
  request.type = TreeType::kTypeII;
  const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, Profile(), capacity, request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectValid(*snapshot, Profile(), *plan, request, capacity);
}

// ceil: the root absorbs 127, each leaf switch 15: 1 + ceil((511 - 127) / 15) = 27.
TEST(Planner, AllPortsOfThePapersFabricTakeTheLeastSwitches) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  request.type = TreeType::kTypeII;
  for (const auto& [degree, least] : std::vector<std::pair<uint32_t, uint32_t>>{
           {32, 33}, {64, 31}, {128, 27}, {256, 19}, {512, 1}, {UINT32_MAX, 1}}) {
    const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, degree);
    const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, Profile(), capacity, request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->tree.serving_switch_count(), least) << "K = " << degree;
    ExpectValid(*snapshot, Profile(), *plan, request, capacity);
  }
}

// Of one root: where the nearest ones have no tree, one farther away may take fewer.
TEST(Planner, MoreEntriesNeverCostMoreSwitches) {
  std::mt19937_64 random(TestSeed() + 7);
  const std::shared_ptr<const Snapshot> snapshot =
      Snap("model:fat-tree(leaves=8,spines=1,hosts-per-leaf=6)");
  for (int round = 0; round < 100; ++round) {
    TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
    std::shuffle(request.members.begin(), request.members.end(), random);
    request.members.resize(2 + random() % 40);
    request.type = TreeType::kTypeII;
    const SwitchIndex root(static_cast<uint32_t>(random() % 9));
    request.root_switch = snapshot->fabric->switch_info(root).guid;
    std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 4, 8);
    for (SwitchCapacity& c : capacity) c.entries_free = static_cast<uint32_t>(random() % 3);
    const absl::StatusOr<TreePlan> before = PlanTree(*snapshot, Profile(), capacity, request);
    capacity[random() % capacity.size()].entries_free += 1;
    const absl::StatusOr<TreePlan> after = PlanTree(*snapshot, Profile(), capacity, request);
    if (!before.ok()) continue;
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_LE(after->tree.serving_switch_count(), before->tree.serving_switch_count());
  }
}

TEST(Planner, SmallAndRepeatedMembers) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 64);
  const EndpointIndex a(0), b(511);
  const std::vector<std::vector<EndpointIndex>> cases = {{a}, {a, b}, {a, a}, {a, a, a, b, b, a}};
  for (const std::vector<EndpointIndex>& members : cases) {
    for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
      TreeRequest request = RequestFor(members);
      request.type = type;
      const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, Profile(), capacity, request);
      ASSERT_TRUE(plan.ok()) << members.size() << " " << plan.status();
      ExpectValid(*snapshot, Profile(), *plan, request, capacity);
      ASSERT_FALSE(HasFailure()) << members.size();
      if (type == TreeType::kTypeII) {
        EXPECT_EQ(plan->tree.serving_switch_count(), members.size() > 1 ? 1U : 0U);
      }
    }
  }
}

TEST(Planner, BadRequestsAreRefused) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 64);
  const auto code = [&](const TreeRequest& request) {
    return PlanTree(*snapshot, Profile(), capacity, request).status().code();
  };
  EXPECT_EQ(code(RequestFor({})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(RequestFor({EndpointIndex(512)})), absl::StatusCode::kInvalidArgument);
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  for (const uint32_t width : {0U, 1U}) {
    request.width = width;
    request.type = TreeType::kTypeI;
    EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  }
  request.width = UINT32_MAX;
  request.builder = TreeBuilder::kKary;
  EXPECT_EQ(code(request), absl::StatusCode::kResourceExhausted);
  request.width.reset();
  request.builder.reset();
  request.nic_degree = 0;
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request.nic_degree = 1;
  EXPECT_EQ(code(request), absl::StatusCode::kResourceExhausted);
  request.nic_degree = UINT32_MAX;
  EXPECT_EQ(code(request), absl::StatusCode::kOk);
  request.type = TreeType::kTypeII;
  request.builder = TreeBuilder::kKary;
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
  request.builder.reset();
  request.root_switch = Guid(48);
  EXPECT_EQ(code(request), absl::StatusCode::kNotFound);
  request.root_switch.reset();
  request.sizes.clear();
  EXPECT_EQ(code(request), absl::StatusCode::kInvalidArgument);
}

// Above kMaxRanksContended the slower type I tree is not built: what is told of it is the same.
TEST(Planner, AutoTellsOfTheSlowerTypeIWhatThatTypeAloneTells) {
  const std::shared_ptr<const Snapshot> snapshot =
      Snap("model:fat-tree(supernodes=10,leaves=32,spines=16,hosts-per-leaf=16,tops=64)");
  const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 256);
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  const absl::StatusOr<TreePlan> both = PlanTree(*snapshot, Profile(), capacity, request);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->tree.type, TreeType::kTypeII);
  request.type = TreeType::kTypeI;
  const absl::StatusOr<TreePlan> one = PlanTree(*snapshot, Profile(), capacity, request);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_FALSE(both->alternatives.empty());
  const Alternative& slower = both->alternatives.front();
  EXPECT_EQ(slower.builder, one->tree.builder);
  EXPECT_EQ(slower.width, one->tree.width);
  EXPECT_DOUBLE_EQ(*slower.total_us, one->predicted.total_us);
  EXPECT_EQ(both->alternatives.size(), one->alternatives.size() + 1);
}

TEST(Planner, ARequestedRootIsHonoured) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 64);
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  request.type = TreeType::kTypeII;
  for (uint32_t s = 0; s < snapshot->fabric->switch_count(); s += 5) {
    request.root_switch = snapshot->fabric->switch_info(SwitchIndex(s)).guid;
    const absl::StatusOr<TreePlan> plan = PlanTree(*snapshot, Profile(), capacity, request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->physical->root, VertexIndex(s));
    EXPECT_EQ(plan->tree.vertices[plan->tree.root()], VertexIndex(s));
  }
}

// Who may not serve is neither full nor silent.
TEST(Planner, BarredSwitchesAreNotToldAsFullOrSilent) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const std::vector<SwitchCapacity> capacity(snapshot->fabric->switch_count(),
                                             {.speaks = true, .is_barred = true});
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  request.type = TreeType::kTypeII;
  for (const bool carried : {false, true}) {
    request.carried = carried;
    const absl::Status refused = PlanTree(*snapshot, Profile(), capacity, request).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("\" (barred)"));
    for (const char* other : {"no switch speaks", "entries)", "release a tree"}) {
      EXPECT_THAT(std::string(refused.message()), testing::Not(HasSubstr(other)));
    }
  }
}

// As `capacity`, without the entries of those that do not speak.
std::vector<SwitchCapacity> Speaking(std::vector<SwitchCapacity> capacity) {
  for (SwitchCapacity& one : capacity) {
    if (!one.speaks) one = {};
  }
  return capacity;
}

// A carried tree is the one that there is where the others have no entries.
TEST(Planner, ACarriedTreeTakesSwitchesThatSpeakAlone) {
  std::mt19937_64 random(TestSeed() + 8);
  const int rounds = FullTier() ? 300 : 40;
  int planned = 0, refused = 0, differed = 0;
  for (const char* spec : {kPaperFabric, "model:torus(dims=4x4x3,hosts=2)", "model:dragonfly",
                           "model:fat-tree(leaves=7,spines=3,hosts-per-leaf=5)"}) {
    const std::shared_ptr<const Snapshot> snapshot = Snap(spec);
    const Fabric& fabric = *snapshot->fabric;
    for (int round = 0; round < rounds; ++round) {
      const uint64_t share = static_cast<uint64_t>(round) % 9;  // eighths of them speak
      std::vector<SwitchCapacity> capacity(fabric.switch_count());
      for (SwitchCapacity& c : capacity) {
        c = {.entries_total = 16,
             .entries_free = static_cast<uint32_t>(random() % 8),
             .degree_limit = static_cast<uint32_t>(2 + random() % 60),
             .speaks = random() % 8 < share};
      }
      TreeRequest request;
      for (size_t i = 0, n = 2 + random() % 60; i < n; ++i) {
        request.members.emplace_back(static_cast<uint32_t>(random() % fabric.endpoint_count()));
      }
      request.type = TreeType::kTypeII;
      const auto whole = PlanTree(*snapshot, Profile(), capacity, request);
      const auto wanted = PlanTree(*snapshot, Profile(), Speaking(capacity), request);
      request.carried = true;
      const auto plan = PlanTree(*snapshot, Profile(), capacity, request);
      ASSERT_EQ(plan.status().code(), wanted.status().code()) << plan.status();
      if (!plan.ok()) {
        ++refused;
        continue;
      }
      ++planned;
      ASSERT_EQ(plan->tree.parents, wanted->tree.parents);
      ASSERT_EQ(plan->tree.vertices, wanted->tree.vertices);
      for (uint32_t node = plan->tree.rank_count; node < plan->tree.node_count(); ++node) {
        ASSERT_TRUE(capacity[plan->tree.vertices[node].value()].speaks) << spec << " " << round;
      }
      ExpectValid(*snapshot, Profile(), *plan, request, Speaking(capacity));
      ASSERT_FALSE(HasFailure()) << spec << " round " << round;
      differed += !whole.ok() || whole->tree.vertices != plan->tree.vertices;
    }
  }
  EXPECT_GT(planned, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(differed, 0);  // it was no trifle who speaks
}

TEST(Planner, ACarriedTreeIsRefusedWhereNoSwitchOrTheWrongOnesSpeak) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  const Fabric& fabric = *snapshot->fabric;
  std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 512);
  TreeRequest request = RequestFor(AllEndpoints(fabric));
  request.type = TreeType::kTypeII;
  request.carried = true;
  const absl::Status silent = PlanTree(*snapshot, Profile(), capacity, request).status();
  EXPECT_EQ(silent.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      std::string(silent.message()),
      "no type II tree: no switch speaks, so that none can carry it; have more switches speak "
      "(coppicectl agent switches lists those that do), or let the type be chosen");
  // One speaks that is not on the members' way.
  request.members = {EndpointIndex(0), EndpointIndex(0)};
  const SwitchIndex leaf = *fabric.attached_switch(EndpointIndex(0));
  EndpointIndex far(0);
  while (*fabric.attached_switch(far) == leaf) far = EndpointIndex(far.value() + 1);
  request.root_switch = fabric.switch_info(leaf).guid;
  capacity[fabric.attached_switch(far)->value()].speaks = true;
  const absl::Status wrong = PlanTree(*snapshot, Profile(), capacity, request).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("have no free entry or do not speak"));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr(ToString(fabric.switch_info(leaf).guid)));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("coppicectl agent switches"));
}

TEST(Planner, OfItselfACarriedTreeIsOfTypeIIOnlyWhereThatWasMeasured) {
  const std::shared_ptr<const Snapshot> snapshot = Snap(kPaperFabric);
  std::vector<SwitchCapacity> capacity = Uniform(*snapshot, 16, 64);
  for (SwitchCapacity& one : capacity) one.speaks = true;
  CostProfile measured = Profile();
  measured.switch_is_measured = true;
  TreeRequest request = RequestFor(AllEndpoints(*snapshot->fabric));
  std::set<TreeType> types;
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{1} << 20}) {
    request.sizes = {{bytes, 1}};
    request.carried = false;
    const auto plain = PlanTree(*snapshot, measured, capacity, request);
    ASSERT_TRUE(plain.ok()) << plain.status();
    types.insert(plain->tree.type);
    request.carried = true;
    const auto carried = PlanTree(*snapshot, measured, capacity, request);
    ASSERT_TRUE(carried.ok()) << carried.status();
    EXPECT_EQ(carried->tree.parents, plain->tree.parents);
    EXPECT_EQ(carried->tree.vertices, plain->tree.vertices);
    EXPECT_EQ(carried->reason, plain->reason);
    const auto unmeasured = PlanTree(*snapshot, Profile(), capacity, request);
    ASSERT_TRUE(unmeasured.ok()) << unmeasured.status();
    EXPECT_EQ(unmeasured->tree.type, TreeType::kTypeI);
    EXPECT_THAT(unmeasured->reason,
                HasSubstr("what the switches that carry trees take is not measured: coppicectl"));
    TreeRequest trading = request;
    trading.policy = TradePolicy{.latency = 1};
    const auto traded = PlanTree(*snapshot, Profile(), capacity, trading);
    ASSERT_TRUE(traded.ok()) << traded.status();
    EXPECT_EQ(traded->tree.type, TreeType::kTypeI);  // nor by a policy
  }
  EXPECT_EQ(types.size(), 2u);
  // Measured, and nobody speaks; not measured, but demanded.
  request.sizes = {{8, 1}};
  const auto none = PlanTree(*snapshot, measured, Uniform(*snapshot, 16, 64), request);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->tree.type, TreeType::kTypeI);
  EXPECT_TRUE(none->full_switches.empty());
  EXPECT_THAT(none->reason, HasSubstr("no type II tree: no switch speaks"));
  request.type = TreeType::kTypeII;
  const auto demanded = PlanTree(*snapshot, Profile(), capacity, request);
  ASSERT_TRUE(demanded.ok()) << demanded.status();
  EXPECT_EQ(demanded->tree.type, TreeType::kTypeII);
}

}  // namespace
}  // namespace coppice::planner_test
