// The granted trees, by id. Mirrors the store: changes in the callbacks of mutations only. Not
// thread-safe; the manager's lock guards it.
#ifndef COPPICE_DAEMON_MANAGER_TREE_TABLE_H_
#define COPPICE_DAEMON_MANAGER_TREE_TABLE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "daemon/manager/job_table.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/tree_promise.h"

namespace coppice {

struct GrantedTree {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<Job> job;
  std::optional<RouteKind> route_kind;  // nullopt: granted by an earlier run, which did not say
  TreePromise promise;                  // on the present fabric, once there is one
  bool releasing = false;               // ReleaseTree is on its way to the store
  std::vector<Manager::Callback<TreeId>> release_waiters;
};

class TreeTable {
 public:
  // Null: not granted.
  std::shared_ptr<GrantedTree> Find(TreeId id) const;
  // Also enters it with its job and, if its name says so, its batch.
  void Add(std::shared_ptr<GrantedTree> tree);
  // Also takes it, and its request_id, from its job and its batch.
  void Remove(const GrantedTree& tree);
  size_t size() const { return trees_.size(); }
  // Up to `limit` trees with higher ids than `after`, ascending; of one job unless `job` is null.
  std::vector<std::shared_ptr<GrantedTree>> List(const Job* job, TreeId after, size_t limit) const;

  TreeId last() const { return last_; }
  void set_last(TreeId id) { last_ = id; }
  TreeId TakeId() { return last_ = TreeId(last_.value() + 1); }

 private:
  static void LeaveBatch(const GrantedTree& tree);

  absl::btree_map<TreeId, std::shared_ptr<GrantedTree>> trees_;
  TreeId last_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_TABLE_H_
