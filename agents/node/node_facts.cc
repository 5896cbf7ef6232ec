#include "agents/node/node_facts.h"

#include <hwloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

std::string ReadLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

std::vector<std::filesystem::path> Entries(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

uint32_t Count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  return count < 0 ? 0 : static_cast<uint32_t>(count);
}

void ReadCores(NodeFacts& facts) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return;
  if (hwloc_topology_load(topology) == 0) {
    facts.cores = Count(topology, HWLOC_OBJ_CORE);
    // Where the kernel does not tell cores from threads.
    if (facts.cores == 0) facts.cores = Count(topology, HWLOC_OBJ_PU);
    facts.packages = Count(topology, HWLOC_OBJ_PACKAGE);
    facts.numa_nodes = Count(topology, HWLOC_OBJ_NUMANODE);
  }
  hwloc_topology_destroy(topology);
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

// Four of the eight words of a GID, from the first on, as 16 hex digits; empty: it is none.
std::string HalfOf(absl::string_view gid, size_t first) {
  const std::vector<std::string> words = absl::StrSplit(gid, ':');
  std::string half;
  if (words.size() != 8) return half;
  for (size_t i = first; i < first + 4; ++i) {
    if (words[i].size() != 4 || !absl::c_all_of(words[i], absl::ascii_isxdigit)) return "";
    absl::StrAppend(&half, absl::AsciiStrToLower(words[i]));
  }
  return half;
}

constexpr size_t kMaxDeviceName = 63;  // IB_DEVICE_NAME_MAX of the kernel, less the end
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
  const bool is_named = absl::c_any_of(
      guids, [&](const auto& guid) { return absl::EqualsIgnoreCase(guid, port.guid); });
  return (choice.device.empty() || port.device == choice.device) &&
         (choice.port == 0 || port.number == choice.port) && (guids.empty() || is_named);
}

// Where the port's table has the key of the partition, a full member's if it has both:
// ports/N/pkeys/I holds "0xffff". nullopt: nowhere.
std::optional<uint32_t> KeyIndexOf(const std::filesystem::path& port, uint16_t partition) {
  std::optional<uint32_t> found;
  bool is_full = false;
  for (const auto& file : Entries(port / "pkeys")) {
    uint32_t index = 0, key = 0;
    if (!absl::SimpleAtoi(file.filename().string(), &index) ||
        !absl::SimpleHexAtoi(ReadLine(file), &key) || (key & 0x7fff) != partition) {
      continue;
    }
    const bool full = (key & 0x8000) != 0;
    if (found && (is_full || !full) && (is_full != full || *found < index)) continue;
    found = index;
    is_full = full;
  }
  return found;
}

}  // namespace

std::string GuidOfGid(absl::string_view gid) {
  const std::string guid = HalfOf(gid, 4);
  return guid == "0000000000000000" ? "" : guid;
}

// A port's GUID is the lower half of the first GID of its table (InfiniBand specification 1.3,
// volume 1, 4.1.1); sysfs has no file for it alone.
std::vector<InfinibandPort> ReadInfinibandPorts(const std::string& root) {
  std::vector<InfinibandPort> ports;
  for (const auto& device : Entries(root)) {
    for (const auto& folder : Entries(device / "ports")) {
      uint32_t number = 0;
      if (!absl::SimpleAtoi(folder.filename().string(), &number) || number == 0 ||
          number > UINT8_MAX || ReadLine(folder / "link_layer") != "InfiniBand") {
        continue;
      }
      const std::string gid = ReadLine(folder / "gids" / "0");
      InfinibandPort port{device.filename().string(), static_cast<uint8_t>(number), GuidOfGid(gid),
                          HalfOf(gid, 0), ReadLine(folder / "state")};
      if (!port.guid.empty()) ports.push_back(std::move(port));
    }
  }
  absl::c_sort(ports, [](const InfinibandPort& a, const InfinibandPort& b) {
    return std::tie(a.device, a.number) < std::tie(b.device, b.number);
  });
  return ports;
}

std::vector<std::string> ReadPortGuids(const std::string& root) {
  std::vector<std::string> guids;
  for (const InfinibandPort& port : ReadInfinibandPorts(root)) guids.push_back(port.guid);
  absl::c_sort(guids);
  return guids;
}

NodeFacts ReadNodeFacts(const std::string& devices) {
  NodeFacts facts;
  facts.host = HostName();
  facts.port_guids = ReadPortGuids(devices);
  ReadCores(facts);
  return facts;
}

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
  const bool is_device = !parts.first.empty() && parts.first.size() <= kMaxDeviceName &&
                         parts.first[0] != '-' && absl::c_all_of(parts.first, [](unsigned char c) {
                           return absl::ascii_isalnum(c) || absl::StrContains("_-.", c);
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
  for (InfinibandPort& port : ReadInfinibandPorts(choice.devices)) {
    if (!IsChosen(port, choice)) continue;
    const bool is_active = port.state == kActive;
    if (is_active && choice.partition != 0) {
      const std::filesystem::path device = std::filesystem::path(choice.devices) / port.device;
      port.key_index = KeyIndexOf(device / "ports" / absl::StrCat(port.number), choice.partition);
    }
    if (is_active && (choice.partition == 0 || port.key_index)) return std::move(port);
    if (!absl::IsNotFound(why)) continue;
    why = absl::FailedPreconditionError(
        is_active ? absl::StrCat(NameOf(port), ": the port is not in partition 0x",
                                 absl::Hex(choice.partition, absl::kZeroPad4))
                  : absl::StrCat(NameOf(port), ": the port is not active (", port.state, ")"));
  }
  return why;
}

}  // namespace coppice
