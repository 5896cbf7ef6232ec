// What coppice-plan map is asked on the command line: options, what their words mean, and
// the files they name.
#ifndef COPPICE_DAEMON_TOOLS_MAP_OPTIONS_H_
#define COPPICE_DAEMON_TOOLS_MAP_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/mapping_problem.h"
#include "proto/text/map_words.h"

namespace coppice {

struct MapOptions : MapWords {
  std::string fabric, routes, load;       // where the ranks may sit
  std::string hierarchy, distances, qap;  // the same without a fabric
  std::string start;
  std::optional<uint32_t> threads;
  std::optional<uint32_t> links;  // to list; 0: all
  std::optional<double> bytes_per_message;
  bool json = false;
};

// All options with their checks. The command's callback must call CheckUsage first.
void AddMapOptions(CLI::App& command, MapOptions& options);

// Throws CLI::RequiredError or CLI::ExcludesError where options of `command` are missing or
// contradict each other.
void CheckUsage(const CLI::App& command, const MapOptions& options);

// Each is nullopt if `text` is not of its form.
// "4:8:6", from the innermost level.
std::optional<std::vector<uint32_t>> ParseExtents(absl::string_view text);
// "1:10:100", from the innermost level.
std::optional<std::vector<double>> ParseLevelDistances(absl::string_view text);

// The question behind a call of coppice-plan map: pattern, places and distances from the files that
// its options name.

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

#endif  // COPPICE_DAEMON_TOOLS_MAP_OPTIONS_H_
