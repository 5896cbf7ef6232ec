#include "daemon/fabric/ibnetdiscover_reader.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/topology_assembler.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

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
  absl::Status Error(absl::string_view what) const { return lines_.Error(what); }
  absl::Status ReadLine(absl::string_view line);
  absl::Status ReadAssignment(absl::string_view line);
  absl::Status ReadHeader(absl::string_view line);
  absl::Status ReadSwitchComment(absl::string_view comment, SwitchInfo& info);
  absl::Status ReadPort(absl::string_view line);
  absl::Status ReadPortComment(absl::string_view comment, PortLine& port);
  absl::Status ReadRate(absl::string_view word, PortLine& port);

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

absl::Status Reader::ReadLine(absl::string_view line) {
  if (line.empty()) return absl::OkStatus();
  if (line.front() == '[') return ReadPort(line);
  if (IsChatter(line)) return absl::OkStatus();
  const size_t equals = line.find('=');
  const size_t quote = line.find('"');
  if (equals < quote) return ReadAssignment(line);
  return ReadHeader(line);
}

absl::Status Reader::ReadAssignment(absl::string_view line) {
  LineCursor cursor(line);
  absl::string_view key;
  uint64_t value = 0;
  if (!cursor.Until('=', &key) || !cursor.Hex(&value)) {
    return Error(absl::StrCat("expected KEY=0xNUMBER: ", Excerpt(line)));
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
    return Error(absl::StrCat("unknown key \"", Excerpt(key), "\""));
  }
  return absl::OkStatus();
}

// TYPE PORTS "NAME" [# COMMENT]
absl::Status Reader::ReadHeader(absl::string_view line) {
  const absl::StatusOr<NodeHeader> header = ParseNodeHeader(line, {"Switch", "Ca", "Rt"});
  if (!header.ok()) return Error(header.status().message());
  const absl::string_view comment = header->rest;
  const std::optional<Guid> guid = GuidOfNodeName(header->name);
  if (!guid) {
    return Error(absl::StrCat("node name \"", Excerpt(header->name),
                              "\" is not S-, H- or R- and 16 hexadecimal digits"));
  }
  if (stated_guid_ != Guid() && stated_guid_ != *guid) {
    return Error(absl::StrCat("node ", ToString(*guid), " follows a line that gives its GUID as ",
                              ToString(stated_guid_)));
  }
  stated_guid_ = Guid();
  if (header->type == "Switch") {
    SwitchInfo info{*guid, Lid(), header->ports, device_id_, vendor_id_, {}};
    RETURN_IF_ERROR(ReadSwitchComment(comment, info));
    return assembler_.StartSwitch(std::move(info), lines_.number());
  }
  AdapterInfo info;
  info.guid = *guid;
  info.kind = header->type == "Rt" ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
  info.port_count = header->ports;
  info.device_id = device_id_;
  info.vendor_id = vendor_id_;
  const size_t first = comment.find('"'), last = comment.rfind('"');
  if (first < last) info.description = std::string(comment.substr(first + 1, last - first - 1));
  return assembler_.StartAdapter(std::move(info), lines_.number());
}

// # "leaf 3" enhanced port 0 lid 7 lmc 0
absl::Status Reader::ReadSwitchComment(absl::string_view comment, SwitchInfo& info) {
  const size_t first = comment.find('"'), last = comment.rfind('"');
  if (first == absl::string_view::npos) return absl::OkStatus();
  LineCursor cursor(comment.substr(last + 1));
  cursor.SkipBlanks();
  uint32_t lid = 0, lmc = 0;
  const bool is_ours =
      first < last && (cursor.Skip("enhanced port 0 lid ") || cursor.Skip("base port 0 lid "));
  if (!is_ours || !cursor.Decimal(kMaxUnicastLid, &lid) || !cursor.Skip(" lmc ") ||
      !cursor.Decimal(7, &lmc)) {
    return Error(
        absl::StrCat("switch ", ToString(info.guid),
                     ": expected # \"DESCRIPTION\" base|enhanced port 0 lid LID lmc LMC, got ",
                     Excerpt(comment)));
  }
  info.description = std::string(comment.substr(first + 1, last - first - 1));
  info.lid = Lid(static_cast<uint16_t>(lid));
  return absl::OkStatus();
}

