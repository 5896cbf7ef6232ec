// What is told of two views: the kinds, their objects, and that many of a kind become one.
#include "daemon/manager/fabric_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::fabric_events_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

FabricView ViewOf(std::shared_ptr<const Fabric> fabric, std::vector<UnansweredNode> silent = {},
                  const FabricView* before = nullptr) {
  FabricView view;
  view.snapshot = *MakeSnapshot(std::move(fabric), nullptr);
  view.unanswered = std::move(silent);
  view.unseen = FindUnseen(view.unanswered, *view.snapshot->fabric,
                           before != nullptr ? before->snapshot->fabric.get() : nullptr,
                           before != nullptr ? before->unseen : Unseen(), absl::Seconds(1));
  return view;
}

// "KIND OBJECT".
std::vector<std::string> Told(const FabricView* before, const FabricView& now) {
  std::vector<std::string> told;
  for (const EventRecord& event : FabricEvents(before, now, absl::UnixEpoch())) {
    told.push_back(event.kind + " " + event.object);
    EXPECT_THAT(event.severity, testing::AnyOf("info", "warning", "error"));
    EXPECT_FALSE(event.message.empty());
  }
  return told;
}

std::string Link(Guid a, int a_port, Guid b, int b_port) {
  return absl::StrCat("link:", ToString(a), "/", a_port, "-", ToString(b), "/", b_port);
}
std::string Switch(Guid guid) { return "switch:" + ToString(guid); }

TEST(FabricEvents, NothingIsToldOfTheFirstViewOrOfAnEqualOne) {
  const FabricView view = ViewOf(SmallFabric()), again = ViewOf(SmallFabric());
  EXPECT_THAT(Told(nullptr, view), IsEmpty());
  EXPECT_THAT(Told(&view, view), IsEmpty());
  EXPECT_THAT(Told(&view, again), IsEmpty());
}

TEST(FabricEvents, ALostCable) {
  const FabricView whole = ViewOf(SmallFabric());
  const FabricView cut = ViewOf(SmallFabric({.missing_cables = {{1, 0}}}));
  const std::string link = Link(LeafGuid(1), 1, SpineGuid(0), 2);
  EXPECT_THAT(Told(&whole, cut), ElementsAre("link.down " + link));
  EXPECT_THAT(Told(&cut, whole), ElementsAre("link.up " + link));
  const auto events = FabricEvents(&whole, cut, absl::UnixEpoch());
  EXPECT_THAT(events.at(0).message, HasSubstr("\"leaf1\" port 1 to switch"));
}

TEST(FabricEvents, AHostThatGoesAndComes) {
  const FabricView whole = ViewOf(SmallFabric()),
                   less = ViewOf(SmallFabric({.missing_hosts = {5}}));
  const std::string link = Link(LeafGuid(1), 4, Guid(0x1005), 1);
  EXPECT_THAT(Told(&whole, less), UnorderedElementsAre("link.down " + link, "node.gone host:n5"));
  EXPECT_THAT(Told(&less, whole), UnorderedElementsAre("link.up " + link, "node.new host:n5"));
}

// Of ports that were there before and are now.
TEST(FabricEvents, APortInOtherPartitions) {
  const auto view_of = [](PartitionTable of_host, PartitionTable of_switch) {
    FabricView view = ViewOf(SmallFabric());
    const Fabric& fabric = *view.snapshot->fabric;
    auto partitions = std::make_shared<Partitions>();
    partitions->Set(fabric.endpoint(EndpointIndex(0)).port_guid, std::move(of_host));
    partitions->Set(LeafGuid(1), std::move(of_switch));
    auto snapshot = std::make_shared<Snapshot>(*view.snapshot);
    snapshot->partitions = std::move(partitions);
    view.snapshot = std::move(snapshot);
    return view;
  };
  const FabricView before = view_of({0xFFFF, 0x8001}, {0xFFFF});
  // Another index is no other membership.
  EXPECT_THAT(Told(&before, view_of({0x8001, 0, 0xFFFF}, {0xFFFF})), IsEmpty());
  const FabricView now = view_of({0xFFFF, 0x0001, 0x8002}, {});
  EXPECT_THAT(Told(&before, now), UnorderedElementsAre("partitions.changed partition:0x0001",
                                                       "partitions.changed partition:0x0002",
                                                       "partitions.changed partition:0x7fff"));
  const auto events = FabricEvents(&before, now, absl::UnixEpoch());
  EXPECT_EQ(events.at(0).message, "1 port has another membership: n0/1 from full to limited");
}

