// coppicectl fabric ... | entries | table: the fabric as the daemon sees it.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

using FabricStub = v1::Fabric::StubInterface;

void PrintUnanswered(const v1::FabricSummary& fabric) {
  constexpr int kMax = 8;
  if (fabric.unanswered().empty()) return;
  std::cout << "unanswered " << Counted(fabric.unanswered_size(), "request")
            << ", each sent again:\n";
  for (int i = 0; i < fabric.unanswered_size() && i < kMax; ++i) {
    std::cout << "           " << fabric.unanswered(i) << "\n";
  }
  if (fabric.unanswered_size() > kMax) {
    std::cout << "           and " << fabric.unanswered_size() - kMax << " more; see --json\n";
  }
}

void PrintSummary(const v1::FabricSummary& fabric) {
  std::cout << "fabric     version " << fabric.version() << " from " << fabric.source() << ", "
            << fabric.shape() << "\n"
            << "           " << Counted(fabric.switch_count(), "switch", "es") << ", "
            << Counted(fabric.endpoint_count(), "endpoint") << " on "
            << Counted(fabric.host_count(), "host") << ", " << Counted(fabric.link_count(), "link")
            << ", " << Counted(fabric.component_count(), "component") << "\n";
  std::cout << "levels     ";
  for (int i = 0; i < fabric.levels_size(); ++i) {
    std::cout << (i > 0 ? " < " : "") << fabric.levels(i).name() << " ("
              << fabric.levels(i).group_count() << ")";
  }
  std::cout << "\nroutes     " << Word(fabric.route_kind())
            << (fabric.has_subnet_manager() ? "" : "; no subnet manager has assigned LIDs") << "\n";
  std::cout << "last sweep " << TimeText(fabric.sweep_time()) << ", "
            << Fixed(Seconds(fabric.sweep_duration()), 3) << " s, "
            << Counted(fabric.mads_sent(), "MAD") << " sent, " << fabric.mads_timed_out()
            << " timed out\n";
  if (!fabric.last_sweep_error().empty()) {
    std::cout << "           FAILED since: " << fabric.last_sweep_error() << "\n";
  }
  PrintUnanswered(fabric);
  std::cout << "entries    " << fabric.entries_taken() << " of " << fabric.entries_total()
            << " taken\n"
            << "jobs       " << fabric.active_jobs() << " active, "
            << Counted(fabric.granted_trees(), "tree") << " granted\n";
}

int ShowSummary(Session& session, absl::StatusOr<v1::FabricSummary> summary) {
  if (const auto status = Settled(session, summary)) return *status;
  PrintSummary(*summary);
  return 0;
}

absl::StatusOr<v1::ListSwitchesResponse> Switches(Connection& connection) {
  return ListAll(connection, connection.fabric(), &FabricStub::ListSwitches,
                 v1::ListSwitchesRequest());
}

// 0 is no LID: no subnet manager has assigned one.
std::string LidText(uint32_t lid) { return lid == 0 ? "-" : absl::StrCat(lid); }

int ListSwitches(Session& session, Connection& connection) {
  const auto all = Switches(connection);
  if (const auto status = Settled(session, all)) return *status;
  Table table({"GUID", "LID", "PORTS", "CABLED", "ENDPOINTS", "DESCRIPTION"});
  for (const v1::Switch& s : all->switches()) {
    table.Add({s.guid(), LidText(s.lid()), absl::StrCat(s.port_count()),
               absl::StrCat(s.connected_ports()), absl::StrCat(s.endpoint_count()),
               s.description()});
  }
  table.Print(std::cout);
  return 0;
}

