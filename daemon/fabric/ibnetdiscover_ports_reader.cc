// The report of `ibnetdiscover -p`: rows of ports, from which the nodes are found again.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/ibnetdiscover_reader.h"
#include "daemon/fabric/topology_assembler.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxPorts = 254;   // IBA vol. 1, 14.2.5.3 NodeInfo
constexpr uint32_t kMaxLid = 0xBFFF;  // IBA vol. 1, 4.1.3

// One side of a row: CA   3  1 0x0002c9030006db4d
struct PortOfRow {
  bool is_switch = false, is_router = false;
  Lid lid;
  uint8_t port = 0;
  Guid guid;  // of the port
};

struct Row {
  PortOfRow local, remote;
  bool linked = false;
  LinkRate rate;
  absl::string_view description;
  uint32_t line = 0;
  Guid node;
};

bool ReadPortOfRow(LineCursor& cursor, PortOfRow* port) {
  const absl::string_view type = cursor.Word();
  if (type != "CA" && type != "SW" && type != "RT") return false;
  port->is_switch = type == "SW";
  port->is_router = type == "RT";
  uint32_t lid = 0, number = 0;
  uint64_t guid = 0;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxLid, &lid)) return false;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxPorts, &number)) return false;
  cursor.SkipBlanks();
  if (!cursor.Skip("0x") || !cursor.Hex(&guid)) return false;
  port->lid = Lid(static_cast<uint16_t>(lid));
  port->port = static_cast<uint8_t>(number);
  port->guid = Guid(guid);
  return number > 0 || port->is_switch;
}

// ( 'LOCAL' - 'REMOTE' ) of a linked port, 'LOCAL' of another. Names may hold quotes themselves.
bool ReadNames(absl::string_view text, bool linked, absl::string_view* local) {
  const absl::string_view front = linked ? "( '" : "'", back = linked ? "' )" : "'";
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.size() < front.size() + back.size() || text.substr(0, front.size()) != front ||
      text.substr(text.size() - back.size()) != back) {
    return false;
  }
  *local = text.substr(front.size(), text.size() - front.size() - back.size());
  if (!linked) return true;
  const size_t middle = local->find("' - '");
  if (middle == absl::string_view::npos) return false;
  *local = local->substr(0, middle);
  return true;
}

absl::StatusOr<Row> ReadRow(absl::string_view line) {
  LineCursor cursor(line);
  Row row;
  const absl::string_view shown = line.substr(0, 80);
  if (!ReadPortOfRow(cursor, &row.local)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected CA|SW|RT LID PORT 0xGUID WIDTH SPEED ...: ", shown));
  }
  const absl::string_view width = cursor.Word(), speed = cursor.Word();
  const std::optional<LinkRate> rate = ParseActiveRate(width, speed);
  if (!rate)
    return absl::InvalidArgumentError(absl::StrCat("no link rate such as 4x QDR: ", shown));
  row.rate = *rate;
  cursor.SkipBlanks();
  row.linked = cursor.Skip("- ");
  if (row.linked && !ReadPortOfRow(cursor, &row.remote)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected CA|SW|RT LID PORT 0xGUID behind the dash: ", shown));
  }
  cursor.SkipBlanks();
  if (!ReadNames(cursor.rest(), row.linked, &row.description)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the node names in quotes at the end: ", shown, ": is the file cut off?"));
  }
  return row;
}

Guid DerivedNode(const Row& row) {
  if (row.local.is_switch) return row.local.guid;
  return Guid(row.local.guid.value() - row.local.port);
}

// Gives every row its node's GUID.
void FindNodes(std::vector<Row>& rows) {
  struct Claim {
    absl::string_view description;
    bool contested = false;
  };
  absl::flat_hash_map<Guid, Claim> claims;
  for (const Row& row : rows) {
    if (!row.local.is_switch) continue;
    claims[row.local.guid].contested = true;  // no adapter may take a switch's GUID
  }
  for (const Row& row : rows) {
    if (row.local.is_switch) continue;
    const auto [it, is_new] = claims.try_emplace(DerivedNode(row), Claim{row.description});
    if (!is_new && it->second.description != row.description) it->second.contested = true;
  }
  for (Row& row : rows) {
    row.node = DerivedNode(row);
    if (!row.local.is_switch && claims[row.node].contested) row.node = row.local.guid;
  }
}

absl::Status StartNode(TopologyAssembler& assembler, const Row& row, uint8_t ports) {
  if (row.local.is_switch) {
    SwitchInfo info{row.node, row.local.lid, ports, 0, 0, CleanDescription(row.description)};
    return assembler.StartSwitch(std::move(info), row.line);
  }
  AdapterInfo info;
  info.guid = row.node;
  info.kind = row.local.is_router ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
  info.port_count = ports;
  info.description = CleanDescription(row.description);
  return assembler.StartAdapter(std::move(info), row.line);
}

absl::Status AssembleNodes(TopologyAssembler& assembler, std::vector<Row>& rows) {
  absl::flat_hash_map<Guid, Guid> node_of_port;
  for (const Row& row : rows) node_of_port.try_emplace(row.local.guid, row.node);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    return std::pair(x.node, x.local.port) < std::pair(y.node, y.local.port);
  });
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && rows[end].node == rows[i].node) ++end;
    RETURN_IF_ERROR(StartNode(assembler, rows[i], rows[end - 1].local.port));
    for (; i < end; ++i) {
      const Row& row = rows[i];
      if (!row.linked) continue;
      const auto remote = node_of_port.find(row.remote.guid);
      PortLine port;
      port.line = row.line;
      port.port = PortNum(row.local.port);
      port.remote = remote == node_of_port.end() ? row.remote.guid : remote->second;
      port.remote_port = PortNum(row.remote.port);
      port.rate = row.rate;
      port.port_guid = row.local.guid;
      port.lid = row.local.lid;
      RETURN_IF_ERROR(assembler.AddPort(port));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscoverPorts(absl::string_view text,
                                                                     absl::string_view origin) {
  TopologyAssembler assembler(origin);
  std::vector<Row> rows;
  LineSplitter lines(text);
  absl::string_view line;
  while (lines.Next(&line)) {
    if (IsChatter(line)) continue;
    absl::StatusOr<Row> row = ReadRow(line);
    if (!row.ok()) return assembler.Error(lines.number(), row.status().message());
    row->line = lines.number();
    rows.push_back(*row);
  }
  FindNodes(rows);
  RETURN_IF_ERROR(AssembleNodes(assembler, rows));
  return assembler.Finish();
}

}  // namespace coppice
