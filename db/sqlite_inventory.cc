#include "db/sqlite_inventory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

const char* KindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kChannelAdapter:
      return "adapter";
    case NodeKind::kRouter:
      return "router";
  }
  return "unknown";  // which the table refuses
}

}  // namespace

absl::Status InventoryWriter::Prepare() {
  ASSIGN_OR_RETURN(put_node_, connection_.Prepare(R"sql(
      INSERT INTO node (guid, kind, description, host, vendor_id, device_id, port_count,
                        first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
      ON CONFLICT (guid) DO UPDATE SET kind = excluded.kind, description = excluded.description,
          host = excluded.host, vendor_id = excluded.vendor_id, device_id = excluded.device_id,
          port_count = excluded.port_count, last_seen_ns = excluded.last_seen_ns)sql"));
  ASSIGN_OR_RETURN(put_port_, connection_.Prepare(R"sql(
      INSERT INTO port (node_guid, port, port_guid, lid, first_seen_ns, last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?5)
      ON CONFLICT (node_guid, port) DO UPDATE SET port_guid = excluded.port_guid,
          lid = excluded.lid, last_seen_ns = excluded.last_seen_ns)sql"));
  ASSIGN_OR_RETURN(put_link_, connection_.Prepare(R"sql(
      INSERT INTO link (node_a, port_a, node_b, port_b, rate, capacity_gbps, first_seen_ns,
                        last_seen_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
      ON CONFLICT (node_a, port_a, node_b, port_b) DO UPDATE SET rate = excluded.rate,
          capacity_gbps = excluded.capacity_gbps, last_seen_ns = excluded.last_seen_ns)sql"));
  ASSIGN_OR_RETURN(find_node_, connection_.Prepare("SELECT 1 FROM node WHERE guid = ?"));
  ASSIGN_OR_RETURN(raise_fabric_version_, connection_.Prepare(R"sql(
      UPDATE setting SET value = max(value, ?) WHERE name = 'fabric_version')sql"));
  return absl::OkStatus();
}

absl::Status InventoryWriter::Apply(const PutInventory& put) {
  RETURN_IF_ERROR(InsertNodes(put));
  RETURN_IF_ERROR(InsertPorts(put));
  RETURN_IF_ERROR(InsertLinks(put));
  return raise_fabric_version_.Bind(static_cast<int64_t>(put.fabric_version)).Run();
}

absl::Status InventoryWriter::InsertNodes(const PutInventory& put) {
  for (const NodeRecord& node : put.nodes) {
    put_node_.Bind(node.guid).Bind(KindName(node.kind)).Bind(node.description).Bind(node.host);
    put_node_.Bind(int64_t{node.vendor_id}).Bind(int64_t{node.device_id});
    RETURN_IF_ERROR(put_node_.Bind(int64_t{node.port_count}).Bind(put.time).Run());
  }
  return absl::OkStatus();
}

absl::Status InventoryWriter::InsertPorts(const PutInventory& put) {
  for (const PortRecord& port : put.ports) {
    put_port_.Bind(port.node).Bind(int64_t{port.port}).Bind(port.port_guid);
    absl::Status status = put_port_.Bind(int64_t{port.lid}).Bind(put.time).Run();
    if (!status.ok()) {
      return ExplainNode(port.node, absl::StrCat("port ", port.port), std::move(status));
    }
  }
  return absl::OkStatus();
}

absl::Status InventoryWriter::InsertLinks(const PutInventory& put) {
  for (const LinkRecord& given : put.links) {
    const LinkRecord link = Ordered(given);
    put_link_.Bind(link.node_a).Bind(int64_t{link.port_a});
    put_link_.Bind(link.node_b).Bind(int64_t{link.port_b});
    absl::Status status = put_link_.Bind(link.rate).Bind(link.capacity_gbps).Bind(put.time).Run();
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
  find_node_.Bind(guid);
  ASSIGN_OR_RETURN(const int64_t known, find_node_.Number());
  return known != 0 ? failure : NodeNotInInventory(guid, user);
}

absl::Status InventoryReader::Prepare() {
  ASSIGN_OR_RETURN(link_, connection_.Prepare(R"sql(
      SELECT id FROM link WHERE node_a = ? AND port_a = ? AND node_b = ? AND port_b = ?)sql"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> InventoryReader::LinkIds(
    const std::vector<LinkRecord>& links) {
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

namespace {

constexpr char kQuotas[] = R"sql(
    SELECT holder_kind, holder, limit_name, value FROM quota
    ORDER BY instr('user   account tenant', holder_kind), holder, limit_name)sql";

}  // namespace

absl::Status SettingWriter::Prepare() {
  ASSIGN_OR_RETURN(put_quota_, connection_.Prepare(R"sql(
      INSERT INTO quota (holder_kind, holder, limit_name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value)sql"));
  ASSIGN_OR_RETURN(delete_quota_, connection_.Prepare(R"sql(
      DELETE FROM quota WHERE holder_kind = ? AND holder = ? AND limit_name = ?)sql"));
  ASSIGN_OR_RETURN(put_profile_, connection_.Prepare(R"sql(
      INSERT INTO profile (id, toml) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET toml = excluded.toml)sql"));
  ASSIGN_OR_RETURN(delete_profile_, connection_.Prepare("DELETE FROM profile"));
  return absl::OkStatus();
}

absl::Status SettingWriter::Apply(const PutQuota& put) {
  static constexpr const char* kKinds[] = {"", "user", "account", "tenant"};
  const QuotaRecord& quota = put.quota;
  Statement& statement = put.drop ? delete_quota_ : put_quota_;
  statement.Bind(kKinds[static_cast<size_t>(quota.kind)]).Bind(quota.holder).Bind(quota.limit);
  if (!put.drop) statement.Bind(quota.value);
  return statement.Run();
}

absl::Status SettingWriter::Apply(const PutProfile& put) {
  return put.toml.empty() ? delete_profile_.Run() : put_profile_.Bind(put.toml).Run();
}

absl::Status SettingReader::Prepare() {
  ASSIGN_OR_RETURN(last_id_, connection_.Prepare("SELECT seq FROM sqlite_sequence WHERE name = ?"));
  ASSIGN_OR_RETURN(setting_, connection_.Prepare("SELECT value FROM setting WHERE name = ?"));
  ASSIGN_OR_RETURN(quotas_, connection_.Prepare(kQuotas));
  ASSIGN_OR_RETURN(profile_, connection_.Prepare("SELECT toml FROM profile"));
  return absl::OkStatus();
}

absl::Status SettingReader::Load(StoredState& state) {
  RETURN_IF_ERROR(LoadHighest(state));
  RETURN_IF_ERROR(LoadQuotas(state));
  ASSIGN_OR_RETURN(const bool has_profile, profile_.Step());
  if (has_profile) state.profile_toml = std::string(profile_.Text(0));
  profile_.Reset();
  return absl::OkStatus();
}

absl::Status SettingReader::LoadHighest(StoredState& state) {
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

absl::Status SettingReader::LoadQuotas(StoredState& state) {
  return quotas_.ForEach([&](const Statement& row) {
    const std::string_view kind = row.Text(0);
    state.quotas.push_back({kind == "user"      ? QuotaHolder::kUser
                            : kind == "account" ? QuotaHolder::kAccount
                                                : QuotaHolder::kTenant,
                            std::string(row.Text(1)), std::string(row.Text(2)), row.Integer(3)});
  });
}

}  // namespace coppice
