#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

// "[ext 3]", which -g adds behind a port.
bool SkipExternalPort(LineCursor& cursor) {
  uint32_t port = 0;
  return !cursor.Skip("[ext ") || (cursor.Decimal(1000, &port) && cursor.Skip(']'));
}

class Reader {
 public:
  explicit Reader(TopologyLines& lines) : lines_(lines), assembler_(lines.origin()) {}

  absl::StatusOr<std::shared_ptr<const Fabric>> Read() {
    absl::string_view line;
    while (lines_.Next(&line)) RETURN_IF_ERROR(ReadLine(line));
    RETURN_IF_ERROR(lines_.status());
    return assembler_.Finish();
  }

 private:
  template <class... What>
  absl::Status Error(const What&... what) const {
    return lines_.Error(what...);
  }

  absl::Status ReadLine(absl::string_view line) {
    if (line.empty()) return absl::OkStatus();
    if (line.front() == '[') return ReadPort(line);
    if (IsChatter(line)) return absl::OkStatus();
    const size_t equals = line.find('=');
    const size_t quote = line.find('"');
    if (equals < quote) return ReadAssignment(line);
    return ReadHeader(line);
  }

  absl::Status ReadAssignment(absl::string_view line) {
    LineCursor cursor(line);
    absl::string_view key;
    uint64_t value = 0;
    if (!cursor.Until('=', &key) || !cursor.Hex(&value)) {
      return Error("expected KEY=0xNUMBER: ", Excerpt(line));
    }
    if (key == "vendid") {
      vendor_id_ = static_cast<uint32_t>(value);
      if (value > 0xFFFFFF) return Error("vendid has more than 24 bits");
    } else if (key == "devid") {
      device_id_ = static_cast<uint16_t>(value);
      if (value > 0xFFFF) return Error("devid has more than 16 bits");
    } else if (key == "switchguid" || key == "caguid" || key == "rtguid") {
      stated_guid_ = Guid(value);
    } else if (key != "sysimgguid") {
      return Error("unknown key \"", Excerpt(key), "\"");
    }
    return absl::OkStatus();
  }

  // TYPE PORTS "NAME" [# COMMENT]
  absl::Status ReadHeader(absl::string_view line) {
    const absl::StatusOr<NodeHeader> header = ParseNodeHeader(line, {"Switch", "Ca", "Rt"});
    if (!header.ok()) return Error(header.status().message());
    const absl::string_view comment = header->rest;
    const std::optional<Guid> guid = GuidOfNodeName(header->name);
    if (!guid) {
      return Error("node name \"", Excerpt(header->name),
                   "\" is not S-, H- or R- and 16 hexadecimal digits");
    }
    if (stated_guid_ != Guid() && stated_guid_ != *guid) {
      return Error("node ", ToString(*guid), " follows a line that gives its GUID as ",
                   ToString(stated_guid_));
    }
    stated_guid_ = Guid();
    StatedNode record{*guid, header->kind, header->ports, Lid(), device_id_, vendor_id_};
    const size_t first = comment.find('"'), last = comment.rfind('"');
    if (first < last) record.description = std::string(comment.substr(first + 1, last - first - 1));
    if (record.is_switch() && first != absl::string_view::npos) {
      RETURN_IF_ERROR(ReadSwitchComment(comment, record));
    }
    return assembler_.StartNode(std::move(record), lines_.number());
  }

  // # "leaf 3" enhanced port 0 lid 7 lmc 0
  absl::Status ReadSwitchComment(absl::string_view comment, StatedNode& record) {
    const size_t last = comment.rfind('"');
    LineCursor cursor(comment.substr(last + 1));
    cursor.SkipBlanks();
    uint32_t lid = 0, lmc = 0;
    const bool is_ours = comment.find('"') < last &&
                         (cursor.Skip("enhanced port 0 lid ") || cursor.Skip("base port 0 lid "));
    if (!is_ours || !cursor.Decimal(kMaxUnicastLid, &lid) || !cursor.Skip(" lmc ") ||
        !cursor.Decimal(7, &lmc)) {
      return Error("switch ", ToString(record.guid),
                   ": expected # \"DESCRIPTION\" base|enhanced port 0 lid LID lmc LMC, got ",
                   Excerpt(comment));
    }
    record.lid = Lid(static_cast<uint16_t>(lid));
    return absl::OkStatus();
  }

