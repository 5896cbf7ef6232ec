// coppice-plan tree: the tree that the daemon would plan for a communicator, from files alone.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/profile_option.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tools/tree_report.h"
#include "daemon/tree/planner.h"
#include "proto/text/tree_options.h"

namespace coppice {
namespace {

constexpr char kPhysicalHelp[] =
    "\nIn the JSON's \"physical\", the lowest rank on a port stands for the port.";

struct TradeOptions {
  TradePolicy policy;
  bool has_policy = false, has_limit = false, list = false;
};

// "latency=1,entries=0.5,link=0" into the weights; false: it is not such a text.
bool ParsePolicy(absl::string_view text, TradePolicy& policy) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, '=');
    double weight = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &weight)) return false;
    if (words[0] == "latency") {
      policy.latency = weight;
    } else if (words[0] == "entries") {
      policy.entries = weight;
    } else if (words[0] == "link") {
      policy.link_load = weight;
    } else {
      return false;
    }
  }
  return true;
}

// A limit without a policy: the fastest tree within it.
void AddTo(const TradeOptions& trade, TreeRequest& request) {
  request.list_tradeoffs = trade.list;
  if (!trade.has_policy && !trade.has_limit) return;
  request.policy = trade.policy;
  if (!trade.has_policy) request.policy->latency = 1;
}

absl::Status RunTree(const TreeOptions& options, const TradeOptions& trade) {
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.profile));
  ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options));
  ASSIGN_OR_RETURN(const std::vector<SwitchCapacity> capacity,
                   LoadCapacity(options, *snapshot.fabric));
  ASSIGN_OR_RETURN(TreeRequest request, MakeRequest(options, *snapshot.fabric));
  AddTo(trade, request);
  ASSIGN_OR_RETURN(TreePlan plan, PlanTree(snapshot, profile, capacity, request));
  LinkUseCounter links;
  RETURN_IF_ERROR(MeasureLinks(snapshot, profile, request, links, plan));
  return PrintText(options.json ? TreeToJson(snapshot, plan) : TreeToText(snapshot, plan));
}

void AddChoiceOptions(CLI::App& command, TreeOptions& options) {
  command.add_option("--type", options.type, "1: NICs only, 2: switches aggregate; default auto")
      ->check(CLI::IsMember({"auto", "1", "2"}));
  command.add_option("--builder", options.builder, "how a type I tree is built; default auto")
      ->check(CLI::IsMember({"auto", "kary", "knomial", "hierarchical", "postal"}));
}

void AddTradeOptions(CLI::App& command, const std::shared_ptr<TradeOptions>& trade) {
  command
      .add_option_function<std::string>(
          "--policy",
          [trade](const std::string& text) {
            trade->has_policy = ParsePolicy(text, trade->policy);
          },
          "weights of what to save, such as latency=1,entries=0.5,link=0")
      ->check([](const std::string& text) {
        TradePolicy policy;
        return ParsePolicy(text, policy)
                   ? std::string()
                   : text + " is no list of weights, such as latency=1,entries=0.5,link=0";
      });
  command.add_option_function<uint32_t>(
      "--max-entries",
      [trade](uint32_t most) {
        trade->policy.max_entries = most;
        trade->has_limit = true;
      },
      "most switches that serve; 0: type I");
  command
      .add_option_function<double>(
          "--max-link-us",
          [trade](double most) {
            trade->policy.max_busiest_link_us = most;
            trade->has_limit = true;
          },
          "longest that one collective may keep a link busy")
      ->check([](const std::string& text) {
        double most = 0;
        return absl::SimpleAtod(text, &most) && most > 0
                   ? std::string()
                   : text + " us: every tree keeps a link busy; give more than 0, or no limit";
      });
  command.add_flag("--tradeoffs", trade->list,
                   "list the trees that none beats in all of time, entries and busiest link");
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
  const auto trade = std::make_shared<TradeOptions>();
  AddTradeOptions(*command, trade);
  command->callback([command, options, trade, &outcome] {
    for (const CLI::Option* const option : command->get_options()) {
      if (option->count() == 0) continue;
      const std::string fault =
          FaultOfTreeOption(options->type, option->get_name(), option->results().front());
      if (!fault.empty()) throw CLI::ValidationError(option->get_name(), fault);
    }
    outcome.status = RunTree(*options, *trade);
  });
}

}  // namespace coppice
