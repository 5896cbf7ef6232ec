#include "daemon/manager/mapping/rank_mapper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "daemon/mapping/mapping_metrics.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::rank_mapper_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

// Rank r talks to the rank 8 further on, which the present order puts on another leaf switch.
std::shared_ptr<const Pattern> FarPairs(uint32_t ranks) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t rank = 0; rank < ranks / 2; ++rank) {
    entries.push_back({rank, rank + ranks / 2, 100, 1});
    entries.push_back({rank + ranks / 2, rank, 100, 1});
  }
  return Pattern::Make(ranks, std::move(entries)).value();
}

class RankMapperTest : public ManagerTest {
 protected:
  void SetUp() override {
    Boot();
    mapper_ = std::make_unique<RankMapper>(manager_.get(), &SystemClock(), MapperOptions());
  }
  MapRanksArgs Args() {
    MapRanksArgs args;
    for (int host = 0; host < 16; ++host) args.task.hosts.push_back("n" + std::to_string(host));
    args.task.pattern = FarPairs(16);
    args.budget = absl::Milliseconds(50);
    return args;
  }
  void ExpectRefused(const MapRanksArgs& args, StatusCode code, const std::string& why) {
    const absl::Status status = mapper_->MapRanks(args, {}).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  std::unique_ptr<RankMapper> mapper_;
};

TEST_F(RankMapperTest, PutsPairsOnOneSwitch) {
  const auto view = mapper_->MapRanks(Args(), {});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(*view->answer.after.inter_switch_bytes, 0);
  EXPECT_EQ(*view->answer.before.inter_switch_bytes, 1600);
  EXPECT_LT(view->answer.score, 1);
  EXPECT_EQ(view->answer.algorithm, "auto");
  EXPECT_EQ(view->fabric_version, manager_->fabric()->snapshot->fabric->version());
  std::vector<uint32_t> positions = view->answer.slots;
  std::sort(positions.begin(), positions.end());
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(positions[i], i);
  const auto again = mapper_->Evaluate(Args().task, view->answer.slots);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->after.hop_bytes, view->answer.after.hop_bytes);
  EXPECT_EQ(again->score, view->answer.score);
  EXPECT_FALSE(again->busiest.empty());
  EXPECT_EQ(again->busiest[0].bytes / again->busiest[0].capacity_gbps,
            *again->after.max_congestion);
}

TEST_F(RankMapperTest, WritesAMeasuredOrderAsLaunchersReadIt) {
  MapRanksArgs args = Args();
  args.emit = LaunchFormat::kSlurm;
  const auto view = mapper_->MapRanks(args, {});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_FALSE(view->launch_text.empty());
  const auto same = mapper_->Evaluate(args.task, view->answer.slots, args.emit);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->launch_text, view->launch_text);
  const auto present = mapper_->Evaluate(args.task, {}, args.emit);
  ASSERT_TRUE(present.ok()) << present.status();
  EXPECT_NE(present->launch_text, view->launch_text);
}

TEST_F(RankMapperTest, TellsThatASearchGoesOnWhereNothingBetterIsFound) {
  MapRanksArgs args = Args();
  args.task.objective = {.congestion = 1, .hop_bytes = 1};
  args.budget = absl::Minutes(5);
  std::atomic<int> signs = 0;
  std::mutex told;
  absl::Duration last;
  MapWatch watch;
  watch.orders = true;
  watch.progress = [&](absl::Duration elapsed, double, const std::vector<uint32_t>& positions) {
    const std::lock_guard lock(told);
    // Others that bring no order are of worse ones, and come sooner.
    if (positions.empty() && elapsed - last >= absl::Seconds(1)) ++signs;
    last = elapsed;
  };
  watch.is_cancelled = [&] { return signs > 1; };
  EXPECT_EQ(mapper_->MapRanks(args, watch).status().code(), StatusCode::kCancelled);
  EXPECT_GT(signs, 1);
}

