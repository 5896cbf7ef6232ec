#include "daemon/fabric/topology_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// Number of lanes; 0 = unknown.
std::optional<uint8_t> ParseWidth(absl::string_view width) {
  if (width == "4x") return 4;
  if (width == "1x") return 1;
  if (width == "2x") return 2;
  if (width == "8x") return 8;
  if (width == "12x") return 12;
  if (width == "??" || width == "?x") return 0;
  return std::nullopt;
}

std::optional<LaneSpeed> ParseSpeed(absl::string_view speed) {
  if (speed == "???" || speed == "?") return LaneSpeed::kUnknown;
  for (int i = static_cast<int>(LaneSpeed::kSdr); i <= static_cast<int>(LaneSpeed::kXdr); ++i) {
    if (speed == ToString(static_cast<LaneSpeed>(i))) return static_cast<LaneSpeed>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Guid> GuidOfNodeName(absl::string_view name) {
  if (name.size() != 18 || name[1] != '-') return std::nullopt;
  if (name[0] != 'S' && name[0] != 'H' && name[0] != 'R') return std::nullopt;
  LineCursor cursor(name.substr(2));
  uint64_t guid = 0;
  if (name[3] == 'x' || !cursor.Hex(&guid) || !cursor.AtEnd()) return std::nullopt;
  return Guid(guid);
}

std::optional<LinkRate> ParseActiveRate(absl::string_view width, absl::string_view speed) {
  const std::optional<uint8_t> lanes = ParseWidth(width);
  const std::optional<LaneSpeed> lane = ParseSpeed(speed);
  if (!lanes || !lane) return std::nullopt;
  return LinkRate{*lanes, *lane};
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
  header.type = cursor.Word();
  if (std::find(types.begin(), types.end(), header.type) == types.end()) {
    return absl::InvalidArgumentError(absl::StrCat("neither a node header (",
                                                   absl::StrJoin(types, ", "),
                                                   ") nor a port line: ", Excerpt(line)));
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

absl::Status FileError(const std::string& path, const char* did, int error) {
  const absl::StatusCode code = error == ENOENT || error == ENOTDIR ? absl::StatusCode::kNotFound
                                : error == EACCES ? absl::StatusCode::kPermissionDenied
                                                  : absl::StatusCode::kUnavailable;
  return absl::Status(
      code, absl::StrCat("fabric file ", path, ": cannot ", did, " it: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<TopologyFile> TopologyFile::Open(const std::string& path) {
  // A pipe without a writer must not block the daemon.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(path, "open", errno);
  struct stat status = {};
  const int examined = fstat(fd, &status);
  const int error = errno;
  TopologyFile file(path, fd, static_cast<uint64_t>(status.st_size));
  if (examined != 0) return FileError(path, "examine", error);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric file ", path, ": not a regular file: give the path of a text file"));
  }
  if (file.size_ > kMaxFabricFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric file ", path, ": ", file.size_,
                                                   " bytes are more than the limit of ",
                                                   kMaxFabricFileBytes));
  }
  return file;
}

TopologyFile::TopologyFile(TopologyFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      offset_(other.offset_) {}

TopologyFile::~TopologyFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<size_t> TopologyFile::Read(char* buffer, size_t size) {
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset_));
  ssize_t n = 0;
  do {
    n = pread(fd_, buffer, size, static_cast<off_t>(offset_));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return FileError(path_, "read", errno);
  offset_ += static_cast<uint64_t>(n);
  return static_cast<size_t>(n);
}

namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

TopologyLines::TopologyLines(absl::string_view text, absl::string_view origin)
    : text_(absl::StripPrefix(text, kByteOrderMark)), rest_(text_), origin_(origin) {}

TopologyLines::TopologyLines(TopologyFile& file)
    : file_(&file), block_(new char[kBlock]), origin_(file.path()) {
  file_->Rewind();
}

void TopologyLines::Rewind() {
  if (file_ != nullptr) file_->Rewind();
  rest_ = text_;
  status_ = absl::OkStatus();
  number_ = 0;
  unfinished_ = false;
}

absl::Status TopologyLines::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ":", number_, ": ", what));
}

