// One real switch on loopback: who is let in, what is refused and counted, and what a stranger, a
// member that does not read, and a member that goes can do to others.
#include "agents/switch/switch_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/write.hpp>
#include <random>

#include "tests/support/tier.h"
#include "tests/unit/agents/switch/loopback_tree.h"

namespace coppice::switch_server_test {
namespace {

constexpr Group kTree{5, 2};

// Two members of one tree, both welcome.
struct Pair {
  explicit Pair(asio::io_context& loop, SwitchServer& server, const EntrySpec& spec)
      : io(loop),
        first(loop, server.port(), spec.group, 0, spec.key),
        second(loop, server.port(), spec.group, 1, spec.key) {
    EXPECT_TRUE(RunUntil(io, [this] { return first.is_welcome && second.is_welcome; }));
  }
  // A sum of both, right at both.
  void Sum(uint64_t sequence) {
    const size_t before = first.results.size();
    first.Contribute(sequence, 0, Int64s({1, 2}));
    second.Contribute(sequence, 0, Int64s({30, 40}));
    ASSERT_TRUE(RunUntil(
        io, [&] { return first.results.size() > before && second.results.size() > before; }));
    EXPECT_EQ(first.results.back().second, Int64s({31, 42}));
    EXPECT_EQ(second.results.back().second, Int64s({31, 42}));
  }

  asio::io_context& io;
  LoopbackMember first, second;
};

TEST(SwitchServer, CarriesCollectives) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  Pair pair(io, *server, spec);
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) pair.Sum(sequence);
  EXPECT_EQ(server->Numbers().counters.collectives, 20);
  EXPECT_EQ(server->Numbers().counters.bytes_down, 20 * 2 * 16);
  // A result that is not wanted comes without its payload.
  pair.first.Contribute(21, 0, Int64s({1}), ReductionOperation::kSum, ElementType::kInt64, false);
  pair.second.Contribute(21, 0, Int64s({1}));
  ASSERT_TRUE(RunUntil(io, [&] { return pair.second.results.size() == 21; }));
  ASSERT_TRUE(RunUntil(io, [&] { return pair.first.results.size() == 21; }));
  EXPECT_EQ(pair.first.results.back().second, "");
  EXPECT_EQ(pair.second.results.back().second, Int64s({2}));
  FrameHeader ping;
  ping.kind = FrameKind::kPing;
  ping.group = kTree;
  pair.first.Send(ping, "");
  EXPECT_TRUE(RunUntil(io, [&] { return pair.first.pongs == 1; }));
  EXPECT_THAT(server->Numbers().refusals, testing::IsEmpty());
}

TEST(SwitchServer, LetsInWhoHasTheKeyAndTellsOthersWhy) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  const auto refused = [&](Group group, uint32_t child, LinkKey key) {
    LoopbackMember member(io, server->port(), group, child, key);
    EXPECT_TRUE(RunUntil(io, [&] { return member.is_ended; }));
    EXPECT_FALSE(member.is_welcome);
    return member.refusal;
  };
  LinkKey wrong = spec.key;
  wrong[3] ^= 1;
  EXPECT_EQ(refused(kTree, 0, wrong), Refusal::kWrongKey);
  EXPECT_EQ(refused({5, 1}, 0, spec.key), Refusal::kStaleRevision);
  EXPECT_EQ(refused({6, 1}, 0, spec.key), Refusal::kNoSuchTree);
  EXPECT_EQ(refused(kTree, 2, spec.key), Refusal::kNoSuchChild);
  LoopbackMember member(io, server->port(), kTree, 0, spec.key);
  EXPECT_TRUE(RunUntil(io, [&] { return member.is_welcome; }));
  EXPECT_EQ(refused(kTree, 0, spec.key), Refusal::kChildTaken);
  EXPECT_TRUE(member.link().is_open());
  for (const Refusal refusal : {Refusal::kWrongKey, Refusal::kStaleRevision, Refusal::kNoSuchTree,
                                Refusal::kNoSuchChild, Refusal::kChildTaken}) {
    EXPECT_EQ(RefusalsOf(*server, refusal), 1) << RefusalName(refusal);
  }
}