TEST_F(RankMapperTest, MapsTheRanksOfAJob) {
  const JobId job = NewJob();
  MapRanksArgs args = Args();
  args.task.hosts.clear();
  args.task.job = job;
  const auto view = mapper_->MapRanks(args, {});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(*view->answer.after.inter_switch_bytes, 0);
  FabricShape shape;
  shape.missing_hosts = {3};
  port_.Set(SmallFabric(shape));
  ASSERT_TRUE(manager_->Sweep().ok());
  ExpectRefused(args, StatusCode::kFailedPrecondition, "its port 0000000000005003 has left");
  ASSERT_TRUE(End(job).ok());
  ExpectRefused(args, StatusCode::kFailedPrecondition, "has ended");
  args.task.job = JobId(77);
  ExpectRefused(args, StatusCode::kNotFound, "77");
}

TEST_F(RankMapperTest, TellsProblemsThatMeasureAlike) {
  MappingTask task = Args().task;
  task.hosts.push_back("n0");  // a place with two positions
  const auto view = mapper_->Problem(task);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->fabric_version, manager_->fabric()->snapshot->fabric->version());
  EXPECT_EQ(view->host_of_place.size(), 16);
  EXPECT_EQ(view->host_of_place[3], "n3");
  const auto problem = Unflatten(view->problem);
  ASSERT_TRUE(problem.ok()) << problem.status();
  ASSERT_EQ(problem->places->slot_count(), 17);
  EXPECT_EQ(problem->places->place_of_slot(16), PlaceIndex(0));
  std::vector<uint32_t> positions;
  Mapping mapping;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    positions.push_back(1 + rank % 8 * 2 + rank / 8);  // partners side by side
    mapping.push_back(problem->places->place_of_slot(positions.back()));
  }
  const auto measured = mapper_->Evaluate(task, positions);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(QapCost(*problem->pattern, *problem->distances, mapping), measured->after.qap_cost);
  EXPECT_NE(measured->after.qap_cost, measured->before.qap_cost);
  task.hosts[4] = "n99";
  EXPECT_EQ(mapper_->Problem(task).status().code(), StatusCode::kNotFound);
}

TEST_F(RankMapperTest, RefusesByName) {
  MapRanksArgs args = Args();
  args.task.hosts[4] = "n99";
  ExpectRefused(args, StatusCode::kNotFound, "n99");
  args = Args();
  args.task.hosts.resize(5);
  ExpectRefused(args, StatusCode::kInvalidArgument, "16 ranks");
  args = Args();
  args.algorithm = "simplex";
  ExpectRefused(args, StatusCode::kInvalidArgument, "simplex");
  args = Args();
  args.budget = absl::Hours(5);
  ExpectRefused(args, StatusCode::kInvalidArgument,
                "5h; give 1ms to 10m, or raise mapping.max_budget of the daemon");
  args = Args();
  args.parameters = {{"colour", 1}};
  ExpectRefused(args, StatusCode::kInvalidArgument, "colour");
  args = Args();
  args.task.fabric_version = 12345;
  ExpectRefused(args, StatusCode::kAborted, "12345");
  args = Args();
  args.task.distance = PlaceDistanceKind::kMatrix;
  args.task.matrix = PlaceDistances::Matrix(2, {0, 1, 1, 0}).value();
  ExpectRefused(args, StatusCode::kInvalidArgument, "2 places");
  const absl::Status twice = mapper_->Evaluate(Args().task, std::vector<uint32_t>(16, 3)).status();
  EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("slot 3"));
}

