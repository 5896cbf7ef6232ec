// coppicectl tree create|advise|list|show|explain|release: aggregation trees of a job; tree batch
// is in batch_command.cc.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/names.h"
#include "proto/text/node_list.h"
#include "proto/text/option_words.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// What the daemon takes, too; here for a message that names the option.
constexpr uint32_t kMaxChildren = 1 << 20;
constexpr uint32_t kMaxTreesOfForest = 64;

struct CreateTreeOptions {
  v1::CreateTreeRequest request;
  std::string ranks, members_file, root, operation = "allreduce", type = "auto", builder = "auto";
  std::string bytes = "8";
  bool draw = false;        // the tree itself, too
  bool advise = false;      // plan, take nothing
  bool is_own_job = false;  // nobody named one: it lasts as long as the call
};

// What coppice-plan is told of the fabric, as --entries, is not of one tree.
constexpr char kTypeI[] = "trees of type I", kTypeII[] = "trees of type II";
constexpr OptionWithoutEffect kWithoutEffect[] = {
    {"--width", "--type", "2", kTypeI},   {"--nic-degree", "--type", "2", kTypeI},
    {"--builder", "--type", "2", kTypeI}, {"--root", "--type", "1", kTypeII},
    {"--bytes", "--op", "barrier"},       {"--carried", "--type", "1", kTypeII},
    {"--trees", "--type", "2", kTypeI},
};

// "latency=1,entries=0.5,link=0" into the weights; false: it is not such a text.
bool ParsePolicy(absl::string_view text, v1::Policy& policy) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, '=');
    double weight = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &weight)) return false;
    if (words[0] == "latency") {
      policy.set_latency(weight);
    } else if (words[0] == "entries") {
      policy.set_entries(weight);
    } else if (words[0] == "link") {
      policy.set_link_load(weight);
    } else {
      return false;
    }
  }
  return true;
}

absl::StatusOr<EndpointNames> NamesOfEndpoints(Connection& connection) {
  const auto all = ListAll(connection, &FabricStub::ListNodes);
  if (!all.ok()) return all.status();
  EndpointNames names;
  for (const v1::Node& node : all->nodes()) {
    uint64_t guid = 0;
    if (!absl::SimpleHexAtoi(node.port_guid(), &guid)) continue;
    names[guid] = node.endpoint();
  }
  return names;
}

// Port GUIDs among `members` become "host/port", as the job's endpoints are written.
absl::Status NameGuids(Connection& connection, std::vector<std::string>& members) {
  constexpr size_t kDigits = 16;
  std::optional<EndpointNames> names;
  for (std::string& member : members) {
    const absl::string_view digits = absl::StripPrefix(member, "0x");
    uint64_t guid = 0;
    if (digits.size() != kDigits || !absl::SimpleHexAtoi(digits, &guid)) continue;
    if (!names) {
      absl::StatusOr<EndpointNames> all = NamesOfEndpoints(connection);
      if (!all.ok()) return all.status();
      names = *std::move(all);
    }
    if (const auto name = names->find(guid); name != names->end()) member = name->second;
  }
  return absl::OkStatus();
}

// Lists of nodes become their names, unless the job has an endpoint of such a name.
absl::Status ExpandMembers(const v1::Job& job, std::vector<std::string>& members) {
  std::vector<std::string> expanded;
  for (const std::string& member : members) {
    const bool is_name = std::any_of(
        job.endpoints().begin(), job.endpoints().end(),
        [&](const std::string& e) { return e == member || e.substr(0, e.rfind('/')) == member; });
    if (is_name || !LooksLikeNodeList(member)) {
      expanded.push_back(member);
      continue;
    }
    auto names = ParseNodeList(member);
    if (!names.ok()) return names.status();
    std::move(names->begin(), names->end(), std::back_inserter(expanded));
  }
  members = std::move(expanded);
  return absl::OkStatus();
}