FabricView InPartitions(Partitions partitions) {
  FabricView view = ViewOf(SmallFabric());
  auto snapshot = std::make_shared<Snapshot>(*view.snapshot);
  snapshot->partitions = std::make_shared<const Partitions>(std::move(partitions));
  view.snapshot = std::move(snapshot);
  return view;
}

// A table that was not read tells of no change, as it is not empty.
TEST(FabricEvents, OneEventForAllThatAPartitionIsGiven) {
  const std::shared_ptr<const Fabric> small = SmallFabric();
  const Fabric& fabric = *small;
  Partitions none, all, none_known;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    none.Set(fabric.endpoint(EndpointIndex(e)).port_guid, {0xFFFF});
    all.Set(fabric.endpoint(EndpointIndex(e)).port_guid, {0xFFFF, 0x8001});
  }
  const FabricView before = InPartitions(std::move(none)), now = InPartitions(std::move(all));
  EXPECT_THAT(Told(&before, InPartitions(std::move(none_known))), IsEmpty());
  const auto events = FabricEvents(&before, now, absl::UnixEpoch());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object, "partition:0x0001");
  EXPECT_THAT(
      events[0].message,
      testing::AllOf(testing::StartsWith("16 ports have another membership: n0/1 from none "),
                     testing::EndsWith(", ...")));
}

TEST(FabricEvents, WherePortsOfSwitchesLook) {
  const auto looking = [](bool inbound, PartitionTable table) {
    Partitions partitions;
    partitions.SetEnforced(LeafGuid(0), PortNum(1), {inbound, true, std::move(table)});
    return InPartitions(std::move(partitions));
  };
  const FabricView before = looking(false, {0x8001});
  EXPECT_THAT(Told(&before, looking(false, {0x8001})), IsEmpty());
  for (const FabricView& now :
       {looking(true, {0x8001}), looking(false, {0x8002}), InPartitions(Partitions())}) {
    const auto events = FabricEvents(&before, now, absl::UnixEpoch());
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].object, "fabric");
    EXPECT_THAT(events[0].message, HasSubstr("1 port of switches lets other partitions pass: "));
    EXPECT_THAT(events[0].message, HasSubstr(" port 1"));
  }
}

