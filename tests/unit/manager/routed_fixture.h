// A subnet whose forwarding tables come after its cables, and what the tests of grants and repairs
// do on it.
#ifndef COPPICE_TESTS_UNIT_MANAGER_ROUTED_FIXTURE_H_
#define COPPICE_TESTS_UNIT_MANAGER_ROUTED_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice {

// The fabric of one shape with the tables that a subnet manager made for another.
inline SweepResult RoutedSweep(FabricShape present, FabricShape routed) {
  present.has_lids = routed.has_lids = true;
  SweepResult result;
  result.fabric = SmallFabric(present);
  const std::shared_ptr<const Fabric> old = SmallFabric(routed);
  const std::shared_ptr<const Routes> routes = Routes::ShortestPaths(old);
  auto tables = std::make_shared<ForwardingTables>(result.fabric->switch_count());
  for (uint32_t i = 0; i < result.fabric->switch_count(); ++i) {
    std::vector<uint8_t> row(0x6000, ForwardingTables::kNoRoute);
    const auto s = old->FindSwitch(result.fabric->switch_info(SwitchIndex(i)).guid);
    for (uint32_t v = 0; s && v < old->vertex_count(); ++v) {
      const VertexIndex to(v);
      const ChannelIndex next = routes->NextChannel(*s, to);
      if (next != kNoChannel) row[old->lid(to).value()] = old->channel_from_port(next).value();
    }
    tables->SetRow(SwitchIndex(i), std::move(row));
  }
  result.tables = std::move(tables);
  return result;
}

class RoutedManagerTest : public ManagerTest {
 protected:
  void SweepTo(const FabricShape& present, const FabricShape& routed) {
    port_.Set(absl::StatusOr<SweepResult>(RoutedSweep(present, routed)));
    const auto swept = manager_->Sweep();
    ASSERT_TRUE(swept.ok()) << swept.status();
    ExpectAllStand(*manager_);
    ExpectConserved();
  }
  void Begin(uint32_t entries = 3) {
    Boot(Options(entries, 7), false);
    port_.Set(absl::StatusOr<SweepResult>(RoutedSweep({}, {})));
    ASSERT_TRUE(manager_->Sweep().ok());
  }
  absl::StatusOr<TreeView> TreeOver(uint32_t first, uint32_t last, CollectiveMix mix = {}) {
    RegisterJobArgs job;
    for (uint32_t host = first; host <= last; ++host) {
      job.endpoints.push_back(ToString(PortGuid(host)));
    }
    const auto view = Register(job);
    if (!view.ok()) return view.status();
    CreateTreeArgs tree = TreeOf(view->record->id);
    static_cast<CollectiveMix&>(tree) = std::move(mix);
    return Create(std::move(tree));
  }
  static uint32_t SpineOf(const TreeRecord& record) {
    for (const TreeSwitchRecord& serving : record.switches) {
      if (serving.guid == SpineGuid(0)) return 0;
      if (serving.guid == SpineGuid(1)) return 1;
    }
    return 99;
  }
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_ROUTED_FIXTURE_H_