int ListEntries(Session& session, Connection& connection) {
  const auto all = Switches(connection);
  if (const auto status = Settled(session, all)) return *status;
  Table table(
      {"GUID", "TOTAL", "RESERVED", "TAKEN", "FREE", "DEGREE", "TREES", "DESCRIPTION", "TREE IDS"},
      {2, 5, 8}, session.is_wide);
  for (const v1::Switch& s : all->switches()) {
    table.Add({s.guid(), absl::StrCat(s.entries_total()), absl::StrCat(s.entries_reserved()),
               absl::StrCat(s.entries_taken()), absl::StrCat(s.entries_free()),
               absl::StrCat(s.degree_limit()), absl::StrCat(s.tree_ids_size()), s.description(),
               absl::StrJoin(s.tree_ids(), ",")});
  }
  table.Print(std::cout);
  return 0;
}

std::string EndText(const v1::LinkEnd& end) { return absl::StrCat(end.name(), "/", end.port()); }

struct LinkChoice {
  std::string of_switch;  // GUID or description; empty: of any
  size_t top = SIZE_MAX;
  bool is_down = false;
};

// Measured and promised, as plans reckon with.
double LoadAb(const v1::Link& link) { return link.utilisation_ab() + link.promised_ab(); }
double LoadBa(const v1::Link& link) { return link.utilisation_ba() + link.promised_ba(); }
// Of the direction that has more.
double LoadOf(const v1::Link& link) { return std::max(LoadAb(link), LoadBa(link)); }

bool IsAt(const v1::LinkEnd& end, const std::string& of_switch) {
  return end.is_switch() && (end.guid() == of_switch || end.name() == of_switch);
}

absl::Status NoSuchSwitch(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("switch \"", name,
                                          "\": no link is up at one of that GUID or description; ",
                                          "`fabric switches` lists them"));
}

// Those chosen, the busiest first if only some are wanted. NOT_FOUND: the switch has no link.
absl::Status Choose(const LinkChoice& choice, google::protobuf::RepeatedPtrField<v1::Link>& links) {
  if (!choice.of_switch.empty()) {
    const auto others = std::remove_if(links.begin(), links.end(), [&](const v1::Link& link) {
      return !IsAt(link.a(), choice.of_switch) && !IsAt(link.b(), choice.of_switch);
    });
    links.erase(others, links.end());
    if (links.empty()) return NoSuchSwitch(choice.of_switch);
  }
  if (choice.top == SIZE_MAX) return absl::OkStatus();
  std::stable_sort(links.begin(), links.end(),
                   [](const v1::Link& a, const v1::Link& b) { return LoadOf(a) > LoadOf(b); });
  const auto most = std::min(choice.top, static_cast<size_t>(links.size()));
  links.erase(links.begin() + static_cast<std::ptrdiff_t>(most), links.end());
  return absl::OkStatus();
}

int ListDownLinks(const Session& session, Connection& connection, const LinkChoice& choice) {
  auto fabric =
      connection.Call(connection.fabric(), &FabricStub::GetFabric, v1::GetFabricRequest());
  if (!fabric.ok()) return Fail(fabric.status());
  auto& links = *fabric->mutable_down_links()->mutable_links();
  const auto others = std::remove_if(links.begin(), links.end(), [&](const v1::DownLink& link) {
    return !choice.of_switch.empty() && !IsAt(link.a(), choice.of_switch) &&
           !IsAt(link.b(), choice.of_switch);
  });
  links.erase(others, links.end());
  if (links.empty() && !choice.of_switch.empty()) {
    const auto all = Switches(connection);
    if (!all.ok()) return Fail(all.status());
    const bool is_known =
        std::any_of(all->switches().begin(), all->switches().end(), [&](const v1::Switch& one) {
          return one.guid() == choice.of_switch || one.description() == choice.of_switch;
        });
    if (!is_known) return Fail(NoSuchSwitch(choice.of_switch));
  }
  if (session.json) return PrintJson(std::cout, fabric->down_links()), 0;
  Table table({"A", "B", "RATE", "DOWN SINCE"});
  for (const v1::DownLink& link : links) {
    table.Add({EndText(link.a()), EndText(link.b()), link.rate(), TimeText(link.since())});
  }
  table.Print(std::cout);
  return 0;
}

