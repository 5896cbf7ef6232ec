#include "db/sqlite_inventory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

constexpr const char* kNodeKinds[] = {nullptr, "switch", "adapter", "router"};
constexpr const char* kHolders[] = {nullptr, "user", "account", "tenant"};

}  // namespace

InventoryWriter::InventoryWriter(SqliteConnection& connection)
    : put_node_(connection, R"sql(
      INSERT INTO node (guid, kind, description, host, vendor_id, device_id, port_count,
                        first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
      ON CONFLICT (guid) DO UPDATE SET kind = excluded.kind, description = excluded.description,
          host = excluded.host, vendor_id = excluded.vendor_id, device_id = excluded.device_id,
          port_count = excluded.port_count, last_seen_ns = excluded.last_seen_ns)sql"),
      put_port_(connection, R"sql(
      INSERT INTO port (node_guid, port, port_guid, lid, first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?5)
      ON CONFLICT (node_guid, port) DO UPDATE SET port_guid = excluded.port_guid,
          lid = excluded.lid, last_seen_ns = excluded.last_seen_ns)sql"),
      put_link_(connection, R"sql(
      INSERT INTO link (node_a, port_a, node_b, port_b, rate, capacity_gbps, first_seen_ns,
                        last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
      ON CONFLICT (node_a, port_a, node_b, port_b) DO UPDATE SET rate = excluded.rate,
          capacity_gbps = excluded.capacity_gbps, last_seen_ns = excluded.last_seen_ns)sql"),
      find_node_(connection, "SELECT 1 FROM node WHERE guid = ?"),
      raise_fabric_version_(connection, R"sql(
      UPDATE setting SET value = max(value, ?) WHERE name = 'fabric_version')sql") {}

absl::Status InventoryWriter::Apply(const PutInventory& put) {
  RETURN_IF_ERROR(InsertNodes(put));
  RETURN_IF_ERROR(InsertPorts(put));
  RETURN_IF_ERROR(InsertLinks(put));
  return raise_fabric_version_.Run(put.fabric_version);
}

absl::Status InventoryWriter::InsertNodes(const PutInventory& put) {
  for (const NodeRecord& node : put.nodes) {
    RETURN_IF_ERROR(put_node_.Run(node.guid, NameOf(kNodeKinds, node.kind), node.description,
                                  node.host, node.vendor_id, node.device_id, node.port_count,
                                  put.time));
  }
  return absl::OkStatus();
}

absl::Status InventoryWriter::InsertPorts(const PutInventory& put) {
  for (const PortRecord& port : put.ports) {
    absl::Status status = put_port_.Run(port.node, port.port, port.port_guid, port.lid, put.time);
    if (!status.ok()) {
      return ExplainNode(port.node, absl::StrCat("port ", port.port), std::move(status));
    }
  }
  return absl::OkStatus();
}

absl::Status InventoryWriter::InsertLinks(const PutInventory& put) {
  for (const LinkRecord& given : put.links) {
    const LinkRecord link = Ordered(given);
    absl::Status status = put_link_.Run(link.node_a, link.port_a, link.node_b, link.port_b,
                                        link.rate, link.capacity_gbps, put.time);
    if (status.ok()) continue;
    const std::string name = absl::StrCat("link ", LinkName(link));
    status = ExplainNode(link.node_a, name, std::move(status));
    return ExplainNode(link.node_b, name, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status InventoryWriter::ExplainNode(Guid guid, const std::string& user,
                                          absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t known, find_node_.Number(guid));
  return known != 0 ? failure : NodeNotInInventory(guid, user);
}

InventoryReader::InventoryReader(SqliteConnection& connection)
    : link_(connection, R"sql(
      SELECT id FROM link WHERE node_a = ? AND port_a = ? AND node_b = ? AND port_b = ?)sql") {}

absl::StatusOr<std::vector<int64_t>> InventoryReader::LinkIds(
    const std::vector<LinkRecord>& links) {
  std::vector<int64_t> ids;
  ids.reserve(links.size());
  for (const LinkRecord& given : links) {
    const LinkRecord link = Ordered(given);
    ASSIGN_OR_RETURN(const bool row,
                     link_.Step(link.node_a, link.port_a, link.node_b, link.port_b));
    if (!row) return NoSuchLink(given);
    ids.push_back(link_.Integer(0));
    link_.Reset();
  }
  return ids;
}

SettingWriter::SettingWriter(SqliteConnection& connection)
    : put_quota_(connection, R"sql(
      INSERT INTO quota (holder_kind, holder, limit_name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value)sql"),
      delete_quota_(connection, R"sql(
      DELETE FROM quota WHERE holder_kind = ? AND holder = ? AND limit_name = ?)sql"),
      put_profile_(connection, R"sql(
      INSERT INTO profile (id, toml) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET toml = excluded.toml)sql"),
      delete_profile_(connection, "DELETE FROM profile") {}

absl::Status SettingWriter::Apply(const PutQuota& put) {
  const QuotaRecord& quota = put.quota;
  const char* const kind = NameOf(kHolders, quota.kind);
  if (put.drop) return delete_quota_.Run(kind, quota.holder, quota.limit);
  return put_quota_.Run(kind, quota.holder, quota.limit, quota.value);
}

absl::Status SettingWriter::Apply(const PutProfile& put) {
  return put.toml.empty() ? delete_profile_.Run() : put_profile_.Run(put.toml);
}

SettingReader::SettingReader(SqliteConnection& connection)
    : last_id_(connection, "SELECT seq FROM sqlite_sequence WHERE name = ?"),
      setting_(connection, "SELECT value FROM setting WHERE name = ?"),
      quotas_(connection, R"sql(
      SELECT holder_kind, holder, limit_name, value FROM quota
      ORDER BY instr('user   account tenant', holder_kind), holder, limit_name)sql"),
      profile_(connection, "SELECT toml FROM profile") {}

absl::Status SettingReader::Load(StoredState& state) {
  ASSIGN_OR_RETURN(const int64_t job, last_id_.Number("job"));
  ASSIGN_OR_RETURN(const int64_t tree, last_id_.Number("tree"));
  ASSIGN_OR_RETURN(const int64_t placement, last_id_.Number("placement"));
  ASSIGN_OR_RETURN(const int64_t version, setting_.Number("fabric_version"));
  state.last_job = JobId(job);
  state.last_tree = TreeId(tree);
  state.last_placement = PlacementId(placement);
  state.last_fabric_version = static_cast<uint64_t>(version);
  ASSIGN_OR_RETURN(state.quotas,
                   quotas_.List<QuotaRecord>([](const Statement& row, QuotaRecord& quota) {
                     std::string kind;
                     row.Read(kind, quota.holder, quota.limit, quota.value);
                     quota.kind = ValueOf<QuotaHolder>(kHolders, kind);
                   }));
  return profile_.ForEach([&](const Statement& row) { row.Read(state.profile_toml); });
}

}  // namespace coppice
