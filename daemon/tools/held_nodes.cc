#include "daemon/tools/held_nodes.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "proto/text/node_list.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr size_t kNamed = 3;  // unknown hosts that an error lists

}  // namespace

absl::StatusOr<std::vector<HostIndex>> ResolveHosts(const Fabric& fabric, absl::string_view list) {
  if (const auto whole = fabric.FindHost(list)) return std::vector<HostIndex>{*whole};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNodeList(list));
  std::vector<HostIndex> hosts;
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (const auto host = fabric.FindHost(name)) {
      hosts.push_back(*host);
    } else {
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return hosts;
  const size_t count = unknown.size();
  unknown.resize(std::min(count, kNamed));
  return absl::NotFoundError(absl::StrCat("the fabric has no host ", absl::StrJoin(unknown, ", "),
                                          count > kNamed ? ", ..." : ""));
}

absl::StatusOr<std::vector<HeldNodes>> ReadHeldNodes(const Fabric& fabric, absl::string_view text,
                                                     absl::string_view origin) {
  std::vector<HeldNodes> held;
  std::vector<bool> is_held(fabric.host_count());
  absl::flat_hash_map<std::string, size_t> numbers;
  const auto add = [&](absl::string_view line) -> absl::Status {
    const size_t blank = line.find_last_of(" \t");
    if (blank == absl::string_view::npos) {
      return absl::InvalidArgumentError("not NODES HOLDER, as in: n[001-128] job7");
    }
    const std::string holder(line.substr(blank + 1));
    ASSIGN_OR_RETURN(const auto hosts,
                     ResolveHosts(fabric, absl::StripAsciiWhitespace(line.substr(0, blank))));
    const auto [number, is_new] = numbers.try_emplace(holder, held.size());
    if (is_new) held.push_back({holder, {}});
    for (const HostIndex h : hosts) {
      if (is_held[h.value()]) {
        return absl::InvalidArgumentError(
            absl::StrCat("host ", fabric.host_name(h), " is held twice: name each once"));
      }
      is_held[h.value()] = true;
      held[number->second].hosts.push_back(h);
    }
    return absl::OkStatus();
  };
  for (const TextLine& line : LinesOf(text)) {
    RETURN_IF_ERROR(Annotate(add(line.text), absl::StrCat(origin, ", line ", line.number)));
  }
  return held;
}

}  // namespace coppice
