// The fewest switches of a physical tree that must serve so that one aggregation tree connects all
// its members (Chen 2024, algorithm 5, made exact for any degree limits; spec: trees, 4.4).
//
// Works on plain arrays: knows no fabric, no load and no time. Those who do pass them in as a
// preference among switches that save equally much.
#ifndef COPPICE_DAEMON_TREE_MINIMUM_COST_H_
#define COPPICE_DAEMON_TREE_MINIMUM_COST_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

// A rooted tree in which members hang. All spans are [vertex]; vertex 0 is the root and every
// parent comes before its children.
struct ReductionProblem {
  static constexpr int32_t kNoParent = -1;

  absl::Span<const int32_t> parents;
  absl::Span<const uint32_t> members;     // members at this very vertex (several ranks of one port)
  absl::Span<const uint32_t> degrees;     // K(v): most children; 0 and 1 = can only forward
  absl::Span<const uint32_t> preference;  // lower serves rather; empty = all alike
};

struct ReductionChoice {
  bool feasible = false;
  std::vector<uint32_t> serving;  // vertices, ascending; the first is the aggregation tree's root
  // Infeasible: the vertices that see two members or more and can only forward. Empty if degree
  // limits of 2 and more are too small all the same.
  std::vector<uint32_t> in_the_way;
};

// The least set of serving vertices, such that each member and each serving vertex but the topmost
// can have a serving ancestor as its parent and no serving vertex v has more than K(v) children. Of
// equal sets one whose topmost vertex is lowest; then vertices with a lower preference, then lower
// numbers, wherever they save equally much. No member or one: feasible, nobody serves.
// O(n + s log s) for n vertices of which s can serve.
ReductionChoice ChooseServing(const ReductionProblem& problem);

// Who is whose child, given a feasible `serving`.
struct ReductionTree {
  // [vertex] serving parent of a serving vertex; kNoParent for the topmost and for those that do
  // not serve.
  std::vector<int32_t> serving_parents;
  // Parents of the members, by vertex and then in the order in which a vertex's members are
  // counted: member i of vertex v is at index first_member[v] + i.
  std::vector<int32_t> member_parents;
  std::vector<uint32_t> first_member;  // [vertex + 1]
};

// Hangs every item below its lowest serving ancestor that has room; where one has too many, those
// that arrive last (most serving vertices below them) are lifted, because a lifted one saves a
// stage. `serving` must come from ChooseServing for the same problem. O(n + members * serving
// vertices on a path).
ReductionTree HangItems(const ReductionProblem& problem, absl::Span<const uint32_t> serving);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_MINIMUM_COST_H_