  // [PORT](GUID) "NAME"[PORT](GUID) # COMMENT
  absl::Status ReadPort(absl::string_view line) {
    LineCursor cursor(line);
    uint32_t port = 0, remote_port = 0;
    uint64_t port_guid = 0, remote_port_guid = 0;
    absl::string_view name;
    const auto guid_in_brackets = [&cursor](uint64_t* guid) {
      cursor.SkipBlanks();
      const bool well_formed = !cursor.Skip('(') || (cursor.Hex(guid) && cursor.Skip(')'));
      cursor.SkipBlanks();
      return well_formed;
    };
    if (!cursor.Skip('[') || !cursor.Decimal(255, &port) || !cursor.Skip(']') ||
        !SkipExternalPort(cursor) || !guid_in_brackets(&port_guid) || !cursor.Skip('"') ||
        !cursor.Until('"', &name) || !cursor.Skip('[') || !cursor.Decimal(255, &remote_port) ||
        !cursor.Skip(']') || !SkipExternalPort(cursor) || !guid_in_brackets(&remote_port_guid)) {
      return Error("expected [PORT] \"NODE\"[PORT], with ports up to ", kMaxNodePorts, ": ",
                   Excerpt(line));
    }
    const std::optional<Guid> remote = GuidOfNodeName(name);
    if (!remote) {
      return Error("node name \"", Excerpt(name),
                   "\" is not S-, H- or R- and 16 hexadecimal digits");
    }
    PortLine out;
    out.line = lines_.number();
    out.port = PortNum(static_cast<uint8_t>(port));
    out.remote = *remote;
    out.remote_port = PortNum(static_cast<uint8_t>(remote_port));
    out.port_guid = Guid(port_guid);
    if (cursor.Skip('#') || (cursor.AtEnd() && lines_.unfinished())) {
      RETURN_IF_ERROR(ReadPortComment(cursor.rest(), out));
    } else if (!cursor.AtEnd()) {
      return Error("unexpected text behind the cable: ", Excerpt(cursor.rest()));
    }
    return assembler_.AddPort(out);
  }

  // Of a switch:   "REMOTE" lid LID RATE; of an adapter:   lid LID lmc LMC "REMOTE" lid LID RATE.
  // Other comments say nothing.
  absl::Status ReadPortComment(absl::string_view comment, PortLine& port) {
    LineCursor cursor(comment);
    cursor.SkipBlanks();
    uint32_t lid = 0, lmc = 0, remote_lid = 0;
    if (cursor.Skip("lid ")) {
      if (!cursor.Decimal(kMaxUnicastLid, &lid) || !cursor.Skip(" lmc ") ||
          !cursor.Decimal(7, &lmc)) {
        return Error("expected lid LID lmc LMC, up to ", kMaxUnicastLid, " and 7, got ",
                     Excerpt(comment));
      }
      port.lid = Lid(static_cast<uint16_t>(lid));
      port.lmc = static_cast<uint8_t>(lmc);
      cursor.SkipBlanks();
    } else if (!cursor.LooksAt('"')) {
      if (!lines_.unfinished() || !has_rates_) return absl::OkStatus();
      return Error(
          "the text ends within this line, which has no LID and rate: is the file cut off?");
    }
    const absl::string_view rest = cursor.rest();
    const size_t last = rest.rfind('"');
    LineCursor tail(last == absl::string_view::npos ? absl::string_view() : rest.substr(last + 1));
    if (!cursor.LooksAt('"') || last == 0 || !tail.Skip(" lid ") ||
        !tail.Decimal(kMaxUnicastLid, &remote_lid)) {
      return Error("expected \"DESCRIPTION\" lid LID RATE with a LID up to ", kMaxUnicastLid,
                   ", got ", Excerpt(rest), ": is the file cut off?");
    }
    has_rates_ = true;
    RETURN_IF_ERROR(ReadRate(tail.Word(), port));
    tail.SkipBlanks();
    if (!tail.Skip("capacity ")) return absl::OkStatus();
    const std::optional<float> capacity = ParseCapacity(tail);
    if (!capacity) return Error("expected capacity NUMBER Gb/s: ", Excerpt(comment));
    port.capacity_gbps = *capacity;
    return absl::OkStatus();
  }

  absl::Status ReadRate(absl::string_view word, PortLine& port) {
    if (word != rate_word_ || word.empty()) {
      const std::optional<LinkRate> rate = ParseActiveRate(word);
      if (!rate) {
        return Error("\"", Excerpt(word),
                     "\" is no link rate such as 4xQDR: is the file "
                     "cut off?");
      }
      rate_word_ = std::string(word);
      rate_ = *rate;
    }
    port.rate = rate_;
    return absl::OkStatus();
  }

