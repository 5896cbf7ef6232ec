// The closed forms against the numbers that the paper still states, and against the exact
// evaluation where their assumptions hold.
#include "daemon/tree/closed_form.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "daemon/tree/tree_metrics.h"
#include "gtest/gtest.h"

namespace coppice::closed_form_test {
namespace {

CostProfile Paper() { return *BuiltInProfile("paper"); }

TEST(ClosedForm, PaperProfileGivesThePapersConstants) {
  const Payload bcast = PayloadOf(Operation::kBcast, 8);
  const LevelCost level = AggregateLevel(Paper(), TreeType::kTypeI, bcast);
  EXPECT_NEAR(level.once_us, 1.12, 1e-12);
  EXPECT_NEAR(level.per_child_us, 0.01, 1e-12);
  EXPECT_EQ(Paper().mean_route_links, 4);
  EXPECT_FALSE(Paper().is_estimate);
  EXPECT_TRUE(BuiltInProfile("hdr")->is_estimate);
}

TEST(ClosedForm, BestWidthIs41AndItsIntervalIs24To69) {
  const LevelCost level = {.once_us = 1.12, .per_child_us = 0.01};
  EXPECT_EQ(std::lround(IdealWidth(level, 512)), 41);
  const WidthInterval widths = WidthsWithin(level, 512, 0.1, 511);
  EXPECT_EQ(widths.best, 41U);
  EXPECT_EQ(widths.min, 24U);
  EXPECT_EQ(widths.max, 69U);
  // Both directions cost the same here: twice the tolerance gives the same interval.
  const SizeShare size = {.bytes = 0, .weight = 1};
  const LevelCost both = BothWays(Paper(), TreeType::kTypeI, {Operation::kBarrier, {size}});
  const WidthInterval same = WidthsWithin(both, 512, 0.2, 511);
  EXPECT_EQ(same.best, 41U);
  EXPECT_EQ(same.min, 24U);
  EXPECT_EQ(same.max, 69U);
}

TEST(ClosedForm, BestWidthIsThatOfAScan) {
  for (const double a : {0.0, 0.3, 1.12, 40.0}) {
    for (const double b : {0.0, 0.001, 0.01, 1.0, 300.0}) {
      const double c = a == 40.0 ? b / 7 : 0;  // a long message
      const LevelCost level = {.once_us = a, .per_child_us = b, .stage_per_child_us = c};
      for (const uint32_t most : {0U, 2U, 3U, 17U, 300U}) {
        const WidthInterval widths = WidthsWithin(level, 512, 0.1, most);
        for (uint32_t k = 2; k <= std::max(2U, most); ++k) {
          const double us = LevelsUs(level, 512, k);
          EXPECT_GE(us, LevelsUs(level, 512, widths.best) - 1e-9) << a << " " << b << " " << k;
          const bool within = us <= LevelsUs(level, 512, widths.best) + 0.1;
          EXPECT_EQ(within, k >= widths.min && k <= widths.max) << a << " " << b << " " << k;
        }
      }
    }
  }
}

TEST(ClosedForm, WidthsFallAsSizesGrow) {
  WidthInterval last = {.min = 1000, .best = 1000, .max = 1000};
  for (uint64_t bytes = 8; bytes <= 1 << 22; bytes *= 2) {
    const SizeShare size = {.bytes = bytes, .weight = 1};
    const LevelCost both = BothWays(Paper(), TreeType::kTypeI, {Operation::kAllreduce, {size}});
    const WidthInterval widths = WidthsWithin(both, 512, 0.2, 511);
    EXPECT_LE(widths.min, last.min) << bytes;
    EXPECT_LE(widths.best, last.best) << bytes;
    EXPECT_LE(widths.max, last.max) << bytes;
    last = widths;
  }
  EXPECT_LE(last.best, 4U);
}

TEST(ClosedForm, AgreesWithTheExactEvaluationOnCompleteTrees) {
  for (const char* name : {"paper", "hdr"}) {
    const CostProfile profile = *BuiltInProfile(name);
    for (const uint32_t width : {2U, 3U, 8U, 32U}) {
      for (const uint64_t bytes : {0ULL, 8ULL, 2048ULL, 1048576ULL}) {
        AggregationTree tree;  // 1 + k + k^2 ranks: complete, height 2
        tree.rank_count = 1 + width + width * width;
        for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
          tree.parents.push_back(rank == 0 ? -1 : static_cast<int32_t>((rank - 1) / width));
        }
        const auto links = static_cast<uint32_t>(profile.mean_route_links);
        const auto time = static_cast<float>(links * profile.link_us);
        const auto gbps = static_cast<float>(profile.port_gbps);
        const EdgeCost edge = {.links_up = links,
                               .links_down = links,
                               .time_up_us = time,
                               .time_down_us = time,
                               .min_gbps_up = gbps,
                               .min_gbps_down = gbps,
                               .port_gbps_up = gbps,
                               .port_gbps_down = gbps};
        const std::vector<EdgeCost> edges(tree.rank_count, edge);
        const Payload payload = PayloadOf(Operation::kAllreduce, bytes);
        const Pipeline pipeline = PipelineOf(profile, payload);
        const Payload& packet = pipeline.packet;
        const double exact = Evaluate(profile, tree, edges, payload).total_us - profile.init_us;
        // log_k(k^2) = 2 levels. The exact walk starts the first packet at once, so that where the
        // port is the slower one a level takes k - 1 spacings and one packet's own time.
        const LevelCost up = AggregateLevel(profile, TreeType::kTypeI, packet);
        const LevelCost down = DistributeLevel(profile, TreeType::kTypeI, packet);
        const double match = profile.nic.match_us + static_cast<double>(packet.reduced_bytes) *
                                                        profile.nic.reduce_us_per_byte;
        const double saved =
            2 * (up.per_child_us - match) + 2 * (down.per_child_us - profile.nic.send_us);
        // The port of an inner node carries one packet more than it has children.
        const LevelCost both = BothWays(profile, TreeType::kTypeI, payload);
        const double stages = both.stage_per_child_us * width;
        const double port = static_cast<double>(pipeline.more_up) *
                            WireUs(profile, packet.up_bytes, gbps) * (width + 1);
        const double closed = LevelsUs(both, width * width, width);
        EXPECT_NEAR(exact, closed - saved + std::max(0.0, port - stages), 1e-5 * exact);
      }
    }
  }
}

TEST(ClosedForm, TableTurnsFromTypeIIToTypeI) {
  const auto table = StaticTypeTable(Paper(), 512);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->front().operation, Operation::kBarrier);
  EXPECT_EQ(table->front().type, TreeType::kTypeII);
  EXPECT_EQ(table->front().widths.max, 64U);  // the NIC's degree limit; the paper: 24 to 64
  EXPECT_EQ(table->front().widths.min, 24U);
  for (const TypeChoice& choice : *table) {
    EXPECT_EQ(choice.type == TreeType::kTypeII, choice.type_i_us - choice.type_ii_us > 0);
    EXPECT_LE(choice.min_bytes, choice.max_bytes);
    if (choice.operation != Operation::kAllreduce) continue;
    if (choice.max_bytes == 8) {
      EXPECT_EQ(choice.type, TreeType::kTypeII);
    }
    if (choice.max_bytes == 1 << 20) {
      EXPECT_EQ(choice.type, TreeType::kTypeI);
    }
  }
  EXPECT_EQ(StaticTypeTable(Paper(), 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StaticTypeTable(Paper(), 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(StaticTypeTable(Paper(), 2).ok());
}

// Computed from formulas (1) to (9) by a program that shares nothing with this one.
TEST(ClosedForm, TableHoldsTheFormulasFigures) {
  struct Row {
    Operation operation;
    uint64_t bytes;
    TreeType type;
    WidthInterval widths;
    double type_i_us, type_ii_us;
  };
  const Row kRows[] = {
      {Operation::kBarrier, 0, TreeType::kTypeII, {24, 41, 64}, 5.140407, 2.388260},
      {Operation::kBcast, 8, TreeType::kTypeII, {24, 41, 64}, 5.141483, 2.418503},
      {Operation::kBcast, 1024, TreeType::kTypeII, {11, 15, 20}, 8.596934, 6.259376},
      {Operation::kBcast, 4096, TreeType::kTypeI, {7, 8, 10}, 12.760960, 13.884833},
      {Operation::kReduce, 8, TreeType::kTypeII, {24, 40, 64}, 5.196192, 2.422124},
      {Operation::kReduce, 256, TreeType::kTypeII, {15, 23, 35}, 6.584086, 3.584123},
      {Operation::kReduce, 4096, TreeType::kTypeI, {6, 7, 8}, 14.254734, 16.659860},
      {Operation::kReduce, 4194304, TreeType::kTypeI, {2, 2, 2}, 905.072160, 9590.609622},
      {Operation::kAllreduce, 8, TreeType::kTypeII, {24, 40, 64}, 5.197274, 2.452367},
      {Operation::kAllreduce, 1024, TreeType::kTypeII, {8, 10, 12}, 11.833658, 11.053691},
      {Operation::kAllreduce, 4096, TreeType::kTypeI, {6, 6, 7}, 18.181888, 24.402092},
      {Operation::kAllreduce, 1048576, TreeType::kTypeI, {2, 2, 2}, 249.487680, 2410.870508},
  };
  const auto table = StaticTypeTable(Paper(), 512);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 31U);
  for (const Row& row : kRows) {
    const auto at = std::find_if(table->begin(), table->end(), [&](const TypeChoice& choice) {
      return choice.operation == row.operation && choice.max_bytes == row.bytes;
    });
    SCOPED_TRACE(testing::Message() << ToString(row.operation) << " " << row.bytes);
    ASSERT_NE(at, table->end());
    EXPECT_EQ(at->type, row.type);
    EXPECT_EQ(at->widths.min, row.widths.min);
    EXPECT_EQ(at->widths.best, row.widths.best);
    EXPECT_EQ(at->widths.max, row.widths.max);
    EXPECT_NEAR(at->type_i_us, row.type_i_us, 1e-6 * row.type_i_us);
    EXPECT_NEAR(at->type_ii_us, row.type_ii_us, 1e-6 * row.type_ii_us);
  }
}

// (10) and (11): what type II saves falls with the size, and with the members once they are many,
// as its levels are a fixed number and ever wider.
TEST(ClosedForm, TypeIISavesLessForLongMessagesAndManyMembers) {
  const CostProfile paper = Paper();
  const auto saved = [&](uint32_t members, uint64_t bytes) {
    const Payload payload = PayloadOf(Operation::kAllreduce, bytes);
    return TypeIUs(paper, members, 32, payload) - TypeIIUs(paper, members, payload);
  };
  for (uint64_t bytes = 256; bytes < 1 << 22; bytes *= 2) {
    EXPECT_GT(saved(512, bytes), saved(4096, bytes)) << bytes;
    EXPECT_GT(saved(4096, bytes), saved(32768, bytes)) << bytes;
  }
  for (uint64_t bytes = 8; bytes < 1 << 22; bytes *= 2) {
    EXPECT_GT(saved(1 << 14, bytes), saved(1 << 14, 2 * bytes)) << bytes;
  }
  EXPECT_GT(saved(512, 8), 0);
  EXPECT_LT(saved(1 << 20, 1024), 0);
}

}  // namespace
}  // namespace coppice::closed_form_test
