#include "tests/unit/placement/placement_oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/placement/placement_metrics.h"

namespace coppice {
namespace {

uint32_t Below(std::mt19937_64& rng, uint32_t bound) {
  return static_cast<uint32_t>(rng() % std::max(1U, bound));
}

std::vector<HostIndex> RandomHosts(const Fabric& fabric, uint32_t count, std::mt19937_64& rng) {
  std::vector<HostIndex> hosts;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) hosts.push_back(HostIndex(h));
  std::shuffle(hosts.begin(), hosts.end(), rng);
  hosts.resize(std::min<size_t>(count, hosts.size()));
  return hosts;
}

bool IsUsable(const PlacementScene& scene, const PlacementConstraints& c, HostIndex h) {
  const Occupancy& o = scene.occupancy;
  if (o.is_placed[h.value()] || o.is_out[h.value()]) return false;
  if (scene.index->leaf_of(h) == PlacementIndex::kNone) return false;
  if (std::find(c.avoid.begin(), c.avoid.end(), h) != c.avoid.end()) return false;
  if (c.candidates.empty()) return o.holder[h.value()] == Occupancy::kFree;
  return std::find(c.candidates.begin(), c.candidates.end(), h) != c.candidates.end();
}

std::string Names(const PlacementScene& scene, const std::vector<HostIndex>& hosts) {
  return absl::StrJoin(hosts, " ", [&](std::string* out, HostIndex h) {
    absl::StrAppend(out, scene.fabric().host_name(h));
  });
}

}  // namespace

PlacementScene MakeScene(std::shared_ptr<const Fabric> fabric) {
  PlacementScene scene;
  auto snapshot = MakeSnapshot(fabric, nullptr);
  if (!snapshot.ok()) std::abort();
  scene.snapshot = *std::move(snapshot);
  scene.index = PlacementIndex::Make(*scene.snapshot);
  scene.occupancy.holder.assign(fabric->host_count(), Occupancy::kFree);
  scene.occupancy.is_placed.assign(fabric->host_count(), false);
  scene.occupancy.is_out.assign(fabric->host_count(), false);
  return scene;
}

PlacementScene MakeScene(const std::string& source) {
  auto fabric = LoadFabric(source);
  if (!fabric.ok()) {
    std::fprintf(stderr, "%s\n", fabric.status().ToString().c_str());
    std::abort();
  }
  return MakeScene(*std::move(fabric));
}

void OccupyAtRandom(PlacementScene& scene, double share, std::mt19937_64& rng) {
  const Fabric& fabric = scene.fabric();
  const auto held = static_cast<uint32_t>(share * fabric.host_count());
  const std::vector<HostIndex> hosts = RandomHosts(fabric, held, rng);
  const uint32_t holders = 1 + Below(rng, 3);
  std::vector<std::vector<HostIndex>> of_holder(holders + 1);
  for (const HostIndex h : hosts) {
    const uint32_t holder = 1 + Below(rng, holders);
    scene.occupancy.holder[h.value()] = holder;
    if (Below(rng, 4) == 0) scene.occupancy.is_placed[h.value()] = true;
    of_holder[holder].push_back(h);
  }
  for (const auto& hosts_of : of_holder) {
    AddHolder(*scene.snapshot, *scene.index, hosts_of, scene.occupancy.channel_users);
  }
  for (const HostIndex h : RandomHosts(fabric, Below(rng, 2), rng)) {
    scene.occupancy.is_out[h.value()] = true;
  }
}

void LoadAtRandom(PlacementScene& scene, std::mt19937_64& rng) {
  const Fabric& fabric = scene.fabric();
  std::vector<float> load(fabric.channel_count(), 0);
  for (float& utilisation : load) utilisation = static_cast<float>(Below(rng, 11)) / 10;
  auto snapshot = std::make_shared<Snapshot>(*scene.snapshot);
  snapshot->load = std::make_shared<const LinkLoad>(load);
  scene.snapshot = snapshot;
  scene.occupancy.entries_left.clear();
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    scene.occupancy.entries_left.push_back(Below(rng, 4));
  }
}

