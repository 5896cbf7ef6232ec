// The Placements service over a real socket: what is answered, to whom, and with which details.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "coppice/v1/mapping.grpc.pb.h"
#include "coppice/v1/placements.grpc.pb.h"
#include "daemon/placement/placement_request.h"
#include "daemon/rpc/conversion/patterns.h"
#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/users.h"

namespace coppice::placements_service_test {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Stub = v1::Placements::Stub;

class PlacementsServiceTest : public ::testing::Test {
 protected:
  v1::CreatePlacementRequest Nodes(uint32_t count) {
    v1::CreatePlacementRequest request;
    request.set_display_name("melt");
    request.mutable_placement()->mutable_constraints()->set_node_count(count);
    return request;
  }
  absl::StatusOr<v1::Placement> Create(const v1::CreatePlacementRequest& request) {
    return loopback_.Call(*stub_, &Stub::CreatePlacement, request);
  }
  absl::StatusOr<v1::Placement> Get(const std::string& id) {
    v1::GetPlacementRequest request;
    request.set_id(id);
    return loopback_.Call(*stub_, &Stub::GetPlacement, request);
  }

  Loopback loopback_;
  std::unique_ptr<Stub> stub_ = v1::Placements::NewStub(loopback_.Connect());
};

using google::protobuf::FieldDescriptor;
using Fields = std::vector<std::pair<std::string, FieldDescriptor::CppType>>;

Fields FieldsOf(const google::protobuf::Descriptor& message) {
  Fields fields;
  for (int i = 0; i < message.field_count(); ++i) {
    fields.emplace_back(message.field(i)->name(), message.field(i)->cpp_type());
  }
  return fields;
}

FieldDescriptor::CppType TypeOf(const PlacementMeasure& measure) {
  constexpr FieldDescriptor::CppType kTypes[] = {FieldDescriptor::CPPTYPE_UINT32,
                                                 FieldDescriptor::CPPTYPE_INT32,
                                                 FieldDescriptor::CPPTYPE_DOUBLE};
  return kTypes[measure.member.index()];
}

// What is converted by name: all of it is there, of its type, and nothing else.
TEST(PlacementMessages, HaveEveryTermAndMeasure) {
  Fields terms, measures;
  for (const PlacementTerm& term : kPlacementTerms) {
    terms.emplace_back(term.name, FieldDescriptor::CPPTYPE_DOUBLE);
  }
  ForEachMeasure([&](const PlacementMeasure& measure) {
    measures.emplace_back(measure.name, TypeOf(measure));
  });
  EXPECT_EQ(FieldsOf(*v1::PlacementObjective::descriptor()), terms);
  EXPECT_THAT(FieldsOf(*v1::PlacementMeasures::descriptor()),
              testing::UnorderedElementsAreArray(measures));
}

TEST_F(PlacementsServiceTest, FromRequestToJob) {
  v1::CreatePlacementRequest request = Nodes(4);
  request.mutable_term()->set_seconds(90);
  request.mutable_placement()->mutable_traffic()->set_ranks_per_node(2);
  const auto placement = Create(request);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->state(), v1::PLACEMENT_STATE_HELD);
  EXPECT_EQ(placement->measures().leaf_switches(), 1u);
  EXPECT_EQ(placement->term_left().seconds(), 90);
  EXPECT_NE(placement->reason(), "");
  v1::StartPlacementRequest start;
  start.set_id(placement->id());
  const auto job = loopback_.Call(*stub_, &Stub::StartPlacement, start);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->display_name(), "melt");
  ASSERT_THAT(job->endpoints(), SizeIs(8));
  EXPECT_EQ(job->endpoints(7), placement->nodes(3) + "/1");
  const auto started = Get(placement->id());
  EXPECT_EQ(started->state(), v1::PLACEMENT_STATE_STARTED);
  EXPECT_EQ(started->job_id(), job->id());
  v1::GetNodeDistancesRequest ask;
  ask.set_job_id(job->id());
  const auto distances = loopback_.Call(*stub_, &Stub::GetNodeDistances, ask);
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_THAT(distances->hops(), SizeIs(16));
  ask.set_placement_id(placement->id());
  EXPECT_EQ(loopback_.Call(*stub_, &Stub::GetNodeDistances, ask).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(PlacementsServiceTest, RefusalsSayWhoHoldsTheNodes) {
  ASSERT_TRUE(Create(Nodes(10)).ok());
  const absl::Status full = Create(Nodes(7)).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full;
  const auto quota = GetDetail<google::rpc::QuotaFailure>(full);
  ASSERT_TRUE(quota.has_value());
  ASSERT_EQ(quota->violations_size(), 1);
  EXPECT_EQ(quota->violations(0).subject(), "placement:1");
  EXPECT_THAT(quota->violations(0).description(), HasSubstr("10 nodes of "));
}

TEST_F(PlacementsServiceTest, BadRequestsAreNamed) {
  const auto refused = [&](const v1::CreatePlacementRequest& request, const char* words) {
    const absl::Status status = Create(request).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused(Nodes(0), "nodes: ask");
  v1::CreatePlacementRequest request = Nodes(1);
  request.mutable_term()->set_nanos(-2'000'000'000);
  refused(request, "term");
  request = Nodes(1);
  request.mutable_placement()->mutable_budget();
  refused(request, "budget");
  request = Nodes(1);
  request.mutable_placement()->mutable_traffic()->set_pattern_name("x");
  request.mutable_placement()->mutable_traffic()->mutable_pattern();
  refused(request, "pattern_name");
  request.mutable_placement()->mutable_traffic()->clear_pattern();
  EXPECT_EQ(Create(request).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Get("x").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Get("9").status().code(), StatusCode::kNotFound);
}

TEST_F(PlacementsServiceTest, BatchesAndPages) {
  v1::BatchCreatePlacementsRequest batch;
  for (int i = 0; i < 4; ++i) *batch.add_requests() = Nodes(2);
  const auto made = loopback_.Call(*stub_, &Stub::BatchCreatePlacements, batch);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->placements(), SizeIs(4));
  v1::ListPlacementsRequest list;
  list.set_page_size(3);
  const auto first = loopback_.Call(*stub_, &Stub::ListPlacements, list);
  ASSERT_THAT(first->placements(), SizeIs(3));
  EXPECT_FALSE(first->placements(0).has_measures());
  list.set_page_token(first->next_page_token());
  const auto last = loopback_.Call(*stub_, &Stub::ListPlacements, list);
  EXPECT_THAT(last->placements(), SizeIs(1));
  EXPECT_EQ(last->next_page_token(), "");
  *batch.mutable_requests(2) = Nodes(17);
  EXPECT_THAT(
      std::string(loopback_.Call(*stub_, &Stub::BatchCreatePlacements, batch).status().message()),
      HasSubstr("requests[2]"));
}

TEST_F(PlacementsServiceTest, BelongToTheirOwners) {
  ASSERT_TRUE(MayActAsOthers());
  const std::string address = loopback_.server().addresses()[0];
  const auto daemon = v1::Placements::NewStub(ChannelOf(ConnectAs(kDaemonUser, address)));
  const auto bin = v1::Placements::NewStub(ChannelOf(ConnectAs(kBinUser, address)));
  const auto placement = loopback_.Call(*daemon, &Stub::CreatePlacement, Nodes(2));
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->owner(), "daemon");
  v1::ReleasePlacementRequest release;
  release.set_id(placement->id());
  v1::RenewPlacementRequest renew;
  renew.set_id(placement->id());
  v1::StartPlacementRequest start;
  start.set_id(placement->id());
  for (const absl::Status& denied :
       {loopback_.Call(*bin, &Stub::ReleasePlacement, release).status(),
        loopback_.Call(*bin, &Stub::RenewPlacement, renew).status(),
        loopback_.Call(*bin, &Stub::StartPlacement, start).status()}) {
    EXPECT_EQ(denied.code(), StatusCode::kPermissionDenied) << denied;
    EXPECT_THAT(std::string(denied.message()), HasSubstr("belongs to daemon"));
  }
  EXPECT_TRUE(loopback_.Call(*daemon, &Stub::RenewPlacement, renew).ok());
  const auto job = loopback_.Call(*stub_, &Stub::StartPlacement, start);  // an administrator
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner(), "daemon");
}