TEST(SwitchServer, RefusesAMemberThatSendsSomethingElseAndBreaksItsTreeAlone) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec other_spec = LoopbackEntry({9, 1}, 2);
  ASSERT_TRUE(server->Install(other_spec).ok());
  Pair other(io, *server, other_spec);
  uint64_t broken = 0, sequence = 1;
  std::vector<Group> told;
  server->OnBroken([&](const Group& group) { told.push_back(group); });
  const auto refused = [&](const std::function<void(LoopbackMember&)>& send, size_t results = 1) {
    const EntrySpec spec = LoopbackEntry({5, static_cast<uint32_t>(++broken)}, 2);
    EXPECT_TRUE(server->Install(spec).ok());
    Pair pair(io, *server, spec);
    pair.Sum(1);
    pair.second.Contribute(2, 0, Int64s({1}));
    send(pair.first);
    EXPECT_TRUE(RunUntil(io, [&] { return pair.first.is_ended && pair.second.is_ended; }));
    EXPECT_EQ(pair.second.refusal, Refusal::kBroken);
    EXPECT_EQ(pair.second.results.size(), results);
    EXPECT_EQ(server->Numbers().broken, broken);
    other.Sum(sequence++);
    return pair.first.refusal;
  };
  EXPECT_EQ(refused([](LoopbackMember& m) { m.Contribute(1, 0, Int64s({1})); }), Refusal::kTwice);
  EXPECT_EQ(refused([](LoopbackMember& m) { m.Contribute(3, 0, Int64s({1})); }),
            Refusal::kOutOfTurn);
  EXPECT_EQ(refused([](LoopbackMember& m) {
              m.Contribute(2, 0, Int64s({1, 2}));
            }),
            Refusal::kOtherCollective);
  EXPECT_EQ(refused([](LoopbackMember& m) { m.Contribute(2, 0, "abc"); }), Refusal::kBadLength);
  EXPECT_EQ(refused([](LoopbackMember& m) {
              m.Contribute(2, 0, Int64s({1}), ReductionOperation::kBitwiseAnd, ElementType::kHalf);
            }),
            Refusal::kBadType);
  EXPECT_EQ(refused([](LoopbackMember& m) {
              FrameHeader header;
              header.kind = FrameKind::kHello;
              m.Send(header, std::string(16, 'x'));
            }),
            Refusal::kMalformed);
  EXPECT_EQ(refused([](LoopbackMember& m) { m.Contribute(2, 0, std::string(1'032, 'x')); }),
            Refusal::kMalformed);  // longer than any frame of this tree
  EXPECT_EQ(refused(
                [](LoopbackMember& m) {
                  for (uint32_t segment = 0; segment < 6; ++segment) {
                    m.Contribute(2, segment, Int64s({1}));
                  }
                },
                2),  // the first of them was right
            Refusal::kOutsideWindow);
  ASSERT_TRUE(RunUntil(io, [&] { return told.size() == broken; }));
  EXPECT_EQ(told.back(), (Group{5, static_cast<uint32_t>(broken)}));
}

TEST(SwitchServer, AMemberThatGoesStopsItsTreeAndNoOther) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2), other_spec = LoopbackEntry({9, 1}, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  ASSERT_TRUE(server->Install(other_spec).ok());
  Pair pair(io, *server, spec), other(io, *server, other_spec);
  pair.Sum(1);
  pair.second.Contribute(2, 0, Int64s({1}));
  ASSERT_TRUE(RunUntil(io, [&] { return server->table().Find(5)->segments_under_way() == 1; }));
  pair.first.link().Close();
  ASSERT_TRUE(RunUntil(io, [&] { return pair.second.is_ended; }));
  EXPECT_EQ(pair.second.refusal, Refusal::kBroken);
  EXPECT_EQ(server->Numbers().broken, 1);
  LoopbackMember late(io, server->port(), kTree, 0, spec.key);
  ASSERT_TRUE(RunUntil(io, [&] { return late.is_ended; }));
  EXPECT_EQ(late.refusal, Refusal::kBroken);
  other.Sum(1);
}

TEST(SwitchServer, MembersThatEndOneAfterTheOtherBreakNothing) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  Pair pair(io, *server, spec);
  pair.Sum(1);
  pair.first.link().Close();
  ASSERT_TRUE(
      RunUntil(io, [&] { return server->table().Find(5)->health() == Entry::Health::kLeft; }));
  EXPECT_TRUE(pair.second.link().is_open());
  EXPECT_EQ(server->Numbers().broken, 0);
  // Who goes on hears of it.
  pair.second.Contribute(2, 0, Int64s({1}));
  ASSERT_TRUE(RunUntil(io, [&] { return pair.second.is_ended; }));
  EXPECT_EQ(pair.second.refusal, Refusal::kBroken);
  EXPECT_EQ(server->Numbers().broken, 1);
}

TEST(SwitchServer, WhoComesToATreeThatAnotherLeftHasItTold) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  std::vector<Group> told;
  server->OnBroken([&](const Group& group) { told.push_back(group); });
  Pair pair(io, *server, spec);
  pair.Sum(1);
  pair.first.link().Close();
  ASSERT_TRUE(
      RunUntil(io, [&] { return server->table().Find(5)->health() == Entry::Health::kLeft; }));
  LinkKey wrong = spec.key;
  wrong[0] ^= 1;
  LoopbackMember stranger(io, server->port(), kTree, 0, wrong);
  ASSERT_TRUE(RunUntil(io, [&] { return stranger.is_ended; }));
  EXPECT_EQ(server->Numbers().broken, 0);
  LoopbackMember again(io, server->port(), kTree, 0, spec.key);
  ASSERT_TRUE(RunUntil(io, [&] { return again.is_ended && !told.empty(); }));
  EXPECT_EQ(again.refusal, Refusal::kBroken);
  EXPECT_EQ(told.back(), kTree);
  EXPECT_EQ(server->Numbers().broken, 1);
}

