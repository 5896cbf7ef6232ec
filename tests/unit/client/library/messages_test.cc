// libcoppice's own encoding against the generated classes: what it writes they read, what they
// write it reads, and of anything else it says that it is none.
#include "client/library/messages.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/local.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/trees.pb.h"
#include "tests/support/tier.h"

namespace coppice::messages_test {
namespace {

using ::testing::ElementsAre;

template <class Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(text));
  EXPECT_TRUE(message.GetReflection()->GetUnknownFields(message).empty());
  return message;
}

// Room that is made for each part of a list apart is made by copying all of it each time.
TEST(MessagesTest, AListInManyPartsGrowsByFactors) {
  constexpr uint32_t kParts = 10'000, kField = 3;
  wire::Writer writer;
  for (uint32_t part = 0; part < kParts; ++part) writer.Numbers(kField, &part, 1);
  std::vector<uint32_t> list;
  std::set<size_t> capacities;
  wire::Reader reader(writer.text());
  while (reader.Next()) {
    reader.AppendTo(list);
    capacities.insert(list.capacity());
  }
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(list.size(), kParts);
  EXPECT_EQ(list.back(), kParts - 1);
  EXPECT_LT(capacities.size(), 30u);
  // One part: as much as it holds.
  wire::Writer whole;
  whole.Numbers(kField, list.data(), list.size());
  std::vector<uint32_t> copy;
  wire::Reader once(whole.text());
  while (once.Next()) once.AppendTo(copy);
  EXPECT_EQ(copy, list);
  EXPECT_EQ(copy.capacity(), copy.size());
}

TEST(MessagesTest, CallsAndReplies) {
  const auto call = Parsed<v1::LocalRequest>(EncodeCall(uint64_t{1} << 40, "/a/B", "body", 1500));
  EXPECT_EQ(call.call(), uint64_t{1} << 40);
  EXPECT_EQ(call.method(), "/a/B");
  EXPECT_EQ(call.message(), "body");
  EXPECT_EQ(call.timeout_ms(), 1500u);
  EXPECT_FALSE(call.cancel());

  v1::LocalReply reply;
  reply.set_call(77);
  reply.set_message("part");
  std::string text = reply.SerializeAsString();
  AgentReply read;
  ASSERT_TRUE(DecodeReply(text, read));
  EXPECT_EQ(read.call, 77u);
  EXPECT_FALSE(read.is_end);
  EXPECT_EQ(read.message, "part");
  reply.mutable_end()->set_code(9);
  reply.mutable_end()->set_message("why");
  reply.mutable_end()->set_details("more");
  text = reply.SerializeAsString();
  ASSERT_TRUE(DecodeReply(text, read));
  EXPECT_TRUE(read.is_end);
  EXPECT_EQ(read.end.code, COPPICE_FAILED_PRECONDITION);
  EXPECT_EQ(read.end.message, "why");
  reply.mutable_end()->set_code(4711);
  text = reply.SerializeAsString();
  ASSERT_TRUE(DecodeReply(text, read));
  EXPECT_EQ(read.end.code, COPPICE_UNKNOWN);
}

TEST(MessagesTest, AnAgentAndAHold) {
  v1::GetAgentResponse agent;
  agent.set_host("n1");
  agent.set_version("0.1.0");
  agent.set_server("unix:/x");
  agent.set_connected(true);
  agent.set_cores(48);
  AgentFacts facts;
  ASSERT_TRUE(DecodeAgent(agent.SerializeAsString(), facts));
  EXPECT_EQ(facts.host, "n1");
  EXPECT_EQ(facts.version, "0.1.0");
  EXPECT_TRUE(facts.is_connected);
  EXPECT_EQ(facts.cores, 48u);
  const auto hold = Parsed<v1::HoldJobRequest>(EncodeHold(12));
  EXPECT_EQ(hold.job_id(), "12");
  EXPECT_TRUE(hold.end_job());
  EXPECT_EQ(hold.processes_size(), 0);
}

