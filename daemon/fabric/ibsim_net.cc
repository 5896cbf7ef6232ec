#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

constexpr uint64_t kFirstSwitchGuid = 0x200000, kFirstAdapterGuid = 0x100000;  // ibsim sim_net.c
constexpr uint8_t kWidth4x = 2, kSpeedSdr = 1;                                 // its defaults

constexpr uint32_t kNone = 0xffffffff;

// What a port enables, as the bit masks of PortInfo (IBA vol. 1, 14.2.5.6).
struct Enabled {
  uint8_t widths = kWidth4x, speeds = kSpeedSdr;
};

// The names of nodes, which most lines repeat, and whose they are: an index of nodes_, or kNone as
// long as no header has it.
using NodeNames = absl::node_hash_map<std::string, uint32_t>;

// One end of a cable, as a port line states it.
struct Cable {
  PortLine port;
  const NodeNames::value_type* remote = nullptr;
  bool has_rate = false;  // its comment states one, if only as unknown
  Enabled enabled;
};

struct Node {
  StatedNode record;
  uint32_t line = 0;
  uint32_t first_cable = 0;  // into cables_; the next node's is the end
};

// Bits of these masks that ibsim knows, from the widest and fastest down.
constexpr std::pair<uint8_t, uint8_t> kWidthBits[] = {{8, 12}, {4, 8}, {2, 4}, {1, 1}};
constexpr std::pair<uint8_t, LaneSpeed> kSpeedBits[] = {
    {4, LaneSpeed::kQdr}, {2, LaneSpeed::kDdr}, {1, LaneSpeed::kSdr}};

// What the first bit of the table that is in `mask` stands for; no such: Value{}.
template <class Value, size_t N>
Value FirstOf(const std::pair<uint8_t, Value> (&table)[N], int mask) {
  const auto found = absl::c_find_if(table, [=](auto entry) { return (entry.first & mask) != 0; });
  return found == std::end(table) ? Value{} : found->second;
}

// The bit of the widest or fastest in the table that is not above `value`, else the last.
template <class Value, size_t N>
int BitOf(const std::pair<uint8_t, Value> (&table)[N], Value value) {
  const auto found = absl::c_find_if(table, [=](auto entry) { return entry.second <= value; });
  return found == std::end(table) ? table[N - 1].first : found->first;
}

// The rate that two ports agree on: the widest and fastest that both enable.
LinkRate Negotiate(const Enabled& a, const Enabled& b) {
  return {FirstOf(kWidthBits, a.widths & b.widths), FirstOf(kSpeedBits, a.speeds & b.speeds)};
}

class IbsimReader {
 public:
  explicit IbsimReader(TopologyLines& lines) : lines_(lines) {}

  // Hands all nodes and cables to the assembler.
  absl::Status Read(TopologyAssembler& assembler) {
    absl::string_view line;
    while (lines_.Next(&line)) RETURN_IF_ERROR(ReadLine(line));
    RETURN_IF_ERROR(lines_.status());
    return Assemble(assembler);
  }

 private:
  template <class... What>
  absl::Status Error(const What&... what) const {
    return lines_.Error(what...);
  }

  absl::Status ReadLine(absl::string_view line) {
    if (IsChatter(line)) return absl::OkStatus();
    if (line.front() == '[') return ReadPort(line);
    for (const absl::string_view word : {"include", "do", "pdebug", "@"}) {
      if (absl::StartsWith(line, word)) {
        return Error("\"", word,
                     "\" is ibsim's only: put the nodes into this file: ", Excerpt(line));
      }
    }
    if (absl::StartsWith(line, "module")) return ReadModule(line);
    if (line.find_first_of("=+") < line.find('"')) return ReadSetting(line);
    return ReadHeader(line);
  }

