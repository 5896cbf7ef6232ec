#include "daemon/fabric/models/group_cables.h"

#include "absl/strings/str_cat.h"

namespace coppice {

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
