#include "tests/support/naive_measures.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace coppice {
namespace {

[[noreturn]] void GiveUp(const std::string& why) {
  std::cerr << "naive_measures: " << why << "\n";
  std::abort();
}

// Links from every vertex to `to`, by breadth first; -1: none lead there.
std::vector<int> LinksTo(const Fabric& fabric, VertexIndex to) {
  std::vector<int> links(fabric.vertex_count(), -1);
  std::vector<uint32_t> queue = {to.value()};
  links[to.value()] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const Channel& c : fabric.channels(VertexIndex(queue[i]))) {
      if (links[c.to.value()] >= 0) continue;
      links[c.to.value()] = links[queue[i]] + 1;
      queue.push_back(c.to.value());
    }
  }
  return links;
}

}  // namespace

std::string WhatIsWrong(const MappingProblem& problem, const Mapping& mapping) {
  if (mapping.size() != problem.rank_count()) {
    return std::to_string(mapping.size()) + " places for " + std::to_string(problem.rank_count()) +
           " ranks";
  }
  std::vector<uint32_t> ranks(problem.places->count(), 0);
  for (size_t r = 0; r < mapping.size(); ++r) {
    const uint32_t p = mapping[r].value();
    if (p >= ranks.size()) return "rank " + std::to_string(r) + " has no place";
    uint32_t slots = 0;
    for (uint32_t s = 0; s < problem.places->slot_count(); ++s) {
      slots += problem.places->place_of_slot(s).value() == p;
    }
    if (++ranks[p] > slots) return "place " + std::to_string(p) + " is overfilled";
  }
  return "";
}

NaiveEvaluator::NaiveEvaluator(const MappingProblem& problem)
    : problem_(problem),
      has_fabric_(problem.snapshot != nullptr && problem.places->has_endpoints()) {
  if (has_fabric_) {
    const Fabric& fabric = *problem.snapshot->fabric;
    double least = 0;
    for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
      const double gbps = fabric.capacity_gbps(ChannelIndex(c));
      if (gbps > 0 && (least == 0 || gbps < least)) least = gbps;
    }
    for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
      double gbps = fabric.capacity_gbps(ChannelIndex(c));
      if (gbps == 0) gbps = least > 0 ? least : 1;
      if (problem.use_load) {
        gbps *= std::max(0.01, 1.0 - problem.snapshot->utilisation(ChannelIndex(c)));
      }
      capacity_.push_back(gbps);
    }
  }
  Mapping present;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    present.push_back(problem.places->place_of_slot(r));
  }
  present_ = Measure(present);
}

NaiveMeasures NaiveEvaluator::Measure(const Mapping& mapping) {
  NaiveMeasures m;
  std::vector<double> bytes(capacity_.size(), 0.0);
  for (uint32_t u = 0; u < problem_.rank_count(); ++u) {
    const PlaceIndex here = mapping[u];
    m.qap_cost += problem_.pattern->self_bytes(u) * (*problem_.distances)(here, here);
    for (const Exchange& e : problem_.pattern->exchanges(u)) {
      const PlaceIndex there = mapping[e.peer];
      m.qap_cost += e.out_bytes * (*problem_.distances)(here, there);
      if (e.out_bytes == 0 || here == there) continue;
      if (!has_fabric_) {
        m.inter_node_bytes += e.out_bytes;
        continue;
      }
      const Fabric& fabric = *problem_.snapshot->fabric;
      const EndpointIndex a = problem_.places->endpoint(here), b = problem_.places->endpoint(there);
      if (fabric.attached_switch(a) != fabric.attached_switch(b)) {
        m.inter_switch_bytes += e.out_bytes;
      }
      if (fabric.host(a) != fabric.host(b)) {
        m.inter_node_bytes += e.out_bytes;
      } else if (fabric.attached_switch(a) == fabric.attached_switch(b) ||
                 fabric.component(fabric.Vertex(a)) != fabric.component(fabric.Vertex(b))) {
        continue;
      }
      const Way& way = WayOf(here.value(), there.value());
      m.hop_bytes += e.out_bytes * way.links;
      m.max_dilation = std::max(m.max_dilation, way.links);
      for (const auto& [channel, share] : way.shares) bytes[channel] += e.out_bytes * share;
    }
  }
  for (size_t c = 0; c < bytes.size(); ++c) {
    m.max_congestion = std::max(m.max_congestion, bytes[c] / capacity_[c]);
  }
  if (problem_.traffic == TrafficModel::kApproximate) m.max_congestion = -1;
  return m;
}

