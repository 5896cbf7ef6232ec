// The Switches service over a real server, with switches that the test plays; and trees that are
// granted, told and released over them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/scripted_switch.h"
#include "tests/unit/rpc/users.h"

namespace coppice::switches_service_test {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using SwitchesStub = v1::Switches::Stub;
using TreesStub = v1::Trees::Stub;

void ExpectRefused(const absl::Status& status, StatusCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

class SwitchesServiceTest : public ::testing::Test {
 protected:
  SwitchesServiceTest() : channel_(loopback_.Connect()), stub_(v1::Switches::NewStub(channel_)) {}

  std::string GuidOf(uint32_t i) {
    const auto view = loopback_.manager().fabric();
    return ToString(view->snapshot->fabric->switch_info(SwitchIndex(i)).guid);
  }
  uint32_t SwitchCount() { return loopback_.manager().fabric()->snapshot->fabric->switch_count(); }
  void JoinAll(const ScriptedSwitch::Policy& policy = nullptr) {
    for (uint32_t i = 0; i < SwitchCount(); ++i) Join(GuidOf(i), policy);
  }
  void Join(const std::string& guid, const ScriptedSwitch::Policy& policy = nullptr) {
    switches_[guid] = std::make_unique<ScriptedSwitch>(channel_, SwitchHelloOf(guid), policy);
  }
  std::vector<v1::SwitchAgent> Agents() {
    const auto list =
        loopback_.Call(*stub_, &SwitchesStub::ListSwitchAgents, v1::ListSwitchAgentsRequest());
    EXPECT_TRUE(list.ok()) << list.status();
    return {list->switches().begin(), list->switches().end()};
  }
  absl::StatusOr<v1::Tree> Create(const std::string& job) {
    v1::CreateTreeRequest request;
    request.set_job_id(job);
    request.set_type(v1::TREE_TYPE_II);
    return loopback_.Call(loopback_.trees(), &TreesStub::CreateTree, request);
  }
  absl::StatusOr<v1::Tree> Get(TreesStub& trees, const std::string& id, v1::TreeView view,
                               uint32_t rank = 0) {
    v1::GetTreeRequest request;
    request.set_id(id);
    request.set_view(view);
    request.set_rank(rank);
    return loopback_.Call(trees, &TreesStub::GetTree, request);
  }
  void Release(const std::string& id) {
    v1::ReleaseTreeRequest request;
    request.set_id(id);
    EXPECT_TRUE(loopback_.Call(loopback_.trees(), &TreesStub::ReleaseTree, request).ok());
  }
  size_t Held() const {
    size_t held = 0;
    for (const auto& [guid, played] : switches_) held += played->held().size();
    return held;
  }
  // Until `condition` holds; the streams of this process need no more than moments.
  template <class Condition>
  void Await(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }
  static std::vector<std::string> GuidsOf(const v1::Tree& tree) {
    std::vector<std::string> guids;
    for (const uint64_t guid : tree.nodes().switches()) guids.push_back(ToString(Guid(guid)));
    return guids;
  }

  Loopback loopback_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<SwitchesStub> stub_;
  std::map<std::string, std::unique_ptr<ScriptedSwitch>> switches_;
};

TEST_F(SwitchesServiceTest, WelcomesAndListsSwitches) {
  SwitchCall call(channel_);
  v1::SwitchMessage hello = SwitchHelloOf(GuidOf(1), 7);
  hello.mutable_hello()->mutable_groups()->Add()->set_tree(99);
  ASSERT_TRUE(call.Say(hello));
  const auto welcome = call.Hear();
  ASSERT_TRUE(welcome.has_value() && welcome->has_welcome());
  const auto view = loopback_.manager().fabric();
  EXPECT_EQ(welcome->welcome().switch_name(),
            view->snapshot->fabric->switch_info(SwitchIndex(1)).description);
  EXPECT_EQ(welcome->welcome().keep_size(), 0);  // of the tree that it names nobody knows
  v1::SwitchMessage report;
  report.mutable_report()->set_entries_used(3);
  report.mutable_report()->mutable_counters()->set_bytes_up(12345);
  (*report.mutable_report()->mutable_counters()->mutable_refusals())["stale revision"] = 2;
  ASSERT_TRUE(call.Say(report));
  Await([&] { return Agents()[0].last_report().entries_used() == 3; });
  std::vector<v1::SwitchAgent> agents = Agents();
  ASSERT_THAT(agents, SizeIs(1));
  EXPECT_TRUE(agents[0].connected());
  EXPECT_EQ(agents[0].hello().groups_size(), 0);
  hello.mutable_hello()->clear_groups();
  EXPECT_EQ(agents[0].hello().SerializeAsString(), hello.hello().SerializeAsString());
  EXPECT_EQ(agents[0].last_report().counters().bytes_up(), 12345u);
  EXPECT_EQ(agents[0].last_report().counters().refusals().at("stale revision"), 2u);
  EXPECT_EQ(loopback_.server().Numbers().counts.switches.connected, 1u);
  EXPECT_EQ(loopback_.manager().Entries()[1].entries_total, 7u);
  call.SayNoMore();
  EXPECT_TRUE(call.End().ok());
  Await([&] { return loopback_.server().Numbers().counts.switches.connected == 0; });
  agents = Agents();
  ASSERT_THAT(agents, SizeIs(1));
  EXPECT_FALSE(agents[0].connected());
}

TEST_F(SwitchesServiceTest, ListsByPages) {
  JoinAll();
  v1::ListSwitchAgentsRequest request;
  request.set_page_size(4);
  auto list = loopback_.Call(*stub_, &SwitchesStub::ListSwitchAgents, request);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->switches_size(), 4);
  request.set_page_token(list->next_page_token());
  list = loopback_.Call(*stub_, &SwitchesStub::ListSwitchAgents, request);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->switches_size(), 2);
  EXPECT_EQ(list->next_page_token(), "");
  request.set_page_token("5:node1");
  ExpectRefused(loopback_.Call(*stub_, &SwitchesStub::ListSwitchAgents, request).status(),
                StatusCode::kInvalidArgument, "page_token");
}