TEST(MessagesTest, JobsAndIds) {
  const char* const endpoints[] = {"n0", "", "n1/2"};
  coppice_job_request request{};
  request.display_name = "name";
  request.endpoints = endpoints;
  request.endpoint_count = 3;
  request.lease_ms = 2500;
  const auto job = Parsed<v1::RegisterJobRequest>(EncodeRegister(request, "id"));
  EXPECT_EQ(job.request_id(), "id");
  EXPECT_EQ(job.display_name(), "name");
  EXPECT_THAT(job.endpoints(), ElementsAre("n0", "", "n1/2"));
  EXPECT_EQ(job.lease().seconds(), 2);
  EXPECT_EQ(job.lease().nanos(), 500'000'000);
  request.lease_ms = 0;
  request.partition = 5;
  EXPECT_EQ(Parsed<v1::RegisterJobRequest>(EncodeRegister(request, "")).partition(), 5u);
  EXPECT_FALSE(Parsed<v1::RegisterJobRequest>(EncodeRegister(request, "")).has_lease());

  v1::Job answer;
  uint64_t id = 0;
  answer.set_id("18446744073709551615");
  ASSERT_TRUE(DecodeJobId(answer.SerializeAsString(), id));
  EXPECT_EQ(id, ~uint64_t{0});
  for (const char* bad : {"", "x", "1x", "-1", "18446744073709551616"}) {
    answer.set_id(bad);
    id = 0;
    EXPECT_FALSE(DecodeJobId(answer.SerializeAsString(), id)) << bad;
  }
  EXPECT_EQ(Parsed<v1::GetTreeRequest>(EncodeId(41)).id(), "41");
  EXPECT_EQ(Parsed<v1::ReleaseTreeRequest>(EncodeId(41)).id(), "41");
  EXPECT_EQ(Parsed<v1::EndJobRequest>(EncodeId(41)).id(), "41");
}

TEST(MessagesTest, RequestsOfTrees) {
  coppice_tree_request request{};
  request.job = 7;
  request.bytes = 300;
  request.type = COPPICE_TREE_TYPE_II;
  request.width = 4;
  request.max_trees = 14;
  auto tree = Parsed<v1::CreateTreeRequest>(EncodeTreeRequest(request, "id"));
  EXPECT_EQ(tree.job_id(), "7");
  EXPECT_EQ(tree.request_id(), "id");
  EXPECT_EQ(tree.operation(), v1::OPERATION_ALLREDUCE);
  ASSERT_EQ(tree.sizes_size(), 1);
  EXPECT_EQ(tree.sizes(0).bytes(), 300u);
  EXPECT_EQ(tree.type(), v1::TREE_TYPE_II);
  EXPECT_EQ(tree.width(), 4u);
  EXPECT_EQ(tree.max_trees(), 14u);
  EXPECT_EQ(tree.ranks_size() + tree.rank_ranges_size(), 0);

  const std::pair<coppice_operation, v1::Operation> operations[] = {
      {COPPICE_OPERATION_BARRIER, v1::OPERATION_BARRIER},
      {COPPICE_OPERATION_BCAST, v1::OPERATION_BCAST},
      {COPPICE_OPERATION_REDUCE, v1::OPERATION_REDUCE}};
  for (const auto& [ours, theirs] : operations) {
    request.operation = ours;
    EXPECT_EQ(Parsed<v1::CreateTreeRequest>(EncodeTreeRequest(request, "")).operation(), theirs);
  }
  const uint32_t even[] = {2, 4, 6, 8}, odd[] = {5, 300, 70000, 1}, down[] = {3, 2, 1};
  request.ranks = even;
  request.rank_count = 4;
  tree = Parsed<v1::CreateTreeRequest>(EncodeTreeRequest(request, ""));
  ASSERT_EQ(tree.rank_ranges_size(), 1);
  EXPECT_EQ(tree.rank_ranges(0).first(), 2u);
  EXPECT_EQ(tree.rank_ranges(0).count(), 4u);
  EXPECT_EQ(tree.rank_ranges(0).stride(), 2u);
  request.ranks = odd;
  tree = Parsed<v1::CreateTreeRequest>(EncodeTreeRequest(request, ""));
  EXPECT_THAT(tree.ranks(), ElementsAre(5, 300, 70000, 1));
  request.ranks = down;
  request.rank_count = 3;
  tree = Parsed<v1::CreateTreeRequest>(EncodeTreeRequest(request, ""));
  EXPECT_THAT(tree.ranks(), ElementsAre(3, 2, 1));
}