absl::Status FillMembers(Connection& connection, CreateTreeOptions& options) {
  options.is_own_job = options.request.job_id().empty();
  if (options.is_own_job) {
    const auto job = RegisterMembers(connection, options.members_file);
    if (!job.ok()) return job.status();
    options.request.set_job_id(*job);
    options.members_file.clear();
  }
  if (!options.ranks.empty()) {
    const auto ranges = ParseRankRanges(options.ranks);
    if (!ranges.ok()) return ranges.status();
    AddRanges(*ranges, *options.request.mutable_rank_ranges());
  }
  if (options.members_file.empty()) return absl::OkStatus();
  auto members = ReadMemberWords(options.members_file);
  if (!members.ok()) return members.status();
  const auto job = CallOn(connection, options.request.job_id(), &JobsStub::GetJob);
  if (!job.ok()) return job.status();
  absl::Status status = ExpandMembers(*job, *members);
  if (status.ok()) status = NameGuids(connection, *members);
  if (!status.ok()) return status;
  const auto ranks = RanksOfMembers(*job, *members);
  if (!ranks.ok()) return ranks.status();
  options.request.mutable_ranks()->Add(ranks->begin(), ranks->end());
  return absl::OkStatus();
}

// A tree that is granted must be shown even if the endpoints cannot be named: then by GUID.
int PrintJsonTree(Connection& connection, const v1::Tree& tree) {
  const absl::StatusOr<EndpointNames> names = NamesOfEndpoints(connection);
  PrintTreeJson(std::cout, tree, names.ok() ? *names : EndpointNames());
  return 0;
}

int ShowTree(const Session& session, Connection& connection, const absl::StatusOr<v1::Tree>& tree,
             bool draw) {
  if (!tree.ok()) return Fail(tree.status());
  if (session.json) return PrintJsonTree(connection, *tree);
  const SwitchNames names = tree->switch_count() > 0 ? NamesOfSwitches(connection) : SwitchNames();
  PrintTreeSummary(std::cout, *tree, names);
  PrintTradeoffs(std::cout, *tree);
  if (draw) PrintTreeNodes(std::cout, *tree, names);
  return 0;
}

int CreateTree(Session& session, Connection& connection, CreateTreeOptions& options) {
  v1::CreateTreeRequest& request = options.request;
  request.set_operation(OperationNamed(options.operation));
  request.set_type(options.type == "1"   ? v1::TREE_TYPE_I
                   : options.type == "2" ? v1::TREE_TYPE_II
                                         : v1::TREE_TYPE_UNSPECIFIED);
  request.set_builder(BuilderNamed(options.builder));
  FillSizes(options.bytes, *request.mutable_sizes());
  if (const absl::Status status = FillMembers(connection, options); !status.ok()) {
    return Fail(status);
  }
  if (!options.root.empty()) {
    const auto guid = FindSwitch(connection, options.root);
    if (!guid.ok()) return Fail(guid.status());
    request.set_root_switch(*guid);
  }
  auto tree =
      connection.Call(options.advise ? &TreesStub::AdviseTree : &TreesStub::CreateTree, request);
  if (tree.ok() && !tree->id().empty()) {
    session.done = absl::StrCat("tree ", tree->id(), " of job ", tree->job_id(), " is granted");
  }
  if (tree.ok() && options.is_own_job) tree->clear_job_id();
  if (tree.ok() && request.width() > tree->rank_count()) {
    std::cerr << "--width " << request.width() << " is more than the tree has ranks, "
              << tree->rank_count() << ": no node has so many children\n";
  }
  return ShowTree(session, connection, tree, options.draw);
}

int ListTrees(Session& session, Connection& connection, const v1::ListTreesRequest& request) {
  const auto all = ListAll(connection, &TreesStub::ListTrees, request);
  return Show(session, all, [&](const v1::ListTreesResponse& list) {
    PrintRows(session,
              {"TREE", "JOB", "TYPE", "BUILDER", "WIDTH", "RANKS", "SWITCHES", "HEIGHT", "RADIUS",
               "OPERATION", "US", "SINCE"},
              {4, 7, 8, 11}, list.trees(), [](const v1::Tree& tree) {
                return CellsOf(tree.id(), tree.job_id(), Word(tree.type()), Word(tree.builder()),
                               WidthText(tree.width()), tree.rank_count(), tree.switch_count(),
                               tree.height(), tree.radius(), Word(tree.operation()),
                               Fixed(tree.predicted().total_us()), TimeText(tree.create_time()));
              });
  });
}

absl::StatusOr<v1::Tree> GetWhole(Connection& connection, const std::string& id) {
  v1::GetTreeRequest request;
  request.set_id(id);
  request.set_view(v1::TREE_VIEW_FULL);
  return connection.Call(&TreesStub::GetTree, request);
}