double NaiveEvaluator::Score(const Mapping& mapping) { return Score(Measure(mapping)); }

double NaiveEvaluator::Score(const NaiveMeasures& m) const {
  const Objective& o = problem_.objective;
  const auto part = [](double weight, double value, double present) {
    return weight == 0 ? 0 : weight * (present > 0 ? value / present : value);
  };
  return (part(o.congestion, m.max_congestion, present_.max_congestion) +
          part(o.hop_bytes, m.hop_bytes, present_.hop_bytes) +
          part(o.qap_cost, m.qap_cost, present_.qap_cost)) /
         (o.congestion + o.hop_bytes + o.qap_cost);
}

const NaiveEvaluator::Way& NaiveEvaluator::WayOf(uint32_t from_place, uint32_t to_place) {
  const auto [found, is_new] = ways_.try_emplace(uint64_t{from_place} << 32 | to_place);
  if (is_new) {
    const Fabric& fabric = *problem_.snapshot->fabric;
    const VertexIndex from = fabric.Vertex(problem_.places->endpoint(PlaceIndex(from_place)));
    const VertexIndex to = fabric.Vertex(problem_.places->endpoint(PlaceIndex(to_place)));
    found->second = problem_.traffic == TrafficModel::kRoutes ? AlongRoutes(from, to)
                                                              : AlongAllShortestPaths(from, to);
  }
  return found->second;
}

NaiveEvaluator::Way NaiveEvaluator::AlongRoutes(VertexIndex from, VertexIndex to) const {
  const Fabric& fabric = *problem_.snapshot->fabric;
  Way way;
  for (VertexIndex at = from; at != to;) {
    ChannelIndex next = fabric.IsSwitch(at)
                            ? problem_.snapshot->routes->NextChannel(fabric.AsSwitch(at), to)
                            : fabric.channels(at)[0].index;
    if (next == kNoChannel || way.links > fabric.vertex_count()) GiveUp("a route is missing");
    way.shares.push_back({next.value(), 1.0});
    ++way.links;
    at = fabric.channel_to(next);
  }
  return way;
}

// paths(v) = sum of paths(w) over the channels v -> w that come nearer: those of v to `to`. A byte
// at v leaves over v -> w with the share paths(w) / paths(v).
NaiveEvaluator::Way NaiveEvaluator::AlongAllShortestPaths(VertexIndex from, VertexIndex to) const {
  const Fabric& fabric = *problem_.snapshot->fabric;
  const std::vector<int> links = LinksTo(fabric, to);
  if (links[from.value()] < 0) GiveUp("a path is missing");
  std::vector<std::vector<uint32_t>> at_distance(links[from.value()] + 1);
  for (uint32_t v = 0; v < links.size(); ++v) {
    if (links[v] >= 0 && links[v] <= links[from.value()]) at_distance[links[v]].push_back(v);
  }
  std::vector<double> paths(links.size(), 0.0), present(links.size(), 0.0);
  paths[to.value()] = 1;
  for (size_t d = 1; d < at_distance.size(); ++d) {
    for (const uint32_t v : at_distance[d]) {
      for (const Channel& c : fabric.channels(VertexIndex(v))) {
        if (links[c.to.value()] == links[v] - 1) paths[v] += paths[c.to.value()];
      }
    }
  }
  Way way;
  way.links = static_cast<uint32_t>(links[from.value()]);
  present[from.value()] = 1;
  for (size_t d = at_distance.size() - 1; d > 0; --d) {
    for (const uint32_t v : at_distance[d]) {
      if (present[v] == 0) continue;
      for (const Channel& c : fabric.channels(VertexIndex(v))) {
        if (links[c.to.value()] != links[v] - 1) continue;
        const double share = present[v] * paths[c.to.value()] / paths[v];
        present[c.to.value()] += share;
        way.shares.push_back({c.index.value(), share});
      }
    }
  }
  return way;
}

}  // namespace coppice