TEST_F(SwitchesServiceTest, RefusesBadMessagesAndLies) {
  const auto refused = [&](const std::vector<v1::SwitchMessage>& messages, StatusCode code,
                           const std::string& words) {
    SwitchCall call(channel_);
    for (const v1::SwitchMessage& message : messages) call.Say(message);
    ExpectRefused(call.End(), code, words);
  };
  const v1::SwitchMessage good = SwitchHelloOf(GuidOf(0));
  refused({v1::SwitchMessage()}, StatusCode::kInvalidArgument, "say which switch you are");
  refused({InstalledOf(1)}, StatusCode::kInvalidArgument, "say which switch you are");
  refused({good, good}, StatusCode::kInvalidArgument, "second one");
  refused({good, v1::SwitchMessage()}, StatusCode::kInvalidArgument, "empty");
  refused({good, InstalledOf(1)}, StatusCode::kInvalidArgument, "installed.id: 1 is no task");
  refused({SwitchHelloOf("")}, StatusCode::kInvalidArgument, "hello.switch_guid");
  refused({SwitchHelloOf("12")}, StatusCode::kInvalidArgument, "hello.switch_guid");
  refused({SwitchHelloOf("0000000000000000")}, StatusCode::kInvalidArgument, "hello.switch_guid");
  refused({SwitchHelloOf("00000000deadbeef")}, StatusCode::kNotFound, "00000000deadbeef");
  refused({SwitchHelloOf(GuidOf(0), 1'000'000)}, StatusCode::kInvalidArgument, "entries: 1000000");
  v1::SwitchMessage bad = good;
  bad.mutable_hello()->set_address("10.0.0.7");
  refused({bad}, StatusCode::kInvalidArgument, "hello.address");
  bad = good;
  bad.mutable_hello()->mutable_abilities()->set_memory_bytes(100);
  refused({bad}, StatusCode::kInvalidArgument, "memory_bytes: 100");
  bad = good;
  bad.mutable_hello()->mutable_abilities()->clear_types();
  refused({bad}, StatusCode::kInvalidArgument, "types: none");
  bad = good;
  bad.mutable_hello()->clear_abilities();
  refused({bad}, StatusCode::kInvalidArgument, "entries: 0");
  bad = good;
  for (int i = 0; i < 5; ++i) bad.mutable_hello()->add_groups();
  refused({bad}, StatusCode::kInvalidArgument, "5 of a switch of 4 entries");
  Await([&] { return loopback_.server().Numbers().counts.switches.connected == 0; });
}

TEST_F(SwitchesServiceTest, TheNewestAgentIsTheSwitchs) {
  SwitchCall first(channel_);
  first.Say(SwitchHelloOf(GuidOf(0)));
  ASSERT_TRUE(first.Hear().has_value());
  SwitchCall second(channel_);
  second.Say(SwitchHelloOf(GuidOf(0)));
  ASSERT_TRUE(second.Hear().has_value());
  ExpectRefused(first.End(), StatusCode::kAborted, GuidOf(0));
  ASSERT_THAT(Agents(), SizeIs(1));
  EXPECT_TRUE(Agents()[0].connected());
}

