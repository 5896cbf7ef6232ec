#include "agents/mpi/tree/tree_shape.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace coppice::mpi {
namespace {

// Ranks from the root downwards, each after its parent; shorter than `parents` if those that are
// missing run in a circle, empty if there is not one root or a parent is no rank.
std::vector<int> Downwards(const std::vector<int32_t>& parents) {
  const int ranks = static_cast<int>(parents.size());
  std::vector<int> first_child(ranks, -1);
  std::vector<int> next_sibling(ranks, -1);
  std::vector<int> order;
  for (int rank = 0; rank < ranks; ++rank) {
    const int parent = parents[rank];
    if (parent < -1 || parent >= ranks) return {};
    if (parent == -1) {
      if (!order.empty()) return {};
      order.push_back(rank);
    } else {
      next_sibling[rank] = std::exchange(first_child[parent], rank);
    }
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (int child = first_child[order[i]]; child >= 0; child = next_sibling[child]) {
      order.push_back(child);
    }
  }
  return order;
}

int Height(const std::vector<int32_t>& parents, const std::vector<int>& downwards) {
  std::vector<int> depth(parents.size());
  int height = 0;
  for (const int rank : downwards) {
    if (parents[rank] >= 0) depth[rank] = depth[parents[rank]] + 1;
    height = std::max(height, depth[rank]);
  }
  return height;
}

struct Interval {
  int first;
  int last;
  int size;
};

// The ranks of each subtree: first, last and how many.
std::vector<Interval> Subtrees(const std::vector<int32_t>& parents,
                               const std::vector<int>& downwards) {
  std::vector<Interval> of(parents.size());
  for (size_t rank = 0; rank < of.size(); ++rank) {
    of[rank] = {static_cast<int>(rank), static_cast<int>(rank), 1};
  }
  for (auto rank = downwards.rbegin(); rank != downwards.rend(); ++rank) {
    if (parents[*rank] < 0) continue;
    Interval& parent = of[parents[*rank]];
    parent.first = std::min(parent.first, of[*rank].first);
    parent.last = std::max(parent.last, of[*rank].last);
    parent.size += of[*rank].size;
  }
  return of;
}

}  // namespace

bool MakeTreeShape(const std::vector<int32_t>& parents, int rank, TreeShape* shape) {
  const std::vector<int> downwards = Downwards(parents);
  if (downwards.empty() || downwards.size() != parents.size()) return false;
  if (rank < 0 || rank >= static_cast<int>(parents.size())) return false;
  TreeShape made;
  made.root = downwards.front();
  made.height = Height(parents, downwards);
  made.rank = rank;
  made.parent = parents[rank];
  const std::vector<Interval> subtrees = Subtrees(parents, downwards);
  made.is_ordered = std::all_of(subtrees.begin(), subtrees.end(), [](const Interval& ranks) {
    return ranks.last - ranks.first + 1 == ranks.size;
  });
  for (int child = 0; child < static_cast<int>(parents.size()); ++child) {
    if (parents[child] == rank) made.children.push_back(child);
  }
  made.chain_from_end.assign(made.children.rbegin(), made.children.rend());
  // Subtrees of an ordered tree lie wholly before or wholly after their parent's own rank.
  auto own = made.chain_from_end.end();
  if (made.is_ordered) {
    own =
        std::find_if(made.chain_from_end.begin(), own, [rank](int child) { return child < rank; });
  }
  made.chain_from_end.insert(own, TreeShape::kOwn);
  *shape = std::move(made);
  return true;
}

std::vector<int> FirstElements(std::span<const double> shares, int count) {
  std::vector<int> first = {0};
  double sum = 0;
  for (const double share : shares) {
    sum += share;
    const auto end = static_cast<int>(std::lround(count * std::min(sum, 1.0)));
    first.push_back(std::max(end, std::min(count, 1)));
  }
  first.back() = count;
  return first;
}

}  // namespace coppice::mpi
