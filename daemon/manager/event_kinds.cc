#include "daemon/manager/event_kinds.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr absl::string_view kInfo = "info", kWarning = "warning", kError = "error";
constexpr absl::string_view kJob = "job:ID", kPlacement = "placement:ID", kFabric = "fabric",
                            kSwitch = "switch:GUID", kNode = "host:NAME or node:GUID",
                            kLink = "link:GUID/PORT-GUID/PORT", kProfile = "profile",
                            kSweep = "sweep:full, light or counters";

constexpr EventKind kKinds[] = {
    {"accounts.changed", kInfo, "accounts or account:NAME",
     "accounts, their users or a tenant were changed"},
    {"config.refused", kError, "configuration",
     "the file has a mistake, which the words name; what was in force stays"},
    {"config.reloaded", kInfo, "configuration", "the file is in force"},
    {"daemon.other", kWarning, "database:NAME",
     "an agent was served by a daemon with another database: stop one of them"},
    {"daemon.stalled", kWarning, "daemon", "the daemon stood still; leases begin anew"},
    {"entries.exhausted", kWarning, "switch:GUID or fabric",
     "no entry is left: `coppicectl entries` names the holders"},
    {"events.folded", kInfo, "user:NAME", "one user's events beyond the share, by kind"},
    {"group.broken", kWarning, kSwitch,
     "trees that it carried lost a member or a switch: they are planned anew"},
    {"job.ended", kInfo, kJob, "its trees are released"},
    {"job.expired", kWarning, kJob, "it was not kept alive"},
    {"job.member_back", kInfo, kJob, "its host is back"},
    {"job.member_lost", kError, kJob, "a host of it left the fabric"},
    {"job.registered", kInfo, kJob, "it may have trees"},
    {"lids.changed", kWarning, kFabric, "LIDs were assigned anew; nothing to do"},
    {"link.down", kWarning, kLink, "look at the cable, and at the ports of both ends"},
    {"link.errors", kWarning, kLink,
     "errors rise, or no more (info): `coppicectl fabric history SWITCH PORT`"},
    {"link.flapping", kWarning, kLink,
     "it comes and goes: exchange the cable; told as one until it is steady"},
    {"link.rate", kWarning, kLink, "it runs at another rate: exchange the cable if that is lower"},
    {"link.steady", kInfo, kLink, "no change for a while; a warning if it is down"},
    {"link.up", kInfo, kLink, "it is there, at the rate that is told"},
    {"node.flapping", kWarning, kNode, "a host's port comes and goes"},
    {"node.gone", kWarning, kNode, "a host left: look at its power and cable"},
    {"node.new", kInfo, kNode, "a host is there"},
    {"node.reachable", kInfo, kNode, "it answers again"},
    {"node.steady", kInfo, kNode, "no change for a while; a warning if it is gone"},
    {"node.unreachable", kWarning, kNode, "a host is cabled and silent: look at its power"},
    {"partitions.changed", kInfo, "partition:NUMBER or fabric",
     "it has other members, or switches let it pass elsewhere: as partitions.conf has it now"},
    {"placement.created", kInfo, kPlacement, "nodes are held for a job to come"},
    {"placement.expired", kWarning, kPlacement, "its term ran out before it was started"},
    {"placement.released", kInfo, kPlacement, "its nodes are free again"},
    {"placement.started", kInfo, kPlacement, "it is a job now"},
    {"port.counters", kWarning, "port:GUID/PORT",
     "a count stands at its greatest value: clear it (`perfquery -R`)"},
    {"profile.changed", kInfo, kProfile, "another cost profile is in force"},
    {"profile.unusable", kError, kProfile, "a cost profile cannot be read and is not in force"},
    {"quota.changed", kInfo, "user:NAME, account:NAME or tenant:NAME",
     "an administrator gave other limits"},
    {"reservation.begun", kInfo, "reservation:ID", "what was lent until its time is taken back"},
    {"reservation.created", kInfo, "reservation:ID", "entries or nodes are kept for a tenant"},
    {"reservation.ended", kInfo, "reservation:ID", "what it kept is anybody's again"},
    {"reservation.short", kWarning, "reservation:ID",
     "it has begun, and trees of before hold what it keeps: `coppicectl entries` names them"},
    {"sm.changed", kWarning, kFabric, "another subnet manager"},
    {"sm.found", kInfo, kFabric, "a subnet manager is there"},
    {"sm.lost", kError, kFabric, "no subnet manager: start one; tables are not mended without"},
    {"store.failed", kError, "database",
     "it cannot be written, is full or gone: nothing is granted until it is mended"},
    {"store.recovered", kWarning, "database", "it takes writes again"},
    {"sweep.done", kInfo, kFabric, "the subnet was read; a warning if something did not answer"},
    {"sweep.failed", kError, kSweep,
     "the subnet cannot be read, for what is told; the last good snapshot stays"},
    {"sweep.recovered", kInfo, kSweep, "the subnet can be read again"},
    {"switch.connected", kInfo, kSwitch, "it speaks: its own word on its entries holds"},
    {"switch.counters", kWarning, kSwitch,
     "its counters cannot be read, or can again (info): its load stays what it was"},
    {"switch.disconnected", kWarning, kSwitch,
     "its agent has gone: after some seconds its trees are planned round it"},
    {"switch.flapping", kWarning, kSwitch, "it or its agent comes and goes: look at its power"},
    {"switch.gone", kWarning, kSwitch, "it left: look at its power and cables"},
    {"switch.new", kInfo, kSwitch, "a switch is there"},
    {"switch.reachable", kInfo, kSwitch, "it answers again"},
    {"switch.refused", kError, kSwitch,
     "it did not take a tree that the ledger had an entry for, or was late: they disagree"},
    {"switch.steady", kInfo, kSwitch, "no change for a while; a warning if it is gone"},
    {"switch.unreachable", kWarning, kSwitch, "it is cabled and silent: look at its power"},
    {"trees.broken", kWarning, kFabric, "trees have no way now: their jobs go on without"},
    {"trees.changed", kInfo, "trees", "trees granted, released and refused, in numbers"},
    {"trees.repaired", kWarning, kFabric, "trees that a change met were planned anew"},
    {"trees.replanned", kInfo, kFabric, "repaired trees were planned again, for a gain"},
    {"trees.rerouted", kInfo, kFabric, "trees go on other routes, and are as they were"},
    {"trees.revoked", kError, kFabric, "trees were taken back: their jobs go on without"},
};

}  // namespace

