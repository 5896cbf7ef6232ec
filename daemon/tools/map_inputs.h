// The question behind a call of coppice-plan map: pattern, places and distances from the files that
// its options name.
#ifndef COPPICE_DAEMON_TOOLS_MAP_INPUTS_H_
#define COPPICE_DAEMON_TOOLS_MAP_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/tools/map_options.h"

namespace coppice {

struct MapQuestion {
  MappingProblem problem;
  std::vector<std::string> host_of_place;  // [place], or empty: places without names

  // [slot], views into host_of_place.
  std::vector<absl::string_view> HostOfSlot() const;
};

// `options` as CheckUsage leaves them. Errors are those of the readers, of fabric_source.h and of
// routes.h, and name the file.
absl::StatusOr<MapQuestion> LoadMapQuestion(const MapOptions& options);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_MAP_INPUTS_H_