int Explain(Session& session, Connection& connection, const std::string& id) {
  const auto tree = GetWhole(connection, id);
  if (!tree.ok()) return Fail(tree.status());
  if (session.json) return PrintJsonTree(connection, *tree);
  PrintTreeSummary(std::cout, *tree,
                   tree->switch_count() > 0 ? NamesOfSwitches(connection) : SwitchNames());
  PrintAlternatives(std::cout, *tree);
  return 0;
}

int ReleaseTree(Session& session, Connection& connection, const std::string& id) {
  return Show(session, CallOn(connection, id, &TreesStub::ReleaseTree),
              [&](auto&) { std::cout << "tree " << id << " released\n"; });
}

void PrintChange(const v1::TreeChange& change) {
  std::cout << Word(change.kind());
  if (change.has_tree()) {
    const v1::Tree& tree = change.tree();
    std::cout << "  tree " << tree.id() << "  job " << tree.job_id() << "  revision "
              << tree.revision() << "  type " << Word(tree.type()) << "  ranks "
              << tree.rank_count() << "  switches " << tree.switch_count();
  }
  if (!change.reason().empty()) std::cout << "  " << ShownText(change.reason());
  if (!change.resume_token().empty()) std::cout << "  [" << change.resume_token() << "]";
  std::cout << "\n";
}

int Watch(const Session& session, Connection& connection, const v1::WatchTreesRequest& request) {
  const auto print = [&](const v1::TreeChange& change) {
    session.json ? PrintJsonLine(std::cout, change) : PrintChange(change);
    return static_cast<bool>(std::cout.flush());
  };
  const absl::Status status = connection.Watch(&TreesStub::WatchTrees, request, print);
  return status.ok() ? 0 : Fail(status);
}

void AddPolicyOptions(CLI::App& command, v1::CreateTreeRequest& request) {
  const auto policy = [&request]() -> v1::Policy& { return *request.mutable_policy(); };
  CLI::Option* weights =
      command
          .add_option_function<std::string>(
              "--policy", [policy](const std::string& text) { ParsePolicy(text, policy()); },
              "Weights of what to save, such as latency=1,entries=0.5,link=0")
          ->check([](const std::string& text) {
            v1::Policy parsed;
            return ParsePolicy(text, parsed)
                       ? std::string()
                       : text + " is no list of weights, such as latency=1,entries=0.5,link=0";
          });
  const auto limit = [policy, weights]() -> v1::Policy& {
    if (weights->count() == 0) policy().set_latency(1);  // the fastest within the limit
    return policy();
  };
  command.add_option_function<uint32_t>(
      "--max-entries", [limit](uint32_t most) { limit().set_max_entries(most); },
      "Most switches that serve; 0: type I");
  command
      .add_option_function<double>(
          "--max-link-us", [limit](double most) { limit().set_max_busiest_link_us(most); },
          "Longest that one collective may keep a link busy")
      ->check([](const std::string& text) {
        double most = 0;
        return absl::SimpleAtod(text, &most) && most > 0
                   ? std::string()
                   : text + " us: every tree keeps a link busy; give more than 0, or no limit";
      });
}

// Throws what CLI11 throws.
void CheckTreeOptions(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    // A shell variable that was never set must not pass for an option that was not given.
    if (option->count() > 0 && option->results().front().empty()) {
      throw CLI::ValidationError(option->get_name(), "the value is empty");
    }
  }
  RefuseWithoutEffect(command, kWithoutEffect);
}