bool TopologyLines::Refill() {
  if (file_ == nullptr) return false;
  if (!rest_.empty()) std::memmove(block_.get(), rest_.data(), rest_.size());
  const absl::StatusOr<size_t> read =
      file_->Read(block_.get() + rest_.size(), kBlock - rest_.size());
  rest_ = absl::string_view(block_.get(), rest_.size() + (read.ok() ? *read : 0));
  if (!read.ok()) status_ = read.status();
  return read.ok() && *read > 0;
}

bool TopologyLines::NextAcrossBlocks(absl::string_view* line) {
  size_t end = absl::string_view::npos;
  while (end == absl::string_view::npos) {
    if (file_ != nullptr && rest_.size() > kMaxLine) {
      ++number_;
      status_ = Error(absl::StrCat("a line of more than ", kMaxLine,
                                   " bytes: is this a fabric's text at all?"));
      return false;
    }
    size_t searched = rest_.size();
    const bool more = Refill();
    if (number_ == 0 && absl::ConsumePrefix(&rest_, kByteOrderMark)) searched = 0;
    if (!more) {
      if (!status_.ok() || rest_.empty()) return false;
      unfinished_ = true;
      Take(rest_.size(), rest_.size(), line);
      return true;
    }
    end = rest_.find('\n', searched);
  }
  Take(end, end + 1, line);
  return true;
}

absl::Status TopologyAssembler::Error(uint32_t line, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ":", line, ": ", what));
}

std::string TopologyAssembler::PortName(uint32_t node, PortNum port) const {
  return absl::StrCat("port ", static_cast<int>(port.value()), " of ",
                      nodes_[node].is_switch ? "switch " : "adapter ", ToString(nodes_[node].guid));
}

absl::Status TopologyAssembler::StartNode(Guid guid, bool is_switch, uint8_t port_count,
                                          uint32_t line) {
  if (guid == Guid())
    return Error(line, "a node's GUID must not be 0: give it the one of the device");
  if (const std::optional<uint32_t> known = builder_.FindNode(guid)) {
    return Error(line, absl::StrCat("node ", ToString(guid), " appears twice, first in line ",
                                    nodes_[*known].line, ": node GUIDs must be unique"));
  }
  nodes_.push_back({guid, line, static_cast<uint32_t>(ends_.size()), port_count, is_switch});
  named_.reset();
  return absl::OkStatus();
}

absl::Status TopologyAssembler::StartSwitch(SwitchInfo info, uint32_t line) {
  RETURN_IF_ERROR(StartNode(info.guid, true, info.port_count, line));
  return builder_.AddSwitch(std::move(info));
}

absl::Status TopologyAssembler::StartAdapter(AdapterInfo info, uint32_t line) {
  RETURN_IF_ERROR(StartNode(info.guid, false, info.port_count, line));
  return builder_.AddAdapter(std::move(info));
}

absl::Status TopologyAssembler::AddPort(const PortLine& port) {
  if (nodes_.empty()) return Error(port.line, "a port line before the first node header");
  const Node& node = nodes_.back();
  const auto name = [&] { return PortName(static_cast<uint32_t>(nodes_.size() - 1), port.port); };
  if (port.port.value() == 0 || port.port.value() > node.port_count) {
    return Error(port.line, absl::StrCat(name(), " does not exist: its header in line ", node.line,
                                         " states ", static_cast<int>(node.port_count), " ports"));
  }
  if (named_[port.port.value()])
    return Error(port.line, absl::StrCat(name(), " has two lines: remove one"));
  named_.set(port.port.value());
  if (!node.is_switch) {
    const auto adapter = static_cast<uint32_t>(nodes_.size() - 1);
    RETURN_IF_ERROR(
        builder_.SetAdapterPort(adapter, port.port, port.port_guid, port.lid, port.lmc));
  }
  ends_.push_back(
      {port.remote, port.line, port.capacity_gbps, port.port, port.remote_port, port.rate});
  return absl::OkStatus();
}