v1::Tree SomeTree() {
  v1::Tree tree;
  tree.set_id("41");
  tree.set_type(v1::TREE_TYPE_II);
  tree.set_width(3);
  tree.set_rank_count(3);
  tree.mutable_predicted()->set_total_us(2.5);
  tree.set_reason("because");
  tree.set_revision(6);
  tree.set_root(3);
  tree.set_partition(0x7001);
  for (const int parent : {3, 3, 3, -1}) tree.mutable_nodes()->add_parents(parent);
  tree.mutable_nodes()->add_links(2);
  tree.mutable_nodes()->add_endpoints(99);
  return tree;
}

TEST(MessagesTest, TreesAndChanges) {
  TreeAnswer tree;
  ASSERT_TRUE(DecodeTree(SomeTree().SerializeAsString(), tree));
  EXPECT_EQ(tree.id, 41u);
  EXPECT_EQ(tree.type, 2u);
  EXPECT_EQ(tree.width, 3u);
  EXPECT_EQ(tree.ranks, 3u);
  EXPECT_EQ(tree.predicted_us, 2.5);
  EXPECT_EQ(tree.reason, "because");
  EXPECT_EQ(tree.revision, 6u);
  EXPECT_EQ(tree.root, 3u);
  EXPECT_EQ(tree.partition, 0x7001u);
  EXPECT_THAT(tree.parents, ElementsAre(3, 3, 3, -1));
  EXPECT_TRUE(IsWhole(tree));
  EXPECT_TRUE(tree.order.empty());
  EXPECT_TRUE(tree.key.empty());
  v1::Tree ordered = SomeTree();
  for (const uint32_t rank : {2, 0, 1}) ordered.mutable_nodes()->add_order(rank);
  TreeAnswer in_order;
  ASSERT_TRUE(DecodeTree(ordered.SerializeAsString(), in_order));
  EXPECT_THAT(in_order.order, ElementsAre(2, 0, 1));
  EXPECT_TRUE(IsWhole(in_order));
  for (const std::vector<int32_t>& order :
       {std::vector<int32_t>{0, 1}, {0, 1, 1}, {0, 1, 3}, {0, 1, -1}, {0, 1, 2, 2}}) {
    in_order.order = order;
    EXPECT_FALSE(IsWhole(in_order));
  }
  v1::Tree carried = SomeTree();
  carried.mutable_carriage()->set_key("0123456789abcdef");
  carried.mutable_carriage()->set_segment_bytes(4096);
  carried.mutable_carriage()->set_window(8);
  carried.mutable_carriage()->add_switch_addresses("10.0.0.7:18516");
  TreeAnswer known;
  ASSERT_TRUE(DecodeTree(carried.SerializeAsString(), known));
  EXPECT_EQ(known.key, "0123456789abcdef");
  EXPECT_EQ(known.segment_bytes, 4096u);
  EXPECT_EQ(known.window, 8u);
  EXPECT_THAT(known.switch_addresses, ElementsAre("10.0.0.7:18516"));
  EXPECT_TRUE(IsWhole(known));
  for (const auto spoil :
       {+[](TreeAnswer& of) { of.key.pop_back(); }, +[](TreeAnswer& of) { of.window = 0; },
        +[](TreeAnswer& of) { of.segment_bytes = 0; },
        +[](TreeAnswer& of) { of.switch_addresses.clear(); }}) {
    TreeAnswer wrong = known;
    spoil(wrong);
    EXPECT_FALSE(IsWhole(wrong));
  }

  v1::TreeChange change;
  change.set_kind(v1::TREE_CHANGE_KIND_REVISED);
  change.set_resume_token("t5");
  change.set_reason("a link");
  *change.mutable_tree() = SomeTree();
  ChangeAnswer read;
  ASSERT_TRUE(DecodeChange(change.SerializeAsString(), read));
  EXPECT_EQ(read.kind, static_cast<uint32_t>(ChangeKind::kRevised));
  EXPECT_EQ(read.resume_token, "t5");
  EXPECT_EQ(read.reason, "a link");
  EXPECT_EQ(read.tree, 41u);
  EXPECT_EQ(read.revision, 6u);
  const auto watch = Parsed<v1::WatchTreesRequest>(EncodeWatch(7, "t5"));
  EXPECT_EQ(watch.job_id(), "7");
  EXPECT_EQ(watch.resume_token(), "t5");
}

