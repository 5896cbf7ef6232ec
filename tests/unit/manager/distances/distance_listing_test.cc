// Estimates, and the distances of a mapping, from what was measured between some hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/distances/distance_store.h"
#include "tests/support/fabrics.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::distance_listing_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// n0..n3 on leaf 0, n4..n7 on leaf 1, ...
class DistanceListingTest : public ::testing::Test {
 protected:
  DistanceListingTest()
      : snapshot_(*MakeSnapshot(SmallFabric(), nullptr)),
        distance_store_(*DistanceStore::Create(&store_)) {}

  void Put(const std::string& a, const std::string& b, double latency_us, double gbps,
           Transport transport = Transport::kTcp) {
    distance_store_->Put(
        {{a, b, latency_us, 0.25, gbps, 1, 90, absl::FromUnixSeconds(1), transport}});
  }
  absl::StatusOr<std::vector<DistanceRecord>> Find(std::vector<std::string> hosts, bool estimate) {
    DistanceQuery query;
    query.hosts = std::move(hosts);
    query.estimate = estimate;
    return FindDistances(*distance_store_, snapshot_.get(), query, medians_);
  }
  absl::StatusOr<std::shared_ptr<const PlaceDistances>> Places_(
      const std::vector<std::string>& hosts, double message_bytes = 0) {
    std::vector<EndpointIndex> endpoints;
    for (const std::string& host : hosts) {
      endpoints.push_back(*ResolveEndpoint(*snapshot_->fabric, host));
    }
    const auto places = Places::OfEndpoints(*snapshot_->fabric, endpoints, 2);
    return MeasuredDistances(**places, *snapshot_, *distance_store_, message_bytes);
  }

  ScratchStore store_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const std::unique_ptr<DistanceStore> distance_store_;
  LevelMedianCache medians_;
};

TEST_F(DistanceListingTest, EstimatesByTheMedianOfTheLevel) {
  Put("n0", "n1", 1, 100);
  Put("n2", "n3", 3, 300);
  Put("n4", "n5", 9, 200);
  Put("n0", "n4", 20, 40);
  Put("n1", "n8", 40, 20);
  Put("elsewhere", "n1", 7, 7);  // is not in the fabric
  const auto all = Find({"n0", "n1", "n5"}, true);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].latency_us, 1);
  EXPECT_EQ((*all)[0].samples, 90u);
  EXPECT_EQ((*all)[1].host_b, "n5");
  EXPECT_EQ((*all)[1].latency_us, 30);  // between 20 and 40
  EXPECT_EQ((*all)[1].samples, 0u);
  EXPECT_EQ((*Find({"n6", "n7"}, true))[0].latency_us, 3);
  EXPECT_EQ(Find({"n0", "n1", "n5"}, false)->size(), 1u);
  EXPECT_EQ(Find({"elsewhere", "n1"}, false)->size(), 1u);
  EXPECT_EQ(Find({}, false)->size(), 6u);
}

TEST_F(DistanceListingTest, PagesThroughEstimates) {
  Put("n0", "n1", 1, 100);
  DistanceQuery query;
  query.hosts = {"n3", "n0", "n2", "n1", "n0"};
  query.estimate = true;
  query.limit = 1;
  std::vector<HostPair> pairs;
  for (;;) {
    const auto page = FindDistances(*distance_store_, snapshot_.get(), query, medians_);
    ASSERT_TRUE(page.ok()) << page.status();
    if (page->empty()) break;
    query.after = {page->front().host_a, page->front().host_b};
    pairs.push_back(query.after);
  }
  EXPECT_THAT(pairs, testing::ElementsAre(HostPair("n0", "n1"), HostPair("n0", "n2"),
                                          HostPair("n0", "n3"), HostPair("n1", "n2"),
                                          HostPair("n1", "n3"), HostPair("n2", "n3")));
}

