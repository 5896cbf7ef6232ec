#include "daemon/tree/plan_reason.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {

std::string Figure(const AggregationTree& tree, const Prediction& predicted, bool is_fewest) {
  if (tree.type == TreeType::kTypeII) {
    const uint32_t switches = tree.serving_switch_count();
    return absl::StrFormat("%.2f us for type II (%d switch%s%s)", predicted.total_us, switches,
                           switches == 1 ? "" : "es", is_fewest ? ", the fewest" : "");
  }
  return absl::StrFormat("%.2f us for type I (%s, k = %d)", predicted.total_us,
                         std::string(ToString(tree.builder)), tree.width);
}

std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches) {
  constexpr size_t kMostNamed = 8;
  std::string names;
  for (const FullSwitch& full : switches.first(std::min(switches.size(), kMostNamed))) {
    const SwitchInfo& info = fabric.switch_info(full.index);
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToString(info.guid), " \"", info.description,
                    "\" (", full.entries_total, " entries)");
  }
  if (switches.size() > kMostNamed) {
    absl::StrAppend(&names, " and ", switches.size() - kMostNamed, " more");
  }
  return names;
}

std::string DearerBecause(const Fabric& fabric, absl::Span<const FullSwitch> switches) {
  if (switches.empty()) return "";
  return absl::StrCat("; type II takes more switches than it could, because these are full: ",
                      NameSwitches(fabric, switches));
}

absl::Status RefuseType2(const Fabric& fabric, std::string_view why_not, bool routes_are_wrong,
                         absl::Span<const FullSwitch> full_switches) {
  std::string message = absl::StrCat("no type II tree: ", std::string(why_not));
  if (routes_are_wrong) return absl::FailedPreconditionError(message);
  if (!full_switches.empty()) {
    absl::StrAppend(&message, ": ", NameSwitches(fabric, full_switches),
                    "; release a tree there, or let the type be chosen");
  } else {
    absl::StrAppend(&message, "; ask for fewer members, or let the type be chosen");
  }
  return absl::ResourceExhaustedError(message);
}

}  // namespace coppice
