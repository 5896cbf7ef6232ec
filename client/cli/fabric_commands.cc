// coppicectl fabric ... | entries | table: the fabric as the daemon sees it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"
#include "proto/text/partition_number.h"

namespace coppice {
namespace {

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

void PrintFabricSummary(const v1::FabricSummary& fabric) {
  PrintField(
      std::cout, "fabric",
      absl::StrCat("version ", fabric.version(), " from ", fabric.source(), ", ", fabric.shape()));
  std::cout << "           " << Counted(fabric.switch_count(), "switch", "es") << ", "
            << Counted(fabric.endpoint_count(), "endpoint") << " on "
            << Counted(fabric.host_count(), "host") << ", " << Counted(fabric.link_count(), "link")
            << ", " << Counted(fabric.component_count(), "component") << "\n";
  std::cout << "levels     ";
  for (int i = 0; i < fabric.levels_size(); ++i) {
    std::cout << (i > 0 ? " < " : "") << fabric.levels(i).name() << " ("
              << fabric.levels(i).group_count() << ")";
  }
  std::cout << "\nroutes     " << Word(fabric.route_kind()) << ManagerText(fabric) << "\n";
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

absl::StatusOr<v1::ListSwitchesResponse> Switches(Connection& connection) {
  return ListAll(connection, &FabricStub::ListSwitches);
}

// 0 is no LID: no subnet manager has assigned one.
// Of a switch or a node.
template <class Message>
std::string LidText(const Message& message) {
  return message.has_lid() ? absl::StrCat(message.lid()) : "-";
}

int ListSwitches(Session& session, Connection& connection) {
  return Show(session, Switches(connection), [&](const v1::ListSwitchesResponse& all) {
    PrintRows(session, {"GUID", "LID", "PORTS", "CABLED", "ENDPOINTS", "DESCRIPTION"}, {},
              all.switches(), [](const v1::Switch& s) {
                return CellsOf(s.guid(), LidText(s), s.port_count(), s.connected_ports(),
                               s.endpoint_count(), s.description());
              });
  });
}

// By reason, which have an order: "no such child 3, stale revision 1".
std::string RefusalsText(const v1::SwitchCounters& counters) {
  std::map<std::string, uint64_t> refusals(counters.refusals().begin(), counters.refusals().end());
  if (refusals.empty()) return "-";
  return absl::StrJoin(refusals, ", ", absl::PairFormatter(" "));
}

int ListEntries(Session& session, Connection& connection) {
  return Show(session, Switches(connection), [&](const v1::ListSwitchesResponse& all) {
    PrintRows(
        session,
        {"GUID", "TOTAL", "RESERVED", "TAKEN", "FREE", "DEGREE", "TREES", "SPEAKS", "COLLECTIVES",
         "BYTES UP", "BYTES DOWN", "REFUSED", "DESCRIPTION", "REFUSALS", "TREE IDS"},
        {2, 5, 6, 9, 10, 13, 14}, all.switches(), [](const v1::Switch& s) {
          const v1::SwitchAgent& agent = s.agent();
          const v1::SwitchCounters& counters = agent.last_report().counters();
          // Of one that has never spoken nothing is known.
          const auto counted = [&](uint64_t count) {
            return s.has_agent() ? Cell(count) : std::string("-");
          };
          return CellsOf(s.guid(), s.entries_total(), s.entries_reserved(), s.entries_taken(),
                         s.entries_free(), s.degree_limit(), s.tree_ids_size(),
                         !s.has_agent()      ? "-"
                         : agent.connected() ? "yes"
                                             : "gone",
                         counted(counters.collectives()), counted(counters.bytes_up()),
                         counted(counters.bytes_down()), counted(RefusedBy(counters)),
                         s.description(), RefusalsText(counters), absl::StrJoin(s.tree_ids(), ","));
        });
  });
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

// Drops those that are not at the switch.
template <class Links>
void KeepThoseAt(const std::string& of_switch, Links& links) {
  const auto is_at = [&](const v1::LinkEnd& end) {
    return end.is_switch() && (end.guid() == of_switch || end.name() == of_switch);
  };
  links.erase(
      std::remove_if(links.begin(), links.end(),
                     [&](const auto& link) { return !is_at(link.a()) && !is_at(link.b()); }),
      links.end());
}

absl::Status NoSuchSwitch(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("switch \"", name,
                                          "\": no link is up at one of that GUID or description; ",
                                          "`fabric switches` lists them"));
}

// Those chosen, the busiest first if only some are wanted. NOT_FOUND: the switch has no link.
absl::Status Choose(const LinkChoice& choice, google::protobuf::RepeatedPtrField<v1::Link>& links) {
  if (!choice.of_switch.empty()) {
    KeepThoseAt(choice.of_switch, links);
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
  auto fabric = connection.Call(&FabricStub::GetFabric);
  if (!fabric.ok()) return Fail(fabric.status());
  auto& links = *fabric->mutable_down_links()->mutable_links();
  if (!choice.of_switch.empty()) KeepThoseAt(choice.of_switch, links);
  if (links.empty() && !choice.of_switch.empty()) {
    const auto all = Switches(connection);
    if (!all.ok()) return Fail(all.status());
    const bool is_known = absl::c_any_of(all->switches(), [&](const v1::Switch& one) {
      return one.guid() == choice.of_switch || one.description() == choice.of_switch;
    });
    if (!is_known) return Fail(NoSuchSwitch(choice.of_switch));
  }
  if (session.json) return PrintJson(std::cout, fabric->down_links()), 0;
  PrintRows(session, {"A", "B", "RATE", "DOWN SINCE"}, {}, links, [](const v1::DownLink& link) {
    return CellsOf(EndText(link.a()), EndText(link.b()), link.rate(), TimeText(link.since()));
  });
  return 0;
}

int ListLinks(Session& session, Connection& connection, const LinkChoice& choice) {
  if (choice.is_down) return ListDownLinks(session, connection, choice);
  auto all = ListAll(connection, &FabricStub::ListLinks);
  if (all.ok()) {
    if (absl::Status fault = Choose(choice, *all->mutable_links()); !fault.ok()) all = fault;
  }
  const auto known = [](bool is_known, double value) { return is_known ? Fixed(value, 3) : "-"; };
  return Show(session, all, [&](const v1::ListLinksResponse& listed) {
    PrintRows(session,
              {"A", "B", "Gb/s", "LOAD A>B", "LOAD B>A", "RATE", "MEASURED A>B", "MEASURED B>A",
               "PEAK A>B", "PEAK B>A", "PROMISED A>B", "PROMISED B>A", "READ"},
              {5, 6, 7, 8, 9, 10, 11, 12}, listed.links(), [&](const v1::Link& link) {
                return CellsOf(EndText(link.a()), EndText(link.b()), Fixed(link.capacity_gbps(), 1),
                               Fixed(LoadAb(link), 3), Fixed(LoadBa(link), 3), link.rate(),
                               known(link.has_utilisation_ab(), link.utilisation_ab()),
                               known(link.has_utilisation_ba(), link.utilisation_ba()),
                               known(link.has_peak_ab(), link.peak_ab()),
                               known(link.has_peak_ba(), link.peak_ba()),
                               Fixed(link.promised_ab(), 3), Fixed(link.promised_ba(), 3),
                               link.has_load_time() ? TimeText(link.load_time()) : "-");
              });
  });
}

int ListNodes(Session& session, Connection& connection) {
  const auto all = ListAll(connection, &FabricStub::ListNodes);
  return Show(session, all, [&](const v1::ListNodesResponse& listed) {
    PrintRows(session, {"ENDPOINT", "PORT GUID", "LID", "SWITCH", "SWITCH PORT", "DESCRIPTION"},
              {1}, listed.nodes(), [](const v1::Node& node) {
                return CellsOf(node.endpoint(), node.port_guid(), LidText(node), node.switch_guid(),
                               node.switch_port(), node.description());
              });
  });
}

std::string MembershipText(const v1::PartitionKey& key) {
  return key.membership() == v1::PARTITION_MEMBERSHIP_FULL ? "full" : "limited";
}

// Null: the node, or port 0 of the switch, is no member.
template <class Node>
const v1::PartitionKey* KeyOf(const Node& node, uint32_t partition) {
  const auto key = absl::c_find_if(node.partitions(), [partition](const v1::PartitionKey& one) {
    return one.partition() == partition;
  });
  return key == node.partitions().end() ? nullptr : &*key;
}

template <class Nodes>
void KeepMembers(uint32_t partition, Nodes& nodes) {
  const auto is_stranger = [&](const auto& node) { return KeyOf(node, partition) == nullptr; };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_stranger), nodes.end());
}

struct PartitionChoice {
  std::string name;  // empty: all
};

int ListMembers(Session& session, Connection& connection, uint32_t partition) {
  auto all = ListAll(connection, &FabricStub::ListNodes);
  if (!all.ok()) return Fail(all.status());
  auto switches = ListAll(connection, &FabricStub::ListSwitches);
  if (!switches.ok()) return Fail(switches.status());
  KeepMembers(partition, *all->mutable_nodes());
  KeepMembers(partition, *switches->mutable_switches());
  if (all->nodes().empty() && switches->switches().empty()) {
    return Fail(absl::NotFoundError(absl::StrCat("partition ", PartitionText(partition),
                                                 ": nobody is a member; `fabric partitions` "
                                                 "lists those that have some")));
  }
  return Show(session, all, [&](const v1::ListNodesResponse& listed) {
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const std::string& name, const v1::PartitionKey& key,
                         const std::string& guid) {
      rows.push_back(CellsOf(name, MembershipText(key), key.index(), guid));
    };
    for (const v1::Node& node : listed.nodes()) {
      add(node.endpoint(), *KeyOf(node, partition), node.port_guid());
    }
    for (const v1::Switch& one : switches->switches()) {
      add(absl::StrCat("switch ", one.description()), *KeyOf(one, partition), one.guid());
    }
    PrintRows(session, {"MEMBER", "MEMBERSHIP", "INDEX", "GUID"}, {3}, rows,
              [](const std::vector<std::string>& row) { return row; });
  });
}

int ListPartitions(Session& session, Connection& connection, const PartitionChoice& choice) {
  if (!choice.name.empty()) return ListMembers(session, connection, *ParsePartition(choice.name));
  const auto all = connection.Call(&FabricStub::ListPartitions);
  return Show(session, all, [&](const v1::ListPartitionsResponse& listed) {
    if (listed.partitions().empty()) {
      std::cout << "no port tells its partitions, as those of a file or a model\n";
      return;
    }
    PrintRows(session, {"PARTITION", "FULL", "LIMITED", "SWITCHES FULL", "SWITCHES LIMITED"}, {},
              listed.partitions(), [](const v1::Partition& one) {
                return CellsOf(PartitionText(one.partition()), one.full_endpoints(),
                               one.limited_endpoints(), one.full_switches(),
                               one.limited_switches());
              });
  });
}

int ShowRoute(Session& session, Connection& connection, const v1::GetRouteRequest& request) {
  const auto route = connection.Call(&FabricStub::GetRoute, request);
  return Show(session, route, [&](const v1::Route& found) {
    PrintRows(session, {"FROM", "OUT", "TO", "IN", "Gb/s", "LOAD"}, {}, found.hops(),
              [](const v1::Hop& hop) {
                return CellsOf(hop.name(), hop.out_port(), hop.to_name(), hop.in_port(),
                               Fixed(hop.capacity_gbps(), 1),
                               Fixed(hop.utilisation() + hop.promised(), 3));  // as LoadAb
              });
    std::cout << Counted(found.hops_size(), "link") << " by " << Word(found.kind()) << "\n";
  });
}

int ShowTypeTable(Session& session, Connection& connection,
                  const v1::GetTypeTableRequest& request) {
  const auto answer = connection.Call(&FabricStub::GetTypeTable, request);
  return Show(session, answer, [&](const v1::TypeTable& table) {
    std::cout << "profile " << table.profile() << ", " << table.members() << " members\n";
    PrintRows(session, {"OPERATION", "FROM B", "TO B", "TYPE", "WIDTH", "WIDTHS", "I US", "II US"},
              {}, table.rows(), [](const v1::TypeTableRow& row) {
                return CellsOf(Word(row.operation()), row.min_bytes(), row.max_bytes(),
                               Word(row.type()), row.width(),
                               absl::StrCat(row.min_width(), "..", row.max_width()),
                               Fixed(row.type_i_us()), Fixed(row.type_ii_us()));
              });
  });
}

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
  const auto answer = connection.Call(&FabricStub::ListPortCounters, request);
  return Show(session, answer, [&](const v1::ListPortCountersResponse& counters) {
    PrintRows(session,
              {"PORT", "PEER", "SENT MB", "RECEIVED MB", "SENT MB/s", "RECEIVED MB/s", "WAIT",
               "SYMBOL", "DOWNED", "DISCARDS", "ALL ERRORS", "READ"},
              {2, 3, 6, 7, 8, 11}, counters.ports(), [](const v1::PortCounters& port) {
                return CellsOf(port.port(), port.peer(),
                               Megabytes(static_cast<double>(port.sent_bytes())),
                               Megabytes(static_cast<double>(port.received_bytes())),
                               Megabytes(port.sent_bytes_per_second()),
                               Megabytes(port.received_bytes_per_second()), port.sent_wait_ticks(),
                               port.symbol_errors(), port.link_downed(), port.send_discards(),
                               ErrorsOf(port), TimeText(port.read_time()));
              });
  });
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
  const auto answer = connection.Call(&FabricStub::GetPortHistory, options.request);
  return Show(session, answer, [&](const v1::PortHistory& history) {
    PrintRows(
        session,
        {"FROM", "SECONDS", "SENT MB/s", "RECEIVED MB/s", "PEAK SENT", "PEAK RECEIVED", "ERRORS"},
        {1}, history.points(), [](const v1::PortHistoryPoint& point) {
          return CellsOf(TimeText(point.start_time()), Fixed(Seconds(point.length()), 1),
                         Megabytes(point.sent_bytes_per_second()),
                         Megabytes(point.received_bytes_per_second()),
                         Megabytes(point.peak_sent_bytes_per_second()),
                         Megabytes(point.peak_received_bytes_per_second()), point.errors());
        });
  });
}

