// A manager whose switches speak: played ones at every switch of the small fabric, which hold what
// they are told, and what the daemon and they have to agree on.
#ifndef COPPICE_TESTS_UNIT_MANAGER_SWITCHES_CARRIED_TREES_FIXTURE_H_
#define COPPICE_TESTS_UNIT_MANAGER_SWITCHES_CARRIED_TREES_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/routed_fixture.h"
#include "tests/unit/manager/standing_trees.h"
#include "tests/unit/manager/switches/played_switch.h"

namespace coppice {

inline std::optional<std::string> Refuses(const SwitchEntry&) { return "no memory left"; }
inline std::optional<std::string> IsSilent(const SwitchEntry&) { return std::nullopt; }

class CarriedTreesTest : public ManagerTest {
 protected:
  CarriedTreesTest() {
    for (uint32_t leaf = 0; leaf < 4; ++leaf) {
      played_[LeafGuid(leaf)] = std::make_unique<PlayedSwitch>(LeafGuid(leaf), Able(8, 7));
    }
    for (uint32_t spine = 0; spine < 2; ++spine) {
      played_[SpineGuid(spine)] = std::make_unique<PlayedSwitch>(SpineGuid(spine), Able(8, 7));
    }
  }
  // Their threads use the manager.
  ~CarriedTreesTest() override { LeaveAll(); }

  void JoinAll() {
    for (auto& [guid, played] : played_) played->Join(manager_->switches());
  }
  void LeaveAll() {
    for (auto& [guid, played] : played_) played->Leave();
  }
  PlayedSwitch& At(Guid guid) { return *played_.at(guid); }
  // With all read, each switch holds exactly the trees that are carried and that it serves.
  void ExpectReconciled() {
    Settle();
    std::map<Guid, std::vector<SwitchGroup>> wanted;
    for (const TreeView& view : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      if (view.record->carriage.key.empty()) continue;
      for (const TreeSwitchRecord& serving : view.record->switches) {
        wanted[serving.guid].push_back({view.record->id, view.record->revision});
        const auto held = At(serving.guid).held();
        const auto entry = held.find(view.record->id);
        if (entry == held.end()) continue;
        EXPECT_EQ(entry->second.key, view.record->carriage.key);
        EXPECT_EQ(entry->second.children, serving.children);
      }
    }
    for (auto& [guid, played] : played_) {
      if (!manager_->switches().HelloOf(guid)) continue;
      played->AwaitRead();
      EXPECT_EQ(played->groups(), wanted[guid]) << ToString(guid);
    }
    ExpectConserved();
  }
  // So many spines, more than attempts are made, which all refuse; those of before are gone.
  void BootWithRefusingSpines(uint32_t entries) {
    const uint32_t spines = Grants::kMaxAttempts + 2;
    Boot(Options(entries, 7));
    port_.Set(SmallFabric({.spines = spines}));
    ASSERT_TRUE(manager_->Sweep().ok());
    for (uint32_t spine = 0; spine < spines; ++spine) {
      auto& played = played_[SpineGuid(spine)];
      played = std::make_unique<PlayedSwitch>(SpineGuid(spine), Able(8, 7));
      played->Say(Refuses);
    }
  }
  // All speak; a spine has one entry.
  void BootWithSmallSpines() {
    for (auto& [guid, played] : played_) {
      played = std::make_unique<PlayedSwitch>(guid, Able(guid >= SpineGuid(0) ? 1 : 8, 4));
    }
    Boot(Options(4, 7));
    JoinAll();
  }
  JobId JobOf(uint32_t first, uint32_t last) {
    RegisterJobArgs job = AllHosts();
    job.all_endpoints = false;
    for (uint32_t host = first; host <= last; ++host) {
      job.endpoints.push_back(ToString(PortGuid(host)));
    }
    return Register(job)->record->id;
  }
  static std::vector<Guid> GuidsOf(const TreeRecord& record) {
    std::vector<Guid> guids;
    for (const TreeSwitchRecord& serving : record.switches) guids.push_back(serving.guid);
    return guids;
  }
  static Guid SpineOf(const TreeRecord& record) {
    for (const Guid guid : GuidsOf(record)) {
      if (guid >= SpineGuid(0)) return guid;
    }
    return Guid(0);
  }
  std::map<Guid, std::unique_ptr<PlayedSwitch>> played_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_SWITCHES_CARRIED_TREES_FIXTURE_H_
