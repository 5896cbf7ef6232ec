// An entry against a slow oracle: whatever the order of arrival, each segment is combined in the
// order of the children, bit for bit, once; and what may not come is refused, by its reason.
#include "agents/switch/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "agents/switch/combine.h"
#include "tests/support/tier.h"

namespace coppice::entry_test {
namespace {

using Op = ReductionOperation;
constexpr Group kGroup{77, 3};

EntrySpec SpecOf(uint32_t children, uint32_t window, bool has_parent = false) {
  EntrySpec spec;
  spec.group = kGroup;
  spec.children = children;
  spec.segment_bytes = 64;
  spec.window = window;
  if (has_parent) spec.parent = EntryParent{"10.0.0.1:1", "", 5};
  return spec;
}

Entry Connected(const EntrySpec& spec) {
  Entry entry(spec);
  for (uint32_t child = 0; child < spec.children; ++child) {
    EXPECT_EQ(entry.Connect(child, 0), Refusal::kNone);
  }
  return entry;
}

struct Piece {
  FrameHeader header;
  std::string payload;
};

Piece Contribution(uint32_t child, uint64_t sequence, uint32_t segment, std::string payload,
                   Op operation = Op::kSum, ElementType type = ElementType::kFloat) {
  Piece piece;
  piece.header.kind = FrameKind::kContribution;
  piece.header.operation = operation;
  piece.header.type = type;
  piece.header.wants_result = true;
  piece.header.group = kGroup;
  piece.header.child = child;
  piece.header.sequence = sequence;
  piece.header.segment = segment;
  piece.header.length = static_cast<uint32_t>(payload.size());
  piece.payload = std::move(payload);
  return piece;
}

std::string Floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values)
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

Refusal Give(Entry& entry, const Piece& piece) {
  const Entry::Answer answer = entry.Contribute(piece.header.child, piece.header, piece.payload);
  EXPECT_LE(entry.held_bytes(), entry.spec().MemoryBytes());
  return answer.refusal;
}

// What all children send, in the order in which each of them does: programme[k][child].
std::vector<std::vector<Piece>> SomeProgramme(std::mt19937_64& random, uint32_t children) {
  std::vector<std::vector<Piece>> programme;
  uint64_t sequence = 0;
  for (int collective = 0; collective < 6; ++collective) {
    sequence += 1 + random() % 3;
    Op operation = Op::kNone;
    ElementType type = ElementType::kNone;
    while (!IsDefined(operation, type)) {
      operation = static_cast<Op>(random() % (kLastOperation + 1));
      type = static_cast<ElementType>(random() % (kLastElementType + 1));
    }
    const uint32_t segments = 1 + random() % 5;
    for (uint32_t segment = 0; segment < segments; ++segment) {
      const size_t bytes = random() % (64 / ElementBytes(type) + 1) * ElementBytes(type);
      const uint32_t giver = random() % (children + 1);  // of what is taken; perhaps nobody
      std::vector<Piece>& pieces = programme.emplace_back();
      for (uint32_t child = 0; child < children; ++child) {
        std::string payload(operation == Op::kTake && child != giver ? 0 : bytes, '\0');
        for (char& byte : payload) byte = static_cast<char>(random());
        pieces.push_back(Contribution(child, sequence, segment, payload, operation, type));
        pieces.back().header.wants_result = random() % 3 != 0;
      }
    }
  }
  return programme;
}

// By definition: the first child's, then each next one's in turn.
std::string Folded(const std::vector<Piece>& pieces) {
  std::string result = pieces.front().payload;
  for (size_t child = 1; child < pieces.size(); ++child) {
    const FrameHeader& header = pieces[child].header;
    if (header.operation == Op::kTake) {
      result += pieces[child].payload;
    } else {
      Combine(header.operation, header.type, pieces[child].payload, &result);
    }
  }
  return result;
}

// Runs a programme at one root in a random order; what came down, by segment.
std::vector<std::string> RunInRandomOrder(const std::vector<std::vector<Piece>>& programme,
                                          uint32_t children, uint32_t window,
                                          std::mt19937_64& random) {
  Entry entry = Connected(SpecOf(children, window));
  std::vector<size_t> sent(children);
  std::vector<std::string> results;
  while (results.size() < programme.size()) {
    const uint32_t child = random() % children;
    if (sent[child] == programme.size()) continue;
    const Piece& piece = programme[sent[child]][child];
    if (sent[child] - results.size() >= window) continue;  // as a member waits
    const Entry::Answer answer = entry.Contribute(child, piece.header, piece.payload);
    EXPECT_EQ(answer.refusal, Refusal::kNone) << RefusalName(answer.refusal);
    if (answer.refusal != Refusal::kNone) return results;
    EXPECT_LE(entry.held_bytes(), entry.spec().MemoryBytes());
    EXPECT_LE(entry.segments_under_way(), window);
    EXPECT_FALSE(answer.up);
    ++sent[child];
    const auto& pieces = programme[results.size()];
    const bool is_last =
        std::all_of(sent.begin(), sent.end(), [&](size_t count) { return count > results.size(); });
    EXPECT_EQ(answer.down.has_value(), is_last);
    if (!answer.down) continue;
    EXPECT_EQ(answer.down->header.kind, FrameKind::kResult);
    EXPECT_EQ(answer.down->header.child, kFromParent);
    EXPECT_EQ(answer.down->header.sequence, pieces.front().header.sequence);
    EXPECT_EQ(answer.down->header.segment, pieces.front().header.segment);
    for (uint32_t other = 0; other < children; ++other) {
      EXPECT_EQ(answer.down->wants[other], pieces[other].header.wants_result);
    }
    results.push_back(*answer.down->payload);
  }
  EXPECT_EQ(entry.held_bytes(), 0);
  return results;
}

TEST(Entry, CombinesInTheOrderOfItsChildrenWhateverTheOrderOfArrival) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 2'000 : 200); ++round) {
    const uint32_t children = 1 + random() % 6, window = 1 + random() % 4;
    const auto programme = SomeProgramme(random, children);
    std::vector<std::string> wanted;
    for (const auto& pieces : programme) wanted.push_back(Folded(pieces));
    for (int order = 0; order < 3; ++order) {
      ASSERT_EQ(RunInRandomOrder(programme, children, window, random), wanted);
    }
  }
}

