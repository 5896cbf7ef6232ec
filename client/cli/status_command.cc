// coppicectl status: how the daemon fares: whether all is well, in one line, and nine more.
//
//   HEALTH_OK      nothing to do
//   HEALTH_WARN    something is not as it was, such as a link that is down; exit status 0
//   HEALTH_ERR     somebody has to act; exit status 7, so that a monitor need not read the screen
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using google::protobuf::Duration;

// A snapshot is stale when so many of the shortest period of sweeps went by without one that
// confirmed it: one may be lost, and one is just under way.
constexpr double kStalePeriods = 3;
// Sweeps of a large fabric take seconds.
constexpr double kStaleGrace_s = 10;
constexpr int kMaxMethods = 8;
constexpr size_t kColumn = 11;  // where what a line tells begins

// "250 us", "3.1 ms", "12.0 s", "2.5 h".
std::string Text(const Duration& duration) {
  const double seconds = Seconds(duration);
  if (seconds < 1e-3) return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.1f ms", seconds * 1e3);
  if (seconds < 600) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

std::string Bytes(uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

struct Kind {
  const char* name;
  const v1::SweepStatus* sweep;
};
std::vector<Kind> KindsOf(const v1::DaemonStatus& status) {
  return {{"full", &status.full_sweep()},
          {"light", &status.light_sweep()},
          {"counters", &status.counter_sweep()}};
}

void PrintFabric(const v1::DaemonStatus& status) {
  if (!status.has_fabric()) {
    std::cout << "fabric     none is known yet\n";
    return;
  }
  const v1::FabricSummary& fabric = status.fabric();
  PrintField(std::cout, "fabric",
             absl::StrCat(fabric.shape(), ": ", Counted(fabric.switch_count(), "switch", "es"),
                          ", ", Counted(fabric.endpoint_count(), "endpoint"), " on ",
                          Counted(fabric.host_count(), "host"), ", ",
                          Counted(fabric.link_count(), "link")));
  PrintField(std::cout, "",
             absl::StrCat("version ", fabric.version(), " from ", fabric.source(), ", confirmed ",
                          Text(status.snapshot_age()), " ago"));
  PrintField(
      std::cout, "routes",
      absl::StrCat(Word(fabric.route_kind()),
                   status.routes_settled() ? ", settled" : ", not settled", ManagerText(fabric)));
}

void PrintSweeps(const Session& session, const v1::DaemonStatus& status) {
  PrintRows(session, {"SWEEP", "COUNT", "FAILED", "LAST", "TOOK", "PERIOD"}, {}, KindsOf(status),
            [](const Kind& kind) {
              const v1::SweepStatus& sweep = *kind.sweep;
              const bool has_any = sweep.count() > 0;
              return CellsOf(kind.name, sweep.count(), sweep.failed(),
                             has_any ? TimeText(sweep.last_time()) : "-",
                             has_any ? Text(sweep.last_duration()) : "-",
                             sweep.has_period() ? Text(sweep.period()) : "-");
            });
}

void PrintHoldings(const v1::DaemonStatus& status) {
  std::cout << "jobs       " << status.active_jobs() << " active\n"
            << "trees      " << status.granted_trees() << " granted, with "
            << status.entries_taken() << " of " << status.entries_total() << " entries\n"
            << "placements " << status.held_placements() << " held, of "
            << Counted(status.placed_nodes(), "node") << "\n"
            << "agents     " << status.agents() << " connected, "
            << Counted(status.measured_distances(), "distance") << " measured\n"
            << "database   " << Bytes(status.database_bytes()) << ", half of the commits within "
            << Text(status.median_commit()) << ", 99 % within " << Text(status.p99_commit())
            << "\n";
}

// What -o wide tells beside.
void PrintActivity(const v1::DaemonStatus& status) {
  std::cout << "mads       " << status.mads_sent() << " sent, " << status.mads_resent()
            << " sent again, " << status.mads_timed_out() << " timed out; "
            << Counted(status.unanswered_nodes(), "node") << " unanswered\n"
            << "trees      since the start " << status.trees_created() << " created, "
            << status.trees_refused() << " refused, " << status.trees_repaired() << " repaired, "
            << status.trees_revoked() << " revoked\n"
            << "watchers   " << status.tree_watchers() << " of trees, " << status.event_watchers()
            << " of events\n"
            << "queues     " << Counted(status.queued_mutations(), "mutation") << ", "
            << Counted(status.queued_calls(), "call") << "\n"
            << "commits    " << status.commits() << "; "
            << Counted(status.refused_writes(), "write") << " refused\n";
}

void PrintMethods(const Session& session, const v1::DaemonStatus& status) {
  if (status.methods().empty()) return;
  const auto first = status.methods().begin();
  PrintRows(session, {"METHOD", "CODE", "CALLS", "HALF WITHIN", "99 % WITHIN"}, {},
            std::vector(first, first + std::min(status.methods_size(), kMaxMethods)),
            [](const v1::MethodStatus& method) {
              return CellsOf(method.method(), method.code(), method.count(),
                             method.has_median() ? Text(method.median()) : "-",
                             method.has_p99() ? Text(method.p99()) : "-");
            });
}

void PrintStatus(const Session& session, const v1::DaemonStatus& status) {
  std::cout << "daemon     coppiced " << status.version() << " since "
            << TimeText(status.start_time()) << ", " << Bytes(status.resident_bytes()) << "\n";
  PrintFabric(status);
  PrintHoldings(status);
  if (!session.is_wide) return;
  PrintActivity(status);
  std::cout << "\n";
  PrintSweeps(session, status);
  std::cout << "\n";
  PrintMethods(session, status);
}

using Reasons = std::vector<std::string>;

// What somebody has to act on.
Reasons Errors(const v1::DaemonStatus& status) {
  Reasons errors;
  if (!status.write_fault().empty()) errors.push_back(status.write_fault());
  for (const std::string& other : status.other_daemons()) {
    errors.push_back(absl::StrCat("another daemon: ", other));
  }
  double period_s = 0;  // the shortest of those that confirm the fabric
  for (const auto& [name, sweep] : KindsOf(status)) {
    if (!sweep->last_error().empty()) {
      errors.push_back(absl::StrCat(name, " sweep: ", sweep->last_error()));
    }
    if (sweep->has_period() && sweep != &status.counter_sweep()) {
      const double period = Seconds(sweep->period());
      period_s = period_s == 0 ? period : std::min(period_s, period);
    }
  }
  if (!status.has_fabric()) {
    errors.push_back("fabric: no sweep has succeeded yet");
    return errors;
  }
  if (period_s > 0 && Seconds(status.snapshot_age()) > kStalePeriods * period_s + kStaleGrace_s) {
    errors.push_back(absl::StrCat("fabric: no sweep has confirmed it for ",
                                  Text(status.snapshot_age()), "; see the daemon's log"));
  }
  if (!status.has_subnet_manager()) {
    errors.push_back("subnet manager: none has assigned LIDs; start one");
  }
  return errors;
}

// What is not as it was, or not seen. Adds to `see` the commands that tell more.
Reasons Warnings(const v1::DaemonStatus& status, Reasons& see) {
  Reasons warnings;
  const auto& links = status.fabric().down_links().links();
  if (!links.empty()) {
    const auto earlier = [](const v1::DownLink& a, const v1::DownLink& b) {
      return a.since().seconds() < b.since().seconds();
    };
    const auto first = std::min_element(links.begin(), links.end(), earlier);
    warnings.push_back(absl::StrCat(Counted(static_cast<uint64_t>(links.size()), "link"),
                                    links.size() == 1 ? " down since " : " down, the first since ",
                                    TimeText(first->since())));
    see.push_back("coppicectl fabric links --down");
  }
  if (status.fabric().subnet_manager_silent()) {
    warnings.push_back(
        "the subnet manager did not answer the last full sweep; see whether it runs");
  }
  if (status.unanswered_nodes() > 0) {
    warnings.push_back(Counted(status.unanswered_nodes(), "node") + " without an answer");
    see.push_back("coppicectl fabric show");
  }
  return warnings;
}

int ShowStatus(Session& session, Connection& connection) {
  const auto status = connection.Call(&AdminStub::GetStatus);
  if (!status.ok()) return Fail(status.status());
  Reasons see;
  const Reasons errors = Errors(*status), warnings = Warnings(*status, see);
  if (session.json) {
    PrintJson(std::cout, *status);
  } else {
    const std::string health = !errors.empty()    ? "HEALTH_ERR"
                               : warnings.empty() ? "HEALTH_OK"
                                                  : "HEALTH_WARN: " + absl::StrJoin(warnings, "; ");
    std::cout << Folded(health, kColumn) << "\n";
    if (!errors.empty()) see.clear();  // those come first, on stderr
    for (const std::string& command : see) PrintField(std::cout, "", "see " + command);
    PrintStatus(session, *status);
  }
  for (const std::string& reason : errors) std::cerr << "wrong: " << reason << "\n";
  return errors.empty() ? kDone : kUnhealthy;
}

void PrintReload(const v1::ReloadResponse& reloaded) {
  if (reloaded.changed().empty() && reloaded.needs_restart().empty()) {
    std::cout << "Nothing has changed.\n";
  }
  if (!reloaded.changed().empty()) {
    std::cout << "In force:        " << absl::StrJoin(reloaded.changed(), ", ") << "\n";
  }
  if (!reloaded.needs_restart().empty()) {
    std::cout << "Needs a restart: " << absl::StrJoin(reloaded.needs_restart(), ", ") << "\n";
  }
}

}  // namespace

void AddStatusCommand(CLI::App& app, Session& session) {
  AddWideOption(
      *AddCommand(app, session, "status",
                  "How the daemon fares, at a glance; exit status 7 if something is wrong",
                  ShowStatus),
      session);
}

// coppicectl reload: the daemon reads its configuration file again.

void AddReloadCommand(CLI::App& app, Session& session) {
  AddCommand(
      app, session, "reload",
      "The daemon reads its configuration file again: all of it or, on a mistake, none",
      [](Session& s, Connection& c) { return Show(s, c.Call(&AdminStub::Reload), PrintReload); });
}

}  // namespace coppice
