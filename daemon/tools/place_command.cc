// coppice-plan place: which nodes to give a job, from files alone.
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/place_inputs.h"
#include "daemon/tools/place_options.h"
#include "daemon/tools/place_report.h"

namespace coppice {
namespace {

constexpr char kPlaceHelp[] =
    "Lists are written n[001-128,130],login1. Files (- is standard input; # begins a comment "
    "line):\n"
    "  --held      NODES HOLDER a line: who has the same holder communicates\n"
    "  --candidates, --include, --avoid, --down: a list a line, where a file of that name is "
    "there\n"
    "The cost is the sum of weight times term. Without --weights: leaf_switches=1, pods=4,\n"
    "distance=1, shared_links=0.02, load=2, entries=2, fragmentation=0.1, traffic=2.";

absl::Status RunPlace(const PlaceOptions& options) {
  ASSIGN_OR_RETURN(const PlaceQuestion question, LoadPlaceQuestion(options));
  const absl::Duration end = SystemClock().Monotonic() + *ParseBudget(options.budget);
  const SearchControl control(
      [end] { return SystemClock().Monotonic() >= end; }, nullptr,
      [end] { return absl::ToDoubleSeconds(end - SystemClock().Monotonic()); });
  ASSIGN_OR_RETURN(const PlacementPlan plan, Place(*question.snapshot, *question.index,
                                                   question.occupancy, question.request, control));
  const Fabric& fabric = *question.snapshot->fabric;
  return PrintText(options.json ? PlacementToJson(fabric, plan) : PlacementToText(fabric, plan));
}

}  // namespace

void RegisterPlaceCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command = app.add_subcommand("place", "Which nodes to give a job");
  const auto options = std::make_shared<PlaceOptions>();
  AddPlacementOptions(*command, *options);
  command->footer(kPlaceHelp);
  command->callback([options, &outcome] { outcome.status = RunPlace(*options); });
}

}  // namespace coppice
