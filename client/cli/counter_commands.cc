// coppicectl fabric counters SWITCH | fabric history SWITCH PORT: what ports count, and what they
// moved in the past.
#include <cctype>
#include <iostream>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/switch_names.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using FabricStub = v1::Fabric::StubInterface;

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
  if (!answer.ok()) return Fail(answer.status());
  if (session.json) return PrintJson(std::cout, *answer), 0;
  Table table({"PORT", "PEER", "SENT MB", "RECEIVED MB", "SENT MB/s", "RECEIVED MB/s", "WAIT",
               "SYMBOL", "DOWNED", "DISCARDS", "ALL ERRORS", "READ"});
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
  if (!answer.ok()) return Fail(answer.status());
  if (session.json) return PrintJson(std::cout, *answer), 0;
  Table table(
      {"FROM", "SECONDS", "SENT MB/s", "RECEIVED MB/s", "PEAK SENT", "PEAK RECEIVED", "ERRORS"});
  for (const v1::PortHistoryPoint& point : answer->points()) {
    const double seconds =
        static_cast<double>(point.length().seconds()) + point.length().nanos() * 1e-9;
    table.Add({TimeText(point.start_time()), Fixed(seconds, 1),
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
  CLI::App* counters =
      fabric.add_subcommand("counters", "Newest counters of every cabled port of a switch");
  AddJsonFlag(*counters, session);
  auto name = std::make_shared<std::string>();
  counters->add_option("SWITCH", *name, kSwitchHelp)->required();
  counters->callback([&session, name] {
    session.run = [&session, name](Connection& c) { return ShowCounters(session, c, *name); };
  });

  CLI::App* history =
      fabric.add_subcommand("history", "What a port of a switch moved in the past, oldest first");
  AddJsonFlag(*history, session);
  auto options = std::make_shared<HistoryOptions>();
  history->add_option("SWITCH", options->name, kSwitchHelp)->required();
  history
      ->add_option_function<uint32_t>(
          "PORT", [options](uint32_t port) { options->request.set_port(port); }, "Its port")
      ->required();
  history->add_option("--since", options->since, "How far back: 30m, 1h (default), 240h");
  const std::map<std::string, v1::HistoryResolution> resolutions = {
      {"reading", v1::HISTORY_RESOLUTION_READING},
      {"minute", v1::HISTORY_RESOLUTION_MINUTE},
      {"hour", v1::HISTORY_RESOLUTION_HOUR}};
  history
      ->add_option_function<std::string>(
          "--resolution",
          [options, resolutions](const std::string& word) {
            options->request.set_resolution(resolutions.at(word));
          },
          "reading (kept an hour), minute (a day) or hour (a month); default the finest that "
          "reaches back")
      ->check(CLI::IsMember({"reading", "minute", "hour"}));
  history->callback([&session, options] {
    session.run = [&session, options](Connection& c) { return ShowHistory(session, c, *options); };
  });
}

}  // namespace coppice