TEST_F(RankMapperTest, RefusesWhatDoesNotFitIntoItsMemory) {
  MapperOptions small;
  small.memory_bytes = 100;
  RankMapper mapper(manager_.get(), &SystemClock(), small);
  const absl::Status status = mapper.MapRanks(Args(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("raise the limit"));
}

// The least memory with which a mapper takes up the task.
class MemoryOfTasksTest : public RankMapperTest {
 protected:
  template <class Ask>  // Ask(mapper) is the Status of one
  size_t LeastMemory(const Ask& ask) {
    size_t too_little = 0, enough = size_t{1} << 30;
    while (enough - too_little > 1) {
      const size_t middle = too_little + (enough - too_little) / 2;
      const absl::Status status = ask(*MapperWith(middle));
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
      (status.ok() ? enough : too_little) = middle;
    }
    return enough;
  }
  size_t ToEvaluate(const MappingTask& task) {
    return LeastMemory([&](RankMapper& mapper) { return mapper.Evaluate(task, {}).status(); });
  }
  size_t ToSearch(MapRanksArgs args) {
    args.budget = absl::Milliseconds(1);
    return LeastMemory([&](RankMapper& mapper) { return mapper.MapRanks(args, {}).status(); });
  }

 private:
  std::unique_ptr<RankMapper> MapperWith(size_t memory_bytes) {
    MapperOptions options;
    options.memory_bytes = memory_bytes;
    return std::make_unique<RankMapper>(manager_.get(), &SystemClock(), options);
  }
};

TEST_F(MemoryOfTasksTest, AllPortsOfAJobCountHoweverFewRanksThePatternHas) {
  MapRanksArgs hosts = Args();
  hosts.task.pattern = FarPairs(2);
  hosts.algorithm = "robust-tabu";
  MapRanksArgs job = hosts;
  job.task.hosts.clear();
  job.task.job = NewJob();  // of the same ports
  EXPECT_EQ(ToEvaluate(job.task), ToEvaluate(hosts.task));
  EXPECT_EQ(ToSearch(job), ToSearch(hosts));
  MapRanksArgs few = hosts;
  few.task.hosts.resize(2);
  EXPECT_GT(ToSearch(job), ToSearch(few));
}

TEST_F(MemoryOfTasksTest, AHostThatIsNamedAgainIsNoPlaceOfItsOwn) {
  MappingTask spread = Args().task, together = spread, once = spread;
  together.hosts.assign(16, "n0");
  once.hosts.assign(1, "n0");
  once.ranks_per_host = 16;
  EXPECT_EQ(ToEvaluate(together), ToEvaluate(once));
  EXPECT_LT(ToEvaluate(together), ToEvaluate(spread));
}

TEST_F(RankMapperTest, EndsWhenItsCallerHasGone) {
  std::atomic<int> asked = 0;
  MapWatch watch;
  watch.is_cancelled = [&] { return ++asked > 0; };
  MapRanksArgs args = Args();
  args.budget = absl::Minutes(5);
  EXPECT_EQ(mapper_->MapRanks(args, watch).status().code(), StatusCode::kCancelled);
}

// A second later whenever somebody looks.
class HastyClock final : public Clock {
 public:
  absl::Time Now() const override { return SystemClock().Now(); }
  absl::Duration Monotonic() const override { return absl::Seconds(++looks_); }

 private:
  mutable std::atomic<int> looks_ = 0;
};

TEST_F(RankMapperTest, EndsWithItsBestWhenItHadItsShareAndOthersWait) {
  const HastyClock clock;
  RankMapper mapper(manager_.get(), &clock, MapperOptions());
  MapWatch watch;
  watch.others_wait = [] { return true; };
  MapRanksArgs args = Args();
  args.budget = absl::Minutes(10);
  const auto view = mapper.MapRanks(args, watch);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_LT(view->took, absl::Minutes(5));
  EXPECT_THAT(view->answer.reason, HasSubstr("others waited"));
}

TEST_F(RankMapperTest, AbortsIfTheFabricMovesMeanwhile) {
  bool moved = false;
  MapWatch watch;
  watch.is_cancelled = [&] {
    if (!moved) {
      moved = true;
      FabricShape shape;
      shape.missing_cables = {{0, 0}};
      port_.Set(SmallFabric(shape));
      EXPECT_TRUE(manager_->Sweep().ok());
    }
    return false;
  };
  const absl::Status status = mapper_->MapRanks(Args(), watch).status();
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("call again"));
}

