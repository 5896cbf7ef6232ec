#include "daemon/fabric/topology_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "proto/text/plain_text.h"

namespace coppice {
std::optional<Guid> GuidOfNodeName(absl::string_view name) {
  if (name.size() != 18 || name[1] != '-') return std::nullopt;
  if (name[0] != 'S' && name[0] != 'H' && name[0] != 'R') return std::nullopt;
  LineCursor cursor(name.substr(2));
  uint64_t guid = 0;
  if (name[3] == 'x' || !cursor.Hex(&guid) || !cursor.AtEnd()) return std::nullopt;
  return Guid(guid);
}

std::optional<LinkRate> ParseActiveRate(absl::string_view width, absl::string_view speed) {
  const bool knows_width = width != "??" && width != "?x",
             knows_speed = speed != "???" && speed != "?";
  if (knows_width && !absl::EndsWith(width, "x")) return std::nullopt;
  std::optional<LinkRate> rate =
      ParseLinkRate(absl::StrCat(knows_width ? width : "4x", knows_speed ? speed : "SDR"));
  if (rate && !knows_width) rate->lanes = 0;
  if (rate && !knows_speed) rate->speed = LaneSpeed::kUnknown;
  return rate;
}

std::optional<LinkRate> ParseActiveRate(absl::string_view word) {
  if (word.substr(0, 2) == "??") return ParseActiveRate(word.substr(0, 2), word.substr(2));
  const size_t x = word.find('x');
  if (x == absl::string_view::npos) return std::nullopt;
  return ParseActiveRate(word.substr(0, x + 1), word.substr(x + 1));
}

std::string FormatLinkRate(LinkRate rate, float capacity_gbps) {
  const std::string width =
      rate.lanes == 0 ? std::string("??") : absl::StrCat(static_cast<int>(rate.lanes), "x");
  const absl::string_view speed =
      rate.speed == LaneSpeed::kUnknown ? absl::string_view("???") : ToString(rate.speed);
  if (capacity_gbps == static_cast<float>(DataRateGbps(rate))) return absl::StrCat(width, speed);
  return absl::StrFormat("%s%s capacity %.9g Gb/s", width, speed, capacity_gbps);
}

std::optional<float> ParseCapacity(LineCursor& cursor) {
  float capacity_gbps = 0;
  if (!absl::SimpleAtof(cursor.Word(), &capacity_gbps) || !(capacity_gbps > 0) ||
      capacity_gbps > 1e9F || cursor.Word() != "Gb/s") {
    return std::nullopt;
  }
  return capacity_gbps;
}

std::string CleanDescription(absl::string_view description) {
  std::string clean;
  clean.reserve(description.size());
  while (!description.empty()) {
    const Character character = FirstCharacter(description);
    if (character.bytes > 0 && IsPlain(character.code)) {
      clean.append(description.data(), character.bytes);
    } else {
      clean += character.bytes == 1 ? ' ' : '?';
    }
    description.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return clean;
}

std::string Excerpt(absl::string_view text) {
  constexpr size_t kMax = 80;
  return CleanDescription(CutText(text, kMax));
}

absl::StatusOr<NodeHeader> ParseNodeHeader(absl::string_view line,
                                           absl::Span<const absl::string_view> types) {
  LineCursor cursor(line);
  NodeHeader header;
  const absl::string_view type = cursor.Word();
  if (absl::c_find(types, type) == types.end()) {
    return absl::InvalidArgumentError(absl::StrCat("neither a node header (",
                                                   absl::StrJoin(types, ", "),
                                                   ") nor a port line: ", Excerpt(line)));
  }
  if (type != "Switch") {
    header.kind = type == "Rt" ? AdapterKind::kRouter : AdapterKind::kChannelAdapter;
  }
  uint32_t ports = 0;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxNodePorts, &ports) || ports == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of ports must be 1 to ", kMaxNodePorts, ": ", Excerpt(line)));
  }
  header.ports = static_cast<uint8_t>(ports);
  cursor.SkipBlanks();
  if (!cursor.Skip('"') || !cursor.Until('"', &header.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected TYPE PORTS \"NAME\": ", Excerpt(line)));
  }
  cursor.SkipBlanks();
  header.rest = cursor.rest();
  return header;
}

