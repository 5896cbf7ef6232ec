// What the manager's tests stand on: a small fat tree, a subnet port that hands out scripted
// sweeps, a store that can be made to fail or to hold back, and calls that wait for their callback.
//
//        spine 0 (200)          spine 1 (201)
//         /   |   |  \          /  |   |   \        each leaf is cabled to each spine
//   leaf 0  leaf 1  leaf 2  leaf 3                  GUIDs 100..103
//   n0..n3  n4..n7  n8..n11 n12..n15                port GUIDs 5000 + host, hexadecimal
#ifndef COPPICE_TESTS_UNIT_MANAGER_MANAGER_FIXTURE_H_
#define COPPICE_TESTS_UNIT_MANAGER_MANAGER_FIXTURE_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/manager.h"
#include "tests/support/manual_clock.h"
#include "tests/support/passing_store.h"
#include "tests/support/scratch_store.h"

namespace coppice {

struct FabricShape {
  uint32_t leaves = 4, spines = 2, hosts_per_leaf = 4;
  std::set<uint32_t> missing_hosts = {};
  std::set<std::pair<uint32_t, uint32_t>> missing_cables = {};  // leaf and spine
  std::set<uint32_t> missing_spines = {};
  std::set<uint32_t> missing_leaves = {};  // with their hosts
  bool has_lids = false;                   // as under a subnet manager
};

inline Guid LeafGuid(uint32_t leaf) { return Guid(0x100 + leaf); }
inline Guid SpineGuid(uint32_t spine) { return Guid(0x200 + spine); }
inline Guid PortGuid(uint32_t host) { return Guid(0x5000 + host); }
inline Lid LidOf(Guid guid) { return Lid(static_cast<uint16_t>(guid.value())); }

inline std::shared_ptr<const Fabric> SmallFabric(const FabricShape& shape = {}) {
  FabricBuilder builder;
  const uint8_t leaf_ports = static_cast<uint8_t>(shape.spines + shape.hosts_per_leaf);
  const auto add_switch = [&](Guid guid, uint8_t ports, const std::string& description) {
    SwitchInfo info;
    info.guid = guid;
    if (shape.has_lids) info.lid = LidOf(guid);
    info.port_count = ports;
    info.vendor_id = 0x2c9;
    info.device_id = 0xc738;
    info.description = description;
    EXPECT_TRUE(builder.AddSwitch(info).ok());
  };
  for (uint32_t i = 0; i < shape.leaves; ++i) {
    if (shape.missing_leaves.count(i) != 0) continue;
    add_switch(LeafGuid(i), leaf_ports, "leaf" + std::to_string(i));
  }
  for (uint32_t i = 0; i < shape.spines; ++i) {
    if (shape.missing_spines.count(i) != 0) continue;
    add_switch(SpineGuid(i), static_cast<uint8_t>(shape.leaves), "spine" + std::to_string(i));
  }
  const LinkRate rate{4, LaneSpeed::kHdr};
  for (uint32_t leaf = 0; leaf < shape.leaves; ++leaf) {
    if (shape.missing_leaves.count(leaf) != 0) continue;
    for (uint32_t spine = 0; spine < shape.spines; ++spine) {
      if (shape.missing_spines.count(spine) != 0) continue;
      if (shape.missing_cables.count({leaf, spine}) != 0) continue;
      EXPECT_TRUE(builder
                      .AddLink(LeafGuid(leaf), PortNum(static_cast<uint8_t>(1 + spine)),
                               SpineGuid(spine), PortNum(static_cast<uint8_t>(1 + leaf)), rate)
                      .ok());
    }
  }
  for (uint32_t host = 0; host < shape.leaves * shape.hosts_per_leaf; ++host) {
    if (shape.missing_hosts.count(host) != 0) continue;
    if (shape.missing_leaves.count(host / shape.hosts_per_leaf) != 0) continue;
    AdapterInfo info;
    info.guid = Guid(0x1000 + host);
    info.port_count = 1;
    info.description = "n" + std::to_string(host) + " mlx5_0";
    EXPECT_TRUE(builder.AddAdapter(info).ok());
    const Lid lid = shape.has_lids ? LidOf(PortGuid(host)) : Lid(0);
    EXPECT_TRUE(builder.SetAdapterPort(info.guid, PortNum(1), PortGuid(host), lid).ok());
    const uint32_t leaf = host / shape.hosts_per_leaf;
    const uint8_t port = static_cast<uint8_t>(1 + shape.spines + host % shape.hosts_per_leaf);
    EXPECT_TRUE(builder.AddLink(LeafGuid(leaf), PortNum(port), info.guid, PortNum(1), rate).ok());
  }
  absl::StatusOr<std::shared_ptr<const Fabric>> fabric = builder.Build();
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *fabric;
}

// Hands out what the test set last.
class ScriptedSubnetPort final : public SubnetPort {
 public:
  void Set(std::shared_ptr<const Fabric> fabric) {
    SweepResult result;
    result.fabric = std::move(fabric);
    Set(absl::StatusOr<SweepResult>(std::move(result)));
  }
  void Set(absl::StatusOr<SweepResult> result) {
    std::lock_guard lock(mu_);
    result_ = std::move(result);
  }
  void SetLight(absl::StatusOr<LightSweepResult> result) {
    std::lock_guard lock(mu_);
    light_ = std::move(result);
  }
  void SetCounters(absl::StatusOr<CounterSweep> result) {
    std::lock_guard lock(mu_);
    counters_ = std::move(result);
  }
  // Runs in each sweep, before it answers.
  void OnSweep(std::function<void()> hook) {
    std::lock_guard lock(mu_);
    hook_ = std::move(hook);
  }
  // Runs in each sweep after that, and may call what the sweep is to call in between.
  void WithinSweep(std::function<void(const SweepOptions&)> hook) {
    std::lock_guard lock(mu_);
    within_ = std::move(hook);
  }
  int sweeps() const {
    std::lock_guard lock(mu_);
    return sweeps_;
  }
  int light_sweeps() const {
    std::lock_guard lock(mu_);
    return light_sweeps_;
  }

