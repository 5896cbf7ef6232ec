#include "daemon/plan/held_nodes.h"

#include <algorithm>

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

class HolderLines {
 public:
  explicit HolderLines(const Fabric& fabric) : fabric_(fabric), is_held_(fabric.host_count()) {}

  absl::Status Add(absl::string_view line) {
    const size_t blank = line.find_last_of(" \t");
    if (blank == absl::string_view::npos) {
      return absl::InvalidArgumentError("not NODES HOLDER, as in: n[001-128] job7");
    }
    const std::string holder(line.substr(blank + 1));
    ASSIGN_OR_RETURN(const auto hosts,
                     ResolveHosts(fabric_, absl::StripAsciiWhitespace(line.substr(0, blank))));
    const auto [number, is_new] = numbers_.try_emplace(holder, held_.size());
    if (is_new) held_.push_back({holder, {}});
    for (const HostIndex h : hosts) {
      if (is_held_[h.value()]) {
        return absl::InvalidArgumentError(
            absl::StrCat("host ", fabric_.host_name(h), " is held twice: name each once"));
      }
      is_held_[h.value()] = true;
      held_[number->second].hosts.push_back(h);
    }
    return absl::OkStatus();
  }

  std::vector<HeldNodes> Take() { return std::move(held_); }

 private:
  const Fabric& fabric_;
  std::vector<bool> is_held_;  // [host]
  absl::flat_hash_map<std::string, size_t> numbers_;
  std::vector<HeldNodes> held_;
};

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
  HolderLines lines(fabric);
  for (const TextLine& line : LinesOf(text)) {
    RETURN_IF_ERROR(Annotate(lines.Add(line.text), absl::StrCat(origin, ", line ", line.number)));
  }
  return lines.Take();
}

}  // namespace coppice
