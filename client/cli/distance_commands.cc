// coppicectl agent and coppicectl distance: the agents of nodes and switches, and what nodes
// measure.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/byte_size.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

int ListAgents(Session& session, Connection& connection) {
  return Show(session, ListAll(connection, &AgentsStub::ListAgents), [&](const auto& list) {
    PrintRows(
        session,
        {"HOST", "STATE", "SINCE", "CORES", "PACKAGES", "NUMA", "MEASURES AT", "OVER", "VERSION"},
        {3, 4, 5, 8}, list.agents(), [](const v1::Agent& agent) {
          const v1::AgentHello& hello = agent.hello();
          const bool measures = !hello.measure_address().empty();
          return CellsOf(hello.host(), agent.connected() ? "connected" : "gone",
                         TimeText(agent.since()), hello.cores(), hello.packages(),
                         hello.numa_nodes(), measures ? hello.measure_address() : "-",
                         !measures       ? "-"
                         : hello.verbs() ? "verbs, TCP"
                                         : "TCP",
                         hello.version());
        });
  });
}

int ListSwitchAgents(Session& session, Connection& connection) {
  return Show(session, ListAll(connection, &SwitchesStub::ListSwitchAgents), [&](const auto& list) {
    PrintRows(session,
              {"GUID", "STATE", "SINCE", "ENTRIES", "OF", "COLLECTIVES", "REFUSED", "BROKEN",
               "LISTENS AT", "VERSION"},
              {2, 8, 9}, list.switches(), [](const v1::SwitchAgent& agent) {
                const v1::SwitchHello& hello = agent.hello();
                const v1::SwitchReport& report = agent.last_report();
                return CellsOf(hello.switch_guid(), agent.connected() ? "connected" : "gone",
                               TimeText(agent.since()), report.entries_used(),
                               hello.abilities().entries(), report.counters().collectives(),
                               RefusedBy(report.counters()), report.counters().broken(),
                               hello.address(), hello.version());
              });
  });
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

std::string ProgressText(const v1::MeasureProgress& progress) {
  return absl::StrCat("round ", progress.round(), " of ", progress.rounds(), ": ",
                      Counted(progress.pairs(), "pair"), " measured, ", progress.failed(),
                      " failed");
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
  const auto each = [&](const v1::MeasureDistancesUpdate& update) {
    if (update.has_progress()) ShowProgress(ProgressText(update.progress()));
    if (update.has_summary()) summary = update.summary();
    return true;
  };
  const absl::Status status =
      connection.Watch(&AgentsStub::MeasureDistances, options.request, each);
  ShowProgress("");
  if (!status.ok()) return Fail(status);
  for (const std::string& failure : summary.failures()) std::cerr << failure << "\n";
  for (const std::string& remark : summary.remarks()) std::cerr << remark << "\n";
  if (session.json) {
    PrintJson(std::cout, summary);
  } else {
    std::cout << Counted(summary.pairs(), "pair") << " measured" << OverText(summary) << ", "
              << summary.failed() << " failed, in " << Counted(summary.rounds(), "round") << ", "
              << Fixed(Seconds(summary.elapsed()), 1) << " s\n";
  }
  return summary.pairs() > 0 ? 0 : kFailed;
}

// --- What was measured, and the matrix of it ---

using HostPair = std::pair<std::string, std::string>;

// Seconds.
double TimeOfByte(const v1::MeasuredDistance& distance, double message_bytes) {
  const double gap = 8 / (distance.bandwidth_gbps() * 1e9);
  return message_bytes > 0 ? gap + distance.latency_us() * 1e-6 / message_bytes : gap;
}

std::vector<std::string> FirstNamed(const std::vector<std::string>& members) {
  std::set<std::string> seen;
  std::vector<std::string> rows;
  for (const std::string& member : members) {
    if (seen.insert(member).second) rows.push_back(member);
  }
  return rows;
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
  return ListAll(connection, &AgentsStub::ListDistances, request);
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
std::string TransportText(v1::Transport transport) {
  return transport == v1::TRANSPORT_VERBS ? "verbs" : "TCP";
}

void PrintDistances(const Session& session, const v1::ListDistancesResponse& list) {
  PrintRows(
      session,
      {"FROM", "TO", "OVER", "LATENCY US", "SPREAD", "GBIT/S", "SPREAD", "SAMPLES", "MEASURED"},
      {4, 6, 7}, list.distances(), [](const v1::MeasuredDistance& d) {
        const bool is_measured = d.samples() > 0;
        return CellsOf(d.from(), d.to(), TransportText(d.transport()), Fixed(d.latency_us()),
                       Fixed(d.latency_spread_us()), Fixed(d.bandwidth_gbps(), 3),
                       Fixed(d.bandwidth_spread_gbps(), 3),
                       is_measured ? absl::StrCat(d.samples()) : "-",
                       is_measured ? TimeText(d.measured()) : "estimate");
      });
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
  if (options.matrix && list.ok()) {
    const auto text = DistanceMatrixText(members, *list, options.message_bytes);
    if (!text.ok()) return Fail(text.status());
    std::cout << *text;
    return 0;
  }
  return Show(session, list, [&](const auto& found) { PrintDistances(session, found); });
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
      "--hosts,--nodes", options.hosts,
      std::string("Hosts, ") + kNodeWordsHelp + "; default: all that have an agent");
  AddField(*command, "--complete-up-to", request, &Request::set_complete_up_to,
           "Nodes of which every pair is measured; of more, samples (64)")
      ->check(Understood(IsPositive, kPositiveMeant));
  AddField(*command, "--latency-samples", request, &Request::set_latency_samples,
           "Ping-pongs of 8 bytes for each pair (100)")
      ->check(Understood(IsPositive, kPositiveMeant));
  AddField(*command, "--bandwidth-samples", request, &Request::set_bandwidth_samples,
           "Transfers for each pair (10)")
      ->check(Understood(IsPositive, kPositiveMeant));
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
  AddPartitionOption(*command, "of each pair one in which it can speak",
                     [&request](uint32_t partition) { request.set_partition(partition); });
}

void AddList(CLI::App& distance, Session& session) {
  auto [command, options] =
      AddCommand<ListOptions>(distance, session, "list",
                              "What was measured, and over what, by pairs of hosts", ListDistances);
  AddWideOption(*command, session);
  command->add_option("--hosts,--nodes", options.hosts,
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
  matrix->excludes("--json")->excludes("--output");
  command
      ->add_option("--message-bytes", options.message_bytes,
                   "With --matrix: latency counts, too, once in so many bytes, such as 8K")
      ->needs(matrix)
      ->transform(PlainBytes)
      ->check(Understood(IsPositive, kPositiveMeant));
}

}  // namespace

absl::StatusOr<std::string> DistanceMatrixText(const std::vector<std::string>& members,
                                               const v1::ListDistancesResponse& distances,
                                               double message_bytes) {
  const std::vector<std::string> rows = FirstNamed(members);
  if (rows.empty()) {
    return absl::InvalidArgumentError("a matrix of no hosts; measure some, or name others");
  }
  std::map<HostPair, double> times;
  double least = std::numeric_limits<double>::infinity();
  for (const v1::MeasuredDistance& distance : distances.distances()) {
    const double time = TimeOfByte(distance, message_bytes);
    times[{distance.from(), distance.to()}] = times[{distance.to(), distance.from()}] = time;
    least = std::min(least, time);
  }
  std::string text = "# places in this order:";
  for (const std::string& row : rows) absl::StrAppend(&text, " ", row);
  absl::StrAppend(&text, "\n", rows.size(), "\n");
  for (const std::string& row : rows) {
    const char* separator = "";
    for (const std::string& column : rows) {
      const HostPair pair{HostOfMember(row), HostOfMember(column)};
      const auto time = times.find(pair);
      if (pair.first != pair.second && time == times.end()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the distance between ", pair.first, " and ", pair.second, " was not measured"));
      }
      const double value = pair.first == pair.second ? 0.0 : time->second / least;
      absl::StrAppendFormat(&text, "%s%.6g", separator, value);
      separator = " ";
    }
    text += "\n";
  }
  return text;
}

void AddAgentCommands(CLI::App& app, Session& session) {
  CLI::App* agents = app.add_subcommand("agent", "Agents of the nodes, and of switches");
  agents->require_subcommand(1);
  AddWideOption(
      *AddCommand(*agents, session, "list", "All that are or were connected, by host", ListAgents),
      session);
  AddWideOption(*AddCommand(*agents, session, "switches",
                            "Switches that carry trees, and what they did since they started",
                            ListSwitchAgents),
                session);
}

void AddDistanceCommands(CLI::App& app, Session& session) {
  CLI::App* distance = app.add_subcommand("distance", "Measured distances between nodes");
  distance->require_subcommand(1);
  AddMeasure(*distance, session);
  AddList(*distance, session);
}

}  // namespace coppice
