#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::fabric_service_test {
namespace {

using FabricStub = v1::Fabric::Stub;

class FabricServiceTest : public ::testing::Test {
 protected:
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (FabricStub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                                const Request& request) {
    return loopback_.Call(loopback_.fabric(), method, request);
  }
  absl::StatusOr<v1::Route> Route(const std::string& from, const std::string& to) {
    v1::GetRouteRequest request;
    request.set_from(from);
    request.set_to(to);
    return Call(&FabricStub::GetRoute, request);
  }
  // All items, three a page.
  template <class Request, class Response, class Items>
  auto ListAll(grpc::Status (FabricStub::*method)(grpc::ClientContext*, const Request&, Response*),
               Items items) {
    Request request;
    request.set_page_size(3);
    Response all;
    do {
      const auto page = Call(method, request);
      EXPECT_TRUE(page.ok()) << page.status();
      EXPECT_LE(items(*page).size(), 3);
      all.MergeFrom(*page);
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return items(all);
  }
  Loopback loopback_;
};

TEST_F(FabricServiceTest, Summarises) {
  const auto summary = Call(&FabricStub::GetFabric, v1::GetFabricRequest());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GE(summary->version(), 1);
  EXPECT_EQ(summary->source(), kSmallFabric);
  EXPECT_EQ(summary->switch_count(), 6);
  EXPECT_EQ(summary->endpoint_count(), 16);
  EXPECT_EQ(summary->link_count(), 16 + 4 * 2);
  EXPECT_EQ(summary->entries_total(), 12);
  EXPECT_EQ(summary->last_sweep_error(), "");
  EXPECT_GT(summary->levels_size(), 1);
}

TEST_F(FabricServiceTest, ListsEverythingPageByPage) {
  const auto switches = ListAll(&FabricStub::ListSwitches,
                                [](const v1::ListSwitchesResponse& r) { return r.switches(); });
  ASSERT_EQ(switches.size(), 6);
  uint32_t endpoints = 0;
  for (const v1::Switch& s : switches) endpoints += s.endpoint_count();
  EXPECT_EQ(endpoints, 16);
  const auto links =
      ListAll(&FabricStub::ListLinks, [](const v1::ListLinksResponse& r) { return r.links(); });
  EXPECT_EQ(links.size(), 24);
  const auto nodes =
      ListAll(&FabricStub::ListNodes, [](const v1::ListNodesResponse& r) { return r.nodes(); });
  std::set<std::string> guids;
  for (const v1::Node& node : nodes) guids.insert(node.port_guid());
  EXPECT_EQ(guids.size(), 16);
}

TEST_F(FabricServiceTest, TellsTokensThatAreNoneFromStaleOnes) {
  v1::ListLinksRequest request;
  request.set_page_token("soon");
  EXPECT_EQ(Call(&FabricStub::ListLinks, request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.set_page_token("999.3");
  const absl::Status moved = Call(&FabricStub::ListLinks, request).status();
  EXPECT_EQ(moved.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(GetDetail<google::rpc::ErrorInfo>(moved)->reason(), "FABRIC_MOVED");
}

TEST_F(FabricServiceTest, CountsEntriesWhereTreesTakeThem) {
  v1::CreateTreeRequest create;
  create.set_job_id(loopback_.RegisterAll());
  create.set_type(v1::TREE_TYPE_II);
  const auto tree = loopback_.Call(loopback_.trees(), &v1::Trees::Stub::CreateTree, create);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const auto list = Call(&FabricStub::ListSwitches, v1::ListSwitchesRequest());
  ASSERT_TRUE(list.ok()) << list.status();
  uint32_t holding = 0;
  for (const v1::Switch& s : list->switches()) {
    EXPECT_FALSE(s.has_agent());
    EXPECT_EQ(s.entries_free() + s.entries_taken(), 2);
    EXPECT_EQ(s.tree_ids_size(), static_cast<int>(s.entries_taken()));
    for (const std::string& id : s.tree_ids()) EXPECT_EQ(id, tree->id());
    holding += s.entries_taken();
  }
  EXPECT_EQ(holding, tree->switch_count());
}

TEST_F(FabricServiceTest, FindsRoutes) {
  const auto nodes = Call(&FabricStub::ListNodes, v1::ListNodesRequest());
  const v1::Node& first = nodes->nodes(0);
  const v1::Node& last = nodes->nodes(15);
  const auto route = Route(first.host(), last.port_guid());
  ASSERT_TRUE(route.ok()) << route.status();
  ASSERT_EQ(route->hops_size(), 4);
  EXPECT_EQ(route->hops(0).name(), first.host());
  EXPECT_EQ(route->hops(3).to_name(), last.host());
  EXPECT_EQ(route->hops(0).to_guid(), first.switch_guid());
  const auto up = Route(first.host() + "/1", "switch:" + first.switch_guid());
  ASSERT_TRUE(up.ok()) << up.status();
  EXPECT_EQ(up->hops_size(), 1);
  EXPECT_EQ(Route("nowhere", first.host()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Route("switch:00000000000000aa", first.host()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Route("switch:aa", first.host()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Route("", first.host()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FabricServiceTest, SweepsOnRequest) {
  const auto swept = Call(&FabricStub::Sweep, v1::SweepRequest());
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_EQ(swept->endpoint_count(), 16);
}

TEST_F(FabricServiceTest, GivesTheTypeTable) {
  const auto table = Call(&FabricStub::GetTypeTable, v1::GetTypeTableRequest());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->profile(), "hdr");
  EXPECT_EQ(table->members(), 16);
  std::set<int> operations;
  for (const v1::TypeTableRow& row : table->rows()) {
    operations.insert(row.operation());
    EXPECT_LE(row.min_bytes(), row.max_bytes());
    EXPECT_NE(row.type(), v1::TREE_TYPE_UNSPECIFIED);
  }
  EXPECT_EQ(operations.size(), 4);
}

TEST_F(FabricServiceTest, ListsEventsPageByPage) {
  v1::ListEventsRequest request;
  request.set_page_size(1);
  const auto first = Call(&FabricStub::ListEvents, request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->events_size(), 1);  // the sweep
  request.set_min_severity("loud");
  EXPECT_EQ(Call(&FabricStub::ListEvents, request).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.clear_min_severity();
  request.set_object("no such object");
  EXPECT_EQ(Call(&FabricStub::ListEvents, request)->events_size(), 0);
}

TEST(FabricWithoutSweep, IsUnavailableButForSweepAndEvents) {
  Loopback loopback({.fabric = "file:/nonexistent/net"});
  const auto code = [&](auto method, auto request) {
    return loopback.Call(loopback.fabric(), method, request).status().code();
  };
  EXPECT_EQ(code(&FabricStub::GetFabric, v1::GetFabricRequest()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(&FabricStub::ListSwitches, v1::ListSwitchesRequest()),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(&FabricStub::ListLinks, v1::ListLinksRequest()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(&FabricStub::ListNodes, v1::ListNodesRequest()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(&FabricStub::GetRoute, v1::GetRouteRequest()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(&FabricStub::GetTypeTable, v1::GetTypeTableRequest()),
            absl::StatusCode::kUnavailable);
  v1::GetTypeTableRequest table;
  table.set_members(16);  // then nothing of a fabric is asked
  EXPECT_EQ(code(&FabricStub::GetTypeTable, table), absl::StatusCode::kOk);
  EXPECT_EQ(code(&FabricStub::ListEvents, v1::ListEventsRequest()), absl::StatusCode::kOk);
  EXPECT_EQ(code(&FabricStub::Sweep, v1::SweepRequest()), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace coppice::fabric_service_test