// Also after pairs that are in no list of these hosts.
TEST_F(DistanceListingTest, APageBeginsAfterAnyPair) {
  Put("n0", "n1", 1, 100);
  Put("n0", "n4", 20, 40);
  Put("n2", "n3", 3, 300);
  const std::vector<std::string> hosts = {"n0", "n1", "n3", "n4"};
  const std::vector<DistanceRecord> all = *Find(hosts, true);
  ASSERT_EQ(all.size(), 6u);
  for (const char* const first : {"", "a", "n0", "n1", "n2", "n3", "n4", "z"}) {
    for (const char* const second : {"", "a", "n0", "n1", "n2", "n3", "n4", "z"}) {
      for (size_t limit = 0; limit < 8; ++limit) {
        DistanceQuery query;
        query.hosts = hosts;
        query.estimate = true;
        query.after = {first, second};
        query.limit = limit;
        std::vector<DistanceRecord> expected;
        for (const DistanceRecord& record : all) {
          const bool is_later = HostPair(record.host_a, record.host_b) > query.after;
          if (is_later && expected.size() < limit) expected.push_back(record);
        }
        const auto page = FindDistances(*distance_store_, snapshot_.get(), query, medians_);
        ASSERT_TRUE(page.ok()) << page.status();
        EXPECT_EQ(*page, expected) << first << " " << second << " " << limit;
      }
    }
  }
}

// A matrix of many hosts is thousands of pages: they share medians until something is measured.
TEST_F(DistanceListingTest, MediansAreFoundOnceForEachState) {
  Put("n0", "n1", 1, 100);
  const auto first = medians_.Get(*distance_store_, *snapshot_);
  EXPECT_EQ(first->at({Transport::kTcp, 2}).latency_us, 1);
  EXPECT_EQ(medians_.Get(*distance_store_, *snapshot_), first);
  const auto same_fabric = std::make_shared<Snapshot>(*snapshot_);  // with another load, say
  EXPECT_EQ(medians_.Get(*distance_store_, *same_fabric), first);
  Put("n0", "n1", 5, 100);
  EXPECT_EQ(medians_.Get(*distance_store_, *snapshot_)->at({Transport::kTcp, 2}).latency_us, 5);
  EXPECT_EQ(first->at({Transport::kTcp, 2}).latency_us, 1);
  const auto other = *MakeSnapshot(SmallFabric(), nullptr);
  const auto of_snapshot = medians_.Get(*distance_store_, *snapshot_);
  EXPECT_NE(medians_.Get(*distance_store_, *other), of_snapshot);
}

// Over verbs everything is nearer than over TCP: a matrix of both would say who has verbs.
TEST_F(DistanceListingTest, EstimatesAndDistancesAreOverOneTransport) {
  Put("n0", "n1", 10, 10);
  Put("n2", "n3", 30, 10);
  Put("n0", "n2", 1, 100, Transport::kVerbs);
  Put("n1", "n3", 3, 200, Transport::kVerbs);
  Put("n1", "n2", 2, 400, Transport::kVerbs);
  const auto all = Find({"n0", "n1", "n2", "n3"}, true);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const DistanceRecord& record : *all) {
    EXPECT_EQ(record.transport, Transport::kVerbs);
    EXPECT_LE(record.latency_us, 3);
  }
  EXPECT_EQ((*all)[0].samples, 0u);    // measured over TCP
  EXPECT_EQ((*all)[0].latency_us, 2);  // the median of the three
  EXPECT_EQ((*all)[1].samples, 90u);
  const auto gaps = Places_({"n0", "n1", "n2", "n3"});
  ASSERT_TRUE(gaps.ok()) << gaps.status();
  EXPECT_DOUBLE_EQ((**gaps)(PlaceIndex(1), PlaceIndex(2)), 1);  // 400 Gb/s
  EXPECT_DOUBLE_EQ((**gaps)(PlaceIndex(0), PlaceIndex(1)), 2);  // the median, not 40
  // By these hosts, and by all where none of theirs was measured.
  EXPECT_EQ((*Find({"n0", "n1"}, true))[0].latency_us, 10);
  EXPECT_EQ((*Find({"n6", "n7"}, true))[0].latency_us, 2);
  // What was measured is listed as it is.
  EXPECT_EQ(Find({}, false)->size(), 5u);
}