TEST(SwitchServer, ARevisionTakesThePlaceOfTheLastAndRemovalEndsIt) {
  asio::io_context io;
  const auto server = LoopbackSwitch(io);
  const EntrySpec spec = LoopbackEntry(kTree, 2), next = LoopbackEntry({5, 3}, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  Pair pair(io, *server, spec);
  pair.Sum(1);
  ASSERT_TRUE(server->Install(next).ok());
  ASSERT_TRUE(RunUntil(io, [&] { return pair.first.is_ended && pair.second.is_ended; }));
  EXPECT_EQ(pair.first.refusal, Refusal::kStaleRevision);
  Pair again(io, *server, next);
  again.Sum(2);
  server->Remove(kTree);  // of another revision: nothing
  again.Sum(3);
  server->Keep({});
  ASSERT_TRUE(RunUntil(io, [&] { return again.first.is_ended && again.second.is_ended; }));
  EXPECT_EQ(again.first.refusal, Refusal::kRemoved);
  EXPECT_EQ(server->table().size(), 0);
  EXPECT_EQ(server->Numbers().counters.collectives, 3);
}

TEST(SwitchServer, AStrangersFloodIsBoundedAndMembersGoOn) {
  asio::io_context io;
  SwitchServer::Options options;
  options.strangers.max_strangers = 8;
  const auto server = LoopbackSwitch(io, options);
  const EntrySpec spec = LoopbackEntry(kTree, 2);
  ASSERT_TRUE(server->Install(spec).ok());
  Pair pair(io, *server, spec);
  std::mt19937_64 random(TestSeed());
  std::vector<asio::ip::tcp::socket> strangers;
  const int count = FullTier() ? 400 : 200;
  uint64_t sequence = 0;
  for (int i = 0; i < count; ++i) {
    strangers.push_back(ConnectedTo(io, server->port()));
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::error_code ignored;  // it may be sent away already
    asio::write(strangers.back(), asio::buffer(bytes), ignored);
    if (i % 20 == 0) pair.Sum(++sequence);
    ASSERT_LE(server->strangers(), 8);
  }
  pair.Sum(++sequence);
  ASSERT_TRUE(RunUntil(io, [&] {
    const uint64_t refused =
        RefusalsOf(*server, Refusal::kTooManyStrangers) + RefusalsOf(*server, Refusal::kMalformed);
    return refused + server->strangers() >= static_cast<uint64_t>(count);
  }));
  EXPECT_LE(server->strangers(), 8);
  EXPECT_GT(RefusalsOf(*server, Refusal::kMalformed), 0);
}

TEST(SwitchServer, WhoSaysNoHelloGoesInTime) {
  asio::io_context io;
  SwitchServer::Options options;
  options.strangers.hello_within = std::chrono::milliseconds(50);
  const auto server = LoopbackSwitch(io, options);
  const asio::ip::tcp::socket silent = ConnectedTo(io, server->port());
  ASSERT_TRUE(RunUntil(io, [&] { return server->strangers() == 1; }));
  ASSERT_TRUE(RunUntil(io, [&] { return server->strangers() == 0; }));
  EXPECT_EQ(RefusalsOf(*server, Refusal::kNoHello), 1);
}

// A member that contributes and never reads: the socket's buffers fill, then its tree breaks. The
// queue never holds more than the window.
TEST(SwitchServer, AMemberThatDoesNotReadBreaksItsTree) {
  asio::io_context io;
  SwitchServer::Options options;
  options.stall = std::chrono::milliseconds(200);
  const auto server = LoopbackSwitch(io, options);
  const EntrySpec spec = LoopbackEntry(kTree, 2, kMaxPayloadBytes, 16);
  ASSERT_TRUE(server->Install(spec).ok());
  LoopbackMember reader(io, server->port(), kTree, 0, spec.key);
  asio::ip::tcp::socket deaf = ConnectedTo(io, server->port());
  FrameHeader header;
  header.kind = FrameKind::kHello;
  header.group = kTree;
  header.child = 1;
  header.length = kKeyBytes;
  const auto send = [&](const std::string& payload) {
    header.length = static_cast<uint32_t>(payload.size());
    const auto bytes = EncodeHeader(header);
    auto whole = std::make_shared<std::string>(std::string(bytes.data(), bytes.size()) + payload);
    asio::async_write(deaf, asio::buffer(*whole), [whole](const std::error_code&, size_t) {});
  };
  send(std::string(spec.key.data(), spec.key.size()));
  ASSERT_TRUE(RunUntil(io, [&] { return reader.is_welcome; }));
  header.kind = FrameKind::kContribution;
  header.operation = ReductionOperation::kBitwiseOr;
  header.type = ElementType::kUint8;
  header.wants_result = true;
  const std::string segment(kMaxPayloadBytes, 'x');
  for (header.sequence = 1; !reader.is_ended && header.sequence < 10'000; ++header.sequence) {
    const size_t before = reader.results.size();
    reader.Contribute(header.sequence, 0, segment, header.operation, header.type);
    send(segment);
    ASSERT_TRUE(RunUntil(io, [&] { return reader.is_ended || reader.results.size() > before; }));
    reader.results.resize(1);
  }
  EXPECT_EQ(reader.refusal, Refusal::kBroken);
  EXPECT_EQ(RefusalsOf(*server, Refusal::kUnread), 1);
  EXPECT_GT(header.sequence, 2);
}

}  // namespace
}  // namespace coppice::switch_server_test
