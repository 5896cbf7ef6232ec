// The measures of a placement as the JSON text that its record keeps. The reader takes only what
// the writer makes; of text that somebody edited by hand it reads what it finds.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_MEASURES_JSON_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_MEASURES_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/placement/placer.h"

namespace coppice {

// {"leaf_switches":2,...,"cost":4.5,"is_optimal":1}
std::string MeasuresJson(const PlacementMeasures& measures, bool is_optimal);

struct RecordedMeasures {
  PlacementMeasures measures;
  bool is_optimal = false;
};
RecordedMeasures ParseMeasures(absl::string_view json);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_MEASURES_JSON_H_
