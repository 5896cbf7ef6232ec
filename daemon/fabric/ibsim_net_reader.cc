#include "daemon/fabric/ibsim_net_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/ibnetdiscover_reader.h"
#include "daemon/fabric/topology_assembler.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxPorts = 254;   // IBA vol. 1, 14.2.5.3 NodeInfo
constexpr uint32_t kMaxLid = 0xBFFF;  // IBA vol. 1, 4.1.3
constexpr uint64_t kFirstSwitchGuid = 0x200000, kFirstAdapterGuid = 0x100000;  // ibsim sim_net.c
constexpr uint32_t kWidth4x = 2, kSpeedSdr = 1;                                // ibsim's defaults

absl::string_view Excerpt(absl::string_view text) { return text.substr(0, 80); }

// What a port enables, as the bit masks of PortInfo (IBA vol. 1, 14.2.5.6).
struct Enabled {
  uint32_t widths = kWidth4x, speeds = kSpeedSdr;
};

struct Cable {
  PortLine port;
  std::string remote;
  Enabled enabled;
};

struct Node {
  std::string name;
  uint32_t line = 0;
  bool is_switch = false;
  SwitchInfo info;  // `info` serves adapters, too
  AdapterKind kind = AdapterKind::kChannelAdapter;
  std::vector<Cable> cables;
};

// The rate that two ports agree on: the widest and fastest that both enable.
LinkRate Negotiate(const Enabled& a, const Enabled& b) {
  const uint32_t widths = a.widths & b.widths, speeds = a.speeds & b.speeds;
  const uint8_t lanes = (widths & 8) != 0   ? 12
                        : (widths & 4) != 0 ? 8
                        : (widths & 2) != 0 ? 4
                        : (widths & 1) != 0 ? 1
                                            : 0;
  const LaneSpeed speed = (speeds & 4) != 0   ? LaneSpeed::kQdr
                          : (speeds & 2) != 0 ? LaneSpeed::kDdr
                          : (speeds & 1) != 0 ? LaneSpeed::kSdr
                                              : LaneSpeed::kUnknown;
  return {lanes, speed};
}

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view origin) : lines_(text), assembler_(origin) {}

  absl::StatusOr<std::shared_ptr<const Fabric>> Read() {
    absl::string_view line;
    while (lines_.Next(&line)) RETURN_IF_ERROR(ReadLine(line));
    RETURN_IF_ERROR(Assemble());
    return assembler_.Finish();
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return assembler_.Error(lines_.number(), what);
  }
  absl::Status ReadLine(absl::string_view line);
  absl::Status ReadSetting(absl::string_view line);
  absl::Status ReadModule(absl::string_view line);
  absl::Status ReadHeader(absl::string_view line);
  absl::Status ReadComment(absl::string_view comment, Node& node);
  absl::Status ReadPort(absl::string_view line);
  absl::Status ReadOptions(LineCursor cursor, Cable& cable);
  absl::Status Assemble();
  std::string FullName(absl::string_view name) const {
    if (module_.empty() || name.find('#') != absl::string_view::npos) return std::string(name);
    return absl::StrCat(module_, "#", name);
  }
  const Cable* Peer(const Cable& cable) const;

  LineSplitter lines_;
  TopologyAssembler assembler_;
  std::string module_;
  uint16_t device_id_ = 0;
  Enabled enabled_;
  // Next GUID and base of: switches, adapters, routers.
  uint64_t next_guid_[3] = {kFirstSwitchGuid, kFirstAdapterGuid, 0};
  uint64_t base_guid_[3] = {kFirstSwitchGuid, kFirstAdapterGuid, 0};
  std::vector<Node> nodes_;
  absl::flat_hash_map<std::string, uint32_t> index_;  // by full name
};

absl::Status Reader::ReadLine(absl::string_view line) {
  if (IsChatter(line)) return absl::OkStatus();
  if (line.front() == '[') return ReadPort(line);
  for (const absl::string_view word : {"include", "do", "pdebug", "@"}) {
    if (absl::StartsWith(line, word)) {
      return Error(absl::StrCat(
          "\"", word, "\" is ibsim's only: put the nodes into this file: ", Excerpt(line)));
    }
  }
  if (absl::StartsWith(line, "module")) return ReadModule(line);
  if (line.find_first_of("=+") < line.find('"')) return ReadSetting(line);
  return ReadHeader(line);
}

