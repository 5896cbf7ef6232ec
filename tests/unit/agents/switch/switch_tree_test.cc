// A tree of real switches on loopback, three levels high, with random members: every result is the
// fold of the contributions in the tree's order, bit for bit the same in every run; and a
// connection that is cut anywhere ends the collective for everybody, with no wrong result.
//
//                 root
//              /   |   \           one child of the root is a member
//         middle   m   middle
//         /    \        /   \      one child of the second is a member
//      leaf    leaf   leaf   m
//      m m m   m m    m m m
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "agents/switch/combine.h"
#include "agents/switch/switch_server.h"
#include "tests/support/tier.h"
#include "tests/unit/agents/switch/loopback_tree.h"

namespace coppice::switch_tree_test {
namespace {

using Op = ReductionOperation;
constexpr uint32_t kSegmentBytes = 256, kWindow = 3;

// A shape: a switch with children that are members (-1) or other switches, by number.
struct Shape {
  std::vector<int> children;
};
const std::vector<Shape> kShapes = {{{1, -1, 2}},   {{3, 4}},   {{5, -1}},
                                    {{-1, -1, -1}}, {{-1, -1}}, {{-1, -1, -1}}};
constexpr int kMembers = 10;

class Tree {
 public:
  Tree(asio::io_context& io, Group group, std::mt19937_64& random) : io_(io), group_(group) {
    for (size_t i = 0; i < kShapes.size(); ++i) switches_.push_back(LoopbackSwitch(io));
    Wire(0, std::nullopt);
    // In any order: who is there first waits for its parent.
    std::shuffle(specs_.begin(), specs_.end(), random);
    for (const auto& [number, spec] : specs_) EXPECT_TRUE(switches_[number]->Install(spec).ok());
    for (const auto& [number, child] : places_) {
      members_.push_back(std::make_unique<LoopbackMember>(io, switches_[number]->port(), group,
                                                          child, key_, kSegmentBytes));
    }
    EXPECT_EQ(members_.size(), kMembers);
    EXPECT_TRUE(RunUntil(io, [this] {
      return std::all_of(members_.begin(), members_.end(),
                         [](const auto& member) { return member->is_welcome; });
    }));
  }

  // By definition, in the order of the tree; `next` is the first member below.
  std::string Folded(int number, const std::vector<std::string>& payloads, Op operation,
                     ElementType type, size_t* next) const {
    std::string result;
    for (size_t child = 0; child < kShapes[number].children.size(); ++child) {
      const int below = kShapes[number].children[child];
      const std::string part =
          below < 0 ? payloads[(*next)++] : Folded(below, payloads, operation, type, next);
      if (operation == Op::kTake) {
        result += part;
      } else if (child == 0) {
        result = part;
      } else {
        Combine(operation, type, part, &result);
      }
    }
    return result;
  }

  bool IsEnded(size_t number) {
    return member(number).is_ended || !member(number).link().is_open();
  }
  LoopbackMember& member(size_t number) { return *members_[number]; }
  SwitchServer& at(size_t number) { return *switches_[number]; }
  void Stop(size_t number) { switches_[number].reset(); }
  asio::io_context& io() { return io_; }

 private:
  void Wire(size_t number, std::optional<EntryParent> parent) {
    EntrySpec spec = LoopbackEntry(group_, static_cast<uint32_t>(kShapes[number].children.size()),
                                   kSegmentBytes, kWindow);
    key_ = spec.key;
    spec.parent = std::move(parent);
    specs_.emplace_back(number, spec);
    const std::string address = absl::StrCat("127.0.0.1:", switches_[number]->port());
    for (uint32_t child = 0; child < spec.children; ++child) {
      const int below = kShapes[number].children[child];
      if (below < 0) {
        places_.emplace_back(number, child);
      } else {
        Wire(static_cast<size_t>(below), EntryParent{address, "", child});
      }
    }
  }

