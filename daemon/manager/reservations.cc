#include "daemon/manager/reservations.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/kept_entries.h"
#include "proto/text/limits.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

std::string ObjectOf(ReservationId id) { return absl::StrCat("reservation:", id.value()); }

std::string TimeWords(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

bool Overlap(const ReservationRecord& a, const ReservationRecord& b) {
  return a.from < b.until && b.from < a.until;
}

template <class Value>
bool Has(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

absl::StatusOr<std::vector<Guid>> SwitchesOf(const Fabric& fabric, const EntryLedger& entries,
                                             const CreateReservationArgs& args) {
  std::vector<Guid> guids;
  if (args.entries == 0) return guids;
  if (args.switches.empty()) {
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      if (entries.capacity()[s].entries_total == 0) continue;
      guids.push_back(fabric.switch_info(SwitchIndex(s)).guid);
    }
    return guids;
  }
  for (const Guid guid : args.switches) {
    if (!fabric.FindSwitch(guid).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("switches: ", ToString(guid),
                       " is no switch of the fabric; coppicectl fabric switches shows them"));
    }
    guids.push_back(guid);
  }
  return guids;
}

absl::StatusOr<std::vector<std::string>> NodesOf(const Fabric& fabric,
                                                 const CreateReservationArgs& args) {
  ASSIGN_OR_RETURN(std::vector<std::string> nodes,
                   ExpandEndpointNames(fabric, args.nodes, kMaxListedNodes, "nodes"));
  for (const std::string& node : nodes) {
    if (fabric.FindHost(node).has_value()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("nodes: ", node, " is no host; coppicectl fabric nodes shows them"));
  }
  return nodes;
}

}  // namespace

void Reservations::Restore(std::vector<ReservationRecord> reservations, ReservationId last) {
  std::lock_guard lock(mutex_);
  reservations_ = std::move(reservations);
  last_ = last;
  for (const ReservationRecord& reservation : reservations_) {
    std::lock_guard tables_lock(tables_->mu);
    tables_->last_stamp = std::max(tables_->last_stamp, reservation.created);
  }
  PutInForce(clock_->Now());
}

