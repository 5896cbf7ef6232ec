// The messages that collectives are taken to consist of, for every size up to 40 and every root:
// carried out one after the other they must do what the collective promises.
#include <bit>
#include <climits>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "agents/mpi/core/settings.h"
#include "agents/mpi/trace/collective_messages.h"
#include "agents/mpi/trace/pair_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::mpi {
namespace {

using ::testing::HasSubstr;

constexpr int kMaxRanks = 40;

struct Message {
  int to;
  uint64_t bytes, count;
};

class List final : public MessageSink {
 public:
  void Send(int to, uint64_t bytes, uint64_t messages) override {
    sent.push_back({to, bytes, messages});
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Message& m : sent) sum += m.bytes;
    return sum;
  }
  std::vector<Message> sent;
};

// What each rank sends, by messages(rank, sink).
template <typename Messages>
std::vector<List> OfAll(int size, Messages messages) {
  std::vector<List> all(size);
  for (int rank = 0; rank < size; ++rank) {
    messages(rank, all[rank]);
    for (const Message& m : all[rank].sent) {
      EXPECT_GE(m.to, 0);
      EXPECT_LT(m.to, size);
      EXPECT_NE(m.to, rank);
      EXPECT_GT(m.count, 0u);
    }
  }
  return all;
}

uint64_t Total(const std::vector<List>& all) {
  uint64_t sum = 0;
  for (const List& list : all) sum += list.bytes();
  return sum;
}

// Step k of all ranks happens at once; who knows what afterwards, from knowing oneself.
std::vector<std::set<int>> Spread(const std::vector<List>& all) {
  std::vector<std::set<int>> known(all.size());
  size_t steps = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    known[rank] = {static_cast<int>(rank)};
    steps = std::max(steps, all[rank].sent.size());
  }
  for (size_t step = 0; step < steps; ++step) {
    const std::vector<std::set<int>> before = known;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (step >= all[rank].sent.size()) continue;
      std::set<int>& to = known[all[rank].sent[step].to];
      to.insert(before[rank].begin(), before[rank].end());
    }
  }
  return known;
}

TEST(CollectiveMessages, BarrierTellsEverybodyOfEverybody) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    const auto all = OfAll(size, [&](int r, MessageSink& s) { BarrierMessages(r, size, s); });
    for (const std::set<int>& known : Spread(all)) EXPECT_EQ(known.size(), size) << size;
    EXPECT_EQ(Total(all), 0u);
  }
}

// Every rank but the root has one sender, and no sender's chain misses the root.
void ExpectTreeFrom(int root, const std::vector<List>& all) {
  const int size = static_cast<int>(all.size());
  std::vector<int> parent(size, -1);
  for (int rank = 0; rank < size; ++rank) {
    for (const Message& m : all[rank].sent) {
      ASSERT_EQ(parent[m.to], -1);
      parent[m.to] = rank;
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    int at = rank, steps = 0;
    while (parent[at] >= 0 && ++steps <= size) at = parent[at];
    ASSERT_EQ(at, root) << rank << " of " << size;
  }
}

TEST(CollectiveMessages, BcastAndScatterReachAllFromTheRoot) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    for (int root = 0; root < size; ++root) {
      const auto bcast =
          OfAll(size, [&](int r, MessageSink& s) { BcastMessages(r, size, root, 7, s); });
      ExpectTreeFrom(root, bcast);
      EXPECT_EQ(Total(bcast), 7u * (size - 1));
      const auto scatter =
          OfAll(size, [&](int r, MessageSink& s) { ScatterMessages(r, size, root, 3, s); });
      ExpectTreeFrom(root, scatter);
      // Whoever hands on has got it before, and keeps a block.
      std::vector<uint64_t> got(size, 0);
      got[root] = 3u * size;
      for (const List& list : scatter) {
        for (const Message& m : list.sent) got[m.to] += m.bytes;
      }
      for (int rank = 0; rank < size; ++rank) EXPECT_EQ(got[rank] - scatter[rank].bytes(), 3u);
    }
  }
}

TEST(CollectiveMessages, ReduceAndGatherAreTheWayBack) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    for (int root = 0; root < size; ++root) {
      std::map<std::pair<int, int>, uint64_t> there, back;
      const auto scatter =
          OfAll(size, [&](int r, MessageSink& s) { ScatterMessages(r, size, root, 3, s); });
      const auto gather =
          OfAll(size, [&](int r, MessageSink& s) { GatherMessages(r, size, root, 3, s); });
      const auto reduce =
          OfAll(size, [&](int r, MessageSink& s) { ReduceMessages(r, size, root, 9, s); });
      for (int rank = 0; rank < size; ++rank) {
        for (const Message& m : scatter[rank].sent) there[{rank, m.to}] = m.bytes;
        for (const Message& m : gather[rank].sent) back[{m.to, rank}] = m.bytes;
        EXPECT_EQ(reduce[rank].sent.size(), rank == root ? 0u : 1u);
        for (const Message& m : reduce[rank].sent) {
          EXPECT_EQ(m.bytes, 9u);
          EXPECT_EQ(m.to, gather[rank].sent[0].to);
        }
      }
      EXPECT_EQ(there, back);
    }
  }
}