  absl::Status ReadSetting(absl::string_view line) {
    const size_t sign = line.find_first_of("=+");
    const absl::string_view key = line.substr(0, sign);
    LineCursor cursor(line.substr(sign + 1));
    uint64_t value = 0;
    uint32_t number = 0;
    const bool is_hex = absl::StartsWith(cursor.rest(), "0x");
    if (is_hex ? !cursor.Hex(&value) : !cursor.Decimal(UINT32_MAX, &number)) {
      return Error("expected KEY=NUMBER: ", Excerpt(line));
    }
    if (!is_hex) value = number;
    const int type = key == "switchguid"                    ? 0
                     : key == "hcaguids" || key == "caguid" ? 1
                     : key == "rtguid"                      ? 2
                                                            : -1;
    if (type >= 0) {
      if (line[sign] == '=') base_guid_[type] = value;
      next_guid_[type] = line[sign] == '=' ? value : base_guid_[type] + value;
    } else if (key == "devid" && value <= 0xFFFF) {
      device_id_ = static_cast<uint16_t>(value);
    } else if (key == "width" && value >= 1 && value <= 15) {
      enabled_.widths = static_cast<uint8_t>(value);
    } else if (key == "speed" && value >= 1 && value <= 7) {
      enabled_.speeds = static_cast<uint8_t>(value);
    } else if (key != "vendid" && key != "sysimgguid") {
      return Error("unknown setting, or value out of range: ", Excerpt(line));
    }
    return absl::OkStatus();
  }

  absl::Status ReadModule(absl::string_view line) {
    LineCursor cursor(line);
    absl::string_view skipped;
    absl::string_view prefix;
    if (!cursor.Until('"', &skipped) || !cursor.Until('"', &prefix)) {
      return Error("expected module=\"PREFIX\": ", Excerpt(line));
    }
    module_ = std::string(prefix);
    return absl::OkStatus();
  }

  // TYPE PORTS "NAME" [# "DESCRIPTION" ...]
  absl::Status ReadHeader(absl::string_view line) {
    const absl::StatusOr<NodeHeader> header = ParseNodeHeader(line, {"Switch", "Hca", "Ca", "Rt"});
    if (!header.ok()) return Error(header.status().message());
    if (header->name.empty()) return Error("the node has no name: ", Excerpt(line));
    auto& [name, known] = Named(header->name);
    StatedNode record{Guid(), header->kind, header->ports, Lid(), device_id_, 0, name};
    uint64_t& next = next_guid_[record.is_switch()                       ? 0
                                : record.adapter == AdapterKind::kRouter ? 2
                                                                         : 1];
    record.guid = Guid(next);
    next += record.is_switch() ? 1 : header->ports + 1;
    RETURN_IF_ERROR(ReadComment(header->rest, record));
    if (known != kNone) {
      return Error("node \"", Excerpt(name), "\" appears twice, first in line ", nodes_[known].line,
                   ": rename one of them");
    }
    known = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({std::move(record), lines_.number(), static_cast<uint32_t>(cables_.size())});
    return absl::OkStatus();
  }

  absl::Status ReadComment(absl::string_view comment, StatedNode& record) {
    LineCursor cursor(comment);
    absl::string_view skipped, description;
    if (!cursor.Until('#', &skipped)) return absl::OkStatus();
    cursor.SkipBlanks();
    if (!cursor.Skip('"')) return absl::OkStatus();
    if (!cursor.Until('"', &description)) {
      return Error("the description has no closing quote: ", Excerpt(comment));
    }
    if (!description.empty()) record.description = std::string(description);
    cursor.SkipBlanks();
    uint32_t lid = 0;
    if (cursor.Skip("enhanced port 0 lid ") || cursor.Skip("base port 0 lid ")) {
      if (!cursor.Decimal(kMaxUnicastLid, &lid)) {
        return Error("expected a LID up to ", kMaxUnicastLid, ": ", Excerpt(comment));
      }
      record.lid = Lid(static_cast<uint16_t>(lid));
    }
    return absl::OkStatus();
  }

