#include "daemon/manager/placement/placement_view.h"

#include <cmath>
#include <type_traits>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

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
  ForEachMeasure([&](const PlacementMeasure& measure) {
    absl::StrAppendFormat(&json, "\"%s\":%.17g,", measure.name, measure.Of(measures));
  });
  return absl::StrCat(json, "\"is_optimal\":", is_optimal ? 1 : 0, "}");
}

RecordedMeasures ParseMeasures(absl::string_view json) {
  RecordedMeasures recorded;
  double value;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    if (!Find(json, measure.name, value)) return;
    const auto set = [&](auto member) {
      auto& field = recorded.measures.*member;
      using Field = std::remove_reference_t<decltype(field)>;
      if (std::abs(value) < 4e9 || std::is_floating_point_v<Field>) {
        field = static_cast<Field>(value);
      }
    };
    std::visit(set, measure.member);
  });
  recorded.is_optimal = Find(json, "is_optimal", value) && value == 1;
  return recorded;
}

}  // namespace coppice