int ListLinks(Session& session, Connection& connection, const LinkChoice& choice) {
  if (choice.is_down) return ListDownLinks(session, connection, choice);
  auto all =
      ListAll(connection, connection.fabric(), &FabricStub::ListLinks, v1::ListLinksRequest());
  if (!all.ok()) return Fail(all.status());
  if (const absl::Status chosen = Choose(choice, *all->mutable_links()); !chosen.ok()) {
    return Fail(chosen);
  }
  if (session.json) return PrintJson(std::cout, *all), 0;
  Table table({"A", "B", "Gb/s", "LOAD A>B", "LOAD B>A", "RATE", "MEASURED A>B", "MEASURED B>A",
               "PEAK A>B", "PEAK B>A", "PROMISED A>B", "PROMISED B>A", "READ"},
              {5, 6, 7, 8, 9, 10, 11, 12}, session.is_wide);
  const auto known = [](bool is_known, double value) { return is_known ? Fixed(value, 3) : "-"; };
  for (const v1::Link& link : all->links()) {
    table.Add({EndText(link.a()), EndText(link.b()), Fixed(link.capacity_gbps(), 1),
               Fixed(LoadAb(link), 3), Fixed(LoadBa(link), 3), link.rate(),
               known(link.has_utilisation_ab(), link.utilisation_ab()),
               known(link.has_utilisation_ba(), link.utilisation_ba()),
               known(link.has_peak_ab(), link.peak_ab()), known(link.has_peak_ba(), link.peak_ba()),
               Fixed(link.promised_ab(), 3), Fixed(link.promised_ba(), 3),
               link.has_load_time() ? TimeText(link.load_time()) : "-"});
  }
  table.Print(std::cout);
  return 0;
}

int ListNodes(Session& session, Connection& connection) {
  const auto all =
      ListAll(connection, connection.fabric(), &FabricStub::ListNodes, v1::ListNodesRequest());
  if (const auto status = Settled(session, all)) return *status;
  Table table({"ENDPOINT", "PORT GUID", "LID", "SWITCH", "SWITCH PORT", "DESCRIPTION"}, {1},
              session.is_wide);
  for (const v1::Node& node : all->nodes()) {
    table.Add({node.endpoint(), node.port_guid(), LidText(node.lid()), node.switch_guid(),
               absl::StrCat(node.switch_port()), node.description()});
  }
  table.Print(std::cout);
  return 0;
}

int ShowRoute(Session& session, Connection& connection, const v1::GetRouteRequest& request) {
  const auto route = connection.Call(connection.fabric(), &FabricStub::GetRoute, request);
  if (const auto status = Settled(session, route)) return *status;
  Table table({"FROM", "OUT", "TO", "IN", "Gb/s", "LOAD"});
  for (const v1::Hop& hop : route->hops()) {
    table.Add({hop.name(), absl::StrCat(hop.out_port()), hop.to_name(), absl::StrCat(hop.in_port()),
               Fixed(hop.capacity_gbps(), 1), Fixed(hop.utilisation(), 3)});
  }
  table.Print(std::cout);
  std::cout << Counted(route->hops_size(), "link") << " by " << Word(route->kind()) << "\n";
  return 0;
}

int ShowTypeTable(Session& session, Connection& connection,
                  const v1::GetTypeTableRequest& request) {
  const auto answer = connection.Call(connection.fabric(), &FabricStub::GetTypeTable, request);
  if (const auto status = Settled(session, answer)) return *status;
  std::cout << "profile " << answer->profile() << ", " << answer->members() << " members\n";
  Table table({"OPERATION", "FROM B", "TO B", "TYPE", "WIDTH", "WIDTHS", "I US", "II US"});
  for (const v1::TypeTableRow& row : answer->rows()) {
    table.Add({Word(row.operation()), absl::StrCat(row.min_bytes()), absl::StrCat(row.max_bytes()),
               Word(row.type()), absl::StrCat(row.width()),
               absl::StrCat(row.min_width(), "..", row.max_width()), Fixed(row.type_i_us()),
               Fixed(row.type_ii_us())});
  }
  table.Print(std::cout);
  return 0;
}

}  // namespace

