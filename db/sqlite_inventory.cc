// What the fabric holds: the inventory and measured distances; and what an administrator put in
// force: quotas and the profile.
//
// Rows of the inventory appear once, with first_seen, and are touched by every sweep that sees
// them, with last_seen; nothing is deleted.
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr const char* kNodeKinds[] = {nullptr, "switch", "adapter", "router"};
constexpr const char* kHolders[] = {nullptr, "user", "account", "tenant"};
constexpr const char* kTransports[] = {"tcp", "verbs"};

// The link with its ends in order.
LinkRecord Ordered(LinkRecord link) {
  if (std::tie(link.node_b, link.port_b) < std::tie(link.node_a, link.port_a)) {
    std::swap(link.node_a, link.node_b);
    std::swap(link.port_a, link.port_b);
  }
  return link;
}

// "link 0002c9020040b0e0/1 - 0002c9020040b0e1/7"
std::string LinkName(const LinkRecord& link) {
  return absl::StrCat("link ", ToString(link.node_a), "/", link.port_a, " - ",
                      ToString(link.node_b), "/", link.port_b);
}

// Words for a constraint that `failure` reports; a storage failure stays as it is.
absl::Status ExplainNode(SqliteConnection& db, Guid guid, const std::string& user,
                         absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t known, db.Sql("SELECT 1 FROM node WHERE guid = ?").Number(guid));
  if (known != 0) return failure;
  return absl::InvalidArgumentError(absl::StrCat(user, " names node ", ToString(guid),
                                                 ", which no inventory holds: list the node, too"));
}

