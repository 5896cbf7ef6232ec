// Measuring with scripted agents, a clock that is turned by hand and no timer.
#include "daemon/manager/distances/distance_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::distance_meter_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PingPongOutcome Good(uint64_t id, double latency_us = 2) {
  return {id, "", latency_us, 0.1, 10, 1, 90};
}

class DistanceMeterTest : public ManagerTest {
 protected:
  // One connection: what was sent to it, and how it was ended.
  struct Line {
    std::vector<PingPong> tasks;
    std::optional<absl::Status> end;
    std::vector<uint64_t> stopped;
    AgentSession session = 0;
  };

  void SetUp() override {
    Boot();
    distance_store_ = *DistanceStore::Create(&store_);
    meter_ = std::make_unique<DistanceMeter>(manager_.get(), distance_store_.get(), &clock_);
  }
  static AgentInfo Info(const std::string& host) {
    AgentInfo info;
    info.host = host;
    info.measure_address = absl::StrCat(host, ":1");
    return info;
  }
  std::shared_ptr<Line> Connect(const AgentInfo& info) {
    auto line = std::make_shared<Line>();
    const auto connected =
        meter_->Connect(info, {[line](const PingPong& task) { line->tasks.push_back(task); },
                               [line](const absl::Status& status) { line->end = status; },
                               [line](uint64_t id) { line->stopped.push_back(id); }});
    EXPECT_TRUE(connected.ok()) << connected.status();
    line->session = connected->session;
    return line;
  }
  std::vector<std::shared_ptr<Line>> ConnectHosts(int n) {
    std::vector<std::shared_ptr<Line>> lines;
    for (int i = 0; i < n; ++i) lines.push_back(Connect(Info(absl::StrCat("n", i))));
    return lines;
  }
  absl::Status Begin(const MeasureArgs& args = {}) {
    MeasureWatch watch;
    watch.progress = [this](const MeasureStanding& standing) { progress_.push_back(standing); };
    watch.is_cancelled = [this] { return cancelled_; };
    watch.done = [this](absl::StatusOr<MeasureStanding> result) {
      EXPECT_FALSE(done_.has_value());
      done_ = std::move(result);
    };
    return meter_->Measure(args, std::move(watch));
  }

  std::unique_ptr<DistanceStore> distance_store_;
  std::vector<MeasureStanding> progress_;
  std::optional<absl::StatusOr<MeasureStanding>> done_;
  std::unique_ptr<DistanceMeter> meter_;  // whose end sets both
  bool cancelled_ = false;
};

TEST_F(DistanceMeterTest, SendsEachPairToBothSidesRoundByRound) {
  auto lines = ConnectHosts(5);
  MeasureArgs args;
  args.latency_samples = 7;
  args.bandwidth_samples = 3;
  args.bandwidth_bytes = 999;
  ASSERT_TRUE(Begin(args).ok());
  std::set<HostPair> pairs;
  for (int round = 0; round < 5; ++round) {
    ASSERT_FALSE(done_.has_value());
    // Every task of the round is out before the first is answered.
    std::map<uint64_t, std::vector<std::pair<std::string, PingPong>>> sides;
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_LE(lines[i]->tasks.size(), 1u);
      for (const PingPong& task : lines[i]->tasks) {
        sides[task.id].emplace_back(absl::StrCat("n", i), task);
      }
      lines[i]->tasks.clear();
    }
    EXPECT_EQ(sides.size(), 2u);
    for (auto& [id, both] : sides) {
      ASSERT_EQ(both.size(), 2u);
      const auto& [active_host, active] = both[both[0].second.active ? 0 : 1];
      const auto& [passive_host, passive] = both[both[0].second.active ? 1 : 0];
      EXPECT_TRUE(active.active && !passive.active);
      EXPECT_EQ(active.token, passive.token);
      EXPECT_EQ(active.token.size(), 32u);
      EXPECT_EQ(active.peer, passive_host);
      EXPECT_EQ(active.peer_address, absl::StrCat(passive_host, ":1"));
      EXPECT_EQ(passive.peer, active_host);
      EXPECT_EQ(active.latency_samples, 7u);
      EXPECT_EQ(active.bandwidth_samples, 3u);
      EXPECT_EQ(active.bandwidth_bytes, 999u);
      EXPECT_GT(active.timeout, absl::ZeroDuration());
      EXPECT_TRUE(pairs.insert({active_host, passive_host}).second);
      const size_t index = active_host[1] - '0';
      EXPECT_TRUE(meter_->TakeOutcome(lines[index]->session, Good(id)).ok());
    }
  }
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_EQ((*done_)->pairs, 10u);
  EXPECT_EQ((*done_)->rounds, 5u);
  EXPECT_EQ(pairs.size(), 10u);
  EXPECT_EQ(distance_store_->size(), 10u);
  ASSERT_EQ(progress_.size(), 5u);
  EXPECT_EQ(progress_[2].round, 3u);
  EXPECT_EQ(progress_[2].pairs, 6u);
}