absl::Span<const EventKind> EventKinds() { return kKinds; }

const EventKind& EventKindOf(absl::string_view name) {
  const auto* const at =
      std::lower_bound(std::begin(kKinds), std::end(kKinds), name,
                       [](const EventKind& kind, absl::string_view n) { return kind.name < n; });
  if (at != std::end(kKinds) && at->name == name) return *at;
  // A kind that is not in the table is told all the same: events are for people in need.
  spdlog::error("no kind of event is called {}", std::string(name));
  static constexpr EventKind kUnknown = {"unknown", kError, "", ""};
  return kUnknown;
}

EventRecord EventOf(absl::string_view kind, absl::Time when, std::string object,
                    std::string message) {
  EventRecord event;
  event.time = when;
  event.severity = std::string(EventKindOf(kind).severity);
  event.kind = std::string(kind);
  event.object = std::move(object);
  event.message = std::move(message);
  return event;
}

absl::Status CheckKindPrefix(absl::string_view prefix) {
  std::set<absl::string_view> families;
  for (const EventKind& kind : kKinds) {
    if (absl::StartsWith(kind.name, prefix)) return absl::OkStatus();
    families.insert(kind.name.substr(0, kind.name.find('.')));
  }
  return absl::InvalidArgumentError(absl::StrCat("no kind of event begins with \"", prefix,
                                                 "\"; they begin with ",
                                                 absl::StrJoin(families, ", ")));
}

}  // namespace coppice
