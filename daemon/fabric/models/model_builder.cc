#include "daemon/fabric/models/model_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {
namespace {

constexpr uint64_t kSwitchGuid = 0x0010000000000000;
constexpr uint64_t kAdapterGuid = 0x0020000000000000;
constexpr uint32_t kMaxPorts = 254;        // IBA vol. 1, 14.2.5.3 NodeInfo: 8 bits, 255 is reserved
constexpr uint64_t kUnicastLids = 0xBFFF;  // IBA vol. 1, 4.1.3

}  // namespace

absl::Status ModelBuilder::CheckSize(double switches, double endpoints, double links) {
  if (switches + endpoints > static_cast<double>(kMaxVertices)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%.0f switches and %.0f endpoints are more than %d vertices: make it smaller", switches,
        endpoints, kMaxVertices));
  }
  if (links > static_cast<double>(kMaxLinks)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%.0f links are more than %d: make it smaller", links, kMaxLinks));
  }
  return absl::OkStatus();
}

ModelBuilder::ModelBuilder(uint64_t hosts, uint32_t rails)
    : rails_(rails), digits_(4), adapter_ports_(hosts * rails, 0) {
  for (uint64_t bound = 10000; hosts > bound; bound *= 10) ++digits_;
}

uint32_t ModelBuilder::AddSwitch(std::string description) {
  descriptions_.push_back(std::move(description));
  switch_ports_.push_back(0);
  return static_cast<uint32_t>(descriptions_.size() - 1);
}

// Ports beyond 255 wrap here; Build refuses them by the count.
ModelBuilder::End ModelBuilder::NextPort(bool is_switch, uint32_t node) {
  uint32_t& used = is_switch ? switch_ports_[node] : adapter_ports_[node];
  ++used;
  return {is_switch, static_cast<uint8_t>(used), node};
}

void ModelBuilder::Cable(uint32_t switch_a, uint32_t switch_b, ModelLink link) {
  const End a = NextPort(true, switch_a);
  const End b = NextPort(true, switch_b);
  cables_.push_back({a, b, link});
}

void ModelBuilder::CableHost(uint64_t host, uint32_t rail, uint32_t to_switch, ModelLink link) {
  const End a = NextPort(false, static_cast<uint32_t>(host * rails_ + rail));
  const End b = NextPort(true, to_switch);
  cables_.push_back({a, b, link});
}

Guid ModelBuilder::AdapterGuid(uint32_t adapter) const {
  return Guid(kAdapterGuid + uint64_t{256} * adapter);
}

Guid ModelBuilder::GuidOf(const End& end) const {
  return end.is_switch ? Guid(kSwitchGuid + end.node) : AdapterGuid(end.node);
}

std::string ModelBuilder::AdapterName(uint32_t adapter) const {
  return absl::StrFormat("n%0*d mlx5_%d", digits_, adapter / rails_, adapter % rails_);
}

absl::StatusOr<std::shared_ptr<const Fabric>> ModelBuilder::Build(const ModelArguments& arguments) {
  const bool lids = arguments.Integer("lids") == 1;
  uint64_t next_lid = 1;
  for (const uint32_t ports : adapter_ports_) next_lid += ports;
  if (lids && next_lid + descriptions_.size() - 1 > kUnicastLids) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument lids=1: ", next_lid + descriptions_.size() - 1,
                     " ports are more than the ", kUnicastLids, " unicast LIDs of a subnet"));
  }
  next_lid = 1;
  const auto take_lid = [&] { return Lid(static_cast<uint16_t>(lids ? next_lid++ : 0)); };
  FabricBuilder builder;
  for (uint32_t s = 0; s < descriptions_.size(); ++s) {
    if (switch_ports_[s] > kMaxPorts) {
      return absl::InvalidArgumentError(absl::StrCat("switch ", descriptions_[s], " would need ",
                                                     switch_ports_[s],
                                                     " ports; a switch has at most ", kMaxPorts));
    }
    SwitchInfo info;
    info.guid = Guid(kSwitchGuid + s);
    info.lid = take_lid();
    info.port_count = static_cast<uint8_t>(std::max<uint32_t>(1, switch_ports_[s]));
    info.description = std::move(descriptions_[s]);
    RETURN_IF_ERROR(builder.AddSwitch(std::move(info)));
  }
  for (uint32_t a = 0; a < adapter_ports_.size(); ++a) {
    AdapterInfo info;
    info.guid = AdapterGuid(a);
    info.port_count = static_cast<uint8_t>(adapter_ports_[a]);
    info.description = AdapterName(a);
    RETURN_IF_ERROR(builder.AddAdapter(std::move(info)));
    for (uint8_t port = 1; port <= adapter_ports_[a]; ++port) {
      RETURN_IF_ERROR(builder.SetAdapterPort(AdapterGuid(a), PortNum(port),
                                             Guid(AdapterGuid(a).value() + port), take_lid()));
    }
  }
  for (const ModelCable& cable : cables_) {
    RETURN_IF_ERROR(builder.AddLink(GuidOf(cable.a), PortNum(cable.a.port), GuidOf(cable.b),
                                    PortNum(cable.b.port), cable.link.rate,
                                    cable.link.capacity_gbps));
  }
  cables_.clear();
  return builder.Build();
}

void CableGroups(ModelBuilder& builder, const std::vector<std::vector<uint32_t>>& global_ports,
                 ModelLink link) {
  const size_t groups = global_ports.size();
  if (groups < 2) return;
  const size_t rounds = global_ports.front().size() / (groups - 1);
  const auto carrier = [&](size_t group, size_t other, size_t round) {
    return global_ports[group][round * (groups - 1) + (other < group ? other : other - 1)];
  };
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < groups; ++i) {
      for (size_t j = i + 1; j < groups; ++j) {
        builder.Cable(carrier(i, j, round), carrier(j, i, round), link);
      }
    }
  }
}

absl::Status CheckGroups(absl::string_view name, uint64_t groups, uint64_t global_ports) {
  if (groups <= global_ports + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "argument ", name, "=", groups, ": the ", global_ports, " global links of a group reach at ",
      "most ", global_ports + 1, " groups: ask for fewer groups or for more links"));
}

}  // namespace coppice
