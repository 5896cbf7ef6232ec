// What generators build with: switches and hosts by number, cables on the next free ports. Chooses
// GUIDs and names, and refuses sizes that no switch or machine could hold.
#ifndef COPPICE_DAEMON_FABRIC_MODELS_MODEL_BUILDER_H_
#define COPPICE_DAEMON_FABRIC_MODELS_MODEL_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/models/model.h"

namespace coppice {

struct ModelLink {
  LinkRate rate;
  float capacity_gbps = 0;  // 0 = from the rate
};

// Not thread-safe. Switch s has the GUID 0x0010000000000000 + s; the adapter of host h in rail r
// has 0x0020000000000000 + 256 * (h * rails + r), and its ports that plus their number, which is
// how ibsim numbers them. Ports are numbered from 1 in the order of the cables.
class ModelBuilder {
 public:
  static constexpr uint64_t kMaxVertices = uint64_t{1} << 22;
  static constexpr uint64_t kMaxLinks = uint64_t{1} << 24;

  // INVALID_ARGUMENT: more than these. Sizes come as floating point so that they cannot wrap.
  static absl::Status CheckSize(double switches, double endpoints, double links);

  // Hosts will be n0000, n0001, ...: as many digits as `hosts` needs, at least four; their adapters
  // are "n0000 mlx5_0", one for each rail.
  explicit ModelBuilder(uint64_t hosts, uint32_t rails = 1);

  // Short, and without quotes: ibsim's consoles and SIM_HOST name the switch by it.
  uint32_t AddSwitch(std::string description);
  void Cable(uint32_t switch_a, uint32_t switch_b, ModelLink link);
  // Joins the next port of the host's adapter in `rail` to the switch.
  void CableHost(uint64_t host, uint32_t rail, uint32_t to_switch, ModelLink link);

  // INVALID_ARGUMENT: a switch with more than 254 ports, or more LIDs asked for than there are. The
  // builder is empty afterwards.
  absl::StatusOr<std::shared_ptr<const Fabric>> Build(const ModelArguments& arguments);

 private:
  struct End {
    bool is_switch;
    uint8_t port;
    uint32_t node;
  };
  struct ModelCable {
    End a, b;
    ModelLink link;
  };
  Guid AdapterGuid(uint32_t adapter) const;
  Guid GuidOf(const End& end) const;
  std::string AdapterName(uint32_t adapter) const;
  End NextPort(bool is_switch, uint32_t node);

  uint32_t rails_;
  int digits_;
  std::vector<std::string> descriptions_;  // [switch]
  std::vector<uint32_t> switch_ports_;     // [switch] used
  std::vector<uint32_t> adapter_ports_;    // [host * rails + rail] used
  std::vector<ModelCable> cables_;
};

// The two ways in which groups of switches are wired that dragonfly, dragonfly+ and PERCS share.

// Joins every two of the switches first, first + 1, ..., first + count - 1. `link_of(i, j)` is the
// link between the i-th and the j-th, i < j.
template <class LinkOf>
void CableEachPair(ModelBuilder& builder, uint32_t first, uint64_t count, LinkOf link_of) {
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t j = i + 1; j < count; ++j) {
      builder.Cable(static_cast<uint32_t>(first + i), static_cast<uint32_t>(first + j),
                    link_of(i, j));
    }
  }
}

// Joins every pair of groups by the same number of cables, the most that the groups' global ports
// allow. global_ports[g] lists the switch that each global port of group g is on; all groups have
// as many.
//
// Round k of the ports goes once to every other group in order: port k (groups - 1) + i of a group
// is its k-th cable to its i-th other group. Ports left over by an incomplete round stay free.
void CableGroups(ModelBuilder& builder, const std::vector<std::vector<uint32_t>>& global_ports,
                 ModelLink link);

// INVALID_ARGUMENT if `groups`, the value of the argument `name`, are more than `global_ports` of
// each can join.
absl::Status CheckGroups(absl::string_view name, uint64_t groups, uint64_t global_ports);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_MODELS_MODEL_BUILDER_H_
