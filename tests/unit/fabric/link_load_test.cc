#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "tests/support/tier.h"

namespace coppice::link_load_test {
namespace {

TEST(LinkLoad, IsWhatItIsMadeOf) {
  EXPECT_TRUE(LinkLoad().empty());
  EXPECT_EQ(LinkLoad().greatest(), 0);
  const std::vector<float> idle(300);
  EXPECT_FALSE(LinkLoad(idle).empty());  // known to be idle
  EXPECT_EQ(LinkLoad(idle)[299], 0);
  std::vector<float> values(LinkLoad::kPageChannels + 1);
  values.back() = 0.5F;
  const LinkLoad load(values);
  EXPECT_EQ(load.size(), values.size());
  EXPECT_EQ(load[LinkLoad::kPageChannels], 0.5F);
  EXPECT_EQ(load[0], 0);
  EXPECT_EQ(load.greatest(), 0.5F);
}

TEST(LinkLoad, ChangedPagesLeaveTheOldValueAsItIs) {
  std::mt19937_64 random(TestSeed());
  std::vector<float> values(1000);
  LinkLoad load;
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> before = values;
    const LinkLoad old = load;
    std::set<uint32_t> touched;
    for (int i = 0; i < 5; ++i) {
      const size_t c = random() % values.size();
      values[c] = random() % 3 == 0 ? 0 : static_cast<float>(random() % 100) / 100;
      touched.insert(static_cast<uint32_t>(c / LinkLoad::kPageChannels));
    }
    const std::vector<uint32_t> pages(touched.begin(), touched.end());
    load = old.With(values.size(), pages, [&](size_t first, absl::Span<float> page) {
      std::copy_n(values.begin() + static_cast<int64_t>(first), page.size(), page.begin());
    });
    for (size_t c = 0; c < values.size(); ++c) {
      ASSERT_EQ(load[c], values[c]);
      if (!old.empty()) {
        ASSERT_EQ(old[c], before[c]);
      }
    }
    ASSERT_EQ(load.greatest(), *std::max_element(values.begin(), values.end()));
  }
}

}  // namespace
}  // namespace coppice::link_load_test