// "[ext 3]", which -g adds behind a port.
bool SkipExternalPort(LineCursor& cursor) {
  uint32_t port = 0;
  return !cursor.Skip("[ext ") || (cursor.Decimal(1000, &port) && cursor.Skip(']'));
}

// [PORT](GUID) "NAME"[PORT](GUID) # COMMENT
absl::Status Reader::ReadPort(absl::string_view line) {
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
    return Error(absl::StrCat("expected [PORT] \"NODE\"[PORT], with ports up to ", kMaxNodePorts,
                              ": ", Excerpt(line)));
  }
  const std::optional<Guid> remote = GuidOfNodeName(name);
  if (!remote) {
    return Error(absl::StrCat("node name \"", Excerpt(name),
                              "\" is not S-, H- or R- and 16 hexadecimal digits"));
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
    return Error(absl::StrCat("unexpected text behind the cable: ", Excerpt(cursor.rest())));
  }
  return assembler_.AddPort(out);
}

// Of a switch:   "REMOTE" lid LID RATE; of an adapter:   lid LID lmc LMC "REMOTE" lid LID RATE.
// Other comments say nothing.
absl::Status Reader::ReadPortComment(absl::string_view comment, PortLine& port) {
  LineCursor cursor(comment);
  cursor.SkipBlanks();
  uint32_t lid = 0, lmc = 0, remote_lid = 0;
  if (cursor.Skip("lid ")) {
    if (!cursor.Decimal(kMaxUnicastLid, &lid) || !cursor.Skip(" lmc ") ||
        !cursor.Decimal(7, &lmc)) {
      return Error(absl::StrCat("expected lid LID lmc LMC, up to ", kMaxUnicastLid, " and 7, got ",
                                Excerpt(comment)));
    }
    port.lid = Lid(static_cast<uint16_t>(lid));
    port.lmc = static_cast<uint8_t>(lmc);
    cursor.SkipBlanks();
  } else if (!cursor.LooksAt('"')) {
    if (!lines_.unfinished() || !has_rates_) return absl::OkStatus();
    return Error("the text ends within this line, which has no LID and rate: is the file cut off?");
  }
  const absl::string_view rest = cursor.rest();
  const size_t last = rest.rfind('"');
  LineCursor tail(last == absl::string_view::npos ? absl::string_view() : rest.substr(last + 1));
  if (!cursor.LooksAt('"') || last == 0 || !tail.Skip(" lid ") ||
      !tail.Decimal(kMaxUnicastLid, &remote_lid)) {
    return Error(absl::StrCat("expected \"DESCRIPTION\" lid LID RATE with a LID up to ",
                              kMaxUnicastLid, ", got ", Excerpt(rest), ": is the file cut off?"));
  }
  has_rates_ = true;
  RETURN_IF_ERROR(ReadRate(tail.Word(), port));
  tail.SkipBlanks();
  if (!tail.Skip("capacity ")) return absl::OkStatus();
  const std::optional<float> capacity = ParseCapacity(tail);
  if (!capacity) return Error(absl::StrCat("expected capacity NUMBER Gb/s: ", Excerpt(comment)));
  port.capacity_gbps = *capacity;
  return absl::OkStatus();
}

absl::Status Reader::ReadRate(absl::string_view word, PortLine& port) {
  if (word != rate_word_ || word.empty()) {
    const std::optional<LinkRate> rate = ParseActiveRate(word);
    if (!rate) {
      return Error(absl::StrCat("\"", Excerpt(word),
                                "\" is no link rate such as 4xQDR: is the file "
                                "cut off?"));
    }
    rate_word_ = std::string(word);
    rate_ = *rate;
  }
  port.rate = rate_;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscover(TopologyLines& lines) {
  return Reader(lines).Read();
}

}  // namespace coppice