absl::Status Reservations::CheckArgs(const CreateReservationArgs& args) const {
  RETURN_IF_ERROR(CheckLength("tenant", args.tenant, kMaxNameBytes));
  if (args.tenant.empty()) {
    return absl::InvalidArgumentError("tenant: empty; name whose reservation it is");
  }
  if (args.entries == 0 && !args.switches.empty()) {
    return absl::InvalidArgumentError("entries: 0; say how many of each switch are to be kept");
  }
  if (args.entries == 0 && args.nodes.empty()) {
    return absl::InvalidArgumentError("entries: 0, and no nodes; say what is to be kept");
  }
  const absl::Time now = clock_->Now(), from = args.from.value_or(now);
  if (args.until <= now || args.until <= from) {
    return absl::InvalidArgumentError(absl::StrCat(
        "until: ", TimeWords(args.until), " is not after ", TimeWords(std::max(from, now))));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReservationRecord> Reservations::MakeRecord(
    const CreateReservationArgs& args) const {
  std::lock_guard lock(tables_->mu);
  if (tables_->view == nullptr) return NoFabricError();
  const Fabric& fabric = *tables_->view->snapshot->fabric;
  ReservationRecord record;
  record.tenant = TenantName(args.tenant);
  record.entries = args.entries;
  ASSIGN_OR_RETURN(record.switches, SwitchesOf(fabric, tables_->entries, args));
  ASSIGN_OR_RETURN(record.nodes, NodesOf(fabric, args));
  record.lends = args.lends;
  record.created = tables_->Stamp(clock_->Now());
  const absl::Time now = clock_->Now();
  record.from = std::max(args.from.value_or(now), now);
  record.until = args.until;
  RETURN_IF_ERROR(CheckRoom(record));
  return record;
}

Reservations::Room Reservations::RoomAt(absl::Time time, Guid guid,
                                        const std::string& tenant) const {
  absl::flat_hash_map<std::string, int64_t> reserved = {{tenant, 0}};
  for (const ReservationRecord& other : reservations_) {
    if (time < other.from || time >= other.until || !Has(other.switches, guid)) continue;
    reserved[other.tenant] += other.entries;
  }
  // Of each tenant what it holds, or has reserved, whichever is more.
  const EntryUse use = tables_->entries.Use(guid);
  Room room;
  room.total = int64_t{use.capability.entries_total} - use.capability.entries_reserved;
  room.of_own = reserved[tenant];
  room.of_others = use.entries_taken;
  for (const auto& [other, entries] : reserved) {
    const int64_t held = tables_->quotas.EntriesOf(other, guid);
    room.of_others -= held;
    if (other != tenant) room.of_others += std::max(entries, held);
  }
  return room;
}

absl::Status Reservations::CheckRoom(const ReservationRecord& reservation) const {
  std::vector<absl::Time> times = {reservation.from};  // when there may be less than before
  for (const ReservationRecord& other : reservations_) {
    if (reservation.from < other.from && other.from < reservation.until) {
      times.push_back(other.from);
    }
  }
  for (const Guid guid : reservation.switches) {
    for (const absl::Time time : times) {
      const Room room = RoomAt(time, guid, reservation.tenant);
      if (reservation.entries <= room.left()) continue;
      return absl::ResourceExhaustedError(absl::StrCat(
          "switch ", ToString(guid), ": of its ", room.total,
          " entries others hold or have reserved ", room.of_others, " at ", TimeWords(time),
          ", and tenant ", reservation.tenant, " has reserved ", room.of_own, "; ask for ",
          std::max<int64_t>(room.left(), 0), " at most, for other switches, or another time"));
    }
  }
  for (const std::string& node : reservation.nodes) {
    for (const ReservationRecord& other : reservations_) {
      if (!Overlap(reservation, other) || !Has(other.nodes, node)) continue;
      return absl::ResourceExhaustedError(
          absl::StrCat("node ", node, " is kept by reservation ", other.id.value(), " of tenant ",
                       other.tenant, " until ", TimeWords(other.until)));
    }
  }
  return absl::OkStatus();
}

Reservations::Lacking Reservations::PutInForce(absl::Time now) {
  in_force_at_ = now;
  next_change_ = absl::InfiniteFuture();
  for (const ReservationRecord& reservation : reservations_) {
    next_change_ =
        std::min(next_change_, now < reservation.from ? reservation.from : reservation.until);
  }
  auto kept = std::make_shared<const KeptEntries>(reservations_, now);
  QuotaLedger::Reserved reserved;
  for (const auto& [guid, shares] : kept->switches()) {
    for (const KeptEntries::Share& share : shares) {
      reserved[share.tenant][guid] += share.kept + share.lent;
    }
  }
  tables_->quotas.SetReserved(std::move(reserved));
  std::lock_guard lock(tables_->mu);
  tables_->kept = kept;
  tables_->called_back.clear();  // what is still to give way is found anew
  Lacking lacking_of;
  for (const auto& [guid, shares] : kept->switches()) {
    const EntryUse use = tables_->entries.Use(guid);
    const int64_t free =
        int64_t{use.capability.entries_total} - use.capability.entries_reserved - use.entries_taken;
    int64_t lacking = kept->KeptFrom("", guid, tables_->quotas, KeptEntries::Asker::kGrant) - free;
    for (const KeptEntries::Share& share : shares) {
      if (lacking <= 0) break;
      if (std::min(share.kept, KeptEntries::Unused(share, guid, tables_->quotas)) <= 0) continue;
      lacking -= static_cast<int64_t>(tables_->CallBack(guid, share, lacking).size());
    }
    if (lacking > 0) lacking_of[guid] = lacking;
  }
  return lacking_of;
}

void Reservations::TellBegun(const ReservationRecord& reservation, const Lacking& lacking) const {
  size_t without = 0;
  std::string first;
  for (const Guid guid : reservation.switches) {
    const auto found = lacking.find(guid);
    if (found == lacking.end()) continue;
    if (++without == 1) first = absl::StrCat(found->second, " of switch ", ToString(guid));
  }
  if (without == 0) {
    events_->Append("reservation.begun", ObjectOf(reservation.id),
                    absl::StrCat("tenant ", reservation.tenant, " has what it keeps"));
    return;
  }
  events_->Append("reservation.short", ObjectOf(reservation.id),
                  absl::StrCat("of ", without, without == 1 ? " switch" : " switches",
                               " others have entries that it keeps: ", first));
}

absl::StatusOr<ReservationRecord> Reservations::Create(const CreateReservationArgs& args,
                                                       const Actor& actor) {
  RETURN_IF_ERROR(CheckArgs(args));
  std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(ReservationRecord record, MakeRecord(args));
  record.id = ReservationId(last_.value() + 1);
  // In force before it is durable: nobody takes meanwhile what was found free.
  reservations_.push_back(record);
  PutInForce(clock_->Now());
  const absl::Status stored = calls_->store().Apply(
      PutReservation{record, DeedOf(actor, ObjectOf(record.id), record.created)});
  if (!stored.ok()) {
    reservations_.pop_back();
    PutInForce(clock_->Now());
    return stored;
  }
  last_ = record.id;
  events_->Append(
      "reservation.created", ObjectOf(record.id),
      absl::StrCat("for tenant ", record.tenant, ": ", record.entries, " entries of ",
                   record.switches.size(), " switches and ", record.nodes.size(), " nodes, from ",
                   TimeWords(record.from), " until ", TimeWords(record.until)),
      {NameOf(actor), ""});
  on_deadline_();
  return record;
}

absl::Status Reservations::Delete(ReservationId id, const Actor& actor) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(reservations_.begin(), reservations_.end(),
                                  [&](const auto& one) { return one.id == id; });
  if (found == reservations_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no reservation ", id.value(), ", or it has ended"));
  }
  RETURN_IF_ERROR(
      calls_->store().Apply(DropReservation{id, DeedOf(actor, ObjectOf(id), clock_->Now())}));
  reservations_.erase(found);
  PutInForce(clock_->Now());
  events_->Append("reservation.ended", ObjectOf(id), "it was deleted", {NameOf(actor), ""});
  return absl::OkStatus();
}

std::vector<ReservationRecord> Reservations::List() const {
  std::lock_guard lock(mutex_);
  return reservations_;
}

void Reservations::Refresh() {
  std::lock_guard lock(mutex_);
  PutInForce(clock_->Now());
}

absl::Duration Reservations::Expire() {
  // Who makes one waits for the disk: leases do not.
  constexpr absl::Duration kAgain = absl::Milliseconds(100);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return kAgain;
  const absl::Time now = clock_->Now(), before = in_force_at_;
  if (now < next_change_) return next_change_ - now;
  std::erase_if(reservations_, [&](const ReservationRecord& reservation) {
    if (now < reservation.until) return false;
    calls_->Submit(DropReservation{reservation.id}, [id = reservation.id](
                                                        const absl::Status& dropped) {
      if (dropped.ok() || absl::IsNotFound(dropped)) return;
      spdlog::warn("reservation {} has ended, but stays in the database until the next start: {}",
                   id.value(), dropped.ToString());
    });
    events_->Append("reservation.ended", ObjectOf(reservation.id), "its time is over");
    return true;
  });
  const Lacking lacking = PutInForce(now);
  for (const ReservationRecord& reservation : reservations_) {
    if (before < reservation.from && reservation.from <= now) TellBegun(reservation, lacking);
  }
  return next_change_ - now;
}

}  // namespace coppice