bool IsChatter(absl::string_view line) {
  LineCursor cursor(line);
  cursor.SkipBlanks();
  if (cursor.AtEnd() || cursor.LooksAt('#')) return true;
  for (const absl::string_view word : {"DR path ", "ibwarn:", "src/", "Chassis ", "Hostname:"}) {
    if (cursor.Skip(word)) return true;
  }
  return false;
}

namespace {

absl::Status FileError(const std::string& path, int error) {
  const absl::StatusCode code = error == ENOENT || error == ENOTDIR ? absl::StatusCode::kNotFound
                                : error == EACCES ? absl::StatusCode::kPermissionDenied
                                                  : absl::StatusCode::kUnavailable;
  return absl::Status(
      code, absl::StrCat("fabric file ", path, ": cannot open it: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::ifstream> OpenFabricFile(const std::string& path, absl::Span<char> buffer) {
  // Looked at before it is opened: a pipe without a writer must not block the daemon.
  std::error_code error;
  const bool is_regular = std::filesystem::is_regular_file(path, error);
  if (error) return FileError(path, error.value());
  if (!is_regular) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric file ", path, ": not a regular file: give the path of a text file"));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxFabricFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric file ", path, ": ", size,
                                                   " bytes are more than the limit of ",
                                                   kMaxFabricFileBytes));
  }
  std::ifstream file;
  file.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  file.open(path, std::ios::binary);
  if (!file) return FileError(path, errno);
  return file;
}

void TopologyLines::Rewind() {
  in_.clear();
  in_.seekg(0);
  status_ = absl::OkStatus();
  number_ = 0;
  unfinished_ = false;
}

bool TopologyLines::Next(absl::string_view* line) {
  in_.getline(buffer_.get(), kMaxLine + 1);
  const auto read = static_cast<size_t>(in_.gcount());
  if (in_.bad()) {
    status_ = absl::UnavailableError(absl::StrCat("fabric file ", origin_, ": cannot read it"));
    return false;
  }
  if (in_.fail() && !in_.eof()) {
    ++number_;
    status_ = Error("a line of more than ", kMaxLine, " bytes: is this a fabric's text at all?");
    return false;
  }
  const bool is_last = in_.eof();
  *line = absl::string_view(buffer_.get(), is_last ? read : read - 1);
  if (number_ == 0) absl::ConsumePrefix(line, "\xEF\xBB\xBF");
  if (is_last && line->empty()) return false;
  unfinished_ = is_last;
  absl::ConsumeSuffix(line, "\r");
  ++number_;
  return true;
}

std::string TopologyAssembler::PortName(uint32_t node, PortNum port) const {
  return absl::StrCat("port ", static_cast<int>(port.value()), " of ",
                      nodes_[node].is_switch ? "switch " : "adapter ", ToString(nodes_[node].guid));
}

absl::Status TopologyAssembler::StartNode(StatedNode record, uint32_t line) {
  const Guid guid = record.guid;
  if (guid == Guid())
    return Error(line, "a node's GUID must not be 0: give it the one of the device");
  if (const std::optional<uint32_t> known = builder_.FindNode(guid)) {
    return Error(line, "node ", ToString(guid), " appears twice, first in line ",
                 nodes_[*known].line, ": node GUIDs must be unique");
  }
  nodes_.push_back(
      {guid, line, static_cast<uint32_t>(ends_.size()), record.port_count, record.is_switch()});
  named_.reset();
  return builder_.AddNode(std::move(record));
}

absl::Status TopologyAssembler::AddPort(const PortLine& port) {
  if (nodes_.empty()) return Error(port.line, "a port line before the first node header");
  const Node& node = nodes_.back();
  const auto name = [&] { return PortName(static_cast<uint32_t>(nodes_.size() - 1), port.port); };
  if (port.port.value() == 0 || port.port.value() > node.port_count) {
    return Error(port.line, name(), " does not exist: its header in line ", node.line, " states ",
                 static_cast<int>(node.port_count), " ports");
  }
  if (named_[port.port.value()]) return Error(port.line, name(), " has two lines: remove one");
  named_.set(port.port.value());
  if (!node.is_switch) {
    const auto adapter = static_cast<uint32_t>(nodes_.size() - 1);
    RETURN_IF_ERROR(
        builder_.SetAdapterPort(adapter, port.port, port.port_guid, port.lid, port.lmc));
  }
  ends_.push_back(
      {port.remote, port.line, port.capacity_gbps, port.port, port.remote_port, port.rate, false});
  return absl::OkStatus();
}

