// coppicectl search: has the node's agent start coppice-search for a job, before the job's program
// starts. The one command that speaks to the agent: the daemon has no processes on the nodes.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/map_words.h"
#include "client/cli/output.h"
#include "client/library/coppice.hpp"

namespace coppice {
namespace {

constexpr char kFooter[] =
    "Run it on a node of the job, with a coppice-agent whose configuration has search.command. "
    "The\n"
    "daemon keeps the order until the job ends:\n"
    "  coppicectl map --job 7 --stored --emit rankfile >ranks";

struct SearchCommand {
  client::SearchOptions options;
  std::string budget = "10s", agent;
};

uint32_t Milliseconds(absl::Duration duration) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1))), 1, kMost));
}

int FailWith(const client::Status& status) {
  return Fail(absl::Status(static_cast<absl::StatusCode>(status.code()), status.message()));
}

int Search(const Session& session, const SearchCommand& command, double timeout_s) {
  client::SearchOptions options = command.options;
  options.budget_ms = Milliseconds(*ParseBudget(command.budget));
  auto agent = client::Client::Open(command.agent, Milliseconds(absl::Seconds(timeout_s)));
  if (!agent.ok()) return FailWith(agent.status());
  const auto order = agent->SearchOrder(options);
  if (!order.ok()) return FailWith(order.status());
  std::vector<uint32_t> positions;
  for (uint32_t rank = 0; rank < order->ranks(); ++rank) positions.push_back(order->position(rank));
  if (session.json) {
    nlohmann::ordered_json json;
    json["job_id"] = absl::StrCat(options.job);
    json["permutation"] = positions;
    json["note"] = order->reason();
    std::cout << json.dump(1) << "\n";
    return 0;
  }
  std::cout << order->reason() << "\npermutation: " << absl::StrJoin(positions, " ") << "\n";
  return 0;
}

}  // namespace

void AddSearchCommand(CLI::App& app, Session& session, const double& timeout_s) {
  CLI::App* command = app.add_subcommand(
      "search", "Have this node's agent search for an order of a job's ranks, on the job's nodes");
  command->footer(kFooter);
  AddJsonFlag(*command, session);
  auto search = std::make_shared<SearchCommand>();
  command->add_option("--job", search->options.job, "Whose ranks")->required();
  command
      ->add_option("--application", search->options.application,
                   "The pattern that is stored under this name")
      ->required();
  command
      ->add_option("--budget", search->budget,
                   "How long to search; --timeout is for the start and all else")
      ->check([](const std::string& text) {
        return ParseBudget(text) ? std::string() : "\"" + text + "\" is not a time such as 10s";
      })
      ->capture_default_str();
  command->add_option("--seed", search->options.seed, "Of random numbers");
  command->add_option("--agent", search->agent,
                      "Socket of the agent; default $COPPICE_AGENT, then /run/coppice/agent.sock");
  command->callback([&session, &timeout_s, search] {
    session.run = [&session, &timeout_s, search](Connection&) {
      return Search(session, *search, timeout_s);
    };
  });
}

}  // namespace coppice