void AddCreateCommand(CLI::App& tree, Session& session, bool advise) {
  auto [command, options] = AddCommand<CreateTreeOptions>(
      tree, session, advise ? "advise" : "create",
      advise ? "Plan a tree and explain it, but take nothing" : "Plan a tree and be granted it",
      CreateTree, [&tree, advise](CreateTreeOptions&) {
        CheckTreeOptions(*tree.get_subcommand(advise ? "advise" : "create"));
      });
  options.advise = advise;
  v1::CreateTreeRequest& request = options.request;
  CLI::Option* const job =
      command->add_option("--job", *request.mutable_job_id(), "Number of the job");
  if (!session.is_offline) job->required();
  CLI::Option* ranks = command->add_option("--ranks", options.ranks,
                                           "Ranks of the job: 0-15,32-62:2; default all of them");
  command
      ->add_option(
          "--members,--nodes", options.members_file,
          std::string("Endpoints of the job (host, host/port or port GUID) in the communicator's "
                      "order, ") +
              kNodeWordsHelp)
      ->excludes(ranks);
  AddOperationOptions(*command, "--op", options.operation, options.bytes);
  command->add_option("--type", options.type, "auto, 1 (NICs) or 2 (switches)")
      ->check(CLI::IsMember({"auto", "1", "2"}))
      ->capture_default_str();
  command->add_option("--builder", options.builder, "How a tree of type I is built")
      ->check(CLI::IsMember(BuildersToAskFor()))
      ->capture_default_str();
  const auto is_count = [](const std::string& text) { return FaultOfCount(text, 1, kMaxChildren); };
  AddField(*command, "--width", request, &v1::CreateTreeRequest::set_width,
           "Wanted k of a type I tree")
      ->check(is_count);
  AddField(*command, "--nic-degree", request, &v1::CreateTreeRequest::set_nic_degree,
           "Most children of a NIC")
      ->check(is_count);
  command->add_option("--root", options.root, "The wanted root switch: GUID or description");
  if (!session.is_offline) {  // where no switch speaks
    AddField(*command, "--carried", request, &v1::CreateTreeRequest::set_carried,
             "Type II only over switches that speak, which can carry data");
  }
  AddField(*command, "--trees", request, &v1::CreateTreeRequest::set_max_trees,
           "A forest of at most so many trees that share long messages, if that is sooner")
      ->check([](const std::string& text) { return FaultOfCount(text, 1, kMaxTreesOfForest); });
  AddPolicyOptions(*command, request);
  CLI::Option* const tradeoffs = AddField(
      *command, "--tradeoffs", request, &v1::CreateTreeRequest::set_tradeoffs,
      "List the trees that none beats in all of time, entries and busiest link (of a plan that "
      "takes nothing)");
  if (!advise) {
    CLI::Option* const dry_run =
        AddField(*command, "--dry-run", request, &v1::CreateTreeRequest::set_validate_only,
                 "Plan and explain, but take nothing");
    command
        ->add_option("--request-id", *request.mutable_request_id(),
                     "Makes a retry harmless: the same id creates once")
        ->excludes(dry_run);
    tradeoffs->needs(dry_run);  // a granted tree keeps no list of others
  }
  command->add_flag("--tree", options.draw, "Draw the tree, too; JSON has its nodes")
      ->excludes("--json");
}

}  // namespace

void AddTreeCommands(CLI::App& app, Session& session) {
  CLI::App* tree =
      app.add_subcommand("tree", session.is_offline ? "Create, look at and release aggregation "
                                                      "trees; without a command: advise"
                                                    : "Create, look at and release aggregation "
                                                      "trees");
  tree->require_subcommand(1);
  AddCreateCommand(*tree, session, /*advise=*/false);
  AddCreateCommand(*tree, session, /*advise=*/true);
  AddBatchCommand(*tree, session);

  auto [list, listed] =
      AddCommand<v1::ListTreesRequest>(*tree, session, "list", "Granted trees", ListTrees);
  AddWideOption(*list, session);
  list->add_option("--job", *listed.mutable_job_id(), "Only this job's");
  const auto with_id = [&](const char* name, const char* help, auto action) {
    AddCommandOn(*tree, session, name, help, "TREE", "Number of the tree", action);
  };
  with_id("show", "One tree with its nodes", [](Session& s, Connection& c, const std::string& id) {
    return ShowTree(s, c, GetWhole(c, id), /*draw=*/true);
  });
  with_id("explain", "Why the tree is as it is, and what else was considered", Explain);
  auto [watch, watched] = AddCommand<v1::WatchTreesRequest>(
      *tree, session, "watch",
      "Granted trees, then all that becomes of them, one line each, until interrupted or the job "
      "is over",
      Watch, [&session](auto&) { session.endless = true; });
  watch->add_option("--job", *watched.mutable_job_id(), "Only this job's");
  watch->add_option("--resume", *watched.mutable_resume_token(),
                    "Go on after the change that came with this token");
  with_id("release", "Give back the tree and its entries", ReleaseTree);
}

}  // namespace coppice