// A call of 20 KB may name a pattern of any size a thousand times.
class PlacementPatternsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRanks = 2000;
  static constexpr int kRequests = 1000;
  static constexpr uint32_t kMaxIdleRanks = 1 << 20;

  static Loopback::Options Small() {
    Loopback::Options options;
    options.mapper.memory_bytes = 4 << 20;  // for a few of the patterns, not for a thousand
    return options;
  }
  v1::AdvisePlacementRequest Naming(const std::string& name) {
    v1::AdvisePlacementRequest request;
    for (int i = 0; i < kRequests; ++i) {
      v1::PlacementRequest& one = *request.add_requests();
      one.mutable_constraints()->set_node_count(1);
      one.mutable_traffic()->set_pattern_name(name);
    }
    return request;
  }
  void Put(const std::string& name) {
    v1::PutPatternRequest request;
    request.set_name(name);
    v1::CommunicationPattern& pattern = *request.mutable_pattern();
    pattern.set_rank_count(kRanks);
    for (uint32_t rank = 0; rank + 1 < kRanks; ++rank) {
      pattern.add_from(rank);
      pattern.add_to(rank + 1);
      pattern.add_bytes(1);
    }
    const auto stub = v1::Mapping::NewStub(loopback_.Connect());
    ASSERT_TRUE(loopback_.Call(*stub, &v1::Mapping::Stub::PutPattern, request).ok());
  }
  absl::Status Advise(const v1::AdvisePlacementRequest& request) {
    return loopback_.Call(*stub_, &Stub::AdvisePlacement, request).status();
  }
  // What a call held goes just after its answer.
  bool AllIsGivenBack() {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (loopback_.parts().mapper->memory().taken() != 0 && absl::Now() < deadline) {
      std::this_thread::yield();
    }
    return loopback_.parts().mapper->memory().taken() == 0;
  }
  // As placements that are to be made.
  absl::Status CreateAll(const v1::AdvisePlacementRequest& request) {
    v1::BatchCreatePlacementsRequest batch;
    for (const v1::PlacementRequest& one : request.requests()) {
      *batch.add_requests()->mutable_placement() = one;
    }
    return loopback_.Call(*stub_, &Stub::BatchCreatePlacements, batch).status();
  }

  Loopback loopback_{Small()};
  const std::unique_ptr<Stub> stub_ = v1::Placements::NewStub(loopback_.Connect());
};

