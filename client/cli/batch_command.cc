// tree batch: the communicators of one job planned and granted together.
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

struct BatchOptions {
  v1::BatchCreateTreesRequest request;
  std::string members, grid, list, axes, order = "last", admission = "all", goal = "both";
  std::string operation = "allreduce";
  std::string bytes = "8";
  bool trees = false;
};

// What came over the stream.
struct Outcome {
  std::vector<v1::BatchTree> trees;
  v1::BatchSummary summary;
};

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(absl::string_view option, absl::string_view text,
                                                   char separator) {
  std::vector<uint32_t> numbers;
  for (const absl::string_view word : absl::StrSplit(text, separator)) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) {
      return absl::InvalidArgumentError(absl::StrCat(option, " ", text, ": \"", word,
                                                     "\" is no number; write it as ",
                                                     separator == 'x' ? "256x160" : "0,2"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status FillGrid(const BatchOptions& options, v1::ProcessGrid& grid) {
  const auto sizes = ParseNumbers("--grid", options.grid, 'x');
  if (!sizes.ok()) return sizes.status();
  grid.mutable_sizes()->Add(sizes->begin(), sizes->end());
  grid.set_first_axis_fastest(options.order == "first");
  if (options.axes.empty()) return absl::OkStatus();
  const auto axes = ParseNumbers("--axes", options.axes, ',');
  if (!axes.ok()) return axes.status();
  grid.mutable_axes()->Add(axes->begin(), axes->end());
  return absl::OkStatus();
}

absl::Status FillList(const std::string& path, v1::BatchCreateTreesRequest& request) {
  const auto text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  const auto communicators = ParseCommunicators(*text, path);
  if (!communicators.ok()) return communicators.status();
  for (const CommunicatorLine& line : *communicators) {
    AddRanges(line.ranges, *request.add_communicators()->mutable_rank_ranges());
  }
  return absl::OkStatus();
}

v1::BatchGoal GoalNamed(absl::string_view name) {
  if (name == "links") return v1::BATCH_GOAL_LINKS;
  return name == "entries" ? v1::BATCH_GOAL_ENTRIES : v1::BATCH_GOAL_BOTH;
}

absl::Status FillRequest(BatchOptions& options) {
  v1::BatchCreateTreesRequest& request = options.request;
  request.set_operation(OperationNamed(options.operation));
  request.set_admission(options.admission == "all" ? v1::BATCH_ADMISSION_ALL
                                                   : v1::BATCH_ADMISSION_LARGEST);
  request.set_goal(GoalNamed(options.goal));
  FillSizes(options.bytes, *request.mutable_sizes());
  request.set_view(options.trees ? v1::TREE_VIEW_FULL : v1::TREE_VIEW_SUMMARY);
  if (!options.grid.empty()) return FillGrid(options, *request.mutable_grid());
  return FillList(options.list, request);
}

absl::StatusOr<Outcome> Run(Connection& connection, const v1::BatchCreateTreesRequest& request) {
  Outcome outcome;
  bool has_summary = false;
  const auto each = [&](v1::BatchCreateTreesUpdate& update) {
    const v1::BatchProgress& progress = update.progress();
    if (update.has_progress()) {
      ShowProgress(absl::StrCat(progress.phase(), " ", progress.planned(), " of ",
                                progress.communicators()));
    }
    if (update.has_tree()) outcome.trees.push_back(std::move(*update.mutable_tree()));
    if (update.has_summary()) outcome.summary = std::move(*update.mutable_summary());
    has_summary |= update.has_summary();
    return true;
  };
  const absl::Status status =
      connection.Watch(&TreesStub::BatchCreateTrees, request, each, /*is_bounded=*/true);
  ShowProgress("");
  if (!status.ok()) return status;
  if (!has_summary) return absl::DataLossError("the daemon's answer ended without a summary");
  return outcome;
}

void PrintOutcomeJson(const Outcome& outcome) {
  nlohmann::ordered_json json;
  json["summary"] = JsonOf(outcome.summary);
  json["trees"] = nlohmann::ordered_json::array();
  for (const v1::BatchTree& tree : outcome.trees) json["trees"].push_back(JsonOf(tree));
  std::cout << json.dump(1) << "\n";
}

// The description of the switch that is the tree's root, or its GUID.
std::string RootText(const v1::Tree& tree, const SwitchNames& names) {
  const auto rank_count = static_cast<int>(tree.rank_count());
  const int root = static_cast<int>(tree.root()) - rank_count;
  if (root < 0 || root >= tree.nodes().switches_size()) return "-";
  const uint64_t guid = tree.nodes().switches(root);
  const auto name = names.find(guid);
  const bool is_named = name != names.end() && !name->second.empty();
  return is_named ? name->second : absl::StrFormat("%016x", guid);
}

void PrintTrees(const Session& session, const Outcome& outcome, const SwitchNames& names) {
  PrintRows(
      session, {"NUMBER", "TREE", "TYPE", "RANKS", "SWITCHES", "HEIGHT", "RADIUS", "US", "ROOT"},
      {5, 6}, outcome.trees, [&](const v1::BatchTree& of) {
        const v1::Tree& tree = of.tree();
        return CellsOf(of.communicator(), tree.id().empty() ? "-" : tree.id(), Word(tree.type()),
                       tree.rank_count(), tree.switch_count(), tree.height(), tree.radius(),
                       Fixed(tree.predicted().total_us()), RootText(tree, names));
      });
  std::cout << "\n";
}

void PrintSummary(const v1::BatchSummary& summary, bool is_dry_run) {
  Table table({"COMMUNICATORS", is_dry_run ? "PLANNED" : "GRANTED", "TYPE I", "REFUSED", "ENTRIES",
               "MOST MESSAGES", "FABRIC"});
  table.Add(CellsOf(summary.communicators(), summary.granted(), summary.type_i(),
                    summary.refusals_size(), summary.entries(), summary.most_packets(),
                    summary.fabric_version()));
  table.Print(std::cout);
  const auto tell = [](const std::string& text) { std::cout << Folded(text, 2) << "\n"; };
  if (!summary.most_loaded().empty()) tell("most loaded: " + summary.most_loaded());
  for (const v1::BatchRefusal& refusal : summary.refusals()) {
    tell(absl::StrCat("communicator ", refusal.communicator(), ": ", refusal.why_not()));
  }
}

void PrintComparison(const v1::BatchComparison& comparison) {
  Table table({"", "ADMITTED", "REFUSED", "ENTRIES", "FARTHER ROOTS", "MESSAGES"});
  const auto add = [&table](const char* name, const v1::BatchTotals& totals) {
    table.Add(CellsOf(name, totals.admitted(), totals.refused(), totals.entries(),
                      totals.farther_roots(), totals.most_packets()));
  };
  add("this batch", comparison.batch());
  add("one by one, fewest entries", comparison.one_by_one());
  add("one by one, unreduced", comparison.unreduced());
  std::cout << "\n";
  table.Print(std::cout);
  const v1::BatchBounds& bounds = comparison.bounds();
  std::cout << "bounds: " << bounds.entries_alone() << " entries if each were alone, "
            << bounds.entries_counting() << " by counting; " << bounds.refused() << " refused;\n"
            << "        " << bounds.no_nearest_root() << " without any nearest root that works; "
            << bounds.most_packets() << " messages on the most loaded\n"
            << "        link with a twentieth more entries\n";
}

// A grid may be one of some ranks only, but whoever miscounted is to learn of it.
void TellLeftOut(Connection& connection, const v1::BatchCreateTreesRequest& request) {
  uint64_t cells = 1;
  for (const uint32_t size : request.grid().sizes()) cells *= size;
  const auto job = CallOn(connection, request.job_id(), &JobsStub::GetJob);
  if (!job.ok() || cells >= job->rank_count()) return;
  std::cerr << "the grid has " << cells << " of the job's " << Counted(job->rank_count(), "rank")
            << ": the others are in none of its communicators\n";
}

int Batch(Session& session, Connection& connection, BatchOptions& options) {
  if (const absl::Status status = FillRequest(options); !status.ok()) return Fail(status);
  if (options.request.job_id().empty()) {
    const auto job = RegisterMembers(connection, options.members);
    if (!job.ok()) return Fail(job.status());
    options.request.set_job_id(*job);
  }
  const absl::StatusOr<Outcome> outcome = Run(connection, options.request);
  if (!outcome.ok()) return Fail(outcome.status());
  if (!options.request.validate_only()) {
    session.done = absl::StrCat("job ", options.request.job_id(), " has been granted ",
                                Counted(outcome->summary.granted(), "tree"));
  }
  if (options.request.has_grid()) TellLeftOut(connection, options.request);
  if (session.json) return PrintOutcomeJson(*outcome), 0;
  if (options.trees) PrintTrees(session, *outcome, NamesOfSwitches(connection));
  PrintSummary(outcome->summary, options.request.validate_only());
  if (outcome->summary.has_comparison()) PrintComparison(outcome->summary.comparison());
  return 0;
}

void AddCommunicatorOptions(CLI::App& command, BatchOptions& options) {
  CLI::Option* const grid = command.add_option(
      "--grid", options.grid, "Every line of a process grid over the job's ranks: 256x160");
  CLI::Option* const list =
      command.add_option("--list", options.list,
                         "File with one communicator a line, as ranks of the job: 0-15 32-62:2; - "
                         "for stdin");
  grid->excludes(list);
  command.add_option("--axes", options.axes, "Axes along which lines run: 0,2; default all")
      ->needs(grid);
  command.add_option("--order", options.order, "The axis that runs fastest: first or last")
      ->check(CLI::IsMember({"first", "last"}))
      ->needs(grid)
      ->capture_default_str();
}

}  // namespace

void AddBatchCommand(CLI::App& tree, Session& session) {
  auto [command, options] = AddCommand<BatchOptions>(
      tree, session, "batch", "Plan trees for many communicators together, all in one step", Batch,
      [&tree](BatchOptions& asked) {
        if (asked.grid.empty() && asked.list.empty()) throw CLI::RequiredError("--grid or --list");
        RefuseWithoutEffect(*tree.get_subcommand("batch"), {{"--bytes", "--op", "barrier"}});
      });
  AddWideOption(*command, session);
  v1::BatchCreateTreesRequest& request = options.request;
  CLI::Option* const job =
      command->add_option("--job", *request.mutable_job_id(), "Number of the job");
  if (session.is_offline) {
    command
        ->add_option("--members,--nodes", options.members,
                     std::string("Or endpoints in rank order, a job for the call, ") +
                         kNodeWordsHelp + "; default all endpoints")
        ->excludes(job);
  } else {
    job->required();
  }
  AddCommunicatorOptions(*command, options);
  command
      ->add_option("--admission", options.admission,
                   "all: every communicator or none; largest: as many as fit")
      ->check(CLI::IsMember({"all", "largest"}))
      ->capture_default_str();
  command
      ->add_option("--goal", options.goal,
                   "Of those admitted: fewest entries; least packets on the most loaded link; or "
                   "both: links, for at most a twentieth more entries than the fewest")
      ->check(CLI::IsMember({"both", "entries", "links"}))
      ->capture_default_str();
  AddField(*command, "--type-i", request, &v1::BatchCreateTreesRequest::set_accept_type_i,
           "A tree over NICs for a communicator that gets none over switches");
  AddOperationOptions(*command, "--op,--operation", options.operation, options.bytes);
  CLI::Option* const dry_run =
      AddField(*command, "--dry-run", request, &v1::BatchCreateTreesRequest::set_validate_only,
               "Plan, but take nothing");
  command
      ->add_option("--request-id", *request.mutable_request_id(),
                   "Makes a retry harmless: the same id grants once")
      ->excludes(dry_run);
  AddField(*command, "--compare", request, &v1::BatchCreateTreesRequest::set_compare,
           "Beside the plan, what one by one would take, and what no plan can beat")
      ->needs(dry_run);
  command->add_flag("--trees", options.trees, "List the trees, in JSON with their nodes");
}

}  // namespace coppice
