#include "daemon/manager/tree_table.h"

#include <string>
#include <utility>

#include "daemon/manager/batch_request.h"

namespace coppice {

std::shared_ptr<GrantedTree> TreeTable::Find(TreeId id) const {
  const auto it = trees_.find(id);
  return it == trees_.end() ? nullptr : it->second;
}

void TreeTable::Add(std::shared_ptr<GrantedTree> tree) {
  const TreeId id = tree->record->id;
  if (const auto part = BatchPartOf(*tree->record)) {
    tree->job->batches[part->batch].trees[part->communicator] = id;
  }
  tree->job->trees.insert(tree->job->trees.end(), id);
  trees_.insert(trees_.end(), {id, std::move(tree)});
}

void TreeTable::Remove(const GrantedTree& tree) {
  tree.job->trees.erase(tree.record->id);
  tree.job->tree_requests.Forget(tree.record->request_id);
  LeaveBatch(tree);
  trees_.erase(tree.record->id);
}

void TreeTable::LeaveBatch(const GrantedTree& tree) {
  const auto part = BatchPartOf(*tree.record);
  if (!part) return;
  Job& job = *tree.job;
  const auto batch = job.batches.find(part->batch);
  if (batch == job.batches.end()) return;
  batch->second.trees.erase(part->communicator);
  if (!batch->second.trees.empty()) return;
  job.batches.erase(batch);
  job.batch_requests.Forget(std::string(part->batch));
}

std::vector<std::shared_ptr<GrantedTree>> TreeTable::List(const Job* job, TreeId after,
                                                          size_t limit) const {
  std::vector<std::shared_ptr<GrantedTree>> trees;
  if (job != nullptr) {
    for (auto it = job->trees.upper_bound(after); it != job->trees.end() && trees.size() < limit;
         ++it) {
      trees.push_back(trees_.at(*it));
    }
    return trees;
  }
  for (auto it = trees_.upper_bound(after); it != trees_.end() && trees.size() < limit; ++it) {
    trees.push_back(it->second);
  }
  return trees;
}

}  // namespace coppice