void AddFabricCommands(CLI::App& app, Session& session) {
  CLI::App* fabric = app.add_subcommand("fabric", "Switches, links, nodes, routes, sweeps");
  fabric->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, auto action) {
    return AddCommand(*fabric, session, name, help, action);
  };
  add("show", "The fabric at a glance", [](Session& s, Connection& connection) {
    return ShowSummary(
        s, connection.Call(connection.fabric(), &FabricStub::GetFabric, v1::GetFabricRequest()));
  });
  add("switches", "Every switch", ListSwitches);
  auto [links, choice] =
      AddCommand<LinkChoice>(*fabric, session, "links",
                             "Links with capacity and load: measured, peak, promised", ListLinks);
  links->add_option("--switch", choice.of_switch, "Only this switch's: GUID or description");
  CLI::Option* top = links->add_option("--top", choice.top, "Only so many, the busiest first")
                         ->check(CLI::Range(size_t{1}, size_t{SIZE_MAX}));
  AddWideOption(*links, session);
  links
      ->add_flag("--down", choice.is_down,
                 "Those that were up since the daemon's start and are not any more")
      ->excludes(top)
      ->excludes("--output");
  AddWideOption(*add("nodes", "Every endpoint and where it is cabled", ListNodes), session);
  add("sweep", "Discover the fabric again, now", [](Session& s, Connection& connection) {
    return ShowSummary(
        s, connection.Call(connection.fabric(), &FabricStub::Sweep, v1::SweepRequest()));
  });
  auto [route, request] = AddCommand<v1::GetRouteRequest>(
      *fabric, session, "route", "The links that a packet from A to B crosses", ShowRoute);
  constexpr char kEnd[] = "Host, host/port, port GUID or switch:GUID";
  route->add_option("A", *request.mutable_from(), kEnd)->required();
  route->add_option("B", *request.mutable_to(), kEnd)->required();
  if (session.is_offline) return;  // a file or a model has no counters, and does not change
  AddCounterCommands(*fabric, session);
  AddWatchCommand(*fabric, session);
}

void AddEntriesCommand(CLI::App& app, Session& session) {
  AddWideOption(
      *AddCommand(app, session, "entries", "Aggregation entries of every switch", ListEntries),
      session);
}

void AddTypeTableCommand(CLI::App& app, Session& session) {
  using Request = v1::GetTypeTableRequest;
  auto [command, request] = AddCommand<Request>(
      app, session, "table", "The static table: operation and size -> tree type and width",
      ShowTypeTable, [&session](Request& asked) {
        session.is_of_profile = true;
        session.needs_fabric = asked.members() == 0;
      });
  AddField(*command, "--members", request, &Request::set_members,
           "Size of the communicator; default all endpoints")
      ->check([](const std::string& text) { return FaultOfCount(text, 1, UINT32_MAX); });
}

// coppicectl fabric counters SWITCH | fabric history SWITCH PORT: what ports count, and what they
// moved in the past.