TEST(MessagesTest, Forests) {
  v1::Tree forest = SomeTree();
  forest.set_root(1);
  forest.mutable_nodes()->clear_parents();
  for (const int parent : {1, -1, 0}) forest.mutable_nodes()->add_parents(parent);
  for (const std::vector<int32_t>& parents : {std::vector<int32_t>{1, -1, 0}, {-1, 0, 0}}) {
    v1::ForestTree& one = *forest.add_forest();
    one.set_share(0.5);
    one.mutable_parents()->Add(parents.begin(), parents.end());
  }
  TreeAnswer trees;
  ASSERT_TRUE(DecodeTree(forest.SerializeAsString(), trees));
  ASSERT_EQ(trees.forest.size(), 2U);
  EXPECT_THAT(trees.forest[1].parents, ElementsAre(-1, 0, 0));
  EXPECT_EQ(trees.forest[1].share, 0.5);
  EXPECT_TRUE(IsWhole(trees));
  for (const auto spoil : {+[](TreeAnswer& of) { of.forest[1].share = 0.6; },
                           +[](TreeAnswer& of) { of.forest[1].share = 0; },
                           +[](TreeAnswer& of) { of.forest[1].share = std::nan(""); },
                           +[](TreeAnswer& of) { of.forest[1].parents[0] = 1; },
                           +[](TreeAnswer& of) { of.forest[1].parents[1] = 5; },
                           +[](TreeAnswer& of) { of.forest[1].parents.pop_back(); },
                           +[](TreeAnswer& of) { of.forest[0].parents = of.forest[1].parents; },
                           +[](TreeAnswer& of) { of.forest.resize(1); }}) {
    TreeAnswer wrong = trees;
    spoil(wrong);
    EXPECT_FALSE(IsWhole(wrong));
  }
}