TEST_F(RankMapperTest, KeepsThePresentOrderWhereNothingIsBetter) {
  MapRanksArgs args = Args();
  args.task.pattern = Pattern::Make(16, {{0, 1, 5, 1}}).value();
  const auto view = mapper_->MapRanks(args, {});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->answer.score, 1);
  for (uint32_t rank = 0; rank < 16; ++rank) EXPECT_EQ(view->answer.slots[rank], rank);
}

TEST_F(RankMapperTest, WritesWhatLaunchersRead) {
  MapRanksArgs args = Args();
  args.emit = LaunchFormat::kSlurm;
  const auto view = mapper_->MapRanks(args, {});
  ASSERT_TRUE(view.ok()) << view.status();
  std::string expected;
  for (const uint32_t slot : view->answer.slots) expected += "n" + std::to_string(slot) + "\n";
  EXPECT_EQ(view->launch_text, expected);
}

// Tables that a subnet manager wrote before leaf 3 came: no route leads to its hosts.
class StaleTablesTest : public RoutedManagerTest {
 protected:
  void SetUp() override {
    Begin();
    FabricShape before;
    before.missing_leaves = {3};
    port_.Set(absl::StatusOr<SweepResult>(RoutedSweep({}, before)));
    ASSERT_TRUE(manager_->Sweep().ok());
    mapper_ = std::make_unique<RankMapper>(manager_.get(), &SystemClock(), MapperOptions());
    for (int host = 0; host < 16; ++host) args_.task.hosts.push_back("n" + std::to_string(host));
    args_.task.objective = {.congestion = 1, .hop_bytes = 1};
    args_.budget = absl::Milliseconds(50);
    args_.parameters = {{"rounds", 2}};
  }
  void ExpectMappedOverLinks() {
    const auto view = mapper_->MapRanks(args_, {});
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_THAT(view->answer.reason, HasSubstr("shortest paths of the links"));
    EXPECT_EQ(*view->answer.after.inter_switch_bytes, 0);
  }
  std::unique_ptr<RankMapper> mapper_;
  MapRanksArgs args_;
};

TEST_F(StaleTablesTest, LinksStandInForRoutesThatAreMissing) {
  args_.task.pattern = FarPairs(16);
  ExpectMappedOverLinks();
}

TEST_F(StaleTablesTest, AlsoForDistancesOfRoutes) {
  args_.task.pattern = FarPairs(16);
  args_.task.distance = PlaceDistanceKind::kRoutes;
  args_.task.objective = {.qap_cost = 1};
  ExpectMappedOverLinks();
  EXPECT_TRUE(mapper_->Evaluate(args_.task, {}).ok());
}

// The present order needs no route to leaf 3, but other orders do.
TEST_F(StaleTablesTest, AlsoWhereOnlyTheSearchMissesThem) {
  args_.task.pattern = FarPairs(12);
  for (const char* algorithm : {"auto", "congestion", "greedy"}) {
    args_.algorithm = algorithm;
    args_.parameters.clear();
    const auto view = mapper_->MapRanks(args_, {});
    ASSERT_TRUE(view.ok()) << algorithm << ": " << view.status();
  }
}

TEST(MemoryBudget, GivesBackWhatWasTaken) {
  MemoryBudget budget(10'000'000);
  {
    const auto first = budget.Take(6'000'000, "the first");
    ASSERT_TRUE(first.ok());
    const absl::Status second = budget.Take(6'000'000, "the second").status();
    EXPECT_EQ(second.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(second.message()), HasSubstr("the second needs about 7 MB"));
    EXPECT_THAT(std::string(second.message()), HasSubstr("call again later"));
  }
  EXPECT_EQ(budget.taken(), 0u);
  EXPECT_TRUE(budget.Take(10'000'000, "all").ok());
}

}  // namespace
}  // namespace coppice::rank_mapper_test
