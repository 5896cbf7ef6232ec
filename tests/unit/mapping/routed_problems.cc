#include "tests/unit/mapping/routed_problems.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/mapping/search/random.h"
#include "tests/support/fabrics.h"
#include "tests/support/tables.h"

namespace coppice {
namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

MappingProblem OverTables(const std::shared_ptr<const Fabric>& fabric,
                          std::shared_ptr<const ForwardingTables> tables,
                          const std::vector<EndpointIndex>& slots,
                          std::shared_ptr<const Pattern> pattern) {
  MappingProblem problem;
  problem.snapshot = MakeSnapshot(fabric, std::move(tables)).value();
  problem.places = Places::OfEndpoints(*fabric, slots, 1).value();
  problem.distances =
      PlaceDistances::RouteLengths(*problem.places, *problem.snapshot->routes).value();
  problem.pattern = std::move(pattern);
  problem.objective = {.congestion = 1, .hop_bytes = 1};
  return problem;
}

}  // namespace

MappingProblem ProblemOnPlafrim(uint32_t hosts, uint32_t ranks_per_host,
                                std::shared_ptr<const Pattern> pattern, uint64_t seed) {
  const std::string folder = COPPICE_SOURCE_DIR "/tests/data/plafrim/";
  const auto fabric = LoadFabric("file:" + folder + "ibnetdiscover.txt").value();
  auto tables = std::make_shared<const ForwardingTables>(
      ReadForwardingTables(*fabric, TextOf(folder + "ibroute.txt")).value());
  std::vector<EndpointIndex> all = AllEndpoints(*fabric);
  Xoshiro random(seed);
  for (uint32_t i = static_cast<uint32_t>(all.size()); i > 1; --i) {
    std::swap(all[i - 1], all[random.Below(i)]);
  }
  std::vector<EndpointIndex> slots;
  for (uint32_t h = 0; h < hosts; ++h) slots.insert(slots.end(), ranks_per_host, all[h]);
  return OverTables(fabric, std::move(tables), slots, std::move(pattern));
}

MappingProblem ProblemOnOneWayRing(uint32_t switches, std::shared_ptr<const Pattern> pattern) {
  const FabricPtr fabric = Ring(switches, 2);
  auto tables = std::make_shared<ForwardingTables>(switches);
  for (uint32_t s = 0; s < switches; ++s) {
    std::vector<uint8_t> row(1 + fabric->vertex_count(), ForwardingTables::kNoRoute);
    uint8_t onward = 0;
    for (const Channel& c : fabric->channels(VertexIndex(s))) {
      if (c.to == VertexIndex((s + 1) % switches)) onward = c.port.value();
    }
    for (uint32_t e = 0; e < fabric->endpoint_count(); ++e) {
      const EndpointIndex to(e);
      const bool is_here = *fabric->attached_switch(to) == SwitchIndex(s);
      row[fabric->lid(fabric->Vertex(to)).value()] =
          is_here ? fabric->channel_from_port(Fabric::Reverse(fabric->uplink(to))).value() : onward;
    }
    tables->SetRow(SwitchIndex(s), std::move(row));
  }
  std::vector<EndpointIndex> slots;
  for (uint32_t e = 0; e < fabric->endpoint_count(); ++e) {
    slots.insert(slots.end(), 1 + e % 3, EndpointIndex(e));
  }
  return OverTables(fabric, std::move(tables), slots, std::move(pattern));
}

MappingProblem ProblemOnHostsOfTwoLeaves(uint32_t leaves, uint32_t ranks_per_port,
                                         std::shared_ptr<const Pattern> pattern) {
  const FabricPtr fabric = HostsOnTwoLeaves(leaves, 2, 1);
  std::vector<EndpointIndex> slots;
  for (const EndpointIndex e : AllEndpoints(*fabric)) slots.insert(slots.end(), ranks_per_port, e);
  return OverTables(fabric, nullptr, slots, std::move(pattern));
}

MappingProblem ProblemOnIslands(uint32_t switches, uint32_t hosts,
                                std::shared_ptr<const Pattern> pattern) {
  const FabricPtr fabric = Ring(switches, hosts);
  auto tables = std::make_shared<ForwardingTables>(switches);
  for (uint32_t s = 0; s < switches; ++s) {
    std::vector<uint8_t> row(1 + fabric->vertex_count(), ForwardingTables::kNoRoute);
    for (uint32_t e = 0; e < fabric->endpoint_count(); ++e) {
      const EndpointIndex to(e);
      if (*fabric->attached_switch(to) != SwitchIndex(s)) continue;
      row[fabric->lid(fabric->Vertex(to)).value()] =
          fabric->channel_from_port(Fabric::Reverse(fabric->uplink(to))).value();
    }
    tables->SetRow(SwitchIndex(s), std::move(row));
  }
  MappingProblem problem;
  problem.snapshot = MakeSnapshot(fabric, std::move(tables)).value();
  problem.places = Places::OfEndpoints(*fabric, AllEndpoints(*fabric), 1).value();
  problem.pattern = std::move(pattern);
  return problem;
}

MappingProblem WithLoad(MappingProblem problem, uint64_t seed) {
  const Snapshot& old = *problem.snapshot;
  Xoshiro random(seed);
  std::vector<float> load(old.fabric->channel_count());
  for (float& share : load) {
    share = random.Below(8) == 0 ? 1.0F : static_cast<float>(random.Unit());
  }
  problem.snapshot = std::make_shared<Snapshot>(
      Snapshot{old.fabric, old.routes, old.hierarchy, std::make_shared<const LinkLoad>(load)});
  problem.use_load = true;
  return problem;
}

}  // namespace coppice