TEST_F(DistanceMeterTest, AnAgentThatVanishesFailsItsPairsAndHoldsUpNoRound) {
  auto lines = ConnectHosts(3);
  ASSERT_TRUE(Begin().ok());
  meter_->Disconnect(lines[2]->session);
  meter_->Disconnect(lines[2]->session);  // again: nothing
  // Whatever round is under way, n0 and n1 get to each other.
  while (!done_.has_value()) {
    ASSERT_FALSE(lines[0]->tasks.empty());
    const uint64_t id = lines[0]->tasks.back().id;
    ASSERT_TRUE(meter_->TakeOutcome(lines[0]->session, Good(id)).ok());
  }
  ASSERT_TRUE(done_->ok());
  EXPECT_EQ((*done_)->pairs, 1u);
  EXPECT_EQ((*done_)->failed, 2u);
  ASSERT_EQ((*done_)->failures.size(), 2u);
  for (const std::string& failure : (*done_)->failures) {
    EXPECT_THAT(failure, HasSubstr("n2: "));
  }
  EXPECT_FALSE(meter_->Agents("", 10)[2].connected);
}

TEST_F(DistanceMeterTest, SilenceEndsAPair) {
  auto lines = ConnectHosts(2);
  ASSERT_TRUE(Begin().ok());
  const absl::Duration wait = meter_->Expire();
  EXPECT_GT(wait, absl::ZeroDuration());
  const uint64_t id = lines[0]->tasks[0].id;
  clock_.Advance(lines[0]->tasks[0].timeout);
  meter_->Expire();
  EXPECT_FALSE(done_.has_value());  // the agents may still say why
  clock_.Advance(absl::Minutes(1));
  meter_->Expire();
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_THAT((*done_)->failures, ElementsAre(AllOf(HasSubstr("n0 and n1"), HasSubstr("said"))));
  // What comes now is late, and no offence.
  EXPECT_TRUE(meter_->TakeOutcome(lines[0]->session, Good(id)).ok());
  EXPECT_EQ(distance_store_->size(), 0u);
  EXPECT_EQ(meter_->Expire(), absl::InfiniteDuration());
}

TEST_F(DistanceMeterTest, EitherSideMayFailAPairAndOnlyTheActiveOneMeasure) {
  auto lines = ConnectHosts(2);
  ASSERT_TRUE(Begin().ok());
  uint64_t id = lines[1]->tasks.back().id;
  EXPECT_FALSE(lines[1]->tasks.back().active);
  EXPECT_TRUE(meter_->TakeOutcome(lines[1]->session, Good(id)).ok());
  EXPECT_FALSE(done_.has_value());
  EXPECT_TRUE(meter_->TakeOutcome(lines[1]->session, {id, "nobody \x1b came"}).ok());
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_THAT((*done_)->failures, ElementsAre("n0 and n1: n1: nobody \\x1b came"));
}

