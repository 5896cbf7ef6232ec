#include "db/refusals.h"

#include "absl/strings/str_cat.h"

namespace coppice {

std::string LinkName(const LinkRecord& link) {
  return absl::StrCat(ToString(link.node_a), "/", link.port_a, " - ", ToString(link.node_b), "/",
                      link.port_b);
}

absl::Status JobIdTaken(JobId id) {
  return absl::AlreadyExistsError(
      absl::StrCat("job ", id.value(), " exists: register under the next unused id"));
}

absl::Status JobRequestTaken(const std::string& request_id, JobId holder) {
  return absl::AlreadyExistsError(absl::StrCat("request id \"", request_id, "\" belongs to job ",
                                               holder.value(), ": use a new request id"));
}

absl::Status NoActiveJob(JobId id) {
  return absl::NotFoundError(
      absl::StrCat("no active job ", id.value(), ": it was never registered or has ended"));
}

absl::Status JobNotActive(JobId id) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id.value(), " is not active: register a job before asking for trees"));
}

absl::Status NoSuchJob(JobId id) {
  return absl::NotFoundError(absl::StrCat(
      "job ", id.value(), " was never registered, or it ended so long ago that it is forgotten"));
}

absl::Status TreeIdTaken(TreeId id) {
  return absl::AlreadyExistsError(
      absl::StrCat("tree ", id.value(), " exists: grant under the next unused id"));
}

absl::Status TreeIdFromEarlierRun(TreeId id, TreeId last) {
  return absl::AlreadyExistsError(absl::StrCat(
      "tree id ", id.value(), " belongs to an earlier run: grant under ids above ", last.value()));
}

absl::Status TreeRequestTaken(const std::string& request_id, JobId job, TreeId holder) {
  return absl::AlreadyExistsError(absl::StrCat("request id \"", request_id, "\" of job ",
                                               job.value(), " belongs to tree ", holder.value(),
                                               ": use a new request id"));
}

absl::Status NoSuchTree(TreeId id, JobId job) {
  return absl::NotFoundError(absl::StrCat("job ", job.value(), " has no tree ", id.value(),
                                          ": it was never granted or is released"));
}

absl::Status NotTheNextRevision(const TreeRecord& next, uint32_t stored_revision) {
  return absl::FailedPreconditionError(absl::StrCat("tree ", next.id.value(), " has revision ",
                                                    stored_revision, ": revision ", next.revision,
                                                    " cannot follow it; plan on the present one"));
}

absl::Status NotTheSameTree(TreeId id) {
  return absl::InvalidArgumentError(
      absl::StrCat("tree ", id.value(),
                   ": a revision keeps its job, request id, fingerprint and time of creation"));
}

absl::Status NoCapability(Guid guid) {
  return absl::AbortedError(absl::StrCat("switch ", ToString(guid),
                                         " has no aggregation capability: it left the fabric, or "
                                         "lost it to other rules, after the tree "
                                         "was planned; plan again"));
}

absl::Status NoEntryLeft(const EntryUse& use) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "switch ", ToString(use.capability.guid), " has no entry left: ", use.entries_taken,
      " taken and ", use.capability.entries_reserved, " reserved of ", use.capability.entries_total,
      ": release a tree that uses it or plan around it"));
}

absl::Status EventIdTaken(int64_t id) {
  return absl::AlreadyExistsError(
      absl::StrCat("event ", id, " exists: leave the id 0 to have one assigned"));
}

absl::Status NoSuchLink(const LinkRecord& link) {
  return absl::NotFoundError(
      absl::StrCat("link ", LinkName(link), " is in no inventory: put the inventory first"));
}

absl::Status NoSuchLinkId(int64_t id) {
  return absl::NotFoundError(
      absl::StrCat("link ", id, " is in no inventory: take ids that LinkIds gave"));
}

std::string PortName(Guid node, uint8_t port) {
  return absl::StrCat("port ", ToString(node), "/", port);
}

absl::Status NoCounters(Guid node, uint8_t port) {
  return absl::NotFoundError(
      absl::StrCat(PortName(node, port), " was never counted: put its counters with its history"));
}

absl::Status SlotClosed(HistoryResolution resolution, int64_t slot, int64_t last) {
  return absl::AlreadyExistsError(absl::StrCat(
      "history slot ", slot, " of resolution ", static_cast<int>(resolution),
      " may be closed already, as ", last, " is: go on from the highest that was ever used"));
}

absl::Status PatternIdTaken(int64_t id) {
  return absl::AlreadyExistsError(
      absl::StrCat("pattern ", id, " exists; take an id above all that were ever given"));
}

absl::Status PatternPartTaken(int64_t id, uint32_t part) {
  return absl::AlreadyExistsError(
      absl::StrCat("pattern ", id, ": part ", part, " is there; number parts from 0, each once"));
}

absl::Status PatternPartsMissing(const PatternRecord& pattern, uint32_t wanted, uint64_t there) {
  return absl::FailedPreconditionError(absl::StrCat(
      "pattern ", pattern.id, " \"", pattern.name, "\": ", there, " of its parts 0 to ",
      int64_t{wanted} - 1, " are there; put all of them first"));
}

absl::Status NoSuchPattern(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no pattern is stored as ", name));
}

absl::Status NoSuchPatternId(int64_t id) {
  return absl::NotFoundError(absl::StrCat("no pattern ", id, " is stored"));
}

absl::Status PlacementIdTaken(PlacementId id) {
  return absl::AlreadyExistsError(
      absl::StrCat("placement ", id.value(), " exists: make it under the next unused id"));
}

absl::Status PlacementRequestTaken(const std::string& request_id, PlacementId holder) {
  return absl::AlreadyExistsError(absl::StrCat("request id \"", request_id,
                                               "\" belongs to placement ", holder.value(),
                                               ": use a new request id"));
}

absl::Status NodeHeld(const std::string& node, PlacementId holder) {
  return absl::FailedPreconditionError(absl::StrCat(
      "node ", node, " is held by placement ", holder.value(), ": choose others or release that"));
}

absl::Status NoHeldPlacement(PlacementId id) {
  return absl::NotFoundError(
      absl::StrCat("no held placement ", id.value(), ": it was never made or is over"));
}

absl::Status NoSuchPlacement(PlacementId id) {
  return absl::NotFoundError(absl::StrCat(
      "placement ", id.value(), " was never made, or it ended so long ago that it is forgotten"));
}

absl::Status OrderOfNoActiveJob(JobId id) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id.value(), " is not active: orders are kept for active jobs only"));
}

absl::Status NoRoomForOrder(const PutOrder& put, int64_t others) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the order of job ", put.order.job.value(), " has ", put.order.positions.size(),
                   " positions, and those of other jobs hold ", others, " of the ",
                   put.max_positions, " for all; end jobs that are done"));
}

absl::Status NoSuchOrder(JobId id) {
  return absl::NotFoundError(absl::StrCat("no order is kept for job ", id.value()));
}

absl::Status NodeNotInInventory(Guid guid, const std::string& user) {
  return absl::InvalidArgumentError(absl::StrCat(user, " names node ", ToString(guid),
                                                 ", which no inventory holds: list the node, too"));
}

}  // namespace coppice