constexpr char kSwitchHelp[] = "GUID, or description if only one switch has it";

}  // namespace

void AddFabricCommands(CLI::App& app, Session& session) {
  CLI::App* fabric = app.add_subcommand(
      "fabric", session.is_offline
                    ? "Switches, links, nodes, routes, sweeps; without a command: describe"
                    : "Switches, links, nodes, routes, sweeps");
  fabric->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, auto action) {
    return AddCommand(*fabric, session, name, help, action);
  };
  add("show", "The fabric at a glance", [](Session& s, Connection& connection) {
    return Show(s, connection.Call(&FabricStub::GetFabric), PrintFabricSummary);
  });
  add("switches", "Every switch", ListSwitches);
  auto [links, choice] =
      AddCommand<LinkChoice>(*fabric, session, "links",
                             "Links with capacity and load: measured, peak, promised", ListLinks);
  links->add_option("--switch", choice.of_switch, "Only this switch's: GUID or description");
  CLI::Option* top = links->add_option("--top", choice.top, "Only so many, the busiest first")
                         ->check(Understood(IsPositive, kPositiveMeant));
  AddWideOption(*links, session);
  links
      ->add_flag("--down", choice.is_down,
                 "Those that were up since the daemon's start and are not any more")
      ->excludes(top)
      ->excludes("--output");
  AddWideOption(*add("nodes", "Every endpoint and where it is cabled", ListNodes), session);
  auto [partitions, partition] = AddCommand<PartitionChoice>(
      *fabric, session, "partitions", "Partitions, or the members of one", ListPartitions);
  partitions
      ->add_option("PARTITION", partition.name, "Its number, as partitions.conf has it: 0x0001")
      ->check(Understood(ParsePartition, kPartitionMeant));
  AddWideOption(*partitions, session);
  add("sweep", "Discover the fabric again, now", [](Session& s, Connection& connection) {
    return Show(s, connection.Call(&FabricStub::Sweep), PrintFabricSummary);
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
