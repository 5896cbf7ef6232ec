// Random mutations against a model that recounts everything from the list of granted trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_model_test {
namespace {

using absl::StatusCode;

constexpr uint64_t kSwitches = 5;

// Naive on purpose: no counters, no indexes.
struct Model {
  std::vector<JobRecord> jobs;
  std::vector<TreeRecord> trees;
  std::map<JobId, OrderRecord> orders;
  std::map<Guid, CapabilityRecord> capabilities;
  int64_t last_job = 0, last_tree = 0;

  bool Active(JobId id) const {
    for (const JobRecord& job : jobs) {
      if (job.id == id) return job.state == JobState::kActive;
    }
    return false;
  }
  uint32_t Taken(Guid guid) const {
    uint32_t taken = 0;
    for (const TreeRecord& tree : trees) {
      for (const TreeSwitchRecord& serving : tree.switches) taken += serving.guid == guid;
    }
    return taken;
  }

  StatusCode Do(const PutJob& put) {
    for (const JobRecord& job : jobs) {
      if (job.id == put.job->id) return StatusCode::kAlreadyExists;
      if (!job.request_id.empty() && job.request_id == put.job->request_id) {
        return StatusCode::kAlreadyExists;
      }
    }
    jobs.push_back(*put.job);
    last_job = std::max(last_job, put.job->id.value());
    return StatusCode::kOk;
  }
  StatusCode Do(const EndJob& end) {
    if (!Active(end.job)) return StatusCode::kNotFound;
    for (JobRecord& job : jobs) {
      if (job.id == end.job) job.state = end.state, job.ended = end.time;
    }
    std::erase_if(trees, [&](const TreeRecord& tree) { return tree.job == end.job; });
    orders.erase(end.job);
    return StatusCode::kOk;
  }
  StatusCode Do(const PutOrder& put) {
    if (!Active(put.order.job)) return StatusCode::kFailedPrecondition;
    size_t positions = put.order.positions.size();
    for (const auto& [job, order] : orders) {
      if (job != put.order.job) positions += order.positions.size();
    }
    if (static_cast<int64_t>(positions) > put.max_positions) return StatusCode::kResourceExhausted;
    orders[put.order.job] = put.order;
    return StatusCode::kOk;
  }
  StatusCode Do(const PruneJobs& prune) {
    for (uint32_t i = 0; i < prune.rows; ++i) {
      const JobRecord* first = nullptr;
      int64_t ended = 0;
      for (const JobRecord& job : jobs) {
        if (job.state == JobState::kActive) continue;
        ++ended;
        const bool is_earlier = first == nullptr || job.ended < first->ended ||
                                (job.ended == first->ended && job.id < first->id);
        if (is_earlier) first = &job;
      }
      if (first == nullptr || (ended <= prune.keep && first->ended >= prune.before)) break;
      jobs.erase(jobs.begin() + (first - jobs.data()));
    }
    return StatusCode::kOk;
  }
  StatusCode Do(const GrantTree& grant) {
    const TreeRecord& wanted = *grant.tree;
    if (!Active(wanted.job)) return StatusCode::kFailedPrecondition;
    for (const TreeRecord& tree : trees) {
      if (tree.id == wanted.id) return StatusCode::kAlreadyExists;
      if (tree.job == wanted.job && !tree.request_id.empty() &&
          tree.request_id == wanted.request_id) {
        return StatusCode::kAlreadyExists;
      }
    }
    for (const TreeSwitchRecord& serving : wanted.switches) {
      auto found = capabilities.find(serving.guid);
      if (found == capabilities.end()) return StatusCode::kAborted;
      const int64_t free = int64_t{found->second.entries_total} - found->second.entries_reserved -
                           Taken(serving.guid);
      if (free <= 0) return StatusCode::kResourceExhausted;
    }
    trees.push_back(wanted);
    last_tree = std::max(last_tree, wanted.id.value());
    return StatusCode::kOk;
  }
  StatusCode Do(const ReleaseTree& release) {
    const size_t erased = std::erase_if(trees, [&](const TreeRecord& tree) {
      return tree.id == release.tree && tree.job == release.job;
    });
    return erased == 0 ? StatusCode::kNotFound : StatusCode::kOk;
  }
  // On a copy, so that a refusal changes nothing.
  StatusCode Do(const ChangeTrees& change) {
    std::set<TreeId> named;
    for (const auto& [tree, job] : change.revoked) {
      if (!named.insert(tree).second) return StatusCode::kInvalidArgument;
    }
    for (const auto* list : {&change.revised, &change.granted}) {
      for (const auto& tree : *list) {
        if (!named.insert(tree->id).second) return StatusCode::kInvalidArgument;
      }
    }
    Model next = *this;
    for (const auto& [tree, job] : change.revoked) {
      const StatusCode code = next.Do(ReleaseTree{tree, job});
      if (code != StatusCode::kOk) return code;
    }
    for (const auto& tree : change.revised) {
      const StatusCode code = next.TakeOldRevision(*tree);
      if (code != StatusCode::kOk) return code;
    }
    for (const auto* list : {&change.revised, &change.granted}) {
      for (const auto& tree : *list) {
        const StatusCode code = next.Do(GrantTree{tree});
        if (code != StatusCode::kOk) return code;
      }
    }
    *this = std::move(next);
    return StatusCode::kOk;
  }
  StatusCode TakeOldRevision(const TreeRecord& tree) {
    for (size_t i = 0; i < trees.size(); ++i) {
      if (trees[i].id != tree.id) continue;
      if (trees[i].job != tree.job || trees[i].request_id != tree.request_id) {
        return StatusCode::kInvalidArgument;
      }
      if (trees[i].revision + 1 != tree.revision) return StatusCode::kFailedPrecondition;
      trees.erase(trees.begin() + static_cast<std::ptrdiff_t>(i));
      return StatusCode::kOk;
    }
    return StatusCode::kNotFound;
  }
  StatusCode Do(const PutCapabilities& put) {
    std::erase_if(capabilities,
                  [&](const auto& item) { return !put.others_stay && Taken(item.first) == 0; });
    for (CapabilityRecord record : put.capabilities) {
      if (const uint32_t taken = Taken(record.guid); taken > 0) {
        record.entries_total = std::max(record.entries_total, taken + record.entries_reserved);
      }
      capabilities[record.guid] = record;
    }
    return StatusCode::kOk;
  }