TEST_F(DistanceListingTest, OneTransportCanBeAskedFor) {
  Put("n0", "n1", 10, 10);
  Put("n2", "n3", 1, 100, Transport::kVerbs);
  DistanceQuery query;
  query.transport = Transport::kVerbs;
  auto found = FindDistances(*distance_store_, snapshot_.get(), query, medians_);
  ASSERT_TRUE(found.ok() && found->size() == 1) << found.status();
  EXPECT_EQ(found->front().host_a, "n2");
  query.hosts = {"n0", "n1"};
  EXPECT_TRUE(FindDistances(*distance_store_, snapshot_.get(), query, medians_)->empty());
  query.estimate = true;
  found = FindDistances(*distance_store_, snapshot_.get(), query, medians_);
  ASSERT_TRUE(found.ok() && found->size() == 1) << found.status();
  EXPECT_EQ(found->front().latency_us, 1);
  query.hosts = {"n0", "n4"};
  const absl::Status refused =
      FindDistances(*distance_store_, snapshot_.get(), query, medians_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was not measured over verbs"));
}

// Of equally many verbs, which are the fabric's own.
TEST_F(DistanceListingTest, TheTransportOfMostPairsPrevails) {
  EXPECT_EQ(PrevailingTransport(*distance_store_, {"n0"}), Transport::kVerbs);  // of nothing
  Put("n0", "n1", 10, 10);
  EXPECT_EQ(medians_.Prevailing(*distance_store_, {"n0", "n1"}), Transport::kTcp);
  Put("n0", "n2", 1, 100, Transport::kVerbs);
  EXPECT_EQ(medians_.Prevailing(*distance_store_, {"n0", "n1"}), Transport::kTcp);
  EXPECT_EQ(medians_.Prevailing(*distance_store_, {"n0", "n1", "n2"}), Transport::kVerbs);
  Put("n1", "n2", 10, 10);
  EXPECT_EQ(medians_.Prevailing(*distance_store_, {"n0", "n1", "n2"}), Transport::kTcp);
}

TEST_F(DistanceListingTest, SaysWhatItCannotSay) {
  Put("n0", "n1", 1, 100);
  const auto refused = [&](const auto& result, absl::StatusCode code, const char* words) {
    EXPECT_EQ(result.status().code(), code) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(words));
  };
  refused(Find({"n0", "n4"}, true), absl::StatusCode::kFailedPrecondition, "n0 and n4");
  refused(Find({"n0", "n4"}, true), absl::StatusCode::kFailedPrecondition, "4 links apart");
  refused(Find({"n0", "nowhere"}, false), absl::StatusCode::kNotFound, "nowhere");
  refused(Find({}, true), absl::StatusCode::kInvalidArgument, "of 0 hosts");
  DistanceQuery many;
  many.estimate = true;
  for (int i = 0; i < 2049; ++i) {
    many.hosts.push_back(absl::StrCat("h", i));
    distance_store_->Put({{"a", many.hosts.back(), 1, 0, 1, 0, 1, absl::UnixEpoch()}});
  }
  refused(FindDistances(*distance_store_, snapshot_.get(), many, medians_),
          absl::StatusCode::kInvalidArgument, "of 2049 hosts");
  refused(Places_({"n0", "n4"}), absl::StatusCode::kFailedPrecondition, "n0 and n4");
}

TEST_F(DistanceListingTest, MakesTheDistancesOfPlaces) {
  Put("n0", "n1", 1, 100);
  Put("n0", "n4", 20, 40);
  Put("n1", "n4", 20, 25);
  const auto gaps = Places_({"n4", "n0", "n1", "n5"});
  ASSERT_TRUE(gaps.ok()) << gaps.status();
  const auto at = [&](uint32_t a, uint32_t b) { return (**gaps)(PlaceIndex(a), PlaceIndex(b)); };
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_DOUBLE_EQ(at(1, 2), 1);    // the least
  EXPECT_DOUBLE_EQ(at(0, 1), 2.5);  // 100 / 40
  EXPECT_DOUBLE_EQ(at(1, 0), 2.5);
  EXPECT_DOUBLE_EQ(at(0, 2), 4);
  EXPECT_DOUBLE_EQ(at(0, 3), 1);             // of n0 and n1's level
  EXPECT_DOUBLE_EQ(at(1, 3), 100.0 / 32.5);  // median bandwidth of 40 and 25
}

