#include "daemon/fabric/forwarding_table_reader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

// Cuts the text up to `stop` (or all of it) off the front.
absl::string_view CutUntil(absl::string_view& text, absl::string_view stop) {
  const size_t end = text.find(stop);
  const absl::string_view head = text.substr(0, end);
  text.remove_prefix(end == absl::string_view::npos ? text.size() : end + stop.size());
  return head;
}

std::optional<uint64_t> ParseHex(absl::string_view text) {
  uint64_t value = 0;
  if (!absl::ConsumePrefix(&text, "0x") || text.empty() || text.size() > 16) return std::nullopt;
  if (!absl::SimpleHexAtoi(text, &value)) return std::nullopt;
  return value;
}

std::optional<uint32_t> ParseDecimal(absl::string_view text) {
  uint32_t value = 0;
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

bool IsDecoration(absl::string_view line) {
  return line.empty() || line[0] == '#' || absl::StartsWith(line, "*** WARNING ***") ||
         absl::StartsWith(line, "Lid  Out") || absl::StartsWith(line, "Port ");
}

// Of infiniband-diags: "iberror: failed: ...", behind the program's name or not.
bool IsError(absl::string_view line) {
  return absl::StartsWith(line, "iberror: ") || absl::StrContains(line, ": iberror: ");
}

}  // namespace

absl::Status ForwardingTableReader::Read(absl::string_view text) {
  line_number_ = 0;
  while (!text.empty()) {
    ++line_number_;
    const absl::string_view line = absl::StripAsciiWhitespace(CutUntil(text, "\n"));
    RETURN_IF_ERROR(ReadLine(line));
  }
  if (open_) return Bad("the text ends before the table's \"valid lids dumped\"");
  return absl::OkStatus();
}

absl::Status ForwardingTableReader::Bad(absl::string_view what) const {
  const std::string where =
      open_ ? absl::StrCat(" (table of ", Describe(fabric_, fabric_.Vertex(switch_)), ")") : "";
  return absl::InvalidArgumentError(
      absl::StrCat("forwarding tables, line ", line_number_, where, ": ", what,
                   "; give the text as dump_lfts or ibroute prints it for this fabric"));
}

absl::Status ForwardingTableReader::ReadLine(absl::string_view line) {
  if (absl::StartsWith(line, "Unicast lids ")) return ReadHeader(line);
  if (absl::StartsWith(line, "0x")) return ReadRoute(line);
  if (absl::EndsWith(line, "lids dumped")) return ReadTrailer(line);
  if (IsDecoration(line)) return absl::OkStatus();
  if (!open_ && IsError(line)) {
    ++skipped_;
    return absl::OkStatus();
  }
  return Bad(absl::StrCat("\"", line.substr(0, 60), "\" is no part of a table"));
}

absl::Status ForwardingTableReader::ReadHeader(absl::string_view line) {
  if (open_) return Bad("a new table begins before this one has ended");
  CutUntil(line, "[");
  const auto first = ParseHex(CutUntil(line, "-"));
  const auto last = ParseHex(CutUntil(line, "]"));
  CutUntil(line, " guid ");
  const auto guid = ParseHex(CutUntil(line, " "));
  if (!first || !last || !guid) return Bad("the header names no LID range or no GUID");
  if (*first > *last || *last > kMaxUnicastLid) {
    return Bad(absl::StrFormat("LIDs [0x%x-0x%x] of switch %016x are no unicast range", *first,
                               *last, *guid));
  }
  const auto found = fabric_.FindSwitch(Guid(*guid));
  if (!found) return Bad(absl::StrFormat("switch %016x is not in the fabric", *guid));
  if (seen_[found->value()]) return Bad(absl::StrFormat("switch %016x comes twice", *guid));
  seen_[found->value()] = true;
  switch_ = *found;
  first_lid_ = *first;
  row_.assign(*last + 1, ForwardingTables::kNoRoute);
  listed_.assign(*last + 1, false);
  routes_ = 0;
  open_ = true;
  return absl::OkStatus();
}

absl::Status ForwardingTableReader::ReadRoute(absl::string_view line) {
  if (!open_) return Bad("a route outside a table");
  const auto lid = ParseHex(CutUntil(line, " "));
  line = absl::StripLeadingAsciiWhitespace(line);
  const auto port = ParseDecimal(CutUntil(line, " "));
  if (!lid || !port) return Bad("expected \"0xLID PORT\"");
  if (*lid < first_lid_ || *lid >= row_.size()) {
    return Bad(absl::StrFormat("LID 0x%04x is outside the table's range", *lid));
  }
  if (listed_[*lid]) return Bad(absl::StrFormat("LID 0x%04x comes twice", *lid));
  const uint32_t ports = fabric_.switch_info(switch_).port_count;
  if (*port > ports && *port != ForwardingTables::kNoRoute) {
    return Bad(absl::StrFormat("LID 0x%04x goes to port %d of a switch with %d ports", *lid, *port,
                               ports));
  }
  listed_[*lid] = true;
  row_[*lid] = static_cast<uint8_t>(*port);
  ++routes_;
  return absl::OkStatus();
}

absl::Status ForwardingTableReader::ReadTrailer(absl::string_view line) {
  if (!open_) return Bad("the end of a table that never began");
  const auto count = ParseDecimal(CutUntil(line, " "));
  if (!count || *count != routes_) {
    return Bad(absl::StrCat(routes_, " routes, not as many as the table's last line states"));
  }
  tables_.SetRow(switch_, std::move(row_));
  row_.clear();
  open_ = false;
  return absl::OkStatus();
}

}  // namespace coppice