  std::string Describe() const override { return "script"; }
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override {
    std::function<void()> hook;
    std::function<void(const SweepOptions&)> within;
    {
      std::lock_guard lock(mu_);
      ++sweeps_;
      hook = hook_;
      within = within_;
    }
    if (hook) hook();
    if (within) within(options);
    std::lock_guard lock(mu_);
    return result_;
  }
  absl::StatusOr<LightSweepResult> LightSweep() override {
    std::lock_guard lock(mu_);
    ++light_sweeps_;
    return light_;
  }
  absl::StatusOr<CounterSweep> ReadCounters() override {
    std::lock_guard lock(mu_);
    return counters_;
  }

 private:
  mutable std::mutex mu_;
  absl::StatusOr<LightSweepResult> light_ = LightSweepResult();
  absl::StatusOr<CounterSweep> counters_ = absl::UnimplementedError("nothing is scripted");
  absl::StatusOr<SweepResult> result_ = absl::UnavailableError("nothing is scripted");
  std::function<void()> hook_;
  std::function<void(const SweepOptions&)> within_;
  int sweeps_ = 0, light_sweeps_ = 0;
};

// Passes everything on, unless told to refuse or to hold back.
class UnrulyStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;

  // Mutations for which it gives a status fail with it, in their turn.
  void RefuseWhere(std::function<absl::Status(const Mutation&)> judge) {
    std::lock_guard lock(mu_);
    judge_ = std::move(judge);
  }
  // Refuses every mutation of type M.
  template <class M>
  void Refuse(absl::Status status) {
    RefuseWhere([status](const Mutation& mutation) {
      return std::holds_alternative<M>(mutation) ? status : absl::OkStatus();
    });
  }
  void Obey() { RefuseWhere(nullptr); }

