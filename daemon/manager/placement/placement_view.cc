#include "daemon/manager/placement/placement_view.h"

#include <cmath>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

// Calls visit(name, field) for every field, in the order of the text.
template <class Measures, class Visit>
void ForEachField(Measures& m, Visit visit) {
  visit("leaf_switches", m.leaf_switches);
  visit("least_leaf_switches", m.least_leaf_switches);
  visit("pods", m.pods);
  visit("total_distance", m.total_distance);
  visit("mean_distance", m.mean_distance);
  visit("shared_links", m.shared_links);
  visit("mean_load", m.mean_load);
  visit("most_load", m.most_load);
  visit("switches_without_entries", m.switches_without_entries);
  visit("fragmentation", m.fragmentation);
  visit("max_congestion", m.max_congestion);
  visit("cost", m.cost);
}

// The number behind "name":, if it is there.
bool Find(absl::string_view json, absl::string_view name, double& value) {
  const size_t at = json.find(absl::StrCat("\"", name, "\":"));
  if (at == absl::string_view::npos) return false;
  absl::string_view text = json.substr(at + name.size() + 3);
  text = text.substr(0, text.find_first_of(",}"));
  return absl::SimpleAtod(text, &value) && std::isfinite(value);
}

}  // namespace

std::string MeasuresJson(const PlacementMeasures& measures, bool is_optimal) {
  std::string json = "{";
  ForEachField(measures, [&](const char* name, const auto& field) {
    absl::StrAppendFormat(&json, "\"%s\":%.17g,", name, static_cast<double>(field));
  });
  return absl::StrCat(json, "\"is_optimal\":", is_optimal ? 1 : 0, "}");
}

RecordedMeasures ParseMeasures(absl::string_view json) {
  RecordedMeasures recorded;
  double value;
  ForEachField(recorded.measures, [&](const char* name, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if (!Find(json, name, value)) return;
    if (std::abs(value) < 4e9 || std::is_floating_point_v<Field>) field = static_cast<Field>(value);
  });
  recorded.is_optimal = Find(json, "is_optimal", value) && value == 1;
  return recorded;
}

}  // namespace coppice
