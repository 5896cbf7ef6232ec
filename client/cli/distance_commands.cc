// coppicectl agent and coppicectl distance: the nodes' agents, and what they measure.
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/distance_matrix.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

using AgentsStub = v1::Agents::StubInterface;

int ListAgents(Session& session, Connection& connection) {
  const auto list =
      ListAll(connection, connection.agents(), &AgentsStub::ListAgents, v1::ListAgentsRequest());
  if (const auto status = Settled(session, list)) return *status;
  Table table(
      {"HOST", "STATE", "SINCE", "CORES", "PACKAGES", "NUMA", "MEASURES AT", "OVER", "VERSION"},
      {3, 4, 5, 8}, session.is_wide);
  for (const v1::Agent& agent : list->agents()) {
    const v1::AgentHello& hello = agent.hello();
    table.Add({hello.host(), agent.connected() ? "connected" : "gone", TimeText(agent.since()),
               absl::StrCat(hello.cores()), absl::StrCat(hello.packages()),
               absl::StrCat(hello.numa_nodes()),
               hello.measure_address().empty() ? "-" : hello.measure_address(),
               hello.measure_address().empty() ? "-"
               : hello.verbs()                 ? "verbs, TCP"
                                               : "TCP",
               hello.version()});
  }
  table.Print(std::cout);
  return 0;
}

// Lists are expanded: a matrix has a row for each host.
absl::StatusOr<std::vector<std::string>> ReadHosts(const std::string& text) {
  const auto words = ReadNodeWords(text);
  if (!words.ok()) return words.status();
  return ExpandNodeWords(*words);
}

struct MeasureOptions {
  v1::MeasureDistancesRequest request;
  std::string hosts;
};

void ShowProgress(const v1::MeasureProgress& progress) {
  if (isatty(STDERR_FILENO) == 0) return;
  ShownStream::Control(std::cerr, kWipeLine);
  std::cerr << "round " << progress.round() << " of " << progress.rounds() << ": "
            << Counted(progress.pairs(), "pair") << " measured, " << progress.failed() << " failed"
            << std::flush;
}

// " (over TCP)"; nothing of nothing.
std::string OverText(const v1::MeasureSummary& summary) {
  if (summary.pairs() == 0) return "";
  const uint32_t over_tcp = summary.pairs() - summary.over_verbs();
  if (over_tcp == 0) return " (over verbs)";
  if (summary.over_verbs() == 0) return " (over TCP)";
  return absl::StrCat(" (", summary.over_verbs(), " over verbs, ", over_tcp, " over TCP)");
}

int Measure(Session& session, Connection& connection, MeasureOptions& options) {
  if (!options.hosts.empty()) {
    const auto hosts = ReadHosts(options.hosts);
    if (!hosts.ok()) return Fail(hosts.status());
    for (const std::string& host : *hosts) options.request.add_hosts(HostOfMember(host));
  }
  v1::MeasureSummary summary;
  // No deadline: each pair has one, and their number is the user's choice.
  const std::function<bool(const v1::MeasureDistancesUpdate&)> each = [&](const auto& update) {
    if (update.has_progress()) ShowProgress(update.progress());
    if (update.has_summary()) summary = update.summary();
    return true;
  };
  const absl::Status status =
      connection.Watch(connection.agents(), &AgentsStub::MeasureDistances, options.request, each);
  if (isatty(STDERR_FILENO) != 0) ShownStream::Control(std::cerr, kWipeLine);
  if (!status.ok()) return Fail(status);
  for (const std::string& failure : summary.failures()) std::cerr << failure << "\n";
  for (const std::string& remark : summary.remarks()) std::cerr << remark << "\n";
  if (session.json) {
    PrintJson(std::cout, summary);
  } else {
    const double seconds =
        static_cast<double>(summary.elapsed().seconds()) + summary.elapsed().nanos() * 1e-9;
    std::cout << Counted(summary.pairs(), "pair") << " measured" << OverText(summary) << ", "
              << summary.failed() << " failed, in " << Counted(summary.rounds(), "round") << ", "
              << Fixed(seconds, 1) << " s\n";
  }
  return summary.pairs() > 0 ? 0 : kFailed;
}

struct ListOptions {
  std::string hosts;
  bool matrix = false, estimate = false;
  v1::Transport transport = v1::TRANSPORT_UNSPECIFIED;
  double message_bytes = 0;
};

absl::StatusOr<v1::ListDistancesResponse> Fetch(Connection& connection,
                                                const std::vector<std::string>& members,
                                                v1::Transport transport, bool estimate) {
  v1::ListDistancesRequest request;
  std::set<std::string> hosts;
  for (const std::string& member : members) hosts.insert(HostOfMember(member));
  for (const std::string& host : hosts) request.add_hosts(host);
  request.set_estimate(estimate);
  request.set_transport(transport);
  return ListAll(connection, connection.agents(), &AgentsStub::ListDistances, request);
}

// Of all hosts that were measured, if none are named: by name.
absl::StatusOr<std::vector<std::string>> Members(Connection& connection,
                                                 const ListOptions& options) {
  if (!options.hosts.empty()) return ReadHosts(options.hosts);
  const auto all = Fetch(connection, {}, options.transport, /*estimate=*/false);
  if (!all.ok()) return all.status();
  std::set<std::string> hosts;
  for (const v1::MeasuredDistance& distance : all->distances()) {
    hosts.insert({distance.from(), distance.to()});
  }
  return std::vector<std::string>(hosts.begin(), hosts.end());
}

// A daemon before verbs names none.
const char* TransportText(v1::Transport transport) {
  return transport == v1::TRANSPORT_VERBS ? "verbs" : "TCP";
}