// The line of `node` for `port`; null: it has none. Ports mostly come in order and without gaps.
const TopologyAssembler::End* TopologyAssembler::FindEnd(uint32_t node, PortNum port) const {
  const End* const first = ends_.data() + nodes_[node].first_end;
  const End* const last =
      ends_.data() + (node + 1 < nodes_.size() ? nodes_[node + 1].first_end : ends_.size());
  const End* const guess = first + (port.value() - 1);
  if (port.value() > 0 && guess < last && guess->port == port) return guess;
  for (const End* end = first; end < last; ++end) {
    if (end->port == port) return end;
  }
  return nullptr;
}

absl::Status TopologyAssembler::OneSided(uint32_t node, const End& end, uint32_t other,
                                         const End* found) const {
  const std::string cable =
      absl::StrCat(PortName(node, end.port), " is cabled to ", PortName(other, end.remote_port));
  if (found == nullptr) {
    return Error(end.line, absl::StrCat(cable,
                                        ", which has no line of its own: the link is "
                                        "one-sided; is the file cut off?"));
  }
  return Error(end.line,
               absl::StrCat(cable, ", but line ", found->line, " cables that port to port ",
                            static_cast<int>(found->remote_port.value()), " of node ",
                            ToString(found->remote), ": correct one of the two lines"));
}

// Checks the lines of `node` against their counterparts and adds the cables. A cable is met twice:
// the end with the lower (GUID, port) does the work and the other one only counts as `waiting` for
// it; `late` looks at the waiting ones instead.
absl::Status TopologyAssembler::PairEnds(uint32_t node, bool late, size_t& waiting) {
  const Guid guid = nodes_[node].guid;
  const size_t last = node + 1 < nodes_.size() ? nodes_[node + 1].first_end : ends_.size();
  for (size_t i = nodes_[node].first_end; i < last; ++i) {
    const End& end = ends_[i];
    const bool waits = std::pair(end.remote, end.remote_port) < std::pair(guid, end.port);
    if (waits != late) {
      waiting += waits ? 1 : 0;
      continue;
    }
    const std::optional<uint32_t> other = builder_.FindNode(end.remote);
    if (!other) {
      return Error(end.line, absl::StrCat(PortName(node, end.port), " is cabled to node ",
                                          ToString(end.remote),
                                          ", which the file does not describe: is it cut off?"));
    }
    if (end.remote_port.value() == 0 || end.remote_port.value() > nodes_[*other].port_count) {
      return Error(end.line,
                   absl::StrCat(PortName(node, end.port), " is cabled to ",
                                PortName(*other, end.remote_port), ", which has ports 1 to ",
                                static_cast<int>(nodes_[*other].port_count)));
    }
    if (*other == node && end.remote_port == end.port) {
      return Error(end.line,
                   absl::StrCat(PortName(node, end.port), " is cabled to itself: remove the line"));
    }
    const End* const peer = FindEnd(*other, end.remote_port);
    if (peer == nullptr || peer->remote != guid || peer->remote_port != end.port) {
      return OneSided(node, end, *other, peer);
    }
    if (waits) continue;
    --waiting;
    // Where the two ends differ, the one stated first counts.
    const End &first = peer < &end ? *peer : end, &second = peer < &end ? end : *peer;
    const LinkRate rate = first.rate == LinkRate{} ? second.rate : first.rate;
    const float capacity = first.capacity_gbps > 0 ? first.capacity_gbps : second.capacity_gbps;
    RETURN_IF_ERROR(builder_.AddLink(node, end.port, *other, end.remote_port, rate, capacity));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Fabric>> TopologyAssembler::Finish() {
  if (nodes_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin_,
        ": no node in it: expected the text that ibnetdiscover or ibnetdiscover -p prints, "
        "or an ibsim net file"));
  }
  size_t waiting = 0;  // wraps below 0 in between
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    RETURN_IF_ERROR(PairEnds(node, false, waiting));
  }
  // An end still waits for a cable: find it and say which.
  for (uint32_t node = 0; waiting > 0 && node < nodes_.size(); ++node) {
    RETURN_IF_ERROR(PairEnds(node, true, waiting));
  }
  ends_ = {};
  nodes_ = {};
  absl::StatusOr<std::shared_ptr<const Fabric>> fabric = builder_.Build();
  if (!fabric.ok()) return Annotate(fabric.status(), origin_);
  return fabric;
}

}  // namespace coppice