  StoredState State() const {
    StoredState state;
    for (const JobRecord& job : jobs) {
      if (job.state == JobState::kActive) state.jobs.push_back(job);
    }
    state.trees = trees;
    const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    std::sort(state.jobs.begin(), state.jobs.end(), by_id);
    std::sort(state.trees.begin(), state.trees.end(), by_id);
    for (const auto& [guid, record] : capabilities) state.entries.push_back({record, Taken(guid)});
    state.last_job = JobId(last_job);
    state.last_tree = TreeId(last_tree);
    return state;
  }
};

class RandomMutations {
 public:
  // What is granted is looked up in `model`, so that most revisions fit.
  RandomMutations(uint64_t seed, const Model& model) : random_(seed), model_(model) {}
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  template <class Visit>
  void Next(Visit visit) {
    switch (Below(14)) {
      case 0:
        return visit(PutJob{Job(1 + static_cast<int64_t>(Below(40)), Request(30))});
      case 1:
        return visit(EndJob{SomeJob(), JobState::kEnded, SomeTime()});
      case 2:
        return visit(SomeCapabilities());
      case 3:
      case 4:
      case 5:
        return visit(ReleaseTree{SomeTree(), SomeJob()});
      case 6:
      case 7:
        return visit(SomeChange());
      case 8:
        return visit(PruneJobs{static_cast<int64_t>(Below(12)), SomeTime(),
                               static_cast<uint32_t>(Below(4))});
      case 9:
        return visit(PutOrder{{SomeJob(), SomePositions(), Request(9), SomeTime()}, 30});
      default:
        return visit(GrantTree{NewTree()});
    }
  }