TEST(FabricEvents, ASwitchThatGoesTakesItsLinks) {
  const FabricView whole = ViewOf(SmallFabric()),
                   less = ViewOf(SmallFabric({.missing_spines = {1}}));
  std::vector<std::string> expected = {"switch.gone " + Switch(SpineGuid(1))};
  for (int leaf = 0; leaf < 4; ++leaf) {
    expected.push_back("link.down " + Link(LeafGuid(leaf), 2, SpineGuid(1), leaf + 1));
  }
  EXPECT_THAT(Told(&whole, less), testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(Told(&less, whole), testing::Contains("switch.new " + Switch(SpineGuid(1))));
}

TEST(FabricEvents, WhatDoesNotAnswerIsUnreachableUntilItAnswersOrIsGone) {
  const FabricView whole = ViewOf(SmallFabric());
  const std::vector<UnansweredNode> silent = {{"0,1", LeafGuid(0), PortNum(2), "NodeInfo"},
                                              {"0,2", LeafGuid(1), PortNum(2), "NodeInfo"}};
  const FabricView without = ViewOf(SmallFabric({.missing_spines = {1}}), silent, &whole);
  const std::string spine = Switch(SpineGuid(1));
  auto told = Told(&whole, without);
  EXPECT_EQ(5u, told.size());  // its four links, and
  EXPECT_THAT(told, testing::Contains("switch.unreachable " + spine));
  // Its cables are gone with it; what was known of them is remembered.
  const FabricView still = ViewOf(SmallFabric({.missing_spines = {1}}), silent, &without);
  EXPECT_THAT(Told(&without, still), IsEmpty());
  told = Told(&still, whole);
  EXPECT_EQ(5u, told.size());
  EXPECT_THAT(told, testing::Contains("switch.reachable " + spine));
  const FabricView gone = ViewOf(SmallFabric({.missing_spines = {1}}));
  EXPECT_THAT(Told(&still, gone), ElementsAre("switch.gone " + spine));
}

TEST(FabricEvents, ANodeThatAnswersHalfStaysInTheFabric) {
  const FabricView whole = ViewOf(SmallFabric());
  const FabricView half =
      ViewOf(SmallFabric(), {{"0,1", LeafGuid(0), PortNum(3), "NodeDescription"}}, &whole);
  EXPECT_THAT(Told(&whole, half), ElementsAre("node.unreachable host:n0"));
  EXPECT_THAT(Told(&half, whole), ElementsAre("node.reachable host:n0"));
  EXPECT_THAT(Told(nullptr, half), ElementsAre("node.unreachable host:n0"));
}

// By its own GUID, whatever the cable is that it was found by.
TEST(FabricEvents, ASwitchThatAnswersHalfIsUnreachable) {
  const FabricView whole = ViewOf(SmallFabric());
  const FabricView half =
      ViewOf(SmallFabric(), {{"0,1", Guid(0x1004), PortNum(1), "PortInfo of port 7", LeafGuid(1)}},
             &whole);
  EXPECT_THAT(Told(&whole, half), ElementsAre("switch.unreachable " + Switch(LeafGuid(1))));
  EXPECT_THAT(Told(&half, whole), ElementsAre("switch.reachable " + Switch(LeafGuid(1))));
}

TEST(FabricEvents, WhatContradictsTheRestIsNoSilence) {
  const FabricView whole = ViewOf(SmallFabric());
  const FabricView noted = ViewOf(
      SmallFabric(), {{"0,1", LeafGuid(0), PortNum(3), "LID 7 is also", Guid(), false}}, &whole);
  EXPECT_THAT(Told(&whole, noted), IsEmpty());
  EXPECT_EQ(nullptr, noted.unseen.hidden);
}

TEST(FabricEvents, ManyOfAKindAreOneEvent) {
  const FabricShape large{4, 2, 32};
  FabricShape less = large;
  for (uint32_t host = 0; host < 65; ++host) less.missing_hosts.insert(host);
  const FabricView before = ViewOf(SmallFabric(large)), now = ViewOf(SmallFabric(less));
  EXPECT_THAT(Told(&before, now), UnorderedElementsAre("link.down fabric", "node.gone fabric"));
  const auto events = FabricEvents(&before, now, absl::UnixEpoch());
  EXPECT_THAT(events.at(1).message, HasSubstr("65 of these in one sweep: host:n0, host:n1"));
  less.missing_hosts.erase(64);
  EXPECT_EQ(128u, Told(&before, ViewOf(SmallFabric(less))).size());
}

TEST(FabricEvents, TheSubnetManager) {
  FabricView none = ViewOf(SmallFabric()), first = ViewOf(SmallFabric());
  FabricView second = ViewOf(SmallFabric());
  none.has_subnet_manager = false;
  first.subnet_manager_lid = Lid(3);
  second.subnet_manager_lid = Lid(4);
  EXPECT_THAT(Told(&first, none), ElementsAre("sm.lost fabric"));
  EXPECT_THAT(Told(&none, first), ElementsAre("sm.found fabric"));
  FabricView silent = first;
  silent.is_subnet_manager_silent = true;
  EXPECT_THAT(Told(&first, silent), ElementsAre("sm.lost fabric"));
  EXPECT_THAT(Told(&silent, silent), ElementsAre());
  EXPECT_THAT(Told(&silent, first), ElementsAre("sm.found fabric"));
  EXPECT_THAT(Told(&first, second), ElementsAre("sm.changed fabric"));
  EXPECT_THAT(Told(&first, first), IsEmpty());
}

}  // namespace
}  // namespace coppice::fabric_events_test