  // Keeps submissions back until LetGo, which passes them on in order; only those that `which`
  // picks, unless it is null.
  void HoldBack(std::function<bool(const Mutation&)> which = nullptr) {
    std::lock_guard lock(mu_);
    holding_ = true;
    held_back_ = std::move(which);
  }
  void LetGo() {
    std::lock_guard lock(mu_);
    holding_ = false;
    PassHeld();
  }
  // Passes on what is held back, and goes on holding back.
  void LetThrough() {
    std::lock_guard lock(mu_);
    PassHeld();
  }
  size_t held() const {
    std::lock_guard lock(mu_);
    return held_.size();
  }

  void Submit(Mutation mutation, Done done) override {
    std::lock_guard lock(mu_);
    if (holding_ && (!held_back_ || held_back_(mutation))) {
      held_.emplace_back(std::move(mutation), std::move(done));
    } else {
      Pass(std::move(mutation), std::move(done));
    }
  }

 private:
  void PassHeld() {
    for (auto& [mutation, done] : held_) Pass(std::move(mutation), std::move(done));
    held_.clear();
  }
  void Pass(Mutation mutation, Done done) {
    const absl::Status status = judge_ ? judge_(mutation) : absl::OkStatus();
    if (status.ok()) return store_->Submit(std::move(mutation), std::move(done));
    // Nothing is appended; the answer keeps its turn and comes on the store's thread.
    store_->Submit(AppendEvents{}, [status, callback = std::move(done)](absl::Status) mutable {
      std::move(callback)(status);
    });
  }

  mutable std::mutex mu_;
  std::function<absl::Status(const Mutation&)> judge_;
  bool holding_ = false;
  std::function<bool(const Mutation&)> held_back_;
  std::vector<std::pair<Mutation, Done>> held_;
};

// The answer of one asynchronous call; may outlive the call and be copied.
template <class T>
class Answer {
 public:
  Manager::Callback<T> Callback() {
    return [state = state_](absl::StatusOr<T> value) {
      std::lock_guard lock(state->mu);
      state->value = std::move(value);
      ++state->calls;
      state->changed.notify_all();
    };
  }
  absl::StatusOr<T> Get() {
    std::unique_lock lock(state_->mu);
    state_->changed.wait(lock, [this] { return state_->calls > 0; });
    EXPECT_EQ(1, state_->calls);
    return state_->value;
  }
  bool answered() const {
    std::lock_guard lock(state_->mu);
    return state_->calls > 0;
  }

 private:
  struct State {
    std::mutex mu;
    std::condition_variable changed;
    int calls = 0;
    absl::StatusOr<T> value = absl::UnknownError("no answer");
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class ManagerPeer {
 public:
  // What the sweeper does after a sweep that failed.
  static bool RepairTrees(Manager& manager) { return manager.repair_.Run(/*swept=*/false); }
};

class ManagerTest : public ::testing::Test {
 protected:
  static ManagerOptions Options(uint32_t entries = 4, uint32_t degree = 32) {
    ManagerOptions options;
    options.profile = *BuiltInProfile("hdr");
    CapabilityRule rule;
    rule.entries = entries;
    rule.degree_limit = degree;
    options.capability_rules.push_back(rule);
    return options;
  }

  // What a test has the store ask may be of the test's own.
  void TearDown() override { store_.Obey(); }

  // Makes the manager anew from what the store holds; sweeps unless told not to.
  void Boot(ManagerOptions options = Options(), bool sweep = true) {
    manager_.reset();
    if (port_.sweeps() == 0) port_.Set(SmallFabric());
    absl::StatusOr<std::unique_ptr<Manager>> made =
        Manager::Create(&store_, &port_, &clock_, std::move(options));
    ASSERT_TRUE(made.ok()) << made.status();
    manager_ = *std::move(made);
    if (sweep) {
      ASSERT_TRUE(manager_->Sweep().ok());
    }
  }