 private:
  std::string Request(uint64_t range) {
    return Below(2) == 0 ? "" : "r" + std::to_string(Below(range));
  }
  absl::Time SomeTime() { return At(static_cast<int64_t>(Below(100))); }
  JobId SomeJob() { return JobId(1 + static_cast<int64_t>(Below(8))); }
  std::vector<uint32_t> SomePositions() {
    std::vector<uint32_t> positions(1 + Below(12));
    for (uint32_t& position : positions) position = static_cast<uint32_t>(Below(1 << 20));
    return positions;
  }
  // Recent ids, so that releases and collisions hit; never one of an earlier run.
  TreeId SomeTree() {
    return TreeId(std::max<int64_t>(1, next_tree_ - static_cast<int64_t>(Below(12))));
  }
  TreeRecord NewTree() {
    std::set<uint64_t> numbers;
    for (uint64_t n = Below(4); n > 0; --n) numbers.insert(Below(kSwitches + 1));
    TreeRecord tree = Tree(++next_tree_, SomeJob().value(), {numbers.begin(), numbers.end()},
                           static_cast<uint32_t>(Below(6)));
    tree.request_id = Request(5);
    return tree;
  }
  ChangeTrees SomeChange() {
    ChangeTrees change;
    for (uint64_t n = Below(3); n > 0; --n) {
      change.granted.push_back(std::make_shared<const TreeRecord>(NewTree()));
    }
    for (const TreeRecord& tree : model_.trees) {
      if (Below(model_.trees.size()) > 4) continue;
      if (Below(3) == 0) {
        change.revoked.emplace_back(tree.id, Below(12) == 0 ? SomeJob() : tree.job);
        continue;
      }
      TreeRecord next = NewTree();
      --next_tree_;
      next.id = Below(30) == 0 ? SomeTree() : tree.id;
      next.job = Below(30) == 0 ? SomeJob() : tree.job;
      next.request_id = Below(30) == 0 ? "other" : tree.request_id;
      next.request_fingerprint = tree.request_fingerprint;
      next.created = tree.created;
      next.revision = tree.revision + (Below(30) == 0 ? 2 : 1);
      change.revised.push_back(std::make_shared<const TreeRecord>(std::move(next)));
    }
    return change;
  }
  PutCapabilities SomeCapabilities() {
    PutCapabilities put;
    put.others_stay = Below(2) == 0;
    for (uint64_t n = 0; n < kSwitches; ++n) {
      if (Below(8) == 0) continue;
      put.capabilities.push_back(
          Capability(n, static_cast<uint32_t>(Below(5)), static_cast<uint32_t>(Below(2))));
    }
    return put;
  }

  std::mt19937_64 random_;
  const Model& model_;
  int64_t next_tree_ = 0;
};

class StoreModelTest : public StoreTest {};

TEST_F(StoreModelTest, AgreesWithTheModel) {
  const int rounds = FullTier() ? 2'000 : 40;
  Model model;
  RandomMutations mutations(TestSeed(), model);
  for (int round = 0; round < rounds; ++round) {
    // A group of up to 30 submitted at once, answers compared in order.
    std::vector<StatusCode> expected, answered;
    const uint64_t size = 1 + mutations.Below(30);
    for (uint64_t n = 0; n < size; ++n) {
      mutations.Next([&](auto mutation) {
        expected.push_back(model.Do(mutation));
        store_->Submit(std::move(mutation),
                       [&](absl::Status status) { answered.push_back(status.code()); });
      });
    }
    ASSERT_APPLIED(store_->Apply(AppendEvents{}));  // answered after all before it
    ASSERT_EQ(answered, expected) << "round " << round;
    ASSERT_TRUE(Load() == model.State()) << "round " << round;
    for (JobId job(1); job <= JobId(8); job = JobId(job.value() + 1)) {
      const absl::StatusOr<OrderRecord> order = store_->GetOrder(job);
      const auto kept = model.orders.find(job);
      ASSERT_EQ(order.ok(), kept != model.orders.end()) << order.status();
      if (order.ok()) {
        ASSERT_TRUE(*order == kept->second) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace coppice::store_model_test