TEST_F(SwitchesServiceTest, AShutdownEndsStreams) {
  SwitchCall call(channel_);
  call.Say(SwitchHelloOf(GuidOf(0)));
  ASSERT_TRUE(call.Hear().has_value());
  loopback_.server().Shutdown(absl::Seconds(10));
  ExpectRefused(call.End(), StatusCode::kUnavailable, "shutting down");
}

TEST_F(SwitchesServiceTest, AShutdownMendsNoTree) {
  std::atomic<bool> are_silent = false;
  JoinAll([&](const v1::Entry&) -> std::optional<std::string> {
    if (are_silent) return std::nullopt;
    return "";
  });
  const std::string job = loopback_.RegisterAll();
  const auto tree = Create(job);
  ASSERT_TRUE(tree.ok()) << tree.status();
  are_silent = true;
  const auto installs = [&] {
    int sum = 0;
    for (const auto& [guid, played] : switches_) sum += played->installs();
    return sum;
  };
  const int before = installs();
  std::thread caller(
      [&] { ExpectRefused(Create(job).status(), StatusCode::kUnavailable, "shutting down"); });
  Await([&] { return installs() > before; });
  loopback_.server().Shutdown(absl::Seconds(10));
  caller.join();
  loopback_.clock().Advance(SwitchInstaller::kPatience);
  loopback_.manager().switches().Expire();
  ASSERT_TRUE(loopback_.manager().Sweep().ok());
  const auto now = loopback_.manager().GetTree(TreeId(std::stoll(tree->id())));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 1u);
  EXPECT_EQ(now->record->carriage.key, tree->carriage().key());
}

TEST_F(SwitchesServiceTest, ATreeIsInItsSwitchesAndItsOwnerHasTheKey) {
  JoinAll();
  const std::string job = loopback_.RegisterAll();
  const auto tree = Create(job);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_TRUE(tree->has_carriage());
  EXPECT_THAT(tree->carriage().key(), SizeIs(16));
  EXPECT_EQ(tree->carriage().segment_bytes(), 8192u);
  EXPECT_EQ(tree->carriage().window(), 4u);
  const std::vector<std::string> guids = GuidsOf(*tree);
  EXPECT_EQ(Held(), guids.size());
  for (const std::string& guid : guids) {
    const v1::Entry entry = switches_.at(guid)->held().at(std::stoull(tree->id()));
    EXPECT_EQ(entry.key(), tree->carriage().key());
    EXPECT_EQ(entry.group().revision(), 1u);
  }
  // Each rank finds its switch, and is another child of it.
  std::map<std::string, std::set<uint32_t>> numbers;
  for (uint32_t rank = 0; rank < tree->rank_count(); ++rank) {
    const auto part = Get(loopback_.trees(), tree->id(), v1::TREE_VIEW_RANK, rank);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->carriage().key(), tree->carriage().key());
    EXPECT_EQ(part->carriage().parent_address(), "10.0.0.7:18516");
    ASSERT_TRUE(part->rank_view().parent().is_switch());
    const v1::Entry entry =
        switches_.at(part->rank_view().parent().guid())->held().at(std::stoull(tree->id()));
    EXPECT_LT(part->carriage().number_at_parent(), entry.children());
    EXPECT_TRUE(numbers[part->rank_view().parent().guid()]
                    .insert(part->carriage().number_at_parent())
                    .second);
  }
  EXPECT_FALSE(Get(loopback_.trees(), tree->id(), v1::TREE_VIEW_SUMMARY)->has_carriage());
  EXPECT_TRUE(Get(loopback_.trees(), tree->id(), v1::TREE_VIEW_FULL)->has_carriage());
  Release(tree->id());
  Await([&] { return Held() == 0; });
}

TEST_F(SwitchesServiceTest, NobodyElseIsToldTheKey) {
  ASSERT_TRUE(MayActAsOthers());
  JoinAll();
  const std::string job = loopback_.RegisterAll();
  const auto tree = Create(job);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const std::string key = tree->carriage().key();
  const auto stub =
      v1::Trees::NewStub(ChannelOf(ConnectAs(kBinUser, loopback_.server().addresses()[0])));
  for (const v1::TreeView view :
       {v1::TREE_VIEW_UNSPECIFIED, v1::TREE_VIEW_FULL, v1::TREE_VIEW_RANK, v1::TREE_VIEW_SUMMARY}) {
    const auto seen = Get(*stub, tree->id(), view);
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_FALSE(seen->has_carriage());
    EXPECT_THAT(seen->SerializeAsString(), Not(HasSubstr(key)));
  }
  const auto list =
      loopback_.Call(loopback_.trees(), &TreesStub::ListTrees, v1::ListTreesRequest());
  ASSERT_TRUE(list.ok());
  EXPECT_THAT(list->SerializeAsString(), Not(HasSubstr(key)));
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  v1::WatchTreesRequest request;
  request.set_view(v1::TREE_VIEW_FULL);
  const auto watch = loopback_.trees().WatchTrees(&context, request);
  v1::TreeChange change;
  ASSERT_TRUE(watch->Read(&change));
  EXPECT_EQ(change.tree().id(), tree->id());
  EXPECT_THAT(change.SerializeAsString(), Not(HasSubstr(key)));
  context.TryCancel();
  const auto events = loopback_.manager().Events({});
  ASSERT_TRUE(events.ok());
  for (const EventRecord& event : *events) EXPECT_THAT(event.message, Not(HasSubstr(key)));
}

