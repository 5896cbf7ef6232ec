#include "db/sqlite_queries.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/kept_ranks.h"
#include "db/number_list.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

constexpr char kActiveJobs[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks
    FROM job WHERE state = 'active' ORDER BY id)sql";
constexpr char kJob[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks
    FROM job WHERE id = ?)sql";
constexpr char kTrees[] = R"sql(
    SELECT id, job_id, request_id, request_fingerprint, fabric_version, revision, type, builder,
           width, height, radius, operation, sizes, aggregate_us, distribute_us, total_us, reason,
           alternatives, created_ns, nodes, links, physical, demands
    FROM tree ORDER BY id)sql";
constexpr char kTreeSwitches[] =
    "SELECT guid, children FROM tree_switch WHERE tree_id = ? ORDER BY node";
// GUIDs are unsigned: those with the top bit set come last.
constexpr char kEntries[] = R"sql(
    SELECT guid, entries_total, entries_reserved, degree_limit,
           (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
    FROM switch_capability c ORDER BY guid < 0, guid)sql";
constexpr char kQuotas[] = R"sql(
    SELECT holder_kind, holder, limit_name, value FROM quota
    ORDER BY instr('user   account tenant', holder_kind), holder, limit_name)sql";
constexpr char kLink[] =
    "SELECT id FROM link WHERE node_a = ? AND port_a = ? AND node_b = ? AND port_b = ?";

JobState JobStateOf(std::string_view text) {
  if (text == "active") return JobState::kActive;
  return text == "ended" ? JobState::kEnded : JobState::kExpired;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteReader>> SqliteReader::Create(Connection& connection) {
  auto reader = std::unique_ptr<SqliteReader>(new SqliteReader(connection));
  const std::pair<Statement*, const char*> statements[] = {
      {&reader->begin_, "BEGIN"},
      {&reader->commit_, "COMMIT"},
      {&reader->active_jobs_, kActiveJobs},
      {&reader->job_, kJob},
      {&reader->ended_jobs_, "SELECT count(*) FROM job WHERE ended_ns < ?"},
      {&reader->ended_jobs_of_owners_,
       "SELECT owner, count(*) FROM job WHERE ended_ns IS NOT NULL GROUP BY owner"},
      {&reader->trees_, kTrees},
      {&reader->tree_switches_, kTreeSwitches},
      {&reader->entries_, kEntries},
      {&reader->link_, kLink},
      {&reader->last_id_, "SELECT seq FROM sqlite_sequence WHERE name = ?"},
      {&reader->profile_, "SELECT toml FROM profile"},
      {&reader->setting_, "SELECT value FROM setting WHERE name = ?"},
      {&reader->quotas_, kQuotas},
  };
  for (const auto& [statement, sql] : statements) {
    ASSIGN_OR_RETURN(*statement, connection.Prepare(sql));
  }
  RETURN_IF_ERROR(reader->events_.Prepare());
  RETURN_IF_ERROR(reader->measurements_.Prepare());
  RETURN_IF_ERROR(reader->patterns_.Prepare());
  RETURN_IF_ERROR(reader->distances_.Prepare());
  RETURN_IF_ERROR(reader->placements_.Prepare());
  RETURN_IF_ERROR(reader->orders_.Prepare());
  RETURN_IF_ERROR(reader->ranks_.Prepare());
  RETURN_IF_ERROR(reader->deeds_.Prepare());
  return reader;
}

absl::StatusOr<StoredState> SqliteReader::Load() {
  RETURN_IF_ERROR(begin_.Run());
  absl::StatusOr<StoredState> state = LoadInTransaction();
  // A statement left half way would keep the transaction, and the log that it pins, open.
  for (Statement* statement :
       {&active_jobs_, &trees_, &tree_switches_, &entries_, &profile_, &quotas_}) {
    statement->Reset();
  }
  RETURN_IF_ERROR(commit_.Run());
  return state;
}

absl::StatusOr<StoredState> SqliteReader::LoadInTransaction() {
  StoredState state;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, active_jobs_.Step());
    if (!row) break;
    ASSIGN_OR_RETURN(JobRecord job, JobAt(active_jobs_));
    state.jobs.push_back(std::move(job));
  }
  RETURN_IF_ERROR(LoadTrees(state));
  ASSIGN_OR_RETURN(state.entries, Entries());
  ASSIGN_OR_RETURN(state.placements, placements_.Holding());
  RETURN_IF_ERROR(LoadCounters(state));
  RETURN_IF_ERROR(LoadQuotas(state));
  ASSIGN_OR_RETURN(const bool has_profile, profile_.Step());
  if (has_profile) state.profile_toml = std::string(profile_.Text(0));
  return state;
}

absl::Status SqliteReader::LoadTrees(StoredState& state) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, trees_.Step());
    if (!row) return absl::OkStatus();
    ASSIGN_OR_RETURN(TreeRecord tree, TreeAt(trees_));
    state.trees.push_back(std::move(tree));
  }
}

absl::Status SqliteReader::LoadQuotas(StoredState& state) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, quotas_.Step());
    if (!row) return absl::OkStatus();
    const std::string_view kind = quotas_.Text(0);
    state.quotas.push_back({kind == "user"      ? QuotaHolder::kUser
                            : kind == "account" ? QuotaHolder::kAccount
                                                : QuotaHolder::kTenant,
                            std::string(quotas_.Text(1)), std::string(quotas_.Text(2)),
                            quotas_.Integer(3)});
  }
}

