// Every field of a request that names nodes takes lists of them, "n[0000-0003]", and says which
// entry it cannot read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "coppice/v1/agents.grpc.pb.h"
#include "coppice/v1/mapping.grpc.pb.h"
#include "coppice/v1/placements.grpc.pb.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::node_lists_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AgentsStub = v1::Agents::Stub;
using MappingStub = v1::Mapping::Stub;
using PlacementsStub = v1::Placements::Stub;

class NodeLists : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Job> Register(const std::string& nodes) {
    v1::RegisterJobRequest request;
    request.add_endpoints(nodes);
    return loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::RegisterJob, request);
  }
  static v1::MappingTask TaskOn(const std::string& nodes) {
    v1::MappingTask task;
    task.add_hosts(nodes);
    task.mutable_pattern()->set_rank_count(4);
    return task;
  }
  absl::StatusOr<v1::MappingEvaluation> Evaluate(const std::string& nodes) {
    v1::EvaluateMappingRequest request;
    *request.mutable_task() = TaskOn(nodes);
    return loopback_.Call(*mapping_, &MappingStub::EvaluateMapping, request);
  }
  absl::Status Map(const std::string& nodes) {
    v1::MapRanksRequest request;
    *request.mutable_task() = TaskOn(nodes);
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto stream = mapping_->MapRanks(&context, request);
    v1::MapRanksUpdate update;
    while (stream->Read(&update)) {
    }
    return Loopback::ToAbsl(stream->Finish());
  }
  absl::Status Measure(const std::string& nodes) {
    v1::MeasureDistancesRequest request;
    request.add_hosts(nodes);
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto stream = agents_->MeasureDistances(&context, request);
    v1::MeasureDistancesUpdate update;
    while (stream->Read(&update)) {
    }
    return Loopback::ToAbsl(stream->Finish());
  }
  absl::Status ListMeasured(const std::string& nodes) {
    v1::ListDistancesRequest request;
    request.add_hosts(nodes);
    return loopback_.Call(*agents_, &AgentsStub::ListDistances, request).status();
  }
  absl::StatusOr<v1::NodeDistances> Distances(const std::string& nodes) {
    v1::GetNodeDistancesRequest request;
    request.add_nodes(nodes);
    return loopback_.Call(*placements_, &PlacementsStub::GetNodeDistances, request);
  }
  absl::StatusOr<v1::Placement> Place(
      const std::function<void(v1::PlacementConstraints&)>& constrain) {
    v1::CreatePlacementRequest request;
    v1::PlacementConstraints& constraints = *request.mutable_placement()->mutable_constraints();
    constraints.set_node_count(2);
    constrain(constraints);
    return loopback_.Call(*placements_, &PlacementsStub::CreatePlacement, request);
  }

  Loopback loopback_;
  std::unique_ptr<MappingStub> mapping_ = v1::Mapping::NewStub(loopback_.Connect());
  std::unique_ptr<AgentsStub> agents_ = v1::Agents::NewStub(loopback_.Connect());
  std::unique_ptr<PlacementsStub> placements_ = v1::Placements::NewStub(loopback_.Connect());
};

TEST_F(NodeLists, StandForTheirNodesInEveryRequest) {
  const auto job = Register("n[0002-0003,0007]/1,n0001");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->endpoints(), ElementsAre("n0002/1", "n0003/1", "n0007/1", "n0001/1"));
  const auto measured = Evaluate("n[0000-0003]");
  EXPECT_TRUE(measured.ok()) << measured.status();
  EXPECT_TRUE(Map("n[0000-0003]").ok());
  EXPECT_TRUE(ListMeasured("n[0000-0003]").ok());
  const auto distances = Distances("n[0001-0002,0000]");
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_THAT(distances->nodes(), ElementsAre("n0001", "n0002", "n0000"));
  const auto placement = Place([](v1::PlacementConstraints& c) {
    c.add_candidates("n[0008-0011]");
    c.add_include("n[0010,0011]");
    c.add_avoid("n[0008-0009],n0012");
  });
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_THAT(placement->nodes(), ElementsAre("n0010", "n0011"));
  EXPECT_EQ(placement->node_list(), "n[0010-0011]");
  // Nobody measures here: each of the nodes is looked for among the agents.
  const absl::Status nobody = Measure("n[0000-0001]");
  EXPECT_NE(nobody.code(), StatusCode::kInvalidArgument) << nobody;
  EXPECT_NE(nobody.code(), StatusCode::kNotFound) << nobody;
}

TEST_F(NodeLists, ThatCannotBeReadAreNamed) {
  const auto refused = [](const absl::Status& status, const std::string& field) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field + "[0]: node list, letter 2"));
  };
  const std::string broken = "n[0000-";
  refused(Register(broken).status(), "endpoints");
  refused(Evaluate(broken).status(), "hosts");
  refused(Map(broken), "hosts");
  refused(Measure(broken), "hosts");
  refused(ListMeasured(broken), "hosts");
  refused(Distances(broken).status(), "nodes");
  refused(Place([&](v1::PlacementConstraints& c) { c.add_candidates(broken); }).status(),
          "candidates");
  refused(Place([&](v1::PlacementConstraints& c) { c.add_include(broken); }).status(), "include");
  refused(Place([&](v1::PlacementConstraints& c) { c.add_avoid(broken); }).status(), "avoid");
}

}  // namespace
}  // namespace coppice::node_lists_test