  // [PORT] "NAME"[PORT] OPTIONS; the remote port is 1 if it is not given.
  absl::Status ReadPort(absl::string_view line) {
    if (nodes_.empty()) return Error("a port line before the first node header");
    LineCursor cursor(line);
    uint32_t port = 0, remote_port = 1;
    uint64_t port_guid = 0;
    absl::string_view name;
    bool well_formed = cursor.Skip('[') && cursor.Decimal(255, &port) && cursor.Skip(']');
    if (well_formed && cursor.Skip('(')) well_formed = cursor.Hex(&port_guid) && cursor.Skip(')');
    cursor.SkipBlanks();
    well_formed = well_formed && cursor.Skip('"') && cursor.Until('"', &name);
    cursor.SkipBlanks();
    if (well_formed && cursor.Skip('[')) {
      well_formed = cursor.Decimal(255, &remote_port) && cursor.Skip(']');
    }
    if (!well_formed) {
      return Error("expected [PORT] \"NODE\"[PORT], with ports up to ", kMaxNodePorts, ": ",
                   Excerpt(line));
    }
    Cable cable;
    cable.port.line = lines_.number();
    cable.port.port = PortNum(static_cast<uint8_t>(port));
    cable.port.remote_port = PortNum(static_cast<uint8_t>(remote_port));
    cable.remote = &Named(name);
    cable.enabled = enabled_;
    RETURN_IF_ERROR(ReadOptions(cursor, cable));
    cables_.push_back(cable);
    return absl::OkStatus();
  }

