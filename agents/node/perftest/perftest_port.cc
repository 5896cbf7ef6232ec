#include "agents/node/perftest/perftest_port.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr size_t kLongestDevice = 63;  // IB_DEVICE_NAME_MAX of the kernel, less the end
// As sysfs has the states (InfiniBand specification 1.3, volume 1, 14.2.5.6): "4: ACTIVE".
constexpr absl::string_view kActive = "4: ACTIVE";

absl::Status NoPort(const PortChoice& choice) {
  std::string what = "this node has no InfiniBand port";
  if (choice.port != 0) absl::StrAppend(&what, " ", choice.port);
  if (!choice.device.empty()) absl::StrAppend(&what, " of a verbs device ", choice.device);
  if (!choice.port_guids.empty()) absl::StrAppend(&what, " among port_guids");
  return absl::NotFoundError(what);
}

bool IsChosen(const InfinibandPort& port, const PortChoice& choice) {
  const auto& guids = choice.port_guids;
  const bool is_named = std::any_of(guids.begin(), guids.end(), [&](const std::string& guid) {
    return absl::AsciiStrToLower(guid) == port.guid;
  });
  return (choice.device.empty() || port.device == choice.device) &&
         (choice.port == 0 || port.number == choice.port) && (guids.empty() || is_named);
}

}  // namespace

std::string NameOf(const InfinibandPort& port) {
  return absl::StrCat(port.device, " port ", port.number);
}

absl::StatusOr<PortChoice> ParsePortChoice(absl::string_view text) {
  PortChoice choice;
  choice.is_none = text == "none";
  if (text.empty() || choice.is_none) return choice;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  uint32_t port = 0;
  const bool is_port = absl::SimpleAtoi(parts.second, &port) && port >= 1 && port <= UINT8_MAX;
  // It becomes an argument of a program: no option.
  const bool is_device = !parts.first.empty() && parts.first.size() <= kLongestDevice &&
                         parts.first[0] != '-' &&
                         std::all_of(parts.first.begin(), parts.first.end(), [](char c) {
                           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                                  c == '-' || c == '.';
                         });
  if (!is_device || (absl::StrContains(text, '/') && !is_port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("measure_device \"", absl::CHexEscape(text),
                     "\": give a device such as \"mlx5_0\" or \"mlx5_0/1\", \"none\", or nothing"));
  }
  choice.device = std::string(parts.first);
  choice.port = static_cast<uint8_t>(port);
  return choice;
}

absl::StatusOr<InfinibandPort> FindPort(const PortChoice& choice) {
  if (choice.is_none) return absl::NotFoundError("measure_device is none");
  absl::Status why = NoPort(choice);
  for (const InfinibandPort& port : ReadInfinibandPorts(choice.devices)) {
    if (!IsChosen(port, choice)) continue;
    if (port.state == kActive) return port;
    if (!absl::IsNotFound(why)) continue;
    why = absl::FailedPreconditionError(
        absl::StrCat(NameOf(port), ": the port is not active (", port.state, ")"));
  }
  return why;
}

}  // namespace coppice
