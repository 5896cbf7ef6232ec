#include "agents/node/node_facts.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>

#include "absl/strings/ascii.h"
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
    const bool is_hex = std::all_of(words[i].begin(), words[i].end(), absl::ascii_isxdigit);
    if (words[i].size() != 4 || !is_hex) return "";
    absl::StrAppend(&half, absl::AsciiStrToLower(words[i]));
  }
  return half;
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
  std::sort(ports.begin(), ports.end(), [](const InfinibandPort& a, const InfinibandPort& b) {
    return std::tie(a.device, a.number) < std::tie(b.device, b.number);
  });
  return ports;
}

std::vector<std::string> ReadPortGuids(const std::string& root) {
  std::vector<std::string> guids;
  for (const InfinibandPort& port : ReadInfinibandPorts(root)) guids.push_back(port.guid);
  std::sort(guids.begin(), guids.end());
  return guids;
}

NodeFacts ReadNodeFacts(const std::string& devices) {
  NodeFacts facts;
  facts.host = HostName();
  facts.port_guids = ReadPortGuids(devices);
  ReadCores(facts);
  return facts;
}

}  // namespace coppice
