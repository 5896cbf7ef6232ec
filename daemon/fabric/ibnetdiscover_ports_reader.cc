// The report of `ibnetdiscover -p`: rows of ports, from which the nodes are found again.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/ibnetdiscover_reader.h"
#include "daemon/fabric/topology_assembler.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

enum class NodeKind : uint8_t { kSwitch, kAdapter, kRouter };

// A row that names a cable: CA 3 1 0x0002c9030006db4d 4x QDR - SW 7 1 0x0002c9020040b0e0 ( ... ),
// or a port without one.
struct Row {
  Guid guid, remote_guid;             // of the ports
  Guid node;                          // of the local port, found when all rows are known
  const std::string* name = nullptr;  // of the local node
  uint32_t line = 0;
  Lid lid;
  LinkRate rate;
  uint8_t port = 0, remote_port = 0;
  NodeKind kind = NodeKind::kSwitch;
  bool linked = false;
  bool is_switch() const { return kind == NodeKind::kSwitch; }
};

// CA   3  1 0x0002c9030006db4d
bool ReadPortOfRow(LineCursor& cursor, NodeKind* kind, Lid* lid, uint8_t* port, Guid* guid) {
  const absl::string_view type = cursor.Word();
  if (type != "CA" && type != "SW" && type != "RT") return false;
  *kind = type == "SW" ? NodeKind::kSwitch : type == "RT" ? NodeKind::kRouter : NodeKind::kAdapter;
  uint32_t lid_number = 0, port_number = 0;
  uint64_t guid_number = 0;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxUnicastLid, &lid_number)) return false;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxNodePorts, &port_number)) return false;
  cursor.SkipBlanks();
  if (!cursor.Skip("0x") || !cursor.Hex(&guid_number)) return false;
  *lid = Lid(static_cast<uint16_t>(lid_number));
  *port = static_cast<uint8_t>(port_number);
  *guid = Guid(guid_number);
  return port_number > 0 || *kind == NodeKind::kSwitch;
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

// The rows of a whole report. Names are kept once: a switch's comes in every one of its rows.
struct Report {
  std::vector<Row> rows;
  absl::node_hash_set<std::string> names;
};

absl::Status ReadRow(absl::string_view line, Report& report) {
  const auto refuse = [line](absl::string_view what, absl::string_view advice) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", Excerpt(line), advice));
  };
  LineCursor cursor(line);
  Row row;
  if (!ReadPortOfRow(cursor, &row.kind, &row.lid, &row.port, &row.guid)) {
    return refuse("expected CA|SW|RT LID PORT 0xGUID WIDTH SPEED ...", "");
  }
  const absl::string_view width = cursor.Word(), speed = cursor.Word();
  const std::optional<LinkRate> rate = ParseActiveRate(width, speed);
  if (!rate) return refuse("no link rate such as 4x QDR", "");
  row.rate = *rate;
  cursor.SkipBlanks();
  row.linked = cursor.Skip("- ");
  NodeKind remote_kind;
  Lid remote_lid;
  if (row.linked &&
      !ReadPortOfRow(cursor, &remote_kind, &remote_lid, &row.remote_port, &row.remote_guid)) {
    return refuse("expected CA|SW|RT LID PORT 0xGUID behind the dash", "");
  }
  cursor.SkipBlanks();
  absl::string_view name;
  if (!ReadNames(cursor.rest(), row.linked, &name)) {
    return refuse("expected the node names in quotes at the end", ": is the file cut off?");
  }
  row.name = &*report.names.emplace(name).first;
  report.rows.push_back(row);
  return absl::OkStatus();
}

Guid DerivedNode(const Row& row) {
  return row.is_switch() ? row.guid : Guid(row.guid.value() - row.port);
}

// Gives every row its node's GUID.
void FindNodes(std::vector<Row>& rows) {
  struct Claim {
    const std::string* name = nullptr;
    bool contested = false;
  };
  absl::flat_hash_map<Guid, Claim> claims;
  for (const Row& row : rows) {
    if (!row.is_switch()) continue;
    claims[row.guid].contested = true;  // no adapter may take a switch's GUID
  }
  for (const Row& row : rows) {
    if (row.is_switch()) continue;
    const auto [it, is_new] = claims.try_emplace(DerivedNode(row), Claim{row.name});
    if (!is_new && it->second.name != row.name) it->second.contested = true;
  }
  for (Row& row : rows) {
    row.node = DerivedNode(row);
    if (!row.is_switch() && claims[row.node].contested) row.node = row.guid;
  }
}

absl::Status StartNode(TopologyAssembler& assembler, const Row& row, uint8_t ports) {
  if (row.is_switch()) {
    return assembler.StartSwitch({row.node, row.lid, ports, 0, 0, *row.name}, row.line);
  }
  AdapterInfo info;
  info.guid = row.node;
  info.kind = row.kind == NodeKind::kRouter ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
  info.port_count = ports;
  info.description = *row.name;
  return assembler.StartAdapter(std::move(info), row.line);
}

absl::Status AssembleNodes(TopologyAssembler& assembler, std::vector<Row>& rows) {
  // Only ports whose GUID is not their node's: most cables lead to switches.
  absl::flat_hash_map<Guid, Guid> node_of_port;
  for (const Row& row : rows) {
    if (row.node != row.guid) node_of_port.try_emplace(row.guid, row.node);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    return std::pair(x.node, x.port) < std::pair(y.node, y.port);
  });
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && rows[end].node == rows[i].node) ++end;
    const uint8_t ports = std::max<uint8_t>(1, rows[end - 1].port);
    RETURN_IF_ERROR(StartNode(assembler, rows[i], ports));
    for (; i < end; ++i) {
      const Row& row = rows[i];
      if (!row.linked) continue;
      const auto remote = node_of_port.find(row.remote_guid);
      PortLine port;
      port.line = row.line;
      port.port = PortNum(row.port);
      port.remote = remote == node_of_port.end() ? row.remote_guid : remote->second;
      port.remote_port = PortNum(row.remote_port);
      port.rate = row.rate;
      port.port_guid = row.guid;
      port.lid = row.lid;
      RETURN_IF_ERROR(assembler.AddPort(port));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscoverPorts(TopologyLines& lines) {
  TopologyAssembler assembler(lines.origin());
  {
    Report report;
    absl::string_view line;
    while (lines.Next(&line)) {
      if (IsChatter(line)) continue;
      const absl::Status read = ReadRow(line, report);
      if (!read.ok()) return lines.Error(read.message());
      report.rows.back().line = lines.number();
    }
    RETURN_IF_ERROR(lines.status());
    FindNodes(report.rows);
    RETURN_IF_ERROR(AssembleNodes(assembler, report.rows));
  }
  return assembler.Finish();
}

}  // namespace coppice
