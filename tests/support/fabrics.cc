#include "tests/support/fabrics.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
namespace {

constexpr LinkRate kHdr{4, LaneSpeed::kHdr};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "the test's fabric: %s\n", status.ToString().c_str());
  std::abort();
}

Guid SwitchGuid(uint32_t s) { return Guid(0x1000 + s); }
Guid AdapterGuid(size_t h) { return Guid(0x200000 + 256 * h); }

SwitchInfo SwitchOf(const FabricPlan& plan, uint32_t s) {
  SwitchInfo info;
  info.guid = SwitchGuid(s);
  info.lid = Lid(static_cast<uint16_t>(s + 1));
  info.port_count = 254;
  info.description = plan.descriptions.empty() ? absl::StrCat("S", s) : plan.descriptions[s];
  return info;
}

AdapterInfo AdapterOf(const FabricPlan& plan, size_t h) {
  AdapterInfo info;
  info.guid = AdapterGuid(h);
  info.port_count = static_cast<uint8_t>(plan.hosts[h].size());
  info.description = absl::StrCat("n", h, " mlx5_0");
  return info;
}

using Steps = std::vector<std::function<void(FabricBuilder&)>>;

void AddCable(Steps& steps, Guid a, uint32_t a_port, Guid b, uint32_t b_port) {
  steps.push_back([=](FabricBuilder& builder) {
    Require(builder.AddLink(a, PortNum(static_cast<uint8_t>(a_port)), b,
                            PortNum(static_cast<uint8_t>(b_port)), kHdr));
  });
}

Steps NodeSteps(const FabricPlan& plan) {
  Steps nodes;
  for (uint32_t s = 0; s < plan.switches; ++s) {
    nodes.push_back([&plan, s](FabricBuilder& b) { Require(b.AddSwitch(SwitchOf(plan, s))); });
  }
  for (size_t h = 0; h < plan.hosts.size(); ++h) {
    nodes.push_back([&plan, h](FabricBuilder& b) { Require(b.AddAdapter(AdapterOf(plan, h))); });
  }
  return nodes;
}

Steps CableSteps(const FabricPlan& plan) {
  Steps cables;
  std::vector<uint32_t> used(plan.switches, 0);
  uint32_t lid = plan.switches;
  for (size_t h = 0; h < plan.hosts.size(); ++h) {
    for (uint32_t p = 0; p < plan.hosts[h].size(); ++p) {
      const uint32_t s = plan.hosts[h][p];
      AddCable(cables, AdapterGuid(h), p + 1, SwitchGuid(s), ++used[s]);
      ++lid;
      cables.push_back([h, p, lid](FabricBuilder& b) {
        const Lid assigned(lid <= 0xbfff ? static_cast<uint16_t>(lid) : uint16_t{0});
        Require(b.SetAdapterPort(AdapterGuid(h), PortNum(static_cast<uint8_t>(p + 1)),
                                 Guid(AdapterGuid(h).value() + p + 1), assigned));
      });
    }
  }
  for (const auto& [a, b] : plan.cables) {
    const uint32_t a_port = ++used[a];
    AddCable(cables, SwitchGuid(a), a_port, SwitchGuid(b), ++used[b]);
  }
  return cables;
}

}  // namespace

FabricPtr MakeFabric(const FabricPlan& plan, std::mt19937_64* order) {
  Steps nodes = NodeSteps(plan);
  Steps cables = CableSteps(plan);
  if (order != nullptr) {
    std::shuffle(nodes.begin(), nodes.end(), *order);
    std::shuffle(cables.begin(), cables.end(), *order);
  }
  FabricBuilder builder;
  for (const auto& step : nodes) step(builder);
  for (const auto& step : cables) step(builder);
  auto fabric = builder.Build();
  Require(fabric.status());
  return *std::move(fabric);
}