TEST(MessagesTest, TimesOfCollectives) {
  std::vector<coppice_way_time> times;
  v1::Tree tree = SomeTree();
  v1::ReleaseTreeRequest expected;
  expected.set_id("7");
  expected.set_application("waves");
  constexpr std::pair<coppice_operation, v1::Operation> kOperations[] = {
      {COPPICE_OPERATION_ALLREDUCE, v1::OPERATION_ALLREDUCE},
      {COPPICE_OPERATION_BARRIER, v1::OPERATION_BARRIER},
      {COPPICE_OPERATION_BCAST, v1::OPERATION_BCAST},
      {COPPICE_OPERATION_REDUCE, v1::OPERATION_REDUCE}};
  for (const auto& [operation, number] : kOperations) {
    for (int way = COPPICE_WAY_NATIVE; way <= COPPICE_WAY_FOREST; ++way) {
      times.push_back({operation, 64, static_cast<coppice_way>(way), 0, 0.25 + way, 0});
      v1::WayTime& time = *expected.add_times();
      time.set_operation(number);
      time.set_length_bits(64);
      time.set_way(static_cast<v1::CollectiveWay>(way));
      time.set_us(0.25 + way);
      *tree.add_known() = time;
      tree.mutable_known()->rbegin()->set_spread(0.5);
      tree.mutable_known()->rbegin()->set_runs(3);
    }
  }
  EXPECT_EQ(EncodeRelease(7, "waves", times.data(), static_cast<uint32_t>(times.size())),
            expected.SerializeAsString());
  EXPECT_EQ(EncodeRelease(7, "", nullptr, 0), EncodeId(7));
  // What this release does not know is left out.
  const v1::WayTime good = tree.known(0);
  for (const auto spoil :
       {+[](v1::WayTime& of) { of.set_way(static_cast<v1::CollectiveWay>(7)); },
        +[](v1::WayTime& of) { of.clear_way(); },
        +[](v1::WayTime& of) { of.set_operation(static_cast<v1::Operation>(9)); },
        +[](v1::WayTime& of) { of.set_us(0); }, +[](v1::WayTime& of) { of.set_us(std::nan("")); },
        +[](v1::WayTime& of) { of.set_spread(-1); },
        +[](v1::WayTime& of) { of.set_length_bits(65); }}) {
    spoil(*tree.add_known() = good);
  }
  TreeAnswer answer;
  ASSERT_TRUE(DecodeTree(tree.SerializeAsString(), answer));
  ASSERT_EQ(answer.known.size(), times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(answer.known[i].operation, times[i].operation);
    EXPECT_EQ(answer.known[i].way, times[i].way);
    EXPECT_EQ(answer.known[i].length_bits, 64U);
    EXPECT_EQ(answer.known[i].us, times[i].us);
    EXPECT_EQ(answer.known[i].spread, 0.5);
    EXPECT_EQ(answer.known[i].runs, 3U);
  }
}

TEST(MessagesTest, NodesThatAreNoTreeAreSeen) {
  const auto whole = [](std::vector<int32_t> parents, uint32_t ranks, uint32_t root) {
    TreeAnswer tree;
    tree.parents = std::move(parents);
    tree.ranks = ranks;
    tree.root = root;
    return IsWhole(tree);
  };
  EXPECT_TRUE(whole({-1}, 1, 0));
  EXPECT_TRUE(whole({1, 2, -1, 2}, 3, 2));
  EXPECT_FALSE(whole({}, 0, 0));
  EXPECT_FALSE(whole({-1}, 2, 0));        // fewer nodes than ranks
  EXPECT_FALSE(whole({-1, 0}, 2, 2));     // no such root
  EXPECT_FALSE(whole({-1, 0}, 2, 1));     // not the root
  EXPECT_FALSE(whole({-1, -1}, 2, 0));    // two roots
  EXPECT_FALSE(whole({-1, 2, 1}, 3, 0));  // a ring
  EXPECT_FALSE(whole({-1, 1}, 2, 0));     // a ring of one
  EXPECT_FALSE(whole({-1, 7}, 2, 0));     // no such parent
  EXPECT_FALSE(whole({-1, -7}, 2, 0));
}

const uint32_t kFrom[] = {0, 1}, kTo[] = {1, 200};
const double kBytes[] = {1.5, 0};