TEST_F(PlacementPatternsTest, AStoredOneIsReadOnceForAllRequestsOfACall) {
  Put("x");
  // Too many ranks for one node: which is found out after all have been read.
  for (const absl::Status& status : {Advise(Naming("x")), CreateAll(Naming("x"))}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a pattern of 2000 ranks"));
  }
  EXPECT_TRUE(AllIsGivenBack());
}

TEST_F(PlacementPatternsTest, CountInTheMemoryOfSearches) {
  v1::AdvisePlacementRequest request = Naming("");
  for (v1::PlacementRequest& one : *request.mutable_requests()) {
    one.mutable_traffic()->mutable_pattern()->set_rank_count(kRanks);  // nobody talks
  }
  for (const absl::Status& status : {Advise(request), CreateAll(request)}) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("reading this pattern"));
  }
  EXPECT_TRUE(AllIsGivenBack());
}

TEST_F(PlacementPatternsTest, OfOneCallLeaveRoomForOthers) {
  MemoryBudget memory(size_t{1} << 30);
  PlacementPatterns patterns(nullptr, &memory, "ada");
  v1::PlacementTraffic traffic;
  traffic.mutable_pattern()->set_rank_count(kMaxIdleRanks);
  std::vector<std::shared_ptr<const Pattern>> read;
  absl::Status status;
  while (status.ok() && read.size() < 1000) {
    auto pattern = patterns.Of(traffic);
    status = pattern.status();
    if (status.ok()) read.push_back(*std::move(pattern));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 128 MiB"));
  EXPECT_GT(read.size(), 10u);
  EXPECT_LE(memory.taken(), PlacementPatterns::kMaxBytes);
}

// Advice takes nothing, but processors: of callers with a name, as all that is planned.
TEST_F(PlacementsServiceTest, WhoMayOnlyReadMayNotEvenAskForAdvice) {
  ASSERT_TRUE(MayActAsOthers());
  const auto bin =
      v1::Placements::NewStub(ChannelOf(ConnectAs(kBinUser, loopback_.server().addresses()[0])));
  const auto ask = [&](auto method, const auto& request, auto* response) {
    grpc::ClientContext context;
    context.AddMetadata("coppice-user", "daemon");  // from no administrator: it may only read
    Loopback::SetDeadline(context);
    return Loopback::ToAbsl((*bin.*method)(&context, request, response));
  };
  v1::AdvisePlacementRequest advise;
  *advise.add_requests() = Nodes(4).placement();
  v1::AdvisePlacementResponse advice;
  EXPECT_EQ(ask(&Stub::AdvisePlacement, advise, &advice).code(), StatusCode::kPermissionDenied);
  const auto advised = loopback_.Call(*bin, &Stub::AdvisePlacement, advise);  // as itself
  ASSERT_TRUE(advised.ok()) << advised.status();
  EXPECT_THAT(advised->placements(0).nodes(), SizeIs(4));
  v1::Placement placement;
  EXPECT_EQ(ask(&Stub::CreatePlacement, Nodes(4), &placement).code(),
            StatusCode::kPermissionDenied);
  v1::BatchCreatePlacementsRequest batch;
  *batch.add_requests() = Nodes(4);
  v1::BatchCreatePlacementsResponse made;
  EXPECT_EQ(ask(&Stub::BatchCreatePlacements, batch, &made).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(loopback_.manager().Counts().placed_nodes, 0u);
}

}  // namespace
}  // namespace coppice::placements_service_test