  asio::io_context& io_;
  const Group group_;
  LinkKey key_{};
  std::vector<std::unique_ptr<SwitchServer>> switches_;
  std::vector<std::pair<size_t, EntrySpec>> specs_;
  std::vector<std::pair<size_t, uint32_t>> places_;  // of members: switch and child
  std::vector<std::unique_ptr<LoopbackMember>> members_;
};

struct Collective {
  Op operation;
  ElementType type;
  std::vector<std::vector<std::string>> segments;  // payloads by member
  std::vector<bool> wants;                         // by member
};

Collective SomeCollective(std::mt19937_64& random) {
  Collective collective{Op::kNone, ElementType::kNone, {}, {}};
  while (!IsDefined(collective.operation, collective.type)) {
    collective.operation = static_cast<Op>(random() % (kLastOperation + 1));
    collective.type = static_cast<ElementType>(random() % (kLastElementType + 1));
  }
  const size_t element = ElementBytes(collective.type);
  const size_t giver = random() % kMembers;
  const bool is_reduce = random() % 3 == 0;
  for (uint64_t count = 1 + random() % 6; count > 0; --count) {
    const size_t bytes = random() % (kSegmentBytes / element + 1) * element;
    auto& payloads = collective.segments.emplace_back();
    for (size_t member = 0; member < kMembers; ++member) {
      payloads.emplace_back(collective.operation == Op::kTake && member != giver ? 0 : bytes, '\0');
      for (char& byte : payloads.back()) byte = static_cast<char>(random());
    }
  }
  for (size_t member = 0; member < kMembers; ++member) {
    collective.wants.push_back(!is_reduce || member == giver);
  }
  return collective;
}

// Members send what their window lets them, in a random order, with turns of the loop between.
// Until each has all its results, or its connection has ended. False: some ended.
bool RunCollective(
    Tree& tree, uint64_t sequence, const Collective& collective, std::mt19937_64& random,
    const std::function<void()>& at_each_step = [] {}) {
  const size_t segments = collective.segments.size();
  std::vector<size_t> sent(kMembers), before(kMembers);
  for (size_t i = 0; i < kMembers; ++i) before[i] = tree.member(i).results.size();
  const auto done = [&](size_t i) { return tree.member(i).results.size() - before[i]; };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    bool is_whole = true, is_over = true;
    for (size_t i = 0; i < kMembers; ++i) {
      const bool is_done = done(i) == segments;
      is_whole &= is_done;
      is_over &= is_done || tree.IsEnded(i);
    }
    if (is_over) return is_whole;
    EXPECT_LT(std::chrono::steady_clock::now(), until) << "hangs";
    if (std::chrono::steady_clock::now() > until) return false;
    const size_t i = random() % kMembers;
    if (sent[i] < segments && sent[i] - done(i) < kWindow) {
      const auto segment = static_cast<uint32_t>(sent[i]++);
      tree.member(i).Contribute(sequence, segment, collective.segments[segment][i],
                                collective.operation, collective.type, collective.wants[i]);
    }
    at_each_step();
    tree.io().restart();
    random() % 2 == 0 ? tree.io().poll_one() : tree.io().poll();
  }
}

// Whatever has come is right.
void ExpectRight(Tree& tree, uint64_t sequence, const Collective& collective) {
  for (size_t i = 0; i < kMembers; ++i) {
    for (const auto& [header, payload] : tree.member(i).results) {
      if (header.sequence != sequence) continue;
      size_t next = 0;
      const std::string wanted = collective.wants[i]
                                     ? tree.Folded(0, collective.segments[header.segment],
                                                   collective.operation, collective.type, &next)
                                     : std::string();
      ASSERT_EQ(payload, wanted) << "member " << i << " segment " << header.segment;
    }
  }
}

TEST(SwitchTree, EveryMemberHasTheFoldInTheOrderOfTheTree) {
  asio::io_context io;
  std::mt19937_64 random(TestSeed());
  Tree tree(io, {1, 1}, random);
  const uint64_t collectives = FullTier() ? 1'000 : 80;
  for (uint64_t sequence = 1; sequence <= collectives; ++sequence) {
    const Collective collective = SomeCollective(random);
    ASSERT_TRUE(RunCollective(tree, sequence, collective, random));
    ExpectRight(tree, sequence, collective);
  }
  for (size_t i = 0; i < kShapes.size(); ++i) {
    EXPECT_EQ(tree.at(i).Numbers().counters.collectives, collectives);
    EXPECT_THAT(tree.at(i).Numbers().refusals, testing::IsEmpty());
  }
}

TEST(SwitchTree, TheSameTreeGivesTheSameBitsInEveryRun) {
  std::mt19937_64 random(TestSeed());
  std::vector<Collective> programme;
  for (int i = 0; i < 20; ++i) programme.push_back(SomeCollective(random));
  std::vector<std::vector<std::pair<FrameHeader, std::string>>> runs;
  for (int run = 0; run < 3; ++run) {
    asio::io_context io;
    Tree tree(io, {1, 1}, random);
    for (size_t i = 0; i < programme.size(); ++i) {
      ASSERT_TRUE(RunCollective(tree, i + 1, programme[i], random));
    }
    runs.push_back(tree.member(0).results);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

// A member or a switch is ended at a random step. Nobody hangs, and nobody has a wrong result.
TEST(SwitchTree, ACutAnywhereStopsEverybodyAndNoResultIsWrong) {
  std::mt19937_64 random(TestSeed());
  int stopped = 0;
  for (int round = 0; round < (FullTier() ? 300 : 40); ++round) {
    asio::io_context io;
    Tree tree(io, {1, 1}, random);
    const Collective first = SomeCollective(random);
    ASSERT_TRUE(RunCollective(tree, 1, first, random));
    uint64_t steps = random() % 150;
    const bool is_member = random() % 2 == 0;
    const size_t victim = random() % (is_member ? kMembers : kShapes.size());
    const auto cut = [&] {
      if (steps-- != 0) return;
      is_member ? tree.member(victim).link().Close() : tree.Stop(victim);
    };
    // The cut may come after the end; then the next collective meets it.
    bool is_whole = true;
    std::vector<Collective> run = {first};
    while (is_whole) {
      run.push_back(SomeCollective(random));
      is_whole = RunCollective(tree, run.size(), run.back(), random, cut);
      ASSERT_LT(run.size(), 200);
    }
    ++stopped;
    // Who had all its results may have heard of nothing yet, and does now.
    const size_t before = run.size();
    run.push_back(SomeCollective(random));
    EXPECT_FALSE(RunCollective(tree, run.size(), run.back(), random));
    for (size_t i = 0; i < kMembers; ++i) {
      EXPECT_TRUE(tree.IsEnded(i)) << "member " << i;
      for (const auto& result : tree.member(i).results) EXPECT_LE(result.first.sequence, before);
    }
    for (size_t i = 0; i < run.size(); ++i) ExpectRight(tree, i + 1, run[i]);
    for (size_t i = 0; i < kMembers; ++i) {
      // Ended without a word only by the switch that was stopped, or by itself.
      EXPECT_THAT(tree.member(i).refusal, testing::AnyOf(Refusal::kNone, Refusal::kBroken));
    }
  }
  EXPECT_GT(stopped, 0);
}

TEST(SwitchTree, AParentThatIsInstalledLateIsFound) {
  asio::io_context io;
  const auto root = LoopbackSwitch(io), leaf = LoopbackSwitch(io);
  EntrySpec top = LoopbackEntry({3, 1}, 1), below = LoopbackEntry({3, 1}, 1);
  below.parent = EntryParent{absl::StrCat("127.0.0.1:", root->port()), "", 0};
  ASSERT_TRUE(leaf->Install(below).ok());
  LoopbackMember member(io, leaf->port(), {3, 1}, 0, below.key);
  member.Contribute(1, 0, Int64s({7}));
  ASSERT_TRUE(RunUntil(io, [&] { return RefusalsOf(*root, Refusal::kNoSuchTree) >= 2; }));
  EXPECT_TRUE(member.results.empty());
  ASSERT_TRUE(root->Install(top).ok());
  ASSERT_TRUE(RunUntil(io, [&] { return member.results.size() == 1; }));
  EXPECT_EQ(member.results.front().second, Int64s({7}));
}

TEST(SwitchTree, AParentThatIsNotThereInTimeBreaksTheTree) {
  asio::io_context io;
  SwitchServer::Options options;
  options.welcome_within = std::chrono::milliseconds(100);
  const auto root = LoopbackSwitch(io), leaf = LoopbackSwitch(io, options);
  EntrySpec below = LoopbackEntry({3, 1}, 1);
  below.parent = EntryParent{absl::StrCat("127.0.0.1:", root->port()), "", 0};
  ASSERT_TRUE(leaf->Install(below).ok());
  LoopbackMember member(io, leaf->port(), {3, 1}, 0, below.key);
  member.Contribute(1, 0, Int64s({7}));
  ASSERT_TRUE(RunUntil(io, [&] { return member.refusal != Refusal::kNone; }));
  EXPECT_EQ(member.refusal, Refusal::kBroken);
}

}  // namespace
}  // namespace coppice::switch_tree_test