TEST(MessagesTest, Maps) {
  const char* const hosts[] = {"a", "b"};
  coppice_map_request request{};
  request.job = 9;
  request.rank_count = 201;
  request.pair_count = 2;
  request.from = kFrom;
  request.to = kTo;
  request.bytes = kBytes;
  request.algorithm = "auto";
  request.budget_ms = 250;
  request.seed = 5;
  auto map = Parsed<v1::MapRanksRequest>(EncodeMap(request));
  EXPECT_EQ(map.task().job_id(), "9");
  EXPECT_EQ(map.task().pattern().rank_count(), 201u);
  EXPECT_THAT(map.task().pattern().from(), ElementsAre(0, 1));
  EXPECT_THAT(map.task().pattern().to(), ElementsAre(1, 200));
  EXPECT_THAT(map.task().pattern().bytes(), ElementsAre(1.5, 0));
  EXPECT_EQ(map.task().pattern().messages_size(), 0);
  EXPECT_EQ(map.algorithm(), "auto");
  EXPECT_EQ(map.budget().nanos(), 250'000'000);
  EXPECT_EQ(map.seed(), 5u);
  request.hosts = hosts;
  request.host_count = 2;
  request.ranks_per_host = 8;
  request.pattern_name = "app";
  map = Parsed<v1::MapRanksRequest>(EncodeMap(request));
  EXPECT_EQ(map.task().job_id(), "");
  EXPECT_THAT(map.task().hosts(), ElementsAre("a", "b"));
  EXPECT_EQ(map.task().ranks_per_host(), 8u);
  EXPECT_EQ(map.task().pattern_name(), "app");
  EXPECT_FALSE(map.task().has_pattern());
}

TEST(MessagesTest, Patterns) {
  const double messages[] = {3, 4};
  coppice_pattern pattern{};
  pattern.name = "app";
  pattern.rank_count = 201;
  pattern.pair_count = 2;
  pattern.from = kFrom;
  pattern.to = kTo;
  pattern.bytes = kBytes;
  pattern.messages = messages;
  const auto put = Parsed<v1::PutPatternRequest>(EncodePattern(pattern));
  EXPECT_EQ(put.name(), "app");
  EXPECT_THAT(put.pattern().messages(), ElementsAre(3, 4));
}

TEST(MessagesTest, Orders) {
  v1::MapRanksUpdate update;
  update.mutable_progress()->set_score(0.9);
  OrderAnswer order;
  ASSERT_TRUE(DecodeOrder(update.SerializeAsString(), order));
  EXPECT_TRUE(order.positions.empty());
  for (const uint32_t position : {2u, 0u, 300u}) {
    update.mutable_result()->add_permutation(position);
  }
  update.mutable_result()->set_score(0.25);
  update.mutable_result()->set_reason("because");
  ASSERT_TRUE(DecodeOrder(update.SerializeAsString(), order));
  EXPECT_THAT(order.positions, ElementsAre(2, 0, 300));
  EXPECT_EQ(order.score, 0.25);
  EXPECT_EQ(order.reason, "because");
}

// Nothing is read beyond the end, and no list grows beyond what was sent.
TEST(MessagesTest, AnythingMayArrive) {
  std::mt19937_64 random(TestSeed());
  v1::TreeChange change;
  change.set_kind(v1::TREE_CHANGE_KIND_GRANTED);
  *change.mutable_tree() = SomeTree();
  v1::LocalReply reply;
  reply.set_call(3);
  reply.mutable_end()->set_message("some words");
  v1::MapRanksUpdate update;
  for (int i = 0; i < 20; ++i) update.mutable_result()->add_permutation(i * 1000);
  const std::string seeds[] = {change.SerializeAsString(), reply.SerializeAsString(),
                               update.SerializeAsString(), SomeTree().SerializeAsString()};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seeds[random() % 4];
    for (uint64_t i = random() % 4; i > 0; --i) text[random() % text.size()] ^= random() % 256;
    text.resize(random() % (text.size() + 1));
    AgentReply any_reply;
    AgentFacts facts;
    uint64_t job = 0;
    TreeAnswer tree;
    ChangeAnswer any_change;
    OrderAnswer order;
    DecodeReply(text, any_reply);
    DecodeAgent(text, facts);
    DecodeJobId(text, job);
    if (DecodeTree(text, tree)) IsWhole(tree);
    DecodeChange(text, any_change);
    DecodeOrder(text, order);
    EXPECT_LE(tree.parents.size(), text.size());
    EXPECT_LE(order.positions.size(), text.size());
  }
}

}  // namespace
}  // namespace coppice::messages_test
