// The manager of manager_fixture.h with placements: 16 hosts, four on each of four leaf switches.
#ifndef COPPICE_TESTS_UNIT_MANAGER_PLACEMENT_PLACEMENTS_FIXTURE_H_
#define COPPICE_TESTS_UNIT_MANAGER_PLACEMENT_PLACEMENTS_FIXTURE_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/manager/placement/placements.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice {

class PlacementsTest : public ManagerTest {
 protected:
  using Views = Placements::Views;

  Placements& placements() { return manager_->placements(); }

  static CreatePlacementArgs Nodes(uint32_t count, std::string request_id = "",
                                   std::vector<std::string> candidates = {}) {
    CreatePlacementArgs args;
    args.request_id = std::move(request_id);
    args.display_name = "melt";
    args.owner = "ada";
    args.task.constraints.host_count = count;
    args.task.candidates = std::move(candidates);
    return args;
  }
  Answer<Views> BeginPlace(std::vector<CreatePlacementArgs> requests) {
    Answer<Views> answer;
    placements().Create(std::move(requests), nullptr, answer.Callback());
    return answer;
  }
  absl::StatusOr<PlacementView> Place(CreatePlacementArgs args) {
    const absl::StatusOr<Views> views = BeginPlace({std::move(args)}).Get();
    if (!views.ok()) return views.status();
    return views->front();
  }
  PlacementId PlaceNodes(uint32_t count) {
    const absl::StatusOr<PlacementView> view = Place(Nodes(count));
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->record->id : PlacementId();
  }
  absl::StatusOr<JobView> StartOf(PlacementId id, StartPlacementArgs args = {}) {
    Answer<JobView> answer;
    args.id = id;
    placements().Start(std::move(args), answer.Callback());
    return answer.Get();
  }
  absl::StatusOr<PlacementId> ReleaseOf(PlacementId id) {
    Answer<PlacementId> answer;
    placements().Release(id, answer.Callback());
    return answer.Get();
  }
  static std::set<std::string> NodesOf(const PlacementView& view) {
    return {view.record->nodes.begin(), view.record->nodes.end()};
  }
  // "n4" and "n7" are of leaf switch 1.
  static int LeafOf(const std::string& node) { return std::stoi(node.substr(1)) / 4; }
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_PLACEMENT_PLACEMENTS_FIXTURE_H_