  static RegisterJobArgs AllHosts(std::string request_id = "") {
    RegisterJobArgs args;
    args.request_id = std::move(request_id);
    args.display_name = "melt";
    args.owner = "ada";
    args.all_endpoints = true;
    return args;
  }
  static CreateTreeArgs TreeOf(JobId job, TreeType type = TreeType::kTypeII) {
    CreateTreeArgs args;
    args.job = job;
    args.type = type;
    return args;
  }

  absl::StatusOr<JobView> Register(RegisterJobArgs args) {
    Answer<JobView> answer;
    manager_->RegisterJob(std::move(args), answer.Callback());
    return answer.Get();
  }
  JobId NewJob() {
    const absl::StatusOr<JobView> view = Register(AllHosts());
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->record->id : JobId();
  }
  Answer<TreeView> StartCreate(CreateTreeArgs args) {
    Answer<TreeView> answer;
    manager_->CreateTree(std::move(args), answer.Callback());
    return answer;
  }
  absl::StatusOr<TreeView> Create(CreateTreeArgs args) {
    return StartCreate(std::move(args)).Get();
  }
  absl::StatusOr<TreeId> Release(TreeId id) {
    Answer<TreeId> answer;
    manager_->ReleaseTree(id, answer.Callback());
    return answer.Get();
  }
  Answer<uint32_t> StartEnd(JobId id) {
    Answer<uint32_t> answer;
    manager_->EndJob(id, answer.Callback());
    return answer;
  }
  absl::StatusOr<uint32_t> End(JobId id) { return StartEnd(id).Get(); }

  // Returns when everything submitted so far was answered, and what the answers submitted, too.
  void Settle() {
    for (int round = 0; round < 2; ++round) ASSERT_TRUE(kept_.Apply(AppendEvents{}).ok());
  }

  std::vector<EventRecord> EventsOf(const std::string& kind) {
    Settle();
    EventFilter filter;
    filter.kind_prefix = kind;
    return *manager_->Events(filter);
  }

  // With nothing in flight: memory, store and the granted trees agree on every entry.
  void ExpectConserved() {
    Settle();
    std::map<Guid, std::vector<TreeId>> holders;
    uint64_t taken = 0;
    for (const TreeView& view : manager_->ListTrees(JobId(), TreeId(), 1u << 20)) {
      for (const TreeSwitchRecord& record : view.record->switches) {
        holders[record.guid].push_back(view.record->id);
        ++taken;
      }
    }
    EXPECT_EQ(taken, manager_->Counts().entries_taken);
    const std::shared_ptr<const FabricView> fabric = manager_->fabric();
    for (const SwitchEntries& entries : manager_->Entries()) {
      const Guid guid = fabric->snapshot->fabric->switch_info(entries.index).guid;
      EXPECT_EQ(holders[guid].size(), entries.entries_taken) << ToString(guid);
      EXPECT_EQ(holders[guid], manager_->TreesOfSwitch(guid)) << ToString(guid);
      EXPECT_LE(entries.entries_taken + entries.entries_reserved, entries.entries_total);
    }
    const absl::StatusOr<std::vector<EntryUse>> uses = store_.Entries();
    ASSERT_TRUE(uses.ok());
    for (const EntryUse& use : *uses) {
      EXPECT_EQ(holders[use.capability.guid].size(), use.entries_taken)
          << ToString(use.capability.guid);
    }
    EXPECT_EQ(store_.Load()->trees.size(), manager_->Counts().granted_trees);
  }

  ManualClock clock_;
  ScratchStore kept_;
  UnrulyStore store_{&kept_};
  ScriptedSubnetPort port_;
  std::unique_ptr<Manager> manager_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MANAGER_MANAGER_FIXTURE_H_