absl::Status PutNode(SqliteConnection& db, const NodeRecord& node, absl::Time time) {
  return db
      .Sql(R"sql(
      INSERT INTO node (guid, kind, description, host, vendor_id, device_id, port_count,
                        first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
      ON CONFLICT (guid) DO UPDATE SET kind = excluded.kind, description = excluded.description,
          host = excluded.host, vendor_id = excluded.vendor_id, device_id = excluded.device_id,
          port_count = excluded.port_count, last_seen_ns = excluded.last_seen_ns)sql")
      .Run(node.guid, NameOf(kNodeKinds, node.kind), node.description, node.host, node.vendor_id,
           node.device_id, node.port_count, time);
}

absl::Status PutPort(SqliteConnection& db, const PortRecord& port, absl::Time time) {
  absl::Status status = db.Sql(R"sql(
      INSERT INTO port (node_guid, port, port_guid, lid, first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?5)
      ON CONFLICT (node_guid, port) DO UPDATE SET port_guid = excluded.port_guid,
          lid = excluded.lid, last_seen_ns = excluded.last_seen_ns)sql")
                            .Run(port.node, port.port, port.port_guid, port.lid, time);
  return ExplainNode(db, port.node, absl::StrCat("port ", port.port), std::move(status));
}

absl::Status PutLink(SqliteConnection& db, const LinkRecord& link, absl::Time time) {
  absl::Status status = db.Sql(R"sql(
      INSERT INTO link (node_a, port_a, node_b, port_b, rate, capacity_gbps, first_seen_ns,
                        last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
      ON CONFLICT (node_a, port_a, node_b, port_b) DO UPDATE SET rate = excluded.rate,
          capacity_gbps = excluded.capacity_gbps, last_seen_ns = excluded.last_seen_ns)sql")
                            .Run(link.node_a, link.port_a, link.node_b, link.port_b, link.rate,
                                 link.capacity_gbps, time);
  if (status.ok()) return status;
  const std::string name = LinkName(link);
  return ExplainNode(db, link.node_b, name, ExplainNode(db, link.node_a, name, std::move(status)));
}

}  // namespace

absl::Status Apply(SqliteConnection& db, const PutInventory& put) {
  for (const NodeRecord& node : put.nodes) RETURN_IF_ERROR(PutNode(db, node, put.time));
  for (const PortRecord& port : put.ports) RETURN_IF_ERROR(PutPort(db, port, put.time));
  for (const LinkRecord& link : put.links) RETURN_IF_ERROR(PutLink(db, Ordered(link), put.time));
  return db.Sql("UPDATE setting SET value = max(value, ?) WHERE name = 'fabric_version'")
      .Run(put.fabric_version);
}

absl::StatusOr<std::vector<int64_t>> FindLinkIds(SqliteConnection& db,
                                                 const std::vector<LinkRecord>& links) {
  Statement& find = db.Sql(R"sql(
      SELECT id FROM link WHERE node_a = ? AND port_a = ? AND node_b = ? AND port_b = ?)sql");
  std::vector<int64_t> ids;
  ids.reserve(links.size());
  for (const LinkRecord& given : links) {
    const LinkRecord link = Ordered(given);
    ASSIGN_OR_RETURN(ids.emplace_back(),
                     find.Number(link.node_a, link.port_a, link.node_b, link.port_b));
    if (ids.back() != 0) continue;
    return absl::NotFoundError(
        absl::StrCat(LinkName(given), " is in no inventory: put the inventory first"));
  }
  return ids;
}

absl::StatusOr<std::vector<LinkRecord>> ListLastLinks(SqliteConnection& db) {
  return db
      .Sql(R"sql(
      SELECT node_a, port_a, node_b, port_b, rate, capacity_gbps FROM link
      WHERE last_seen_ns = (SELECT max(last_seen_ns) FROM link))sql")
      .List<LinkRecord>([](const Statement& row, LinkRecord& link) {
        row.Read(link.node_a, link.port_a, link.node_b, link.port_b, link.rate, link.capacity_gbps);
      });
}

absl::Status Apply(SqliteConnection& db, const PutDistances& put) {
  for (const auto& [a, b] : put.drop) {
    RETURN_IF_ERROR(db.Sql("DELETE FROM distance WHERE host_a = ? AND host_b = ?").Run(a, b));
  }
  for (const DistanceRecord& d : put.put) {
    RETURN_IF_ERROR(db.Sql("INSERT OR REPLACE INTO distance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
                        .Run(d.host_a, d.host_b, d.latency_us, d.latency_spread_us,
                             d.bandwidth_gbps, d.bandwidth_spread_gbps, d.samples, d.measured,
                             NameOf(kTransports, d.transport)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DistanceRecord>> ListDistances(SqliteConnection& db) {
  return db.Sql("SELECT * FROM distance ORDER BY host_a, host_b")
      .List<DistanceRecord>([](const Statement& row, DistanceRecord& d) {
        std::string transport;
        row.Read(d.host_a, d.host_b, d.latency_us, d.latency_spread_us, d.bandwidth_gbps,
                 d.bandwidth_spread_gbps, d.samples, d.measured, transport);
        d.transport = ValueOf<Transport>(kTransports, transport);
      });
}

absl::Status Apply(SqliteConnection& db, const PutQuota& put) {
  const QuotaRecord& quota = put.quota;
  const char* const kind = NameOf(kHolders, quota.kind);
  if (put.drop) {
    return db.Sql("DELETE FROM quota WHERE holder_kind = ? AND holder = ? AND limit_name = ?")
        .Run(kind, quota.holder, quota.limit);
  }
  return db
      .Sql(R"sql(
      INSERT INTO quota (holder_kind, holder, limit_name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value)sql")
      .Run(kind, quota.holder, quota.limit, quota.value);
}

absl::Status Apply(SqliteConnection& db, const PutAccounts& put) {
  RETURN_IF_ERROR(db.Sql("DELETE FROM account_user").Run());
  RETURN_IF_ERROR(db.Sql("DELETE FROM account").Run());
  for (const AccountRecord& account : put.accounts) {
    RETURN_IF_ERROR(db.Sql("INSERT INTO account (name, parent, tenant) VALUES (?, ?, ?)")
                        .Run(account.name, account.parent, account.tenant));
  }
  for (const AccountUserRecord& user : put.users) {
    RETURN_IF_ERROR(db.Sql("INSERT INTO account_user (user, account, is_default) VALUES (?, ?, ?)")
                        .Run(user.user, user.account, user.is_default));
  }
  return absl::OkStatus();
}

absl::Status Apply(SqliteConnection& db, const PutReservation& put) {
  const ReservationRecord& r = put.reservation;
  std::string switches, nodes;
  AppendGuids(r.switches, switches);
  AppendTexts(r.nodes, nodes);
  ASSIGN_OR_RETURN(const int64_t taken,
                   db.Sql("SELECT id FROM reservation WHERE id = ?").Number(r.id));
  if (taken != 0) {
    return absl::AlreadyExistsError(absl::StrCat("reservation ", r.id.value(), " exists"));
  }
  return db
      .Sql(R"sql(
      INSERT INTO reservation (id, tenant, entries, switches, nodes, lends, from_ns, until_ns,
                               created_ns)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?))sql")
      .Run(r.id, r.tenant, r.entries, switches, nodes, r.lends, r.from, r.until, r.created);
}

absl::Status Apply(SqliteConnection& db, const DropReservation& drop) {
  RETURN_IF_ERROR(db.Sql("DELETE FROM reservation WHERE id = ?").Run(drop.id));
  if (db.changes() > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no reservation ", drop.id.value()));
}

absl::Status LoadReservations(SqliteConnection& db, StoredState& state) {
  ASSIGN_OR_RETURN(const int64_t last,
                   db.Sql("SELECT seq FROM sqlite_sequence WHERE name = ?").Number("reservation"));
  state.last_reservation = ReservationId(last);
  Statement& list = db.Sql("SELECT * FROM reservation ORDER BY id");
  ASSIGN_OR_RETURN(state.reservations, list.List<ReservationRecord>([&](const Statement& row,
                                                                        ReservationRecord& r) {
    std::string switches, nodes;
    row.Read(r.id, r.tenant, r.entries, switches, nodes, r.lends, r.from, r.until, r.created);
    absl::StatusOr<std::vector<Guid>> guids = ParseGuids(switches);
    absl::StatusOr<std::vector<std::string>> names = ParseTexts(nodes);
    absl::Status lists = guids.status();
    lists.Update(names.status());
    if (!lists.ok()) {
      return row.Damaged(lists, absl::StrCat("reservation ", r.id.value()));
    }
    r.switches = *std::move(guids);
    r.nodes = *std::move(names);
    return absl::OkStatus();
  }));
  return absl::OkStatus();
}

absl::Status Apply(SqliteConnection& db, const PutProfile& put) {
  if (put.toml.empty()) return db.Sql("DELETE FROM profile").Run();
  return db.Sql("INSERT OR REPLACE INTO profile (id, toml) VALUES (1, ?)").Run(put.toml);
}

absl::Status LoadSettings(SqliteConnection& db, StoredState& state) {
  Statement& last_id = db.Sql("SELECT seq FROM sqlite_sequence WHERE name = ?");
  ASSIGN_OR_RETURN(const int64_t job, last_id.Number("job"));
  ASSIGN_OR_RETURN(const int64_t tree, last_id.Number("tree"));
  ASSIGN_OR_RETURN(const int64_t placement, last_id.Number("placement"));
  ASSIGN_OR_RETURN(const int64_t version,
                   db.Sql("SELECT value FROM setting WHERE name = 'fabric_version'").Number());
  state.last_job = JobId(job);
  state.last_tree = TreeId(tree);
  state.last_placement = PlacementId(placement);
  state.last_fabric_version = static_cast<uint64_t>(version);
  ASSIGN_OR_RETURN(state.quotas,
                   db.Sql(R"sql(
      SELECT holder_kind, holder, limit_name, value FROM quota
      ORDER BY instr('user   account tenant', holder_kind), holder, limit_name)sql")
                       .List<QuotaRecord>([](const Statement& row, QuotaRecord& quota) {
                         std::string kind;
                         row.Read(kind, quota.holder, quota.limit, quota.value);
                         quota.kind = ValueOf<QuotaHolder>(kHolders, kind);
                       }));
  ASSIGN_OR_RETURN(state.accounts,
                   db.Sql("SELECT name, parent, tenant FROM account ORDER BY name")
                       .List<AccountRecord>([](const Statement& row, AccountRecord& account) {
                         row.Read(account.name, account.parent, account.tenant);
                       }));
  ASSIGN_OR_RETURN(
      state.account_users,
      db.Sql("SELECT user, account, is_default FROM account_user ORDER BY user, account")
          .List<AccountUserRecord>([](const Statement& row, AccountUserRecord& user) {
            row.Read(user.user, user.account, user.is_default);
          }));
  RETURN_IF_ERROR(LoadReservations(db, state));
  return db.Sql("SELECT toml FROM profile").ForEach([&](const Statement& row) {
    row.Read(state.profile_toml);
  });
}

}  // namespace coppice
