#include "daemon/fabric/host_names.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

struct Named {
  absl::string_view host, device;
  uint32_t adapter;
  bool operator<(const Named& other) const {
    return std::tie(host, device, adapter) < std::tie(other.host, other.device, other.adapter);
  }
  bool Twin(const Named& other) const { return host == other.host && device == other.device; }
};

// Gives adapters that cannot be told apart, or have no name at all, hosts of their own, by their
// GUIDs; the names are kept in `own_names`. True if there were any. `named` is sorted.
bool NameTwinsApart(const std::vector<AdapterInfo>& adapters, std::vector<Named>& named,
                    std::vector<std::string>& own_names) {
  std::vector<size_t> twins;
  for (size_t i = 0; i < named.size(); ++i) {
    const bool twin = (i > 0 && named[i].Twin(named[i - 1])) ||
                      (i + 1 < named.size() && named[i].Twin(named[i + 1]));
    if (twin || named[i].host.empty()) twins.push_back(i);
  }
  own_names.reserve(twins.size());  // the views into them must last
  for (const size_t i : twins) {
    const std::string guid = ToString(adapters[named[i].adapter].guid);
    own_names.push_back(named[i].host.empty() ? guid : absl::StrCat(named[i].host, "#", guid));
  }
  for (size_t i = 0; i < twins.size(); ++i) named[twins[i]].host = own_names[i];
  return !twins.empty();
}

}  // namespace

std::pair<absl::string_view, absl::string_view> SplitNodeDescription(
    absl::string_view description) {
  static constexpr std::array<absl::string_view, 14> kDevices = {
      "HCA",  "mlx", "hfi",  "qib",   "ib",    "mthca", "nes",
      "cxgb", "hns", "bnxt", "irdma", "erdma", "efa",   "rxe"};
  description = absl::StripAsciiWhitespace(description);
  const size_t space = description.find_last_of(" \t");
  if (space == absl::string_view::npos) return {description, {}};
  const absl::string_view last = description.substr(space + 1);
  const bool is_device = absl::ascii_isdigit(static_cast<unsigned char>(last.back())) &&
                         std::any_of(kDevices.begin(), kDevices.end(), [&](absl::string_view d) {
                           return absl::StartsWith(last, d);
                         });
  if (!is_device) return {description, {}};
  return {absl::StripAsciiWhitespace(description.substr(0, space)), last};
}

std::vector<std::string> NameHosts(std::vector<AdapterInfo>& adapters) {
  std::vector<Named> named(adapters.size());
  for (uint32_t i = 0; i < named.size(); ++i) {
    const auto [host, device] = SplitNodeDescription(adapters[i].description);
    named[i] = {host, device, i};
  }
  if (!std::is_sorted(named.begin(), named.end())) std::sort(named.begin(), named.end());
  std::vector<std::string> own_names;
  if (NameTwinsApart(adapters, named, own_names)) std::sort(named.begin(), named.end());
  std::vector<std::string> names;
  for (const Named& n : named) {
    if (names.empty() || names.back() != n.host) names.emplace_back(n.host);
    adapters[n.adapter].host = HostIndex(static_cast<uint32_t>(names.size() - 1));
  }
  return names;
}

}  // namespace coppice
