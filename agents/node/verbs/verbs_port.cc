#include "agents/node/verbs/verbs_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr size_t kLongestDevice = 63;  // IBV_SYSFS_NAME_MAX, less the end

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

absl::Status NoPort(const VerbsChoice& choice) {
  std::string what = "this node has no InfiniBand port";
  if (choice.port != 0) absl::StrAppend(&what, " ", choice.port);
  if (!choice.device.empty()) absl::StrAppend(&what, " of a verbs device ", choice.device);
  if (!choice.port_guids.empty()) absl::StrAppend(&what, " among port_guids");
  return absl::NotFoundError(what);
}

// Pages that a device works with would be another's in a process that forks, on kernels before
// 5.12. Once, before anything else of libibverbs; without success there is nothing better to do.
void PrepareForForks() {
  static const int done = ibv_fork_init();
  (void)done;
}

}  // namespace

absl::StatusOr<VerbsChoice> ParseVerbsChoice(absl::string_view text) {
  VerbsChoice choice;
  choice.is_none = text == "none";
  if (text.empty() || choice.is_none) return choice;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  uint32_t port = 0;
  const bool is_port = absl::SimpleAtoi(parts.second, &port) && port >= 1 && port <= UINT8_MAX;
  const bool is_device = !parts.first.empty() && parts.first.size() <= kLongestDevice &&
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

absl::Status CheckVerbs(const VerbsChoice& choice) { return VerbsPort::Open(choice).status(); }

absl::StatusOr<VerbsPort> VerbsPort::Open(const VerbsChoice& choice) {
  absl::Status why = NoPort(choice);
  if (choice.is_none) return absl::NotFoundError("measure_device is none");
  PrepareForForks();
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  for (int i = 0; list != nullptr && i < count; ++i) {
    ibv_device* const device = list.get()[i];
    if (device->transport_type != IBV_TRANSPORT_IB) continue;
    if (!choice.device.empty() && choice.device != ibv_get_device_name(device)) continue;
    absl::StatusOr<VerbsPort> port = OpenOn(device, choice);
    if (port.ok()) return port;
    if (absl::IsNotFound(why)) why = port.status();
  }
  return why;
}

absl::StatusOr<VerbsPort> VerbsPort::OpenOn(ibv_device* device, const VerbsChoice& choice) {
  const std::string name = ibv_get_device_name(device);
  VerbsPort port(std::unique_ptr<ibv_context, Close>(ibv_open_device(device)));
  ibv_device_attr attributes{};
  const int error =
      port.context() == nullptr ? errno : ibv_query_device(port.context(), &attributes);
  if (error != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": cannot be opened: ", std::strerror(error)));
  }
  absl::Status why = NoPort(choice);
  for (uint32_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    if (choice.port != 0 && number != choice.port) continue;
    port.number_ = static_cast<uint8_t>(number);
    port.name_ = absl::StrCat(name, " port ", number);
    absl::Status status = port.Read(choice);
    if (status.ok()) status = port.CheckActive();
    if (status.ok() && !IsUnicastLid(port.place_.lid)) status = port.Failed("has no unicast LID");
    if (status.ok()) return port;
    if (absl::IsNotFound(why)) why = status;
  }
  return why;
}

absl::Status VerbsPort::Read(const VerbsChoice& choice) {
  ibv_port_attr attributes{};
  ibv_gid gid{};
  if (const int error = ibv_query_port(context_.get(), number_, &attributes); error != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, ": cannot be looked at: ", std::strerror(error)));
  }
  if (attributes.link_layer == IBV_LINK_LAYER_ETHERNET) return NoPort(choice);
  if (ibv_query_gid(context_.get(), number_, 0, &gid) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(name_, ": has no GID"));
  }
  std::copy_n(gid.raw, place_.gid.size(), place_.gid.begin());
  // A port's GUID is the lower half of its first GID (InfiniBand specification 1.3, volume 1,
  // 4.1.1).
  const std::string guid =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(gid.raw) + 8, 8));
  const auto& guids = choice.port_guids;
  const bool is_wanted = std::any_of(guids.begin(), guids.end(), [&](const std::string& wanted) {
    return absl::AsciiStrToLower(wanted) == guid;
  });
  if (!guids.empty() && !is_wanted) return NoPort(choice);
  place_.lid = attributes.lid;
  place_.mtu = static_cast<uint8_t>(attributes.active_mtu);
  needs_global_route_ = (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  return absl::OkStatus();
}

absl::Status VerbsPort::CheckActive() const {
  ibv_port_attr attributes{};
  if (ibv_query_port(context_.get(), number_, &attributes) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(name_, ": the device has gone"));
  }
  if (attributes.state == IBV_PORT_ACTIVE) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, ": the port is not active (", ibv_port_state_str(attributes.state), ")"));
}

absl::Status VerbsPort::Failed(const std::string& what) const {
  std::string text = absl::StrCat(name_, ": ", what);
  const absl::Status state = CheckActive();
  if (!state.ok()) absl::StrAppend(&text, "; ", state.message());
  return absl::FailedPreconditionError(text);
}

}  // namespace coppice