TEST(Entry, SumsWhoseOrderShowsHaveTheSameBits) {
  // (1e8 + 1) - 1e8 is 0 in float; 1e8 - 1e8 + 1 is 1.
  const std::vector<float> values = {1e8F, 1, -1e8F};
  std::vector<uint32_t> order = {0, 1, 2};
  do {
    Entry entry = Connected(SpecOf(3, 1));
    std::string result;
    for (const uint32_t child : order) {
      const Piece piece = Contribution(child, 1, 0, Floats({values[child]}));
      const Entry::Answer answer = entry.Contribute(child, piece.header, piece.payload);
      if (answer.down) result = *answer.down->payload;
    }
    EXPECT_EQ(result, Floats({0}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Entry, PassesUpWhatIsWantedAndDownWhatComes) {
  Entry entry = Connected(SpecOf(2, 2, /*has_parent=*/true));
  Piece first = Contribution(0, 4, 0, Floats({1, 2})),
        second = Contribution(1, 4, 0, Floats({3, 4}));
  first.header.wants_result = false;
  EXPECT_EQ(Give(entry, first), Refusal::kNone);
  const Entry::Answer answer = entry.Contribute(1, second.header, second.payload);
  ASSERT_TRUE(answer.up);
  EXPECT_FALSE(answer.down);
  EXPECT_EQ(answer.up->header.child, 5);
  EXPECT_TRUE(answer.up->header.wants_result);
  EXPECT_EQ(*answer.up->payload, Floats({4, 6}));
  FrameHeader result = answer.up->header;
  result.kind = FrameKind::kResult;
  result.child = kFromParent;
  const Entry::Answer down = entry.TakeResult(result, Floats({9, 9}));
  ASSERT_TRUE(down.down);
  EXPECT_EQ(*down.down->payload, Floats({9, 9}));
  EXPECT_EQ(down.down->wants, std::vector<bool>({false, true}));
  EXPECT_EQ(entry.counters().collectives, 1);
  EXPECT_EQ(entry.counters().segments_up, 2);
  EXPECT_EQ(entry.counters().bytes_up, 16);
  EXPECT_EQ(entry.counters().segments_down, 2);
  EXPECT_EQ(entry.counters().bytes_down, 8);
}

TEST(Entry, RefusesResultsThatDoNotFit) {
  const auto result_of = [](Refusal wanted, const auto& change, std::string payload, bool wants) {
    Entry entry = Connected(SpecOf(1, 2, /*has_parent=*/true));
    Piece piece = Contribution(0, 4, 0, Floats({1, 2}));
    piece.header.wants_result = wants;
    EXPECT_EQ(Give(entry, piece), Refusal::kNone);
    FrameHeader header = piece.header;
    change(header);
    EXPECT_EQ(entry.TakeResult(header, payload).refusal, wanted);
  };
  const auto nothing = [](FrameHeader&) {};
  result_of(Refusal::kNone, nothing, Floats({1, 2}), true);
  result_of(Refusal::kBadLength, nothing, Floats({1}), true);
  result_of(Refusal::kBadLength, nothing, "", true);
  result_of(Refusal::kBadLength, nothing, Floats({1, 2}), false);
  result_of(Refusal::kNone, nothing, "", false);
  result_of(
      Refusal::kOutOfTurn, [](FrameHeader& h) { h.sequence = 5; }, Floats({1, 2}), true);
  result_of(
      Refusal::kOutOfTurn, [](FrameHeader& h) { h.segment = 1; }, Floats({1, 2}), true);
  result_of(
      Refusal::kOtherCollective, [](FrameHeader& h) { h.operation = Op::kMaximum; }, Floats({1, 2}),
      true);
  result_of(
      Refusal::kStaleRevision, [](FrameHeader& h) { h.group.revision = 2; }, Floats({1, 2}), true);
  result_of(
      Refusal::kNoSuchTree, [](FrameHeader& h) { h.group.tree = 2; }, Floats({1, 2}), true);
  Entry entry = Connected(SpecOf(2, 2, /*has_parent=*/true));
  EXPECT_EQ(entry.TakeResult(Contribution(0, 1, 0, "").header, "").refusal, Refusal::kOutOfTurn);
  EXPECT_EQ(Give(entry, Contribution(0, 1, 0, Floats({1}))), Refusal::kNone);
  EXPECT_EQ(entry.TakeResult(Contribution(0, 1, 0, "").header, Floats({1})).refusal,
            Refusal::kOutOfTurn);  // before it went up
}

TEST(Entry, RefusesWhatMayNotComeByItsReason) {
  const auto after = [](const std::vector<Piece>& before, const Piece& piece) {
    Entry entry = Connected(SpecOf(3, 2));
    for (const Piece& each : before) EXPECT_EQ(Give(entry, each), Refusal::kNone);
    const EntryCounters counters = entry.counters();
    const Refusal refusal = Give(entry, piece);
    EXPECT_EQ(entry.counters().segments_up, counters.segments_up + (refusal == Refusal::kNone));
    return refusal;
  };
  const auto of = [](uint32_t child, uint64_t sequence, uint32_t segment) {
    return Contribution(child, sequence, segment, Floats({1}));
  };
  EXPECT_EQ(after({}, of(3, 1, 0)), Refusal::kNoSuchChild);
  EXPECT_EQ(after({}, of(0, 0, 0)), Refusal::kOutOfTurn);
  EXPECT_EQ(after({}, of(0, 1, 1)), Refusal::kOutOfTurn);
  EXPECT_EQ(after({}, of(0, 9, 0)), Refusal::kNone);
  EXPECT_EQ(after({of(0, 1, 0)}, of(0, 1, 0)), Refusal::kTwice);
  EXPECT_EQ(after({of(0, 2, 0)}, of(0, 1, 0)), Refusal::kTwice);
  EXPECT_EQ(after({of(0, 1, 0)}, of(0, 1, 2)), Refusal::kOutOfTurn);
  EXPECT_EQ(after({of(0, 1, 0)}, of(0, 2, 1)), Refusal::kOutOfTurn);
  EXPECT_EQ(after({of(0, 1, 0), of(0, 1, 1)}, of(0, 1, 2)), Refusal::kOutsideWindow);
  EXPECT_EQ(after({of(0, 1, 0), of(0, 1, 1), of(1, 1, 0)}, of(2, 1, 0)), Refusal::kNone);
  EXPECT_EQ(after({of(0, 1, 0)}, of(1, 2, 0)), Refusal::kOutOfTurn);
  EXPECT_EQ(after({of(0, 1, 0)}, Contribution(1, 1, 0, Floats({1, 2}))), Refusal::kOtherCollective);
  EXPECT_EQ(after({of(0, 1, 0)}, Contribution(1, 1, 0, Floats({1}), Op::kMaximum)),
            Refusal::kOtherCollective);
  EXPECT_EQ(after({of(0, 1, 0)}, Contribution(1, 1, 0, Floats({1}), Op::kSum, ElementType::kInt32)),
            Refusal::kOtherCollective);
  EXPECT_EQ(after({}, Contribution(0, 1, 0, "", Op::kNone)), Refusal::kBadOperation);
  EXPECT_EQ(after({}, Contribution(0, 1, 0, "", Op::kBitwiseAnd)), Refusal::kBadType);
  EXPECT_EQ(after({}, Contribution(0, 1, 0, "", Op::kSum, ElementType::kBytes)), Refusal::kBadType);
  EXPECT_EQ(after({}, Contribution(0, 1, 0, "abc")), Refusal::kBadLength);
  EXPECT_EQ(after({}, Contribution(0, 1, 0, std::string(68, 'x'))), Refusal::kBadLength);
  const auto taken = [](uint32_t child, std::string payload) {
    return Contribution(child, 1, 0, std::move(payload), Op::kTake, ElementType::kBytes);
  };
  EXPECT_EQ(after({taken(0, "a"), taken(1, "")}, taken(2, "")), Refusal::kNone);
  EXPECT_EQ(after({taken(0, "a"), taken(1, "")}, taken(2, "b")), Refusal::kTwoPayloads);
  Piece stale = of(0, 1, 0), foreign = of(0, 1, 0);
  stale.header.group.revision = 2;
  foreign.header.group.tree = 78;
  EXPECT_EQ(after({}, stale), Refusal::kStaleRevision);
  EXPECT_EQ(after({}, foreign), Refusal::kNoSuchTree);
}

TEST(Entry, IsForConnectedChildrenOnly) {
  Entry entry(SpecOf(2, 1));
  EXPECT_EQ(Give(entry, Contribution(0, 1, 0, "")), Refusal::kNoSuchChild);
  EXPECT_EQ(entry.Connect(2, 0), Refusal::kNoSuchChild);
  EXPECT_EQ(entry.Connect(0, 6), Refusal::kNone);
  EXPECT_EQ(entry.Connect(0, 0), Refusal::kChildTaken);
  EXPECT_EQ(Give(entry, Contribution(0, 5, 0, "")), Refusal::kTwice);
  EXPECT_EQ(Give(entry, Contribution(0, 6, 0, "")), Refusal::kNone);
}

TEST(Entry, StopsWhenItLosesSomebody) {
  Entry idle = Connected(SpecOf(2, 1));
  EXPECT_FALSE(idle.Lose());  // nobody waits for anything
  EXPECT_EQ(idle.health(), Entry::Health::kLeft);
  EXPECT_EQ(Give(idle, Contribution(1, 1, 0, "")), Refusal::kBroken);
  EXPECT_TRUE(idle.Break());
  EXPECT_FALSE(idle.Break());
  EXPECT_EQ(idle.Connect(0, 1), Refusal::kBroken);
  Entry busy = Connected(SpecOf(2, 1));
  EXPECT_EQ(Give(busy, Contribution(1, 1, 0, Floats({1}))), Refusal::kNone);
  EXPECT_EQ(busy.held_bytes(), 4);
  EXPECT_TRUE(busy.Lose());
  EXPECT_EQ(busy.held_bytes(), 0);
  EXPECT_EQ(Give(busy, Contribution(0, 1, 0, Floats({1}))), Refusal::kBroken);
  EXPECT_EQ(busy.TakeResult({}, "").refusal, Refusal::kBroken);
}

// By the words of the contract, with all that ever came: the k-th contribution of each child
// belongs to the k-th of each other; at most `window` of a child have no result.
struct SlowEntry {
  uint32_t children, window;
  std::vector<std::vector<std::pair<uint64_t, uint32_t>>> sent{children};

  bool May(uint32_t child, uint64_t sequence, uint32_t segment) const {
    const std::pair<uint64_t, uint32_t> piece(sequence, segment);
    const auto& mine = sent[child];
    size_t done = SIZE_MAX;
    for (const auto& list : sent) done = std::min(done, list.size());
    if (mine.size() >= done + window) return false;
    for (const auto& list : sent) {
      if (list.size() > mine.size() && list[mine.size()] != piece) return false;
    }
    if (mine.empty()) return sequence > 0 && segment == 0;
    const auto [last_sequence, last_segment] = mine.back();
    return sequence == last_sequence ? segment == last_segment + 1
                                     : sequence > last_sequence && segment == 0;
  }
};

TEST(Entry, TakesExactlyWhatTheOracleWould) {
  std::mt19937_64 random(TestSeed());
  int taken = 0, refused = 0;
  for (int round = 0; round < (FullTier() ? 3'000 : 300); ++round) {
    const uint32_t children = 1 + random() % 4, window = 1 + random() % 3;
    Entry entry = Connected(SpecOf(children, window));
    SlowEntry oracle{children, window};
    for (int step = 0; step < 60; ++step) {
      const uint32_t child = random() % children;
      // Mostly what follows, or what others have sent.
      uint64_t sequence = 1 + random() % 4;
      uint32_t segment = random() % 3;
      const auto& mine = oracle.sent[child];
      const auto& other = oracle.sent[random() % children];
      if (other.size() > mine.size()) {
        std::tie(sequence, segment) = other[mine.size()];
      } else if (!mine.empty() && random() % 2 == 0) {
        sequence = mine.back().first;
        segment = mine.back().second + 1;
      }
      if (random() % 8 == 0) segment = random() % 3;
      const Refusal refusal = Give(entry, Contribution(child, sequence, segment, Floats({1})));
      ASSERT_EQ(refusal == Refusal::kNone, oracle.May(child, sequence, segment))
          << RefusalName(refusal);
      (refusal == Refusal::kNone ? taken : refused) += 1;
      if (refusal == Refusal::kNone) oracle.sent[child].emplace_back(sequence, segment);
    }
  }
  EXPECT_GT(taken, 3'000);
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace coppice::entry_test
