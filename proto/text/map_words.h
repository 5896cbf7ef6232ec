// What is asked for an order of ranks alike by coppicectl, coppice-plan and coppice-search: the
// pattern, the hosts, what to make small, how to search, how to write the order. Each adds what it
// alone can mean: a daemon's jobs, stored patterns and orders; routes, load, hierarchies and
// QAPLIB instances from files.
#ifndef COPPICE_PROTO_TEXT_MAP_WORDS_H_
#define COPPICE_PROTO_TEXT_MAP_WORDS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace coppice {

struct MapWords {
  std::string pattern, messages;           // files
  std::string hosts, distance, traffic;    // "": the preset
  std::optional<uint32_t> ranks_per_host;  // nullopt: 1
  std::string algorithm = "auto", objective, budget;
  std::optional<uint64_t> seed;
  std::vector<std::string> parameters;  // NAME=VALUE
  std::string emit, out;
  bool list = false;
};

// The options, with their checks.
void AddMapWords(CLI::App& command, MapWords& words);

// To be called once the line is read; the command has --json, too. Throws CLI::ExcludesError for
// --list beside anything but --json, and for an order and JSON on one standard output.
void CheckMapWords(const CLI::App& command, const MapWords& words);

// How long to search.
absl::Duration BudgetOf(const MapWords& words);

// Before the search, whether WriteOrder could write to --out. Errors of CheckMayWrite.
absl::Status CheckOut(const MapWords& words);

// For a report: in which file the order is, or how to ask for it.
std::string WhereOrderIs(const MapWords& words);

// Writes the order as --emit has it, to --out or else to standard output, which is all then that is
// to be printed: true. False: a report is wanted. Errors of WriteTextFile and PrintText.
absl::StatusOr<bool> WriteOrder(const MapWords& words, absl::string_view order);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_MAP_WORDS_H_
