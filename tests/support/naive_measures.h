// The measures of a mapping counted in the simplest way there is: pair of ranks after pair of
// ranks, route after route, hop after hop. What the project's own measures and every search are
// held against, so it shares no code with daemon/mapping's counting: it asks the values themselves
// (pattern, places, distances, fabric, routes) and nothing else.
#ifndef COPPICE_TESTS_SUPPORT_NAIVE_MEASURES_H_
#define COPPICE_TESTS_SUPPORT_NAIVE_MEASURES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct NaiveMeasures {
  double qap_cost = 0, inter_node_bytes = 0;
  // Only with a fabric. Congestion is not counted for the approximate model (-1).
  double max_congestion = 0, hop_bytes = 0, inter_switch_bytes = 0;
  uint32_t max_dilation = 0;
};

// What is wrong with a mapping: "" = nothing. Ranks without a place, places that are not there,
// places that hold more ranks than slots.
std::string WhatIsWrong(const MappingProblem& problem, const Mapping& mapping);

class NaiveEvaluator final {
 public:
  // `problem` outlives it.
  explicit NaiveEvaluator(const MappingProblem& problem);

  NaiveMeasures Measure(const Mapping& mapping);
  // The objective's value, 1 for the present order.
  double Score(const Mapping& mapping);
  // The same of what has been measured.
  double Score(const NaiveMeasures& measures) const;

 private:
  // What one byte from a place to another puts on which channels.
  struct Way {
    std::vector<std::pair<uint32_t, double>> shares;
    uint32_t links = 0;
  };
  const Way& WayOf(uint32_t from_place, uint32_t to_place);
  Way AlongRoutes(VertexIndex from, VertexIndex to) const;
  Way AlongAllShortestPaths(VertexIndex from, VertexIndex to) const;

  const MappingProblem& problem_;
  bool has_fabric_;
  std::vector<double> capacity_;  // [channel]
  std::unordered_map<uint64_t, Way> ways_;
  NaiveMeasures present_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_NAIVE_MEASURES_H_
