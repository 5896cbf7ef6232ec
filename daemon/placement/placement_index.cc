// Leaf switches are sorted by their groups from the widest level down, so that a group of any level
// is a run of them: sums over a group are then sums over a range.
#include "daemon/placement/placement_index.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Numbers of the groups of `level` that these endpoints, group by group, are in.
std::vector<uint32_t> RunsOf(const Hierarchy::Level& level,
                             const std::vector<EndpointIndex>& endpoints) {
  std::vector<uint32_t> runs(endpoints.size(), 0);
  for (size_t i = 1; i < runs.size(); ++i) {
    const bool is_new = level.group[endpoints[i].value()] != level.group[endpoints[i - 1].value()];
    runs[i] = runs[i - 1] + (is_new ? 1 : 0);
  }
  return runs;
}

}  // namespace

size_t PodLevel(const Hierarchy& hierarchy) {
  const std::string& name = hierarchy.levels[2].name;
  const bool is_grid = name == "line" || name == "plane" || name.rfind("block", 0) == 0;
  return is_grid ? hierarchy.levels.size() - 1 : 2;
}

std::shared_ptr<const PlacementIndex> PlacementIndex::Make(const Snapshot& snapshot) {
  std::shared_ptr<PlacementIndex> index(new PlacementIndex);
  index->fabric_ = snapshot.fabric;
  index->routes_ = snapshot.routes;
  index->NumberLeaves(*snapshot.hierarchy);
  index->MeasureDistances();
  return index;
}

void PlacementIndex::NumberLeaves(const Hierarchy& hierarchy) {
  const Hierarchy::Level& leaf_level = hierarchy.levels[1];
  const uint32_t host_count = fabric_->host_count();
  std::vector<uint32_t> group(host_count, kNone);  // [host] of leaf_level
  std::vector<EndpointIndex> first(leaf_level.group_count);
  std::vector<uint32_t> size(leaf_level.group_count, 0);
  for (uint32_t h = 0; h < host_count; ++h) {
    const auto endpoints = fabric_->endpoints_of_host(HostIndex(h));
    if (endpoints.empty()) continue;
    group[h] = leaf_level.group[endpoints.front().value()];
    if (size[group[h]]++ == 0) first[group[h]] = endpoints.front();
  }
  std::vector<uint32_t> order;  // leaf switches with hosts, by group from the widest level down
  for (uint32_t l = 0; l < size.size(); ++l) {
    if (size[l] > 0) order.push_back(l);
  }
  absl::c_sort(order, [&](uint32_t a, uint32_t b) {
    for (size_t i = hierarchy.levels.size(); i-- > 1;) {
      const std::vector<uint32_t>& groups = hierarchy.levels[i].group;
      const uint32_t at_a = groups[first[a].value()], at_b = groups[first[b].value()];
      if (at_a != at_b) return at_a < at_b;
    }
    return false;
  });
  std::vector<uint32_t> number(size.size(), kNone);
  std::vector<EndpointIndex> firsts;
  host_begin_.assign(1, 0);
  for (const uint32_t l : order) {
    number[l] = static_cast<uint32_t>(firsts.size());
    firsts.push_back(first[l]);
    switch_of_.push_back(fabric_->attached_switch(firsts.back()));
    host_begin_.push_back(host_begin_.back() + size[l]);
    largest_leaf_ = std::max(largest_leaf_, size[l]);
  }
  leaf_of_.assign(host_count, kNone);
  hosts_.resize(host_begin_.back());
  std::vector<uint32_t> next(host_begin_.begin(), host_begin_.end() - 1);
  for (uint32_t h = 0; h < host_count; ++h) {
    if (group[h] == kNone) continue;
    leaf_of_[h] = number[group[h]];
    hosts_[next[leaf_of_[h]]++] = HostIndex(h);
  }
  pod_of_ = RunsOf(hierarchy.levels[PodLevel(hierarchy)], firsts);
  component_of_ = RunsOf(hierarchy.levels.back(), firsts);
}

void PlacementIndex::MeasureDistances() {
  const SwitchDistances& distances = routes_->distances();
  absl::flat_hash_map<uint32_t, uint32_t> numbers;
  std::vector<uint32_t> twins;  // [class] of TwinClasses
  std::vector<uint32_t> members;
  for (uint32_t l = 0; l < leaf_count(); ++l) {
    // What has no switch is alone, under a number that no class of switches has.
    const uint32_t twin = switch_of_[l] ? distances.classes().class_of(*switch_of_[l])
                                        : distances.classes().class_count() + l;
    const auto [at, is_new] = numbers.try_emplace(twin, class_count_);
    if (is_new) {
      ++class_count_;
      twins.push_back(twin);
      members.push_back(0);
    }
    class_of_.push_back(at->second);
    ++members[at->second];
  }
  if (class_count_ > kMaxClasses) return;
  const uint32_t known = distances.classes().class_count();
  matrix_.assign(size_t{class_count_} * class_count_, kUnreachable);
  uint32_t least = kUnreachable;
  for (uint32_t a = 0; a < class_count_; ++a) {
    if (twins[a] >= known) continue;
    const absl::Span<const uint8_t> row = distances.ClassRowTo(twins[a]);
    for (uint32_t b = 0; b < class_count_; ++b) {
      if (twins[b] >= known) continue;
      const uint32_t between = a == b ? 2 : row[twins[b]];
      const uint32_t hops = std::min(between + 2, kUnreachable);
      matrix_[size_t{a} * class_count_ + b] = static_cast<uint8_t>(hops);
      if (a != b || members[a] > 1) least = std::min(least, hops);
    }
  }
  least_hops_ = least;
}

uint32_t PlacementIndex::FarHops(uint32_t a, uint32_t b) const {
  if (!switch_of_[a] || !switch_of_[b]) return kUnreachable;
  const uint32_t between = routes_->distances().Between(*switch_of_[a], *switch_of_[b]);
  return std::min(between + 2, kUnreachable);
}

std::string PlacementIndex::Describe(uint32_t leaf) const {
  if (!switch_of_[leaf]) {
    return absl::StrCat("the cable of ", fabric_->host_name(hosts(leaf).front()));
  }
  return absl::StrCat("leaf switch \"", fabric_->switch_info(*switch_of_[leaf]).description, "\"");
}

}  // namespace coppice