TEST_F(DistanceMeterTest, RefusesWhatNoTaskAsksFor) {
  auto lines = ConnectHosts(4);
  MeasureArgs args;
  args.hosts = {"n1", "n0", "n1"};
  ASSERT_TRUE(Begin(args).ok());
  const uint64_t id = lines[0]->tasks[0].id;
  const auto refused = [&](size_t i, const PingPongOutcome& outcome) {
    EXPECT_EQ(meter_->TakeOutcome(lines[i]->session, outcome).code(),
              absl::StatusCode::kInvalidArgument);
  };
  refused(0, Good(id + 1));
  refused(2, Good(id));  // another's
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad :
       {0.0, -1.0, nan, std::numeric_limits<double>::infinity(), 1e308, 1e8, 1e-9}) {
    refused(0, {id, "", bad, 0, 1, 0, 1});
    refused(0, {id, "", 1, 0, bad, 0, 1});
  }
  refused(0, {id, "", 1, -1, 1, 0, 1});
  refused(0, {id, "", 1, 0, 1, nan, 1});
  refused(0, {id, "", 1, 0, 1, 0, 0});
  refused(0, {id, "", 1, 1e308, 1, 0, 1});
  refused(0, {id, "", 1, 0, 1, 1e308, 1});
  refused(0, {id, "", 1, 0, 1, 0, 100'001});
  EXPECT_FALSE(done_.has_value());
  EXPECT_TRUE(meter_->TakeOutcome(lines[0]->session, Good(id)).ok());
  EXPECT_TRUE(done_.has_value());
}

TEST_F(DistanceMeterTest, APairMeasuresOverVerbsIfBothSidesHaveThem) {
  std::vector<std::shared_ptr<Line>> lines;
  for (int i = 0; i < 3; ++i) {
    AgentInfo info = Info(absl::StrCat("n", i));
    info.has_verbs = i < 2;
    lines.push_back(Connect(info));
  }
  ASSERT_TRUE(Begin().ok());
  while (!done_.has_value()) {
    for (int i = 0; i < 3; ++i) {
      for (const PingPong& task : std::exchange(lines[i]->tasks, {})) {
        const bool have_verbs = i < 2 && task.peer != "n2";
        EXPECT_EQ(task.transport, have_verbs ? Transport::kVerbs : Transport::kTcp);
        EXPECT_TRUE(task.or_tcp);
        PingPongOutcome outcome = Good(task.id);
        outcome.transport = task.transport;
        ASSERT_TRUE(!task.active || meter_->TakeOutcome(lines[i]->session, outcome).ok());
      }
    }
  }
  ASSERT_TRUE(done_->ok());
  EXPECT_EQ((*done_)->pairs, 3u);
  EXPECT_EQ((*done_)->over_verbs, 1u);
  EXPECT_THAT((*done_)->remarks, IsEmpty());
  EXPECT_EQ(distance_store_->Find({"n0", "n1"})->transport, Transport::kVerbs);
  EXPECT_EQ(distance_store_->Find({"n0", "n2"})->transport, Transport::kTcp);
}

// In the partition that is asked for or one of their own, as far as tables are known.
TEST_F(DistanceMeterTest, APairThatCannotSpeakMeasuresOverTcpOrFails) {
  auto partitions = std::make_shared<Partitions>();
  partitions->Set(PortGuid(0), {0x7fff, 0x0001});
  partitions->Set(PortGuid(1), {0x7fff, 0x0001, 0x8002});
  partitions->Set(PortGuid(2), {0x7fff, 0x0001, 0x0002});
  SweepResult swept;
  swept.fabric = SmallFabric();
  swept.partitions = std::move(partitions);
  port_.Set(absl::StatusOr<SweepResult>(std::move(swept)));
  ASSERT_TRUE(manager_->Sweep().ok());
  std::map<std::string, std::shared_ptr<Line>> lines;
  for (const char* host : {"n0", "n1", "n2", "n3"}) {
    AgentInfo info = Info(host);
    info.has_verbs = true;
    lines[host] = Connect(info);
  }
  // What the first is given for the pair; nullopt: nothing.
  const auto measure = [&](const std::string& a, const std::string& b, MeasureArgs args) {
    args.hosts = {a, b};
    done_.reset();
    EXPECT_TRUE(Begin(args).ok());
    std::optional<PingPong> task;
    for (const std::string& host : {a, b}) {
      for (const PingPong& one : std::exchange(lines[host]->tasks, {})) {
        task = one;
        const bool is_taken =
            !one.active || meter_->TakeOutcome(lines[host]->session, Good(one.id)).ok();
        EXPECT_TRUE(is_taken);
      }
    }
    EXPECT_TRUE(done_.has_value() && done_->ok());
    return task;
  };
  MeasureArgs any, verbs, red, red_verbs;
  verbs.transport = red_verbs.transport = Transport::kVerbs;
  red.partition = red_verbs.partition = PartitionNum(1);
  EXPECT_EQ(measure("n1", "n2", verbs)->partition, PartitionNum(2));
  EXPECT_EQ(measure("n0", "n1", any)->transport, Transport::kTcp);
  EXPECT_FALSE(measure("n0", "n1", verbs).has_value());
  EXPECT_THAT((*done_)->failures,
              ElementsAre(testing::AllOf(HasSubstr("n0/1"), HasSubstr("n1/1"),
                                         HasSubstr("partition 0x"), HasSubstr("limited"))));
  EXPECT_EQ(measure("n1", "n2", red)->transport, Transport::kTcp);
  EXPECT_FALSE(measure("n1", "n2", red_verbs).has_value());
  EXPECT_THAT((*done_)->failures, ElementsAre(HasSubstr("partition 0x0001: ports n1/1")));
  // Of n3 nothing is known.
  EXPECT_EQ(measure("n0", "n3", any)->transport, Transport::kVerbs);
  EXPECT_EQ(measure("n0", "n3", verbs)->partition, PartitionNum());
  EXPECT_EQ(measure("n0", "n3", red_verbs)->partition, PartitionNum(1));
}

TEST_F(DistanceMeterTest, WhyAPairIsOverTcpAfterAllIsToldAndNoFailure) {
  std::vector<std::shared_ptr<Line>> lines;
  for (const char* host : {"n0", "n1"}) {
    AgentInfo info = Info(host);
    info.has_verbs = true;
    lines.push_back(Connect(info));
  }
  ASSERT_TRUE(Begin().ok());
  PingPongOutcome outcome = Good(lines[0]->tasks[0].id);
  outcome.remark = "port \x1b down";
  ASSERT_TRUE(meter_->TakeOutcome(lines[0]->session, outcome).ok());
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_EQ((*done_)->over_verbs, 0u);
  EXPECT_THAT((*done_)->remarks, ElementsAre("n0 and n1: measured over TCP: port \\x1b down"));
  EXPECT_THAT((*done_)->failures, IsEmpty());
  EXPECT_EQ(distance_store_->Find({"n0", "n1"})->transport, Transport::kTcp);
}

TEST_F(DistanceMeterTest, OneTransportCanBeAskedFor) {
  std::vector<std::shared_ptr<Line>> lines;
  for (int i = 0; i < 3; ++i) {
    AgentInfo info = Info(absl::StrCat("n", i));
    info.has_verbs = i < 2;
    lines.push_back(Connect(info));
  }
  MeasureArgs args;
  args.transport = Transport::kVerbs;
  args.hosts = {"n0", "n2"};
  const absl::Status refused = Begin(args);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("without verbs: n2"));
  args.hosts.clear();
  ASSERT_TRUE(Begin(args).ok());
  ASSERT_EQ(lines[0]->tasks.size(), 1u);
  EXPECT_EQ(lines[0]->tasks[0].transport, Transport::kVerbs);
  EXPECT_FALSE(lines[0]->tasks[0].or_tcp);
  ASSERT_TRUE(meter_->TakeOutcome(lines[0]->session, Good(lines[0]->tasks[0].id)).ok());
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_THAT((*done_)->failures, ElementsAre("n2: its agent has no verbs"));
  done_.reset();
  args.transport = Transport::kTcp;
  args.hosts = {"n0", "n1"};
  ASSERT_TRUE(Begin(args).ok());
  EXPECT_EQ(lines[0]->tasks.back().transport, Transport::kTcp);
}