absl::Status Reader::ReadModule(absl::string_view line) {
  LineCursor cursor(line);
  absl::string_view skipped;
  absl::string_view prefix;
  if (!cursor.Until('"', &skipped) || !cursor.Until('"', &prefix)) {
    return Error(absl::StrCat("expected module=\"PREFIX\": ", Excerpt(line)));
  }
  module_ = std::string(prefix);
  return absl::OkStatus();
}

absl::Status Reader::ReadSetting(absl::string_view line) {
  const size_t sign = line.find_first_of("=+");
  const absl::string_view key = line.substr(0, sign);
  LineCursor cursor(line.substr(sign + 1));
  uint64_t value = 0;
  uint32_t number = 0;
  const bool is_hex = absl::StartsWith(cursor.rest(), "0x");
  if (is_hex ? !cursor.Hex(&value) : !cursor.Decimal(UINT32_MAX, &number)) {
    return Error(absl::StrCat("expected KEY=NUMBER: ", Excerpt(line)));
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
    enabled_.widths = static_cast<uint32_t>(value);
  } else if (key == "speed" && value >= 1 && value <= 7) {
    enabled_.speeds = static_cast<uint32_t>(value);
  } else if (key != "vendid" && key != "sysimgguid") {
    return Error(absl::StrCat("unknown setting, or value out of range: ", Excerpt(line)));
  }
  return absl::OkStatus();
}

// TYPE PORTS "NAME" [# "DESCRIPTION" ...]
absl::Status Reader::ReadHeader(absl::string_view line) {
  LineCursor cursor(line);
  const absl::string_view type = cursor.Word();
  Node node;
  node.line = lines_.number();
  node.is_switch = type == "Switch";
  node.kind = type == "Rt" ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
  if (!node.is_switch && type != "Hca" && type != "Ca" && type != "Rt") {
    return Error(absl::StrCat("neither a node header (Switch, Hca, Ca, Rt) nor a port line: ",
                              Excerpt(line)));
  }
  uint32_t ports = 0;
  absl::string_view name;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxPorts, &ports) || ports == 0) {
    return Error(absl::StrCat("the number of ports must be 1 to ", kMaxPorts, ": ", Excerpt(line)));
  }
  cursor.SkipBlanks();
  if (!cursor.Skip('"') || !cursor.Until('"', &name) || name.empty()) {
    return Error(absl::StrCat("expected TYPE PORTS \"NAME\": ", Excerpt(line)));
  }
  node.name = FullName(name);
  node.info.device_id = device_id_;
  node.info.port_count = static_cast<uint8_t>(ports);
  node.info.description = node.name;
  uint64_t& next = next_guid_[node.is_switch ? 0 : node.kind == AdapterKind::kRouter ? 2 : 1];
  node.info.guid = Guid(next);
  next += node.is_switch ? 1 : ports + 1;
  RETURN_IF_ERROR(ReadComment(cursor.rest(), node));
  const auto [it, is_new] = index_.try_emplace(node.name, static_cast<uint32_t>(nodes_.size()));
  if (!is_new) {
    return Error(absl::StrCat("node \"", Excerpt(node.name), "\" appears twice, first in line ",
                              nodes_[it->second].line));
  }
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Reader::ReadComment(absl::string_view comment, Node& node) {
  LineCursor cursor(comment);
  absl::string_view skipped, description;
  if (!cursor.Until('#', &skipped)) return absl::OkStatus();
  cursor.SkipBlanks();
  if (!cursor.Skip('"')) return absl::OkStatus();
  if (!cursor.Until('"', &description)) {
    return Error(absl::StrCat("the description has no closing quote: ", Excerpt(comment)));
  }
  if (!description.empty()) node.info.description = CleanDescription(description);
  cursor.SkipBlanks();
  uint32_t lid = 0;
  if (cursor.Skip("enhanced port 0 lid ") || cursor.Skip("base port 0 lid ")) {
    if (!cursor.Decimal(kMaxLid, &lid)) {
      return Error(absl::StrCat("expected a LID up to ", kMaxLid, ": ", Excerpt(comment)));
    }
    node.info.lid = Lid(static_cast<uint16_t>(lid));
  }
  return absl::OkStatus();
}