namespace {

struct HistoryOptions {
  std::string name;
  v1::GetPortHistoryRequest request;
  std::string since = "1h";
};

// 12.3 of 10^6 bytes.
std::string Megabytes(double bytes) { return Fixed(bytes / 1e6, 3); }

uint64_t ErrorsOf(const v1::PortCounters& port) {
  return port.symbol_errors() + port.link_recoveries() + port.link_downed() +
         port.receive_errors() + port.remote_physical_errors() + port.relay_errors() +
         port.send_discards() + port.send_constraint_errors() + port.receive_constraint_errors() +
         port.integrity_errors() + port.buffer_overruns() + port.vl15_dropped();
}

int ShowCounters(Session& session, Connection& connection, const std::string& name) {
  const auto guid = FindSwitch(connection, name);
  if (!guid.ok()) return Fail(guid.status());
  v1::ListPortCountersRequest request;
  request.set_switch_guid(*guid);
  const auto answer = connection.Call(connection.fabric(), &FabricStub::ListPortCounters, request);
  if (const auto status = Settled(session, answer)) return *status;
  Table table({"PORT", "PEER", "SENT MB", "RECEIVED MB", "SENT MB/s", "RECEIVED MB/s", "WAIT",
               "SYMBOL", "DOWNED", "DISCARDS", "ALL ERRORS", "READ"},
              {2, 3, 6, 7, 8, 11}, session.is_wide);
  for (const v1::PortCounters& port : answer->ports()) {
    table.Add({absl::StrCat(port.port()), port.peer(),
               Megabytes(static_cast<double>(port.sent_bytes())),
               Megabytes(static_cast<double>(port.received_bytes())),
               Megabytes(port.sent_bytes_per_second()), Megabytes(port.received_bytes_per_second()),
               absl::StrCat(port.sent_wait_ticks()), absl::StrCat(port.symbol_errors()),
               absl::StrCat(port.link_downed()), absl::StrCat(port.send_discards()),
               absl::StrCat(ErrorsOf(port)), TimeText(port.read_time())});
  }
  table.Print(std::cout);
  return 0;
}

int ShowHistory(Session& session, Connection& connection, HistoryOptions options) {
  absl::Duration since;
  if (!absl::ParseDuration(options.since, &since) || since <= absl::ZeroDuration()) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("--since \"", options.since, "\" is no time such as 30m, 1h or 240h")));
  }
  const auto guid = FindSwitch(connection, options.name);
  if (!guid.ok()) return Fail(guid.status());
  options.request.set_node_guid(*guid);
  options.request.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - since));
  const auto answer =
      connection.Call(connection.fabric(), &FabricStub::GetPortHistory, options.request);
  if (const auto status = Settled(session, answer)) return *status;
  Table table(
      {"FROM", "SECONDS", "SENT MB/s", "RECEIVED MB/s", "PEAK SENT", "PEAK RECEIVED", "ERRORS"},
      {1}, session.is_wide);
  for (const v1::PortHistoryPoint& point : answer->points()) {
    table.Add({TimeText(point.start_time()), Fixed(Seconds(point.length()), 1),
               Megabytes(point.sent_bytes_per_second()),
               Megabytes(point.received_bytes_per_second()),
               Megabytes(point.peak_sent_bytes_per_second()),
               Megabytes(point.peak_received_bytes_per_second()), absl::StrCat(point.errors())});
  }
  table.Print(std::cout);
  return 0;
}

constexpr char kSwitchHelp[] = "GUID, or description if only one switch has it";

}  // namespace

void AddCounterCommands(CLI::App& fabric, Session& session) {
  AddWideOption(
      *AddCommandOn(fabric, session, "counters", "Newest counters of every cabled port of a switch",
                    "SWITCH", kSwitchHelp, ShowCounters),
      session);
  auto [history, options] = AddCommand<HistoryOptions>(
      fabric, session, "history", "What a port of a switch moved in the past, oldest first",
      ShowHistory);
  AddWideOption(*history, session);
  v1::GetPortHistoryRequest& request = options.request;
  history->add_option("SWITCH", options.name, kSwitchHelp)->required();
  AddField(*history, "PORT", request, &v1::GetPortHistoryRequest::set_port, "Its port")->required();
  history->add_option("--since", options.since, "How far back: 30m, 1h (default), 240h");
  const std::map<std::string, v1::HistoryResolution> resolutions = {
      {"reading", v1::HISTORY_RESOLUTION_READING},
      {"minute", v1::HISTORY_RESOLUTION_MINUTE},
      {"hour", v1::HISTORY_RESOLUTION_HOUR}};
  history
      ->add_option_function<std::string>(
          "--resolution",
          [&request, resolutions](const std::string& word) {
            request.set_resolution(resolutions.at(word));
          },
          "reading (kept an hour), minute (a day) or hour (a month); default the finest that "
          "reaches back")
      ->check(CLI::IsMember({"reading", "minute", "hour"}));
}

}  // namespace coppice