  // w=2 s=4 # lid 5 lmc 0 4xHDR capacity 192 Gb/s
  absl::Status ReadOptions(LineCursor cursor, Cable& cable) {
    for (absl::string_view word = cursor.Word(); !word.empty(); word = cursor.Word()) {
      uint32_t value = 0;
      LineCursor number(word.substr(std::min<size_t>(2, word.size())));
      if (absl::StartsWith(word, "w=") && number.Decimal(15, &value) && value > 0) {
        cable.enabled.widths = static_cast<uint8_t>(value);
      } else if (absl::StartsWith(word, "s=") && number.Decimal(7, &value) && value > 0) {
        cable.enabled.speeds = static_cast<uint8_t>(value);
      } else if (word == "lid") {
        if (!absl::SimpleAtoi(cursor.Word(), &value) || value > kMaxUnicastLid) {
          return Error("expected a LID up to ", kMaxUnicastLid);
        }
        if (cable.port.lid == Lid()) cable.port.lid = Lid(static_cast<uint16_t>(value));
      } else if (word == "lmc") {
        if (!absl::SimpleAtoi(cursor.Word(), &value) || value > 7) {
          return Error("expected an LMC up to 7");
        }
        cable.port.lmc = static_cast<uint8_t>(value);
      } else if (word == "capacity" && cable.has_rate) {
        const std::optional<float> capacity = ParseCapacity(cursor);
        if (!capacity) return Error("expected capacity NUMBER Gb/s");
        cable.port.capacity_gbps = *capacity;
      } else if (const std::optional<LinkRate> rate = ParseActiveRate(word)) {
        cable.port.rate = *rate;
        cable.has_rate = true;
      } else if (word.find('=') != absl::string_view::npos) {
        return Error("unknown option, or value out of range: ", Excerpt(word));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Assemble(TopologyAssembler& assembler) {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      RETURN_IF_ERROR(assembler.StartNode(nodes_[n].record, nodes_[n].line));
      for (const Cable& cable : CablesOf(n)) RETURN_IF_ERROR(AssembleCable(cable, assembler));
    }
    return absl::OkStatus();
  }

  absl::Status AssembleCable(const Cable& cable, TopologyAssembler& assembler) const {
    const auto& [name, remote] = *cable.remote;
    PortLine port = cable.port;
    if (remote == kNone) {
      return assembler.Error(port.line, "port ", static_cast<int>(port.port.value()),
                             " is cabled to node \"", Excerpt(name),
                             "\", which has no header: is the file cut off?");
    }
    port.remote = nodes_[remote].record.guid;
    if (!cable.has_rate) {
      for (const Cable& other : CablesOf(remote)) {
        if (other.port.port != port.remote_port) continue;
        port.rate = Negotiate(cable.enabled, other.enabled);
        break;
      }
    }
    return assembler.AddPort(port);
  }

  NodeNames::value_type& Named(absl::string_view name) {
    const bool has_module = name.find('#') != absl::string_view::npos;
    return *names_
                .try_emplace(module_.empty() || has_module ? std::string(name)
                                                           : absl::StrCat(module_, "#", name),
                             kNone)
                .first;
  }

  absl::Span<const Cable> CablesOf(uint32_t node) const {
    const size_t first = nodes_[node].first_cable;
    const size_t last = node + 1 < nodes_.size() ? nodes_[node + 1].first_cable : cables_.size();
    return absl::MakeConstSpan(cables_).subspan(first, last - first);
  }

  TopologyLines& lines_;
  std::string module_;
  uint16_t device_id_ = 0;
  Enabled enabled_;
  // Next GUID and base of: switches, adapters, routers.
  uint64_t next_guid_[3] = {kFirstSwitchGuid, kFirstAdapterGuid, 0};
  uint64_t base_guid_[3] = {kFirstSwitchGuid, kFirstAdapterGuid, 0};
  std::vector<Node> nodes_;
  std::vector<Cable> cables_;  // by node
  NodeNames names_;            // in full
};

constexpr size_t kMaxName = 60;         // ibsim's NODEIDLEN is 65, with prefix and end
constexpr size_t kMaxDescription = 63;  // IBA vol. 1, 14.2.5.2 NodeDescription: 64 bytes, with end

std::string Name(absl::string_view text) {
  std::string name(text.substr(0, kMaxName));
  for (char& c : name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

// A description in quotes; ibsim ends it at the first quote.
std::string Quotable(absl::string_view description) {
  std::string text = CleanDescription(description.substr(0, kMaxDescription));
  absl::c_replace(text, '"', '\'');
  return text;
}

class IbsimWriter {
 public:
  explicit IbsimWriter(const Fabric& fabric) : fabric_(fabric) {}

  std::string Write() {
    NameNodes();
    absl::StrAppend(&out_, "# ibsim net file: written by Coppice\n");
    // ibsim attaches programs without SIM_HOST to the first node: let it be a host.
    uint32_t e = 0;
    for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
      const uint32_t first = e;
      while (e < fabric_.endpoint_count() &&
             fabric_.endpoint(EndpointIndex(e)).adapter == AdapterIndex(a)) {
        ++e;
      }
      WriteAdapter(AdapterIndex(a), first, e);
    }
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) WriteSwitch(SwitchIndex(s));
    return std::move(out_);
  }

 private:
  // Each node takes the first of its candidates that no other node has among its candidates of that
  // rank or before.
  void NameNodes() {
    std::vector<std::vector<std::string>> candidates;
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      const SwitchInfo& info = fabric_.switch_info(SwitchIndex(s));
      const std::string name = Name(info.description);
      candidates.push_back({name, name, absl::StrCat("S-", ToString(info.guid))});
    }
    for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
      const AdapterInfo& info = fabric_.adapter(AdapterIndex(a));
      candidates.push_back({Name(fabric_.host_name(info.host)), Name(info.description),
                            absl::StrCat("H-", ToString(info.guid))});
    }
    absl::flat_hash_map<std::string, uint32_t> uses;
    for (const std::vector<std::string>& c : candidates) {
      ++uses[c[0]];
      if (c[1] != c[0]) ++uses[c[1]];
      ++uses[c[2]];
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      std::vector<std::string>& c = candidates[i];
      size_t rank = 0;
      while (rank < 2 && (c[rank].empty() || uses[c[rank]] > 1)) ++rank;
      (i < fabric_.switch_count() ? switch_names_ : adapter_names_).push_back(std::move(c[rank]));
    }
  }