absl::Span<TopologyAssembler::End> TopologyAssembler::EndsOf(uint32_t node) {
  const size_t first = nodes_[node].first_end;
  const size_t last = node + 1 < nodes_.size() ? nodes_[node + 1].first_end : ends_.size();
  return absl::MakeSpan(ends_).subspan(first, last - first);
}

// The line of `node` for `port`; null: it has none. Ports mostly come in order and without gaps.
TopologyAssembler::End* TopologyAssembler::FindEnd(uint32_t node, PortNum port) {
  const absl::Span<End> ends = EndsOf(node);
  const size_t guess = port.value() - size_t{1};
  if (guess < ends.size() && ends[guess].port == port) return &ends[guess];
  const auto found = std::ranges::find(ends, port, &End::port);
  return found == ends.end() ? nullptr : &*found;
}

absl::Status TopologyAssembler::OneSided(uint32_t node, const End& end, uint32_t other,
                                         const End* found) const {
  const std::string cable =
      absl::StrCat(PortName(node, end.port), " is cabled to ", PortName(other, end.remote_port));
  if (found == nullptr) {
    return Error(end.line, cable,
                 ", which has no line of its own: the link is "
                 "one-sided; is the file cut off?");
  }
  return Error(end.line, cable, ", but line ", found->line, " cables that port to port ",
               static_cast<int>(found->remote_port.value()), " of node ", ToString(found->remote),
               ": correct one of the two lines");
}

// Checks a line of `node` against its counterpart and adds the cable.
absl::Status TopologyAssembler::PairEnd(uint32_t node, End& end) {
  const auto cabled = [&] { return absl::StrCat(PortName(node, end.port), " is cabled to "); };
  const std::optional<uint32_t> other = builder_.FindNode(end.remote);
  if (!other) {
    return Error(end.line, cabled(), "node ", ToString(end.remote),
                 ", which the file does not describe: is it cut off?");
  }
  if (end.remote_port.value() == 0 || end.remote_port.value() > nodes_[*other].port_count) {
    return Error(end.line, cabled(), PortName(*other, end.remote_port), ", which has ports 1 to ",
                 static_cast<int>(nodes_[*other].port_count));
  }
  if (*other == node && end.remote_port == end.port) {
    return Error(end.line, cabled(), "itself: remove the line");
  }
  End* const peer = FindEnd(*other, end.remote_port);
  if (peer == nullptr || peer->remote != nodes_[node].guid || peer->remote_port != end.port) {
    return OneSided(node, end, *other, peer);
  }
  end.is_paired = peer->is_paired = true;
  // Where the two ends differ, the one stated first counts.
  const End &first = peer < &end ? *peer : end, &second = peer < &end ? end : *peer;
  const LinkRate rate = first.rate == LinkRate{} ? second.rate : first.rate;
  const float capacity = first.capacity_gbps > 0 ? first.capacity_gbps : second.capacity_gbps;
  return builder_.AddLink(node, end.port, *other, end.remote_port, rate, capacity);
}

absl::StatusOr<std::shared_ptr<const Fabric>> TopologyAssembler::Finish() {
  if (nodes_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin_,
        ": no node in it: expected the text that ibnetdiscover or ibnetdiscover -p prints, "
        "or an ibsim net file"));
  }
  // A cable is met twice: the end with the lower (GUID, port) does the work. Ends that are left
  // then have no counterpart.
  for (const bool all : {false, true}) {
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      for (End& end : EndsOf(node)) {
        const bool is_lower =
            std::pair(nodes_[node].guid, end.port) <= std::pair(end.remote, end.remote_port);
        if (!end.is_paired && (all || is_lower)) RETURN_IF_ERROR(PairEnd(node, end));
      }
    }
  }
  ends_ = {};
  nodes_ = {};
  absl::StatusOr<std::shared_ptr<const Fabric>> fabric = builder_.Build();
  if (!fabric.ok()) return Annotate(fabric.status(), origin_);
  return fabric;
}

}  // namespace coppice