// n0 and n1 have their first ports on S0 and the second ones on S1; n2 and n3 the other way round.
TEST_F(DistanceListingTest, PortsOfOneHostOnTwoSwitchesAreApart) {
  const FabricPtr fabric = HostsOnTwoLeaves(2, 1, 2);
  const auto snapshot = *MakeSnapshot(fabric, nullptr);
  const auto name = [&](uint32_t h) { return std::string(fabric->host_name(HostIndex(h))); };
  std::vector<EndpointIndex> both;
  for (const uint32_t h : {0, 1}) {
    for (const EndpointIndex e : fabric->endpoints_of_host(HostIndex(h))) both.push_back(e);
  }
  ASSERT_EQ(both.size(), 4u);
  const std::shared_ptr<const Places> places = *Places::OfEndpoints(*fabric, both, 1);
  const auto measured = [&] { return MeasuredDistances(*places, *snapshot, *distance_store_, 0); };
  Put(name(0), name(1), 1, 100);
  const auto near = measured();  // as far apart as the farthest that were measured
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_DOUBLE_EQ((**near)(PlaceIndex(0), PlaceIndex(1)), 1);
  Put(name(0), name(2), 20, 40);
  Put(name(1), name(3), 20, 25);
  const auto gaps = measured();
  ASSERT_TRUE(gaps.ok()) << gaps.status();
  for (uint32_t a = 0; a < 4; ++a) {
    for (uint32_t b = 0; b < 4; ++b) {
      const bool is_one_host = a / 2 == b / 2;
      const double expected = a == b ? 0 : is_one_host ? 100.0 / 32.5 : 1;
      EXPECT_DOUBLE_EQ((**gaps)(PlaceIndex(a), PlaceIndex(b)), expected) << a << " " << b;
    }
  }
}

// As before: nothing is sent over the fabric between them.
TEST_F(DistanceListingTest, PortsOfOneHostOnOneSwitchAreNot) {
  const FabricPtr fabric = TwoLevelFatTree(2, 1, 2, 2);
  const auto snapshot = *MakeSnapshot(fabric, nullptr);
  Put(std::string(fabric->host_name(HostIndex(0))), std::string(fabric->host_name(HostIndex(1))), 1,
      100);
  std::vector<EndpointIndex> both;
  for (const uint32_t h : {0, 1}) {
    for (const EndpointIndex e : fabric->endpoints_of_host(HostIndex(h))) both.push_back(e);
  }
  const auto gaps =
      MeasuredDistances(**Places::OfEndpoints(*fabric, both, 1), *snapshot, *distance_store_, 0);
  ASSERT_TRUE(gaps.ok()) << gaps.status();
  EXPECT_EQ((**gaps)(PlaceIndex(0), PlaceIndex(1)), 0);
  EXPECT_EQ((**gaps)(PlaceIndex(1), PlaceIndex(2)), 1);
}

TEST_F(DistanceListingTest, CountsLatencyOnceAMessage) {
  Put("n0", "n1", 1, 80);   // 0.1 ns a byte and 1 us a message
  Put("n0", "n4", 19, 80);  // 19 us a message
  // Of 10,000 bytes: 1 + 1 us against 1 + 19 us.
  const auto times = Places_({"n0", "n1", "n4", "n5"}, 10'000);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_DOUBLE_EQ((**times)(PlaceIndex(0), PlaceIndex(1)), 1);
  EXPECT_DOUBLE_EQ((**times)(PlaceIndex(0), PlaceIndex(2)), 10);
}

}  // namespace
}  // namespace coppice::distance_listing_test
