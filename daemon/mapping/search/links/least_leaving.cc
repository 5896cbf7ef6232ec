// Best first. A node has ranks that are inside every set of it (I) and ranks that are in none (X):
//
//     I = {r}, X = {}              what r sends most to:  v
//       I = {r, v}, X = {}         v beside it,
//       I = {r},    X = {v}        or not
//
// For S with I inside and X outside, at most n ranks in all, and own(v) what v itself sends at
// least out of any set of n ranks that it is in:
//
//     f(S)  >=  sum of w(u,v), u in I, v not in S  +  sum over v in S - I of what v sends outside
//           >=  f(I)  -  sum over v in S - I of ( w(I,v) - max(w(v,X), own(v)) )
//
// of which the n - |I| greatest positive terms are the most that can come off. Where none is
// positive, I itself is the best of the node. A node costs O(exchanges of I and X).
#include "daemon/mapping/search/links/least_leaving.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace coppice {

LeastLeaving::LeastLeaving(const Pattern& pattern, TrafficDirection direction, uint32_t room)
    : pattern_(pattern),
      direction_(direction),
      room_(room),
      own_(pattern.rank_count()),
      from_inside_(pattern.rank_count(), 0.0),
      to_outside_(pattern.rank_count(), 0.0),
      fixed_(pattern.rank_count(), 0) {
  std::vector<double> bytes;
  for (uint32_t r = 0; r < own_.size(); ++r) {
    bytes.clear();
    for (const Exchange& e : pattern.exchanges(r)) bytes.push_back(Bytes(e));
    const size_t beside = std::min<size_t>(room - 1, bytes.size());
    std::nth_element(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(beside),
                     bytes.end(), std::greater<>());
    for (size_t i = beside; i < bytes.size(); ++i) own_[r] += bytes[i];
  }
}

double LeastLeaving::Look(Node& node) {
  double leaving = 0;
  for (const uint32_t u : node.inside) fixed_[u] = 1;
  for (const uint32_t x : node.outside) {
    fixed_[x] = 1;
    for (const Exchange& e : pattern_.exchanges(x)) to_outside_[e.peer] += BytesBack(e);
  }
  for (const uint32_t u : node.inside) {
    for (const Exchange& e : pattern_.exchanges(u)) {
      if (Bytes(e) == 0) continue;
      if (from_inside_[e.peer] == 0) met_.push_back(e.peer);
      from_inside_[e.peer] += Bytes(e);
    }
  }
  for (const uint32_t u : node.inside) fixed_[u] = 2;
  saved_.clear();
  for (const uint32_t v : met_) {
    if (fixed_[v] == 2) continue;
    leaving += from_inside_[v];
    if (fixed_[v] == 1) continue;
    const double saved = from_inside_[v] - std::max(to_outside_[v], own_[v]);
    if (saved > 0) saved_.emplace_back(saved, v);
  }
  const size_t most = std::min<size_t>(room_ - node.inside.size(), saved_.size());
  std::partial_sort(saved_.begin(), saved_.begin() + static_cast<std::ptrdiff_t>(most),
                    saved_.end(), std::greater<>());
  node.bound = leaving;
  for (size_t i = 0; i < most; ++i) node.bound -= saved_[i].first;
  // What rounding may have left of a difference that is less, or none.
  if (most > 0 && !pattern_.whole()) {
    const double terms = static_cast<double>(met_.size() + most);
    const double error = terms * std::numeric_limits<double>::epsilon() * leaving;
    node.bound = std::max(0.0, node.bound - error);
  }
  node.complete = most == 0;
  if (most > 0) node.next = saved_[0].second;
  for (const uint32_t v : met_) from_inside_[v] = 0;
  met_.clear();
  for (const uint32_t x : node.outside) {
    fixed_[x] = 0;
    for (const Exchange& e : pattern_.exchanges(x)) to_outside_[e.peer] = 0;
  }
  for (const uint32_t u : node.inside) fixed_[u] = 0;
  return leaving;
}

double LeastLeaving::AtLeast(uint32_t rank, double enough, uint32_t& nodes) {
  std::priority_queue<Node> open;
  Node root;
  root.inside = {rank};
  double least_seen = Look(root);
  const double own = own_[rank];
  open.push(std::move(root));
  while (true) {
    Node node = open.top();
    if (node.complete || nodes == 0 || least_seen <= enough) {
      return std::max(own, std::min(node.bound, least_seen));
    }
    open.pop();
    --nodes;
    Node with = node;
    with.inside.push_back(node.next);
    node.outside.push_back(node.next);
    for (Node* child : {&with, &node}) {
      const double bound = child->bound;
      least_seen = std::min(least_seen, Look(*child));
      child->bound = std::max(child->bound, bound);
      open.push(std::move(*child));
    }
  }
}

}  // namespace coppice