  void WriteHeader(absl::string_view type, absl::string_view guid_key, Guid guid,
                   uint16_t device_id, uint8_t ports, absl::string_view name) {
    absl::StrAppend(&out_, "\ndevid=0x", absl::Hex(device_id), "\n", guid_key, "=0x",
                    absl::Hex(guid.value()), "\n");
    absl::StrAppend(&out_, type, "\t", static_cast<int>(ports), " \"", name, "\"\t\t# \"");
  }

  void WriteSwitch(SwitchIndex s) {
    const SwitchInfo& info = fabric_.switch_info(s);
    WriteHeader("Switch", "switchguid", info.guid, info.device_id, info.port_count,
                switch_names_[s.value()]);
    absl::StrAppend(&out_, Quotable(info.description), "\" enhanced port 0 lid ",
                    static_cast<int>(info.lid.value()), " lmc 0\n");
    const absl::Span<const Channel> row = fabric_.channels(fabric_.Vertex(s));
    std::vector<Channel> channels(row.begin(), row.end());
    absl::c_sort(channels, [](const Channel& x, const Channel& y) { return x.port < y.port; });
    for (const Channel& channel : channels) WritePort(channel, "");
  }

  void WriteAdapter(AdapterIndex a, uint32_t first_endpoint, uint32_t last_endpoint) {
    const AdapterInfo& info = fabric_.adapter(a);
    const bool is_router = info.kind == AdapterKind::kRouter;
    WriteHeader(is_router ? "Rt" : "Ca", is_router ? "rtguid" : "caguid", info.guid, info.device_id,
                info.port_count, adapter_names_[a.value()]);
    absl::StrAppend(&out_, Quotable(info.description), "\"\n");
    for (uint32_t e = first_endpoint; e < last_endpoint; ++e) {
      const EndpointInfo& endpoint = fabric_.endpoint(EndpointIndex(e));
      const std::string lid = absl::StrCat(" lid ", static_cast<int>(endpoint.lid.value()), " lmc ",
                                           static_cast<int>(endpoint.lmc));
      for (const Channel& channel : fabric_.channels(fabric_.Vertex(EndpointIndex(e)))) {
        WritePort(channel, lid);
      }
    }
  }

  // ibsim takes every '=' in a port line for an option: what comments say must not hold one.
  void WritePort(const Channel& channel, absl::string_view lid) {
    const LinkInfo& link = fabric_.link(Fabric::link_of(channel.index));
    const LinkRate rate = link.rate;
    absl::StrAppend(&out_, "[", static_cast<int>(channel.port.value()), "]\t\"",
                    NodeName(channel.to), "\"[", static_cast<int>(channel.to_port.value()), "]");
    if (rate.lanes > 0) absl::StrAppend(&out_, " w=", BitOf(kWidthBits, rate.lanes));
    if (rate.speed != LaneSpeed::kUnknown)
      absl::StrAppend(&out_, " s=", BitOf(kSpeedBits, rate.speed));
    absl::StrAppend(&out_, "\t#", lid, " ", FormatLinkRate(rate, link.capacity_gbps), "\n");
  }

  absl::string_view NodeName(VertexIndex v) const {
    if (fabric_.IsSwitch(v)) return switch_names_[v.value()];
    return adapter_names_[fabric_.endpoint(fabric_.AsEndpoint(v)).adapter.value()];
  }

  const Fabric& fabric_;
  std::vector<std::string> switch_names_, adapter_names_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbsimNet(TopologyLines& lines) {
  TopologyAssembler assembler(lines.origin());
  RETURN_IF_ERROR(IbsimReader(lines).Read(assembler));
  return assembler.Finish();
}

std::string WriteIbsimNet(const Fabric& fabric) { return IbsimWriter(fabric).Write(); }

}  // namespace coppice