TEST_F(SwitchesServiceTest, ARefusalIsPlannedRoundOrTold) {
  JoinAll([](const v1::Entry&) { return "no memory left"; });
  const std::string job = loopback_.RegisterAll();
  const auto refused = Create(job);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no memory left"));
  EXPECT_GT(loopback_.server().Numbers().counts.switches.refusals, 0u);
  EXPECT_EQ(loopback_.manager().Counts().entries_taken, 0u);
  switches_.clear();
  Await([&] { return loopback_.server().Numbers().counts.switches.connected == 0; });
  JoinAll();
  EXPECT_TRUE(Create(job)->has_carriage());
}

TEST_F(SwitchesServiceTest, SilenceHasAnEnd) {
  std::atomic<int> asked = 0;
  JoinAll([&](const v1::Entry&) -> std::optional<std::string> {
    if (asked++ == 0) return std::nullopt;
    return "";
  });
  const std::string job = loopback_.RegisterAll();
  std::thread caller([&] {
    const auto tree = Create(job);
    EXPECT_TRUE(tree.ok()) << tree.status();
    EXPECT_THAT(tree.ok() ? tree->reason() : "", HasSubstr("did not answer"));
  });
  Await([&] { return asked > 0; });
  loopback_.clock().Advance(SwitchInstaller::kAnswerWithin);
  loopback_.manager().switches().Expire();
  caller.join();
}

TEST_F(SwitchesServiceTest, WhoVanishesInTheMiddleIsGoneRound) {
  JoinAll();
  const std::string job = loopback_.RegisterAll();
  const auto first = Create(job);
  ASSERT_TRUE(first.ok());
  const std::string guid = GuidsOf(*first).back();
  Release(first->id());
  Await([&] { return Held() == 0; });
  switches_.erase(guid);
  Await(
      [&] { return loopback_.server().Numbers().counts.switches.connected == SwitchCount() - 1; });
  Join(guid, [](const v1::Entry&) { return std::nullopt; });
  std::thread caller([&] {
    const auto tree = Create(job);
    EXPECT_TRUE(tree.ok()) << tree.status();
    if (!tree.ok()) return;
    EXPECT_THAT(GuidsOf(*tree), Not(testing::Contains(guid)));
    EXPECT_TRUE(tree->has_carriage());
  });
  Await([&] { return switches_.at(guid)->installs() > 0; });
  switches_.at(guid)->Vanish();
  caller.join();
}

TEST_F(SwitchesServiceTest, AReconnectIsReconciled) {
  JoinAll();
  const std::string job = loopback_.RegisterAll();
  const auto tree = Create(job);
  ASSERT_TRUE(tree.ok());
  const std::string guid = GuidsOf(*tree).back();
  const uint64_t id = std::stoull(tree->id());
  switches_.erase(guid);
  Await(
      [&] { return loopback_.server().Numbers().counts.switches.connected == SwitchCount() - 1; });
  // It says that it holds another tree, and an older revision of this one.
  v1::SwitchMessage hello = SwitchHelloOf(guid);
  for (const auto& [number, revision] : {std::pair<uint64_t, uint32_t>{id, 0}, {77, 3}}) {
    v1::Group& group = *hello.mutable_hello()->add_groups();
    group.set_tree(number);
    group.set_revision(revision);
  }
  switches_[guid] = std::make_unique<ScriptedSwitch>(channel_, hello);
  const v1::SwitchWelcome welcome = switches_[guid]->welcome();
  ASSERT_EQ(welcome.keep_size(), 1);
  EXPECT_EQ(welcome.keep(0).tree(), id);
  EXPECT_EQ(welcome.keep(0).revision(), 1u);
  Await([&] { return switches_[guid]->held().size() == 1; });
  EXPECT_EQ(switches_[guid]->held().at(id).key(), tree->carriage().key());
}

}  // namespace
}  // namespace coppice::switches_service_test
