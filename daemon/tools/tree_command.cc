// coppice-plan tree: the tree that the daemon would plan for a communicator, from files alone.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/profile_option.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tools/tree_report.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

constexpr char kPhysicalHelp[] =
    "\nIn the JSON's \"physical\", the lowest rank on a port stands for the port.";

absl::Status RunTree(const TreeOptions& options) {
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.profile));
  ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options));
  ASSIGN_OR_RETURN(const std::vector<SwitchCapacity> capacity,
                   LoadCapacity(options, *snapshot.fabric));
  ASSIGN_OR_RETURN(const TreeRequest request, MakeRequest(options, *snapshot.fabric));
  ASSIGN_OR_RETURN(const TreePlan plan, PlanTree(snapshot, profile, capacity, request));
  return PrintText(options.json ? TreeToJson(snapshot, plan) : TreeToText(snapshot, plan));
}

void AddChoiceOptions(CLI::App& command, TreeOptions& options) {
  command.add_option("--type", options.type, "1: NICs only, 2: switches aggregate; default auto")
      ->check(CLI::IsMember({"auto", "1", "2"}));
  command.add_option("--builder", options.builder, "how a type I tree is built; default auto")
      ->check(CLI::IsMember({"auto", "kary", "knomial", "hierarchical"}));
}

}  // namespace

void RegisterTreeCommand(CLI::App& app, CommandOutcome& outcome) {
  CLI::App* const command = app.add_subcommand("tree", "The best tree for one communicator");
  const auto options = std::make_shared<TreeOptions>();
  AddPlaceOptions(*command, *options);
  AddPayloadOptions(*command, *options);
  AddChoiceOptions(*command, *options);
  AddShapeOptions(*command, *options);
  AddHardwareOptions(*command, *options);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(absl::StrCat(kTreeFilesHelp, kPhysicalHelp));
  command->callback([options, &outcome] { outcome.status = RunTree(*options); });
}

}  // namespace coppice
