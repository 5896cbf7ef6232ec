#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "daemon/manager/mapping/pattern_store.h"
#include "tests/support/tier.h"

namespace coppice::pattern_codec_test {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Pattern> Make(uint32_t ranks, std::vector<Pattern::Entry> entries) {
  return Pattern::Make(ranks, std::move(entries)).value();
}

void ExpectEqual(const Pattern& a, const Pattern& b) {
  ASSERT_EQ(a.rank_count(), b.rank_count());
  ASSERT_EQ(a.empty_messages().size(), b.empty_messages().size());
  for (size_t i = 0; i < a.empty_messages().size(); ++i) {
    const Pattern::Entry &one = a.empty_messages()[i], &other = b.empty_messages()[i];
    ASSERT_EQ(one.from, other.from);
    ASSERT_EQ(one.to, other.to);
    ASSERT_EQ(one.messages, other.messages);
  }
  ASSERT_EQ(a.total_messages(), b.total_messages());
  for (uint32_t rank = 0; rank < a.rank_count(); ++rank) {
    ASSERT_EQ(a.self_bytes(rank), b.self_bytes(rank));
    ASSERT_EQ(a.exchanges(rank).size(), b.exchanges(rank).size());
    ASSERT_EQ(a.out_messages(rank), b.out_messages(rank));
    for (size_t i = 0; i < a.exchanges(rank).size(); ++i) {
      ASSERT_EQ(a.exchanges(rank)[i].peer, b.exchanges(rank)[i].peer);
      ASSERT_EQ(a.exchanges(rank)[i].out_bytes, b.exchanges(rank)[i].out_bytes);
      ASSERT_EQ(a.exchanges(rank)[i].in_bytes, b.exchanges(rank)[i].in_bytes);
    }
  }
}

TEST(PatternCodec, GivesBackWhatItWasGiven) {
  for (const std::vector<Pattern::Entry>& entries :
       {std::vector<Pattern::Entry>{},
        {{0, 1, 5, 0}, {2, 1, 1e15, 0}},
        {{0, 1, 0.25, 3}, {1, 0, 7, 0.5}, {2, 2, 9, 0}, {2, 0, 1, 1}},
        {{0, 0, 3, 0}, {1, 1, 1e300, 0}},
        {{0, 0, 3, 7}, {1, 1, 0, 2.5}, {1, 2, 0, 3}, {1, 0, 0, 4}, {2, 0, 8, 0}},
        {{2, 0, 0, 1}}}) {
    const auto pattern = Make(3, entries);
    const auto back = DecodePattern(EncodePattern(*pattern));
    ASSERT_TRUE(back.ok()) << back.status();
    ExpectEqual(*pattern, **back);
  }
}

TEST(PatternCodec, IsSmallForWholeWeights) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t rank = 0; rank < 1000; ++rank) {
    for (uint32_t step = 1; step <= 6; ++step)
      entries.push_back({rank, (rank + step) % 1000, 8192});
  }
  EXPECT_LT(EncodePattern(*Make(1000, entries)).size(), 6000u * 4);
}

TEST(PatternCodec, SurvivesWhateverItIsGiven) {
  std::mt19937_64 random(TestSeed());
  const std::string good =
      EncodePattern(*Make(9, {{0, 1, 5, 1}, {3, 8, 0.5, 2}, {8, 3, 77, 0}, {4, 4, 2, 0}}));
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    const auto pattern = DecodePattern(bad);
    if (!pattern.ok()) {
      EXPECT_EQ(pattern.status().code(), absl::StatusCode::kDataLoss);
    }
  }
  EXPECT_THAT(std::string(DecodePattern("").status().message()),
              HasSubstr("put the pattern again"));
  EXPECT_THAT(std::string(DecodePattern(good + "x").status().message()), HasSubstr("more bytes"));
}

}  // namespace
}  // namespace coppice::pattern_codec_test