  TopologyLines& lines_;
  TopologyAssembler assembler_;
  // What the lines before a header said of the node to come.
  uint32_t vendor_id_ = 0;
  uint16_t device_id_ = 0;
  Guid stated_guid_;
  // Neighbouring lines mostly have equal rates: the last word read and its meaning.
  std::string rate_word_;
  LinkRate rate_;
  bool has_rates_ = false;  // some port line had LIDs and a rate, so all should
};

// The report of `ibnetdiscover -p` is rows of ports, from which the nodes are found again. A row
// that names a cable: CA 3 1 0x0002c9030006db4d 4x QDR - SW 7 1 0x0002c9020040b0e0 ( ... ), or a
// port without one.
struct Row {
  Guid guid, remote_guid;             // of the ports
  Guid node;                          // of the local port, found when all rows are known
  const std::string* name = nullptr;  // of the local node
  uint32_t line = 0;
  Lid lid;
  LinkRate rate;
  uint8_t port = 0, remote_port = 0;
  std::optional<AdapterKind> adapter;  // nullopt: a switch
  bool linked = false;
  bool is_switch() const { return !adapter; }
};

// CA   3  1 0x0002c9030006db4d
bool ReadPortOfRow(LineCursor& cursor, std::optional<AdapterKind>* adapter, Lid* lid, uint8_t* port,
                   Guid* guid) {
  const absl::string_view type = cursor.Word();
  if (type != "CA" && type != "SW" && type != "RT") return false;
  if (type != "SW") *adapter = type == "RT" ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
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
  return port_number > 0 || !*adapter;
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
  if (!ReadPortOfRow(cursor, &row.adapter, &row.lid, &row.port, &row.guid)) {
    return refuse("expected CA|SW|RT LID PORT 0xGUID WIDTH SPEED ...", "");
  }
  const absl::string_view width = cursor.Word(), speed = cursor.Word();
  const std::optional<LinkRate> rate = ParseActiveRate(width, speed);
  if (!rate) return refuse("no link rate such as 4x QDR", "");
  row.rate = *rate;
  cursor.SkipBlanks();
  row.linked = cursor.Skip("- ");
  std::optional<AdapterKind> remote;
  Lid remote_lid;
  if (row.linked &&
      !ReadPortOfRow(cursor, &remote, &remote_lid, &row.remote_port, &row.remote_guid)) {
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

absl::Status AssembleNodes(TopologyAssembler& assembler, std::vector<Row>& rows) {
  // Only ports whose GUID is not their node's: most cables lead to switches.
  absl::flat_hash_map<Guid, Guid> node_of_port;
  for (const Row& row : rows) {
    if (row.node != row.guid) node_of_port.try_emplace(row.guid, row.node);
  }
  absl::c_stable_sort(rows, [](const Row& x, const Row& y) {
    return std::pair(x.node, x.port) < std::pair(y.node, y.port);
  });
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && rows[end].node == rows[i].node) ++end;
    const uint8_t ports = std::max<uint8_t>(1, rows[end - 1].port);
    RETURN_IF_ERROR(assembler.StartNode(
        {rows[i].node, rows[i].adapter, ports, rows[i].lid, 0, 0, *rows[i].name}, rows[i].line));
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

char LetterOf(AdapterKind kind) { return kind == AdapterKind::kRouter ? 'R' : 'H'; }

// One fabric on its way into one string.
class Writer {
 public:
  explicit Writer(const Fabric& fabric) : fabric_(fabric) {}

  std::string Write() {
    absl::StrAppend(&out_, "#\n# Topology file: written by Coppice\n#\n");
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) WriteSwitch(SwitchIndex(s));
    // Endpoints are sorted by adapter; an adapter without cables has none, yet keeps its header.
    uint32_t e = 0;
    for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
      WriteAdapter(fabric_.adapter(AdapterIndex(a)));
      for (; e < fabric_.endpoint_count() &&
             fabric_.endpoint(EndpointIndex(e)).adapter == AdapterIndex(a);
           ++e) {
        WriteAdapterPort(EndpointIndex(e));
      }
    }
    return std::move(out_);
  }

 private:
  void WriteSwitch(SwitchIndex s) {
    const SwitchInfo& info = fabric_.switch_info(s);
    WriteIds(info.vendor_id, info.device_id, info.guid);
    const uint64_t guid = info.guid.value();
    absl::StrAppend(&out_, "switchguid=0x", absl::Hex(guid), "(", absl::Hex(guid), ")\nSwitch\t",
                    static_cast<int>(info.port_count), " \"S-", ToString(info.guid), "\"\t\t# \"",
                    CleanDescription(info.description), "\" enhanced port 0 lid ",
                    static_cast<int>(info.lid.value()), " lmc 0\n");
    const absl::Span<const Channel> row = fabric_.channels(fabric_.Vertex(s));
    std::vector<Channel> channels(row.begin(), row.end());
    absl::c_sort(channels, [](const Channel& x, const Channel& y) { return x.port < y.port; });
    for (const Channel& channel : channels) {
      absl::StrAppend(&out_, "[", static_cast<int>(channel.port.value()), "]\t");
      WriteRemote(channel);
      absl::StrAppend(&out_, "\t\t# \"", Description(channel.to), "\" lid ",
                      static_cast<int>(fabric_.lid(channel.to).value()), " ");
      WriteRate(fabric_.link(Fabric::link_of(channel.index)));
    }
  }

  void WriteAdapter(const AdapterInfo& adapter) {
    WriteIds(adapter.vendor_id, adapter.device_id, adapter.guid);
    const bool is_router = adapter.kind == AdapterKind::kRouter;
    const char letter[] = {LetterOf(adapter.kind), '\0'};
    absl::StrAppend(&out_, is_router ? "rtguid=0x" : "caguid=0x", absl::Hex(adapter.guid.value()),
                    is_router ? "\nRt\t" : "\nCa\t", static_cast<int>(adapter.port_count));
    absl::StrAppend(&out_, " \"", letter, "-", ToString(adapter.guid), "\"\t\t# \"",
                    CleanDescription(adapter.description), "\"\n");
  }

  void WriteAdapterPort(EndpointIndex e) {
    const EndpointInfo& endpoint = fabric_.endpoint(e);
    for (const Channel& channel : fabric_.channels(fabric_.Vertex(e))) {
      absl::StrAppend(&out_, "[", static_cast<int>(endpoint.port.value()), "](",
                      absl::Hex(endpoint.port_guid.value()), ") \t");
      WriteRemote(channel);
      absl::StrAppend(&out_, "\t\t# lid ", static_cast<int>(endpoint.lid.value()), " lmc ",
                      static_cast<int>(endpoint.lmc), " \"", Description(channel.to));
      absl::StrAppend(&out_, "\" lid ", static_cast<int>(fabric_.lid(channel.to).value()), " ");
      WriteRate(fabric_.link(Fabric::link_of(channel.index)));
    }
  }

  void WriteIds(uint32_t vendor_id, uint16_t device_id, Guid guid) {
    absl::StrAppend(&out_, "\nvendid=0x", absl::Hex(vendor_id), "\ndevid=0x", absl::Hex(device_id),
                    "\nsysimgguid=0x", absl::Hex(guid.value()), "\n");
  }

  // "S-0002c9020040b0e0"[7], and the port's GUID if it is an adapter's.
  void WriteRemote(const Channel& channel) {
    const char letter[] = {Letter(channel.to), '\0'};
    absl::StrAppend(&out_, "\"", letter, "-", ToString(NodeGuid(channel.to)), "\"[",
                    static_cast<int>(channel.to_port.value()), "]");
    if (fabric_.IsSwitch(channel.to)) return;
    const EndpointInfo& endpoint = fabric_.endpoint(fabric_.AsEndpoint(channel.to));
    absl::StrAppend(&out_, "(", absl::Hex(endpoint.port_guid.value()), ") ");
  }

  void WriteRate(const LinkInfo& link) {
    absl::StrAppend(&out_, FormatLinkRate(link.rate, link.capacity_gbps), "\n");
  }

  Guid NodeGuid(VertexIndex v) const {
    return fabric_.IsSwitch(v) ? fabric_.switch_info(fabric_.AsSwitch(v)).guid
                               : fabric_.adapter(fabric_.AsEndpoint(v)).guid;
  }

  char Letter(VertexIndex v) const {
    return fabric_.IsSwitch(v) ? 'S' : LetterOf(fabric_.adapter(fabric_.AsEndpoint(v)).kind);
  }

  std::string Description(VertexIndex v) const {
    return CleanDescription(fabric_.IsSwitch(v)
                                ? fabric_.switch_info(fabric_.AsSwitch(v)).description
                                : fabric_.adapter(fabric_.AsEndpoint(v)).description);
  }

  const Fabric& fabric_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscover(TopologyLines& lines) {
  return Reader(lines).Read();
}

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

std::string WriteIbnetdiscover(const Fabric& fabric) { return Writer(fabric).Write(); }

}  // namespace coppice