PlacementRequest RandomPlacementRequest(const PlacementScene& scene, uint32_t most,
                                        std::mt19937_64& rng) {
  const Fabric& fabric = scene.fabric();
  PlacementRequest request;
  PlacementConstraints& c = request.constraints;
  c.host_count = 1 + Below(rng, most);
  const auto now_and_then = [&] { return Below(rng, 6) == 0; };
  if (now_and_then()) {
    c.candidates = RandomHosts(fabric, c.host_count + Below(rng, fabric.host_count()), rng);
  }
  if (now_and_then()) c.avoid = RandomHosts(fabric, Below(rng, 3), rng);
  if (now_and_then()) {
    for (const HostIndex h : RandomHosts(fabric, 1 + Below(rng, 2), rng)) {
      if (IsUsable(scene, c, h) && c.include.size() < c.host_count) c.include.push_back(h);
    }
  }
  if (now_and_then()) c.hosts_per_leaf = 1 + Below(rng, 3);
  if (now_and_then()) c.max_hosts_per_leaf = 1 + Below(rng, 4);
  if (now_and_then()) c.max_leaf_switches = 1 + Below(rng, 4);
  if (now_and_then()) c.min_leaf_switches = 1 + Below(rng, 3);
  if (now_and_then()) c.min_pods = 1 + Below(rng, 2);
  c.same_pod = now_and_then();
  c.exclusive_switches = now_and_then();
  request.trees = Below(rng, 3);
  if (Below(rng, 3) == 0) return request;  // the default weights
  const auto weight = [&] { return Below(rng, 3) == 0 ? 0 : Below(rng, 50) / 10.0; };
  for (const PlacementTerm& term : kPlacementTerms) request.objective.*term.weight = weight();
  request.objective.shared_links /= 10;
  request.objective.traffic = 0;
  return request;
}

void ForEachPlacement(const PlacementScene& scene, const PlacementConstraints& c,
                      const std::function<void(const std::vector<HostIndex>&)>& visit) {
  std::vector<HostIndex> usable;
  for (uint32_t h = 0; h < scene.fabric().host_count(); ++h) {
    if (IsUsable(scene, c, HostIndex(h))) usable.push_back(HostIndex(h));
  }
  if (usable.size() < c.host_count) return;
  std::vector<bool> taken(usable.size(), false);
  std::fill(taken.begin(), taken.begin() + c.host_count, true);
  std::vector<HostIndex> hosts;
  do {
    hosts.clear();
    for (size_t i = 0; i < usable.size(); ++i) {
      if (taken[i]) hosts.push_back(usable[i]);
    }
    if (CheckPlacement(*scene.snapshot, scene.occupancy, c, hosts).ok()) visit(hosts);
  } while (std::prev_permutation(taken.begin(), taken.end()));
}

std::optional<double> LeastCost(const PlacementScene& scene, const PlacementRequest& request) {
  std::optional<double> least;
  ForEachPlacement(scene, request.constraints, [&](const std::vector<HostIndex>& hosts) {
    const double cost =
        MeasurePlacement(*scene.snapshot, *scene.index, scene.occupancy, request, hosts).cost;
    least = std::min(least.value_or(cost), cost);
  });
  return least;
}

std::string Describe(const PlacementScene& scene, const PlacementRequest& request) {
  const PlacementConstraints& c = request.constraints;
  std::string text = absl::StrCat(
      scene.fabric().host_count(), " hosts, ", scene.index->leaf_count(), " leaf switches, ",
      scene.index->pod_count(), " pods; ", c.host_count, " wanted, candidates [",
      Names(scene, c.candidates), "], include [", Names(scene, c.include), "], avoid [",
      Names(scene, c.avoid), "], ", c.hosts_per_leaf, " per leaf, at most ", c.max_hosts_per_leaf,
      " per leaf, leaf switches ", c.min_leaf_switches, " to ", c.max_leaf_switches);
  absl::StrAppend(&text, ", min pods ", c.min_pods, c.same_pod ? ", same pod" : "",
                  c.exclusive_switches ? ", exclusive" : "", "; trees ", request.trees,
                  "; weights");
  for (const PlacementTerm& term : kPlacementTerms) {
    absl::StrAppend(&text, " ", term.name, "=", request.objective.*term.weight);
  }
  absl::StrAppend(&text, "; holders");
  for (uint32_t h = 0; h < scene.fabric().host_count(); ++h) {
    absl::StrAppend(&text, " ", scene.occupancy.holder[h], scene.occupancy.is_placed[h] ? "p" : "",
                    scene.occupancy.is_out[h] ? "x" : "");
  }
  return text;
}

}  // namespace coppice
