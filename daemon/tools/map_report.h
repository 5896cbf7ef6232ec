// A mapping as coppice-plan prints it: JSON for programs and an aligned table for people; and the
// list of algorithms. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_MAP_REPORT_H_
#define COPPICE_DAEMON_TOOLS_MAP_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/output/mapping_answer.h"

namespace coppice {

// What was asked, and what came out.
struct MapReport {
  const MappingProblem& problem;
  const MappingAnswer& answer;
  absl::Duration took;
  std::optional<std::vector<BusyLink>> links;  // under the answer, if they were asked for
};

// The measures that are unknown without a fabric are null.
std::string MapToJson(const MapReport& report);
std::string MapToText(const MapReport& report);

// Names, sources and parameters of all algorithms.
std::string AlgorithmsToJson();
std::string AlgorithmsToText();

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_MAP_REPORT_H_
