// Depth first. A node has ranks that are inside every set of it (I) and ranks that are in none (X);
// all others are free (F). Of a set S of the node, counted for each of its ranks,
//
//     bytes out of S  =  w(I, X) + sum over v in F - S of w(I, v)          those left outside
//                               + sum over v in S - I of what v sends out  those taken in
//
// and a rank v that is taken in sends out w(v, X) at least, and no less than what it sends to all
// but its most - 1 heaviest peers, own(v). So with a(v) = w(I, v), b(v) = max(w(v, X), own(v))
//
//     bound = w(I, X) + sum over F of a(v) + the least sum of b(v) - a(v) over q ranks of F
//
// where q + |I| lies in the range of sizes: the q least differences, found by selection. The same
// holds for bytes into S, and for the mean of both, which the greater of them is no less than.
// Branches on the rank that most ties to those that are fixed, first where it costs less.
#include "daemon/mapping/search/links/least_cut.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace coppice {
namespace {

// Of the sum of all weights, where sums of them are not exact: what is added and taken away again a
// million times leaves less.
constexpr double kCutRounding = 1e-9;
constexpr double kFine = 1 << 10;           // parts of a byte: METIS graphs have halves
constexpr uint64_t kNodesPerQuestion = 64;  // whether to stop

// All sums of weights are, however often they are added and taken away.
bool SumsAreExact(const Pattern& pattern) {
  if (pattern.whole()) return true;
  if (pattern.total_bytes() * kFine >= std::ldexp(1.0, 53)) return false;
  for (uint32_t r = 0; r < pattern.rank_count(); ++r) {
    for (const Exchange& e : pattern.exchanges(r)) {
      if (e.out_bytes * kFine != std::floor(e.out_bytes * kFine)) return false;
    }
  }
  return true;
}

}  // namespace

double AllButGreatest(std::vector<double>& values, size_t count) {
  if (count >= values.size()) return 0;
  const auto rest = values.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(values.begin(), rest, values.end(), std::greater<>());
  return std::accumulate(rest, values.end(), 0.0);
}

LeastCut::LeastCut(const Pattern& pattern, uint32_t least, uint32_t most, double per_out,
                   double per_in)
    : pattern_(pattern),
      least_(least),
      most_(most),
      per_out_(per_out),
      per_in_(per_in),
      exact_(SumsAreExact(pattern)),
      own_(pattern.rank_count()),
      if_outside_(pattern.rank_count()),
      if_inside_(pattern.rank_count()) {
  if (pattern.symmetric() && per_out == per_in) measures_ = 1;
  for (uint32_t r = 0; r < pattern.rank_count(); ++r) {
    free_.push_back(r);
    at_.push_back(r);
  }
  FindOwn();
}

void LeastCut::FindOwn() {
  std::vector<double> bytes;
  for (uint32_t r = 0; r < own_.size(); ++r) {
    for (uint32_t m = 0; m < measures_; ++m) {
      bytes.clear();
      for (const Exchange& e : pattern_.exchanges(r)) {
        bytes.push_back(Of({e.out_bytes, e.in_bytes}, m));
      }
      own_[r][m] = AllButGreatest(bytes, most_ - 1);
    }
  }
}

// Fixes a free rank (sign 1) or frees it again (-1), in the opposite order.
void LeastCut::Put(uint32_t rank, bool inside, double sign) {
  if (sign > 0) {
    const uint32_t last = free_.back();
    std::swap(free_[at_[rank]], free_.back());
    at_[last] = at_[rank];
    free_.pop_back();
  }
  const Bytes& cost = inside ? if_inside_[rank] : if_outside_[rank];
  for (const uint32_t way : {0, 1}) cut_[way] += sign * cost[way];
  inside_ += inside ? (sign > 0 ? 1 : -1) : 0;
  std::vector<Bytes>& touched = inside ? if_outside_ : if_inside_;
  for (const Exchange& e : pattern_.exchanges(rank)) {
    // Out is from those inside to those outside, whichever of the two this rank is.
    touched[e.peer][inside ? 0 : 1] += sign * e.out_bytes;
    touched[e.peer][inside ? 1 : 0] += sign * e.in_bytes;
  }
  if (sign < 0) {
    at_[rank] = static_cast<uint32_t>(free_.size());
    free_.push_back(rank);
  }
}

// Of all sets of the node. `complete`: it is that of the only one, or there is none.
double LeastCut::Bound(bool& complete) {
  const auto free = static_cast<uint32_t>(free_.size());
  complete = true;
  if (inside_ > most_ || inside_ + free < least_) return std::numeric_limits<double>::infinity();
  const uint32_t fewest = inside_ < least_ ? least_ - inside_ : 0;
  const uint32_t more = std::min(most_ - inside_, free) - fewest;
  complete = fewest + more == 0;
  double bound = 0;
  for (uint32_t m = 0; m < measures_; ++m) {
    double sum = Of(cut_, m);
    change_.clear();
    for (const uint32_t v : free_) {
      const double outside = Of(if_outside_[v], m);
      sum += outside;
      change_.push_back(std::max(Of(if_inside_[v], m), own_[v][m]) - outside);
    }
    const auto first = change_.begin(), must = first + fewest;
    if (fewest > 0 && fewest < free) std::nth_element(first, must, change_.end());
    for (auto c = first; c != must; ++c) sum += *c;
    const auto gains = std::partition(must, change_.end(), [](double c) { return c < 0; });
    if (gains - must > more) std::nth_element(must, must + more, gains);
    for (auto c = must; c != gains && c != must + more; ++c) sum += *c;
    bound = std::max(bound, m == 0 ? per_out_ * sum : m == 1 ? per_in_ * sum : sum);
  }
  return bound;
}

uint32_t LeastCut::Choose() const {
  uint32_t chosen = free_[0];
  double most = -1;
  for (const uint32_t v : free_) {
    const double tied = if_outside_[v][0] + if_inside_[v][0] + 1e-3 * own_[v][0];
    if (tied > most || (tied == most && v < chosen)) chosen = v;
    most = std::max(most, tied);
  }
  return chosen;
}

// The least of the node's sets, from below; sets of `enough` or more are not looked at.
double LeastCut::Explore(double enough, uint64_t& nodes, const SearchControl& control) {
  bool complete = false;
  const double bound = Bound(complete);
  if (complete) best_ = std::min(best_, bound);
  if (complete || bound >= std::min(best_, enough)) return bound;
  if (nodes % kNodesPerQuestion == 0 && control.stopped()) nodes = 0;
  if (nodes == 0) return bound;
  --nodes;
  const uint32_t v = Choose();
  const bool inside_first = if_inside_[v][0] <= if_outside_[v][0];
  double least = std::numeric_limits<double>::infinity();
  for (const bool inside : {inside_first, !inside_first}) {
    Put(v, inside, 1);
    least = std::min(least, Explore(enough, nodes, control));
    Put(v, inside, -1);
  }
  return std::max(bound, least);
}

double LeastCut::AtLeast(double enough, uint64_t& nodes, const SearchControl& control) {
  best_ = std::numeric_limits<double>::infinity();
  const double least = std::min(best_, Explore(enough, nodes, control));
  if (exact_) return least;
  return std::max(0.0, least - kCutRounding * std::max(per_out_, per_in_) * pattern_.total_bytes());
}

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
    own_[r] = AllButGreatest(bytes, room - 1);
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