// [PORT] "NAME"[PORT] OPTIONS; the remote port is 1 if it is not given.
absl::Status Reader::ReadPort(absl::string_view line) {
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
    return Error(absl::StrCat("expected [PORT] \"NODE\"[PORT], with ports up to ", kMaxPorts, ": ",
                              Excerpt(line)));
  }
  Cable cable;
  cable.port.line = lines_.number();
  cable.port.port = PortNum(static_cast<uint8_t>(port));
  cable.port.remote_port = PortNum(static_cast<uint8_t>(remote_port));
  cable.remote = FullName(name);
  cable.enabled = enabled_;
  RETURN_IF_ERROR(ReadOptions(cursor, cable));
  nodes_.back().cables.push_back(std::move(cable));
  return absl::OkStatus();
}

// w=2 s=4 # lid 5 lmc 0 4xHDR
absl::Status Reader::ReadOptions(LineCursor cursor, Cable& cable) {
  for (absl::string_view word = cursor.Word(); !word.empty(); word = cursor.Word()) {
    uint32_t value = 0;
    LineCursor number(word.substr(std::min<size_t>(2, word.size())));
    if (absl::StartsWith(word, "w=") && number.Decimal(15, &value) && value > 0) {
      cable.enabled.widths = value;
    } else if (absl::StartsWith(word, "s=") && number.Decimal(7, &value) && value > 0) {
      cable.enabled.speeds = value;
    } else if (word == "lid") {
      if (!absl::SimpleAtoi(cursor.Word(), &value) || value > kMaxLid) {
        return Error(absl::StrCat("expected a LID up to ", kMaxLid));
      }
      if (cable.port.lid == Lid()) cable.port.lid = Lid(static_cast<uint16_t>(value));
    } else if (word == "lmc") {
      if (!absl::SimpleAtoi(cursor.Word(), &value) || value > 7) {
        return Error("expected an LMC up to 7");
      }
      cable.port.lmc = static_cast<uint8_t>(value);
    } else if (const std::optional<LinkRate> rate = ParseLinkRate(word)) {
      cable.port.rate = *rate;
    } else if (word.find('=') != absl::string_view::npos) {
      return Error(absl::StrCat("unknown option, or value out of range: ", Excerpt(word)));
    }
  }
  return absl::OkStatus();
}

const Cable* Reader::Peer(const Cable& cable) const {
  const auto it = index_.find(cable.remote);
  if (it == index_.end()) return nullptr;
  for (const Cable& other : nodes_[it->second].cables) {
    if (other.port.port == cable.port.remote_port) return &other;
  }
  return nullptr;
}

absl::Status Reader::Assemble() {
  for (Node& node : nodes_) {
    const Guid guid = node.info.guid;
    if (node.is_switch) {
      RETURN_IF_ERROR(assembler_.StartSwitch(std::move(node.info), node.line));
    } else {
      AdapterInfo info;
      info.guid = guid;
      info.kind = node.kind;
      info.port_count = node.info.port_count;
      info.device_id = node.info.device_id;
      info.description = std::move(node.info.description);
      RETURN_IF_ERROR(assembler_.StartAdapter(std::move(info), node.line));
    }
    for (const Cable& cable : node.cables) {
      PortLine port = cable.port;
      const auto remote = index_.find(cable.remote);
      if (remote == index_.end()) {
        return assembler_.Error(
            port.line,
            absl::StrCat("port ", static_cast<int>(port.port.value()), " is cabled to node \"",
                         Excerpt(cable.remote), "\", which has no header: is the file cut off?"));
      }
      const Cable* const peer = Peer(cable);
      if (port.rate == LinkRate{} && peer != nullptr) {
        port.rate = Negotiate(cable.enabled, peer->enabled);
      }
      port.remote = nodes_[remote->second].info.guid;
      RETURN_IF_ERROR(assembler_.AddPort(port));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbsimNet(absl::string_view text,
                                                           absl::string_view origin) {
  return Reader(text, origin).Read();
}

}  // namespace coppice