TEST_F(DistanceMeterTest, TheNewestAgentTakesTheHost) {
  auto lines = ConnectHosts(2);
  ASSERT_TRUE(Begin().ok());
  const auto newer = Connect(Info("n0"));
  ASSERT_TRUE(lines[0]->end.has_value());
  EXPECT_EQ(lines[0]->end->code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_THAT((*done_)->failures, ElementsAre(HasSubstr("took its place")));
  meter_->Disconnect(lines[0]->session);  // of the old one: nothing
  EXPECT_EQ(meter_->connected(), 2u);
  EXPECT_TRUE(newer->tasks.empty());
}

TEST_F(DistanceMeterTest, AnAgentOfAnotherNameDoesNotTakeTheHost) {
  const auto connect = [&](const AgentIdentity& identity, const std::string& host) {
    return meter_->Connect(Info(host), {[](const PingPong&) {}, [](const absl::Status&) {}},
                           identity);
  };
  const AgentIdentity own = {"tls:agent-n0", "n0"};
  const auto first = connect(own, "n0");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(connect({"root", ""}, "n0").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(connect(own, "n1").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(connect({"tls:agent-n", "n"}, "n0").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(connect(own, "n0").ok());
  EXPECT_TRUE(connect({"tls:n1", "n1.cluster.example"}, "n1").ok());
  EXPECT_EQ(meter_->connected(), 2u);
  meter_->Disconnect(first->session);  // replaced already
  EXPECT_EQ(meter_->connected(), 2u);
}

TEST_F(DistanceMeterTest, RefusesMeasurementsThatCannotBe) {
  const auto refused = [&](const MeasureArgs& args, absl::StatusCode code, const char* words) {
    const absl::Status status = Begin(args);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused({}, absl::StatusCode::kFailedPrecondition, "of 0 hosts 0 can be measured");
  auto lines = ConnectHosts(3);
  AgentInfo deaf = Info("n5");
  deaf.measure_address.clear();
  const auto deaf_line = Connect(deaf);
  MeasureArgs args;
  args.hosts = {"n0", "n7"};
  refused(args, absl::StatusCode::kFailedPrecondition, "without an agent: n7");
  args.hosts = {"n0", "n5"};
  refused(args, absl::StatusCode::kFailedPrecondition, "takes no part: n5");
  args.hosts = {"n0", "nowhere"};
  refused(args, absl::StatusCode::kNotFound, "nowhere");
  args.hosts.clear();
  args.complete_up_to = 1025;
  refused(args, absl::StatusCode::kInvalidArgument, "complete_up_to: 1025");
  args = {};
  args.latency_samples = 100'001;
  refused(args, absl::StatusCode::kInvalidArgument, "latency_samples");
  args = {};
  args.bandwidth_samples = 10'001;
  refused(args, absl::StatusCode::kInvalidArgument, "bandwidth_samples");
  args = {};
  args.bandwidth_bytes = (256u << 20) + 1;
  refused(args, absl::StatusCode::kInvalidArgument, "bandwidth_bytes");
  // Those that take no part are told, and the others measured.
  ASSERT_TRUE(Begin().ok());
  args = {};
  args.hosts = {"n1", "n2"};
  refused(args, absl::StatusCode::kResourceExhausted, "holds n1, n2");
  for (const auto& line : lines) meter_->Disconnect(line->session);
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_THAT((*done_)->failures[0], "n5: its agent takes no part");
}

TEST_F(DistanceMeterTest, ACancelledMeasurementLetsItsHostsGo) {
  auto lines = ConnectHosts(4);
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(meter_->TakeOutcome(lines[0]->session, Good(lines[0]->tasks[0].id)).ok());
  cancelled_ = true;
  meter_->Expire();
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(done_->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(distance_store_->size(), 1u);
  // The pair that was under way, on both sides, and not the one that was over.
  EXPECT_THAT(lines[0]->stopped, IsEmpty());
  std::vector<uint64_t> stopped;
  for (const auto& line : lines) {
    for (const uint64_t id : line->stopped) {
      EXPECT_EQ(id, line->tasks.back().id);
      stopped.push_back(id);
    }
  }
  ASSERT_EQ(stopped.size(), 2u);
  EXPECT_EQ(stopped[0], stopped[1]);
  cancelled_ = false;
  done_.reset();
  EXPECT_TRUE(Begin().ok());
  meter_->Stop();
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(done_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Begin().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DistanceMeterTest, SamplesEachLevelOfManyHosts) {
  auto lines = ConnectHosts(16);
  MeasureArgs args;
  args.complete_up_to = 8;
  ASSERT_TRUE(Begin(args).ok());
  std::map<size_t, size_t> answered;
  while (!done_.has_value()) {
    for (size_t i = 0; i < lines.size(); ++i) {
      while (answered[i] < lines[i]->tasks.size()) {
        const PingPong task = lines[i]->tasks[answered[i]++];
        if (task.active) {
          ASSERT_TRUE(meter_->TakeOutcome(lines[i]->session, Good(task.id)).ok());
        }
      }
    }
  }
  ASSERT_TRUE(done_->ok());
  // 24 pairs of one leaf, each in one of three rounds; four rounds of pairs of two leaves.
  EXPECT_EQ((*done_)->rounds, 7u);
  EXPECT_GE((*done_)->pairs, 24u + 4 * 6u);
  EXPECT_LE((*done_)->pairs, 24u + 4 * 8u);
}

TEST_F(DistanceMeterTest, EverybodyGoneEndsItAtOnce) {
  auto lines = ConnectHosts(16);
  ASSERT_TRUE(Begin().ok());
  for (const auto& line : lines) meter_->Disconnect(line->session);
  ASSERT_TRUE(done_.has_value() && done_->ok());
  EXPECT_EQ((*done_)->failed, 120u);
  EXPECT_EQ((*done_)->failures.size(), 100u);
}

TEST_F(DistanceMeterTest, BeforeAFabricNobodyIsAnybody) {
  port_.Set(absl::UnavailableError("no"));
  Boot(Options(), /*sweep=*/false);
  DistanceMeter meter(manager_.get(), distance_store_.get(), &clock_);
  EXPECT_EQ(meter.Connect(Info("n0"), {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(meter.Measure({}, {}).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace coppice::distance_meter_test