// Of a long bcast each rank but the root gets all bytes: its part, or those of its subtree, from
// the scatter, the others around the ring, which brings those of the subtree again.
TEST(CollectiveMessages, LongBcastBringsEverythingToAll) {
  for (int size = kFewRanks; size <= kMaxRanks; ++size) {
    for (const uint64_t bytes : {kLongBcast, kLongBcast + 1, uint64_t{99'991}}) {
      const auto all =
          OfAll(size, [&](int r, MessageSink& s) { BcastMessages(r, size, 5, bytes, s); });
      std::vector<uint64_t> got(size, 0);
      for (const List& list : all) {
        for (const Message& m : list.sent) got[m.to] += m.bytes;
      }
      for (int rank = 0; rank < size; ++rank) {
        if (rank != 5) {
          EXPECT_GE(got[rank], bytes);
        }
        EXPECT_LE(got[rank], 2 * bytes);
      }
    }
  }
}

TEST(CollectiveMessages, AllreduceMovesAsMuchAsItsAlgorithm) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    for (const bool commutes : {false, true}) {
      const auto all =
          OfAll(size, [&](int r, MessageSink& s) { AllreduceMessages(r, size, 8, commutes, s); });
      int power = 1;
      while (power * 2 <= size) power *= 2;
      const uint64_t steps = std::bit_width(static_cast<unsigned>(power)) - 1;
      EXPECT_EQ(Total(all), 8 * (power * steps + 2 * static_cast<uint64_t>(size - power)));
    }
    if (size == 1) continue;
    // Around the ring: parts are reduced, size - 1 of them each, then handed on.
    const auto ring =
        OfAll(size, [&](int r, MessageSink& s) { AllreduceMessages(r, size, 120'000, true, s); });
    EXPECT_EQ(Total(ring), 2u * (size - 1) * 120'000) << size;
  }
}

TEST(CollectiveMessages, AllToAllAndGatherMoveEveryBlock) {
  for (int size = 1; size <= kMaxRanks; ++size) {
    uint64_t hops = 0;  // Bruck: a block goes once for each bit of its distance
    for (unsigned distance = 0; distance < static_cast<unsigned>(size); ++distance) {
      hops += std::popcount(distance);
    }
    const uint64_t ranks = size;
    const auto small = OfAll(size, [&](int r, MessageSink& s) { AlltoallMessages(r, size, 4, s); });
    EXPECT_EQ(Total(small), size < kFewRanks ? ranks * (ranks - 1) * 4 : ranks * hops * 4);
    const auto large =
        OfAll(size, [&](int r, MessageSink& s) { AlltoallMessages(r, size, 1000, s); });
    EXPECT_EQ(Total(large), ranks * (ranks - 1) * 1000);
    for (const uint64_t block : {uint64_t{5}, kLongAllgather}) {
      const auto gather =
          OfAll(size, [&](int r, MessageSink& s) { AllgatherMessages(r, size, block, s); });
      EXPECT_EQ(Total(gather), ranks * (ranks - 1) * block);
    }
    std::vector<uint64_t> blocks(size);
    uint64_t sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += blocks[rank] = rank % 3 * 100;
    const auto unequal =
        OfAll(size, [&](int r, MessageSink& s) { AllgathervMessages(r, blocks, s); });
    EXPECT_EQ(Total(unequal), (ranks - 1) * sum);
  }
}

TEST(PairTable, AddsUpAsAMapDoes) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    PairTable table;
    std::map<int32_t, std::pair<uint64_t, uint64_t>> sums;
    const uint64_t ranks = 1 + random() % 5000;
    for (int i = 0; i < 3000; ++i) {
      const int32_t to = static_cast<int32_t>(random() % ranks * (1 + round % 7));
      const uint64_t messages = random() % 3, bytes = random() % 1000;
      table.Add(to, messages, bytes);
      sums[to].first += messages;
      sums[to].second += bytes;
    }
    const std::vector<PairSum> sorted = table.Sorted();
    ASSERT_EQ(sorted.size(), sums.size());
    auto sum = sums.begin();
    for (const PairSum& pair : sorted) {
      ASSERT_EQ(pair.to, sum->first);
      ASSERT_EQ(pair.messages, sum->second.first);
      ASSERT_EQ(pair.bytes, sum->second.second);
      ++sum;
    }
  }
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Settings, AreOffUnlessTheyAreNamed) {
  std::string problems;
  const Settings settings = ReadSettings(kEnvironment, &problems);
  EXPECT_EQ(problems, "");
  EXPECT_TRUE(settings.trace_file.empty());
  EXPECT_FALSE(settings.reorder || settings.put_pattern || settings.verbose);
  EXPECT_EQ(settings.trees, TreesWhen::kNever);
  EXPECT_EQ(settings.timeout_ms, 2000);
}

TEST(Settings, SayWhatIsWrongAndTakeThePreset) {
  const Variable reorder("COPPICE_REORDER", "yes"), timeout("COPPICE_TIMEOUT_MS", "-5"),
      budget("COPPICE_REORDER_BUDGET_MS", "250"), trees("COPPICE_TREES", "creation"),
      put("COPPICE_TRACE_PUT", "1");
  std::string problems;
  const Settings settings = ReadSettings(kEnvironment, &problems);
  EXPECT_THAT(problems, HasSubstr("COPPICE_REORDER=yes is none of: 0 or 1; 0 is taken\n"));
  EXPECT_THAT(problems, HasSubstr("COPPICE_TIMEOUT_MS=-5 is none of: milliseconds"));
  EXPECT_FALSE(settings.reorder);
  EXPECT_EQ(settings.timeout_ms, 2000);
  EXPECT_EQ(settings.reorder_budget_ms, 250);
  EXPECT_EQ(settings.trees, TreesWhen::kCreation);
  EXPECT_TRUE(settings.put_pattern);
}

TEST(Settings, TakeTypesByTheirWords) {
  for (const auto& [text, type] : {std::pair("auto", TreesType::kAuto),
                                   {"1", TreesType::kRanks},
                                   {"2", TreesType::kSwitches},
                                   {"II", TreesType::kAuto}}) {
    const Variable wanted("COPPICE_TREES_TYPE", text);
    std::string problems;
    EXPECT_EQ(ReadSettings(kEnvironment, &problems).trees_type, type) << text;
    EXPECT_EQ(problems, std::string(text) != "II"
                            ? ""
                            : "COPPICE_TREES_TYPE=II is none of: auto, 1 or 2; auto is taken\n");
  }
}

TEST(Settings, TakeAWayForAFixedChoiceOnly) {
  const Variable way("COPPICE_TREES_WAY", "binomial");
  std::string problems;
  EXPECT_EQ(ReadSettings(kEnvironment, &problems).trees_way, TreesWay::kBinomial);
  EXPECT_EQ(problems, "COPPICE_TREES_WAY has no effect without COPPICE_TREES_MAX_BYTES\n");
  problems.clear();
  const Variable most("COPPICE_TREES_MAX_BYTES", "8K");
  EXPECT_EQ(ReadSettings(kEnvironment, &problems).trees_way, TreesWay::kBinomial);
  EXPECT_EQ(problems, "");
}

TEST(Settings, TakeSizesWithSuffixes) {
  std::string problems;
  for (const auto& [text, bytes] : {std::pair("0", 0),
                                    {"8192", 8192},
                                    {"8K", 8192},
                                    {"1MiB", 1 << 20},
                                    {"2147483647", INT_MAX}}) {
    const Variable most("COPPICE_TREES_MAX_BYTES", text);
    EXPECT_EQ(ReadSettings(kEnvironment, &problems).trees_max_bytes, bytes) << text;
  }
  EXPECT_EQ(problems, "");
  for (const char* text : {"-1", "8KK", "2G"}) {
    const Variable most("COPPICE_TREES_MAX_BYTES", text);
    problems.clear();
    EXPECT_LT(ReadSettings(kEnvironment, &problems).trees_max_bytes, 0) << text;
    EXPECT_EQ(problems, std::string("COPPICE_TREES_MAX_BYTES=") + text +
                            " is none of: bytes, such as 8K or 1M, up to 2147483647; what is usual "
                            "is taken\n");
  }
}

// As options of coppicectl have them.
TEST(Settings, PartitionsAreReadAsEverywhere) {
  const std::pair<const char*, uint32_t> numbers[] = {
      {"0x0001", 1}, {"0x8001", 1}, {"010", 10}, {"32767", 0x7fff}};
  for (const auto& [text, number] : numbers) {
    const Variable partition("COPPICE_PARTITION", text);
    std::string problems;
    EXPECT_EQ(ReadSettings(kEnvironment, &problems).partition, number) << text;
    EXPECT_EQ(problems, "");
  }
  for (const char* text : {"0", "0x8000", "0x1ffff", "red"}) {
    const Variable partition("COPPICE_PARTITION", text);
    std::string problems;
    EXPECT_EQ(ReadSettings(kEnvironment, &problems).partition, 0u) << text;
    EXPECT_THAT(problems, HasSubstr("is none of: a partition, 0x0001 to 0x7fff"));
  }
}

TEST(Settings, SayWhatNobodyReads) {
  const Variable wrong("COPPICE_TREE", "first-use"), of_others("COPPICE_SERVER", "unix:x"),
      of_tests("COPPICE_TEST_X", "1"), not_ours("COPPICED", "1");
  std::string problems;
  ReadSettings(kEnvironment, &problems);
  EXPECT_EQ(problems, "COPPICE_TREE: nothing reads a variable of this name; check its spelling\n");
}

}  // namespace
}  // namespace coppice::mpi
