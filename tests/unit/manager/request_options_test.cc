#include "daemon/manager/request_options.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"

namespace coppice::demands_test {
namespace {

TreeRecord RecordOf(std::string demands) {
  TreeRecord record;
  record.job = JobId(3);
  record.ranks = {4, 2};
  record.operation = "bcast";
  record.sizes = "[[64,1]]";
  record.type = 2;
  record.demands = std::move(demands);
  return record;
}

TEST(DemandsTest, WhatWasDemandedIsReadBack) {
  CreateTreeArgs args;
  EXPECT_EQ("{}", RequestOptionsJson(args));
  args.type = TreeType::kTypeI;
  args.builder = TreeBuilder::kKnomial;
  args.width = 7;
  args.nic_degree = 9;
  args.root_switch = Guid(0xabc);
  args.policy.emplace();
  args.policy->latency = 0.1;
  args.policy->entries = 2;
  args.policy->max_entries = 0;
  const RecordedRequest request = RequestOf(RecordOf(RequestOptionsJson(args)));
  EXPECT_EQ(JobId(3), request.args.job);
  EXPECT_EQ((std::vector<uint32_t>{4, 2}), request.args.ranks);
  EXPECT_EQ(Operation::kBcast, request.args.operation);
  ASSERT_EQ(1u, request.args.sizes.size());
  EXPECT_EQ(64u, request.args.sizes[0].bytes);
  EXPECT_EQ(args.type, request.args.type);
  EXPECT_EQ(args.builder, request.args.builder);
  EXPECT_EQ(args.width, request.args.width);
  EXPECT_EQ(args.nic_degree, request.args.nic_degree);
  EXPECT_EQ(args.root_switch, request.args.root_switch);
  ASSERT_TRUE(request.args.policy);
  EXPECT_EQ(0.1, request.args.policy->latency);
  EXPECT_EQ(2, request.args.policy->entries);
  EXPECT_EQ(0, request.args.policy->link_load);
  EXPECT_EQ(std::optional<uint32_t>(0), request.args.policy->max_entries);
  EXPECT_FALSE(request.accepts_type1);
}

TEST(DemandsTest, NothingDemandedAndNothingKept) {
  const RecordedRequest free = RequestOf(RecordOf("{}"));
  EXPECT_FALSE(free.args.type || free.args.policy || free.accepts_type1);
  const RecordedRequest old = RequestOf(RecordOf(""));
  EXPECT_EQ(TreeType::kTypeII, old.args.type);
  EXPECT_TRUE(old.accepts_type1);
  const RecordedRequest either =
      RequestOf(RecordOf(RequestOptionsOfTypeIIOrElseI(CreateTreeArgs())));
  EXPECT_EQ(TreeType::kTypeII, either.args.type);
  EXPECT_TRUE(either.accepts_type1);
}

TEST(DemandsTest, EditedTextNeverCrashes) {
  std::mt19937_64 random(TestSeed());
  CreateTreeArgs args;
  args.type = TreeType::kTypeII;
  args.root_switch = Guid(7);
  args.width = 3;
  const std::string whole = RequestOptionsJson(args);
  for (int round = 0; round < 3'000; ++round) {
    std::string text = whole;
    for (uint64_t n = random() % 6; n > 0; --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(random() % (text.size() + 1));
    RequestOf(RecordOf(text));
  }
}

}  // namespace
}  // namespace coppice::demands_test