FabricPlan TwoLevelFatTreePlan(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                               uint32_t ports_per_host) {
  FabricPlan plan;
  plan.switches = leaves + spines;
  for (uint32_t l = 0; l < leaves; ++l) {
    for (uint32_t h = 0; h < hosts_per_leaf; ++h) {
      plan.hosts.emplace_back(ports_per_host, l);
    }
    for (uint32_t s = 0; s < spines; ++s) plan.cables.emplace_back(l, leaves + s);
  }
  return plan;
}

FabricPtr TwoLevelFatTree(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                          uint32_t ports_per_host) {
  return MakeFabric(TwoLevelFatTreePlan(leaves, spines, hosts_per_leaf, ports_per_host));
}

FabricPlan HostsOnTwoLeavesPlan(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf) {
  FabricPlan plan = TwoLevelFatTreePlan(leaves, spines, hosts_per_leaf);
  for (std::vector<uint32_t>& host : plan.hosts) host.push_back((host[0] + 1) % leaves);
  return plan;
}

FabricPtr HostsOnTwoLeaves(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf) {
  return MakeFabric(HostsOnTwoLeavesPlan(leaves, spines, hosts_per_leaf));
}

FabricPlan ThreeLevelFatTreePlan(uint32_t pods, uint32_t leaves, uint32_t spines, uint32_t tops,
                                 uint32_t hosts_per_leaf) {
  FabricPlan plan;
  const uint32_t size = leaves + spines;
  plan.switches = pods * size + tops;
  for (uint32_t p = 0; p < pods; ++p) {
    const FabricPlan pod = TwoLevelFatTreePlan(leaves, spines, hosts_per_leaf);
    for (const auto& [a, b] : pod.cables) plan.cables.emplace_back(p * size + a, p * size + b);
    for (const auto& host : pod.hosts) plan.hosts.push_back({p * size + host[0]});
    for (uint32_t t = 0; t < tops; ++t) {
      plan.cables.emplace_back(p * size + leaves + t % spines, pods * size + t);
    }
  }
  return plan;
}

FabricPtr ThreeLevelFatTree(uint32_t pods, uint32_t leaves, uint32_t spines, uint32_t tops,
                            uint32_t hosts_per_leaf) {
  return MakeFabric(ThreeLevelFatTreePlan(pods, leaves, spines, tops, hosts_per_leaf));
}

FabricPtr Chain(uint32_t switches, uint32_t hosts_per_switch) {
  FabricPlan plan = TwoLevelFatTreePlan(switches, 0, hosts_per_switch);
  for (uint32_t s = 1; s < switches; ++s) plan.cables.emplace_back(s - 1, s);
  return MakeFabric(plan);
}

FabricPtr Ring(uint32_t switches, uint32_t hosts_per_switch) {
  FabricPlan plan = TwoLevelFatTreePlan(switches, 0, hosts_per_switch);
  for (uint32_t s = 0; s < switches; ++s) plan.cables.emplace_back(s, (s + 1) % switches);
  return MakeFabric(plan);
}

FabricPlan RandomFabricPlan(std::mt19937_64& rng, uint32_t switches, uint32_t cables,
                            uint32_t hosts) {
  FabricPlan plan;
  plan.switches = switches;
  const auto any = [&] { return static_cast<uint32_t>(rng() % switches); };
  for (uint32_t c = 0; c < cables; ++c) {
    const uint32_t a = any();
    plan.cables.emplace_back(a, any());
  }
  for (uint32_t h = 0; h < hosts; ++h) {
    std::vector<uint32_t> ports(1 + rng() % 3);
    for (uint32_t& s : ports) s = any();
    plan.hosts.push_back(std::move(ports));
  }
  return plan;
}

FabricPtr RandomFabric(std::mt19937_64& rng, uint32_t switches, uint32_t cables, uint32_t hosts) {
  return MakeFabric(RandomFabricPlan(rng, switches, cables, hosts));
}

std::vector<EndpointIndex> AllEndpoints(const Fabric& fabric) {
  std::vector<EndpointIndex> all;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) all.emplace_back(e);
  return all;
}

}  // namespace coppice