absl::Status SqliteReader::LoadCounters(StoredState& state) {
  ASSIGN_OR_RETURN(const int64_t job, last_id_.Bind("job").Number());
  ASSIGN_OR_RETURN(const int64_t tree, last_id_.Bind("tree").Number());
  ASSIGN_OR_RETURN(const int64_t placement, last_id_.Bind("placement").Number());
  ASSIGN_OR_RETURN(const int64_t version, setting_.Bind("fabric_version").Number());
  state.last_job = JobId(job);
  state.last_tree = TreeId(tree);
  state.last_placement = PlacementId(placement);
  state.last_fabric_version = static_cast<uint64_t>(version);
  return absl::OkStatus();
}

absl::StatusOr<JobRecord> SqliteReader::JobAt(const Statement& row) {
  JobRecord job;
  job.id = JobId(row.Integer(0));
  job.request_id = std::string(row.Text(1));
  job.request_fingerprint = static_cast<uint64_t>(row.Integer(2));
  job.name = std::string(row.Text(3));
  job.owner = std::string(row.Text(4));
  ASSIGN_OR_RETURN(job.endpoints, ranks_.Of(job.id, RanksOfBytes(row.Integer(5))));
  const int64_t lease_ns = row.Integer(6);
  job.lease = lease_ns == INT64_MAX ? absl::InfiniteDuration() : absl::Nanoseconds(lease_ns);
  job.state = JobStateOf(row.Text(7));
  job.created = row.TimeAt(8);
  job.ended = row.IsNull(9) ? absl::InfiniteFuture() : row.TimeAt(9);
  job.by_administrator = row.Integer(10) != 0;
  job.placed_nodes = row.Word(11);
  job.dropped_ranks = row.Word(12);
  return job;
}

absl::StatusOr<TreeRecord> SqliteReader::TreeAt(const Statement& row) {
  TreeRecord tree;
  tree.id = TreeId(row.Integer(0));
  tree.job = JobId(row.Integer(1));
  tree.request_id = std::string(row.Text(2));
  tree.request_fingerprint = static_cast<uint64_t>(row.Integer(3));
  tree.fabric_version = static_cast<uint64_t>(row.Integer(4));
  tree.revision = row.Word(5);
  tree.type = static_cast<uint8_t>(row.Integer(6));
  tree.builder = std::string(row.Text(7));
  tree.width = row.Word(8);
  tree.height = row.Word(9);
  tree.radius = row.Word(10);
  tree.operation = std::string(row.Text(11));
  tree.sizes = std::string(row.Text(12));
  tree.aggregate_us = row.Real(13);
  tree.distribute_us = row.Real(14);
  tree.total_us = row.Real(15);
  tree.reason = std::string(row.Text(16));
  tree.alternatives = std::string(row.Text(17));
  tree.created = row.TimeAt(18);
  tree.demands = std::string(row.Text(22));
  tree_switches_.Bind(tree.id.value());
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, tree_switches_.Step());
    if (!more) break;
    tree.switches.push_back({tree_switches_.GuidAt(0), tree_switches_.Word(1)});
  }
  absl::Status lists = ParseTreeNodes(row.Text(19), tree);
  if (lists.ok() && tree.parents.size() != tree.ranks.size() + tree.switches.size()) {
    lists = absl::DataLossError("its nodes are not its ranks and switches");
  }
  absl::StatusOr<std::vector<int64_t>> links = ParseSigned(row.Text(20));
  absl::StatusOr<std::vector<uint64_t>> physical = ParseUnsigned(row.Text(21));
  lists.Update(links.status());
  lists.Update(physical.status());
  if (!lists.ok()) {
    return Annotate(lists,
                    absl::StrCat("database ", connection_.path(), ": tree ", tree.id.value()));
  }
  tree.links = *std::move(links);
  tree.physical = *std::move(physical);
  return tree;
}

absl::StatusOr<std::vector<EntryUse>> SqliteReader::Entries() {
  std::vector<EntryUse> entries;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, entries_.Step());
    if (!row) return entries;
    CapabilityRecord capability{entries_.GuidAt(0), entries_.Word(1), entries_.Word(2),
                                entries_.Word(3)};
    entries.push_back({capability, entries_.Word(4)});
  }
}

absl::StatusOr<JobRecord> SqliteReader::GetJob(JobId id) {
  ASSIGN_OR_RETURN(const bool row, job_.Bind(id.value()).Step());
  if (!row) return NoSuchJob(id);
  absl::StatusOr<JobRecord> job = JobAt(job_);
  job_.Reset();
  return job;
}

absl::StatusOr<int64_t> SqliteReader::EndedJobs(absl::Time before) {
  return ended_jobs_.Bind(before).Number();
}

absl::StatusOr<std::vector<OwnedJobs>> SqliteReader::EndedJobsOfOwners() {
  std::vector<OwnedJobs> owners;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, ended_jobs_of_owners_.Step());
    if (!row) return owners;
    owners.push_back(
        {std::string(ended_jobs_of_owners_.Text(0)), ended_jobs_of_owners_.Integer(1)});
  }
}

absl::StatusOr<std::vector<int64_t>> SqliteReader::LinkIds(const std::vector<LinkRecord>& links) {
  std::vector<int64_t> ids;
  ids.reserve(links.size());
  for (const LinkRecord& given : links) {
    const LinkRecord link = Ordered(given);
    link_.Bind(link.node_a).Bind(int64_t{link.port_a});
    ASSIGN_OR_RETURN(const bool row, link_.Bind(link.node_b).Bind(int64_t{link.port_b}).Step());
    if (!row) return NoSuchLink(given);
    ids.push_back(link_.Integer(0));
    link_.Reset();
  }
  return ids;
}

}  // namespace coppice
