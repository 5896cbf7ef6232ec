#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/fabric/routes.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

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
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    ++line_number_;
    RETURN_IF_ERROR(ReadLine(absl::StripAsciiWhitespace(line)));
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
  LineCursor cursor(line), behind(line.substr(std::min(line.size(), line.find(" guid "))));
  absl::string_view skipped;
  uint64_t first = 0, last = 0, guid = 0;
  if (!cursor.Until('[', &skipped) || !cursor.Hex(&first) || !cursor.Skip('-') ||
      !cursor.Hex(&last) || !cursor.Skip(']') || !behind.Skip(" guid ") || !behind.Hex(&guid)) {
    return Bad("the header names no LID range or no GUID");
  }
  if (first > last || last > kMaxUnicastLid) {
    return Bad(absl::StrFormat("LIDs [0x%x-0x%x] of switch %016x are no unicast range", first, last,
                               guid));
  }
  const auto found = fabric_.FindSwitch(Guid(guid));
  if (!found) return Bad(absl::StrFormat("switch %016x is not in the fabric", guid));
  if (seen_[found->value()]) return Bad(absl::StrFormat("switch %016x comes twice", guid));
  seen_[found->value()] = true;
  switch_ = *found;
  first_lid_ = first;
  row_.assign(last + 1, ForwardingTables::kNoRoute);
  listed_.assign(last + 1, false);
  routes_ = 0;
  open_ = true;
  return absl::OkStatus();
}

absl::Status ForwardingTableReader::ReadRoute(absl::string_view line) {
  if (!open_) return Bad("a route outside a table");
  LineCursor cursor(line);
  uint64_t lid = 0;
  uint32_t port = 0;
  const bool has_lid = cursor.Hex(&lid) && cursor.Skip(' ');
  cursor.SkipBlanks();
  if (!has_lid || !cursor.Decimal(UINT32_MAX, &port) || !(cursor.AtEnd() || cursor.LooksAt(' '))) {
    return Bad("expected \"0xLID PORT\"");
  }
  if (lid < first_lid_ || lid >= row_.size()) {
    return Bad(absl::StrFormat("LID 0x%04x is outside the table's range", lid));
  }
  if (listed_[lid]) return Bad(absl::StrFormat("LID 0x%04x comes twice", lid));
  const uint32_t ports = fabric_.switch_info(switch_).port_count;
  if (port > ports && port != ForwardingTables::kNoRoute) {
    return Bad(
        absl::StrFormat("LID 0x%04x goes to port %d of a switch with %d ports", lid, port, ports));
  }
  listed_[lid] = true;
  row_[lid] = static_cast<uint8_t>(port);
  ++routes_;
  return absl::OkStatus();
}

absl::Status ForwardingTableReader::ReadTrailer(absl::string_view line) {
  if (!open_) return Bad("the end of a table that never began");
  LineCursor cursor(line);
  uint32_t count = 0;
  if (!cursor.Decimal(UINT32_MAX, &count) || !cursor.LooksAt(' ') || count != routes_) {
    return Bad(absl::StrCat(routes_, " routes, not as many as the table's last line states"));
  }
  tables_.SetRow(switch_, std::move(row_));
  row_.clear();
  open_ = false;
  return absl::OkStatus();
}

}  // namespace coppice