void PrintDistances(const v1::ListDistancesResponse& list, bool is_wide) {
  Table table(
      {"FROM", "TO", "OVER", "LATENCY US", "SPREAD", "GBIT/S", "SPREAD", "SAMPLES", "MEASURED"},
      {4, 6, 7}, is_wide);
  for (const v1::MeasuredDistance& d : list.distances()) {
    const bool is_measured = d.samples() > 0;
    table.Add({d.from(), d.to(), TransportText(d.transport()), Fixed(d.latency_us()),
               Fixed(d.latency_spread_us()), Fixed(d.bandwidth_gbps(), 3),
               Fixed(d.bandwidth_spread_gbps(), 3), is_measured ? absl::StrCat(d.samples()) : "-",
               is_measured ? TimeText(d.measured()) : "estimate"});
  }
  table.Print(std::cout);
}

int ListDistances(Session& session, Connection& connection, const ListOptions& options) {
  std::vector<std::string> members;
  if (options.matrix || options.estimate || !options.hosts.empty()) {
    auto named = Members(connection, options);
    if (!named.ok()) return Fail(named.status());
    members = *std::move(named);
  }
  const bool estimate = (options.matrix || options.estimate) && !members.empty();
  const auto list = Fetch(connection, members, options.transport, estimate);
  if (!list.ok()) return Fail(list.status());
  if (options.matrix) {
    const auto text = DistanceMatrixText(members, *list, options.message_bytes);
    if (!text.ok()) return Fail(text.status());
    std::cout << *text;
  } else if (session.json) {
    PrintJson(std::cout, *list);
  } else {
    PrintDistances(*list, session.is_wide);
  }
  return 0;
}

template <class Set>
void AddOver(CLI::App& command, const char* what, Set set) {
  command
      .add_option_function<std::string>(
          "--over",
          [set](const std::string& name) {
            set(name == "verbs" ? v1::TRANSPORT_VERBS : v1::TRANSPORT_TCP);
          },
          what)
      ->check(CLI::IsMember({"verbs", "tcp"}));
}

// One size, above 0.
std::optional<uint32_t> ParseTransferBytes(absl::string_view text) {
  const auto sizes = ParseByteSizes(text);
  if (!sizes || sizes->size() != 1 || sizes->front() == 0 || sizes->front() > UINT32_MAX) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(sizes->front());
}

void AddMeasure(CLI::App& distance, Session& session) {
  auto [command, options] = AddCommand<MeasureOptions>(
      distance, session, "measure",
      "Have agents measure latency and bandwidth between nodes, in rounds, over verbs or TCP",
      Measure, [&session](MeasureOptions&) { session.endless = true; });
  using Request = v1::MeasureDistancesRequest;
  Request& request = options.request;
  command->add_option(
      "--hosts", options.hosts,
      std::string("Hosts, ") + kNodeWordsHelp + "; default: all that have an agent");
  AddField(*command, "--complete-up-to", request, &Request::set_complete_up_to,
           "Nodes of which every pair is measured; of more, samples (64)")
      ->check(CLI::PositiveNumber);
  AddField(*command, "--latency-samples", request, &Request::set_latency_samples,
           "Ping-pongs of 8 bytes for each pair (100)")
      ->check(CLI::PositiveNumber);
  AddField(*command, "--bandwidth-samples", request, &Request::set_bandwidth_samples,
           "Transfers for each pair (10)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option_function<std::string>(
          "--bandwidth-bytes",
          [&request](const std::string& text) {
            request.set_bandwidth_bytes(*ParseTransferBytes(text));
          },
          "Bytes of each transfer, such as 64K (1M)")
      ->check(Understood(ParseTransferBytes, "a size in bytes, such as 64K or 1M"));
  AddOver(*command, "Over what; default: each pair over verbs if both nodes have them, else TCP",
          [&request](v1::Transport over) { request.set_transport(over); });
}

void AddList(CLI::App& distance, Session& session) {
  auto [command, options] =
      AddCommand<ListOptions>(distance, session, "list",
                              "What was measured, and over what, by pairs of hosts", ListDistances);
  AddWideOption(*command, session);
  command->add_option("--hosts", options.hosts,
                      std::string("Hosts in the order of the ranks, ") + kNodeWordsHelp);
  command->add_flag("--estimate", options.estimate,
                    "Also pairs that were not measured: the median of those as many links apart");
  AddOver(*command,
          "Only what was measured over it; a matrix and estimates are over one, by default the "
          "one over which most of these pairs were measured",
          [&transport = options.transport](v1::Transport over) { transport = over; });
  CLI::Option* matrix = command->add_flag(
      "--matrix", options.matrix,
      "A matrix as map --distance reads it: time of a byte, in units of the least");
  command
      ->add_option("--message-bytes", options.message_bytes,
                   "With --matrix: latency counts, too, once in so many bytes")
      ->needs(matrix)
      ->check(CLI::PositiveNumber);
}

}  // namespace

void AddAgentCommands(CLI::App& app, Session& session) {
  CLI::App* agents = app.add_subcommand("agent", "Agents of the nodes");
  agents->require_subcommand(1);
  AddWideOption(
      *AddCommand(*agents, session, "list", "All that are or were connected, by host", ListAgents),
      session);
}

void AddDistanceCommands(CLI::App& app, Session& session) {
  CLI::App* distance = app.add_subcommand("distance", "Measured distances between nodes");
  distance->require_subcommand(1);
  AddMeasure(*distance, session);
  AddList(*distance, session);
}

}  // namespace coppice
