#include "agents/node/node_facts.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr char kDevices[] = "/sys/class/infiniband";

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

}  // namespace

std::string GuidOfGid(absl::string_view gid) {
  const std::vector<std::string> words = absl::StrSplit(gid, ':');
  std::string guid;
  if (words.size() != 8) return guid;
  for (size_t i = 4; i < 8; ++i) {
    const bool is_hex = std::all_of(words[i].begin(), words[i].end(), absl::ascii_isxdigit);
    if (words[i].size() != 4 || !is_hex) return "";
    absl::StrAppend(&guid, absl::AsciiStrToLower(words[i]));
  }
  return guid == "0000000000000000" ? "" : guid;
}

// A port's GUID is the lower half of the first GID of its table (InfiniBand specification 1.3,
// volume 1, 4.1.1); sysfs has no file for it alone.
std::vector<std::string> ReadPortGuids(const std::string& root) {
  std::vector<std::string> guids;
  for (const auto& device : Entries(root)) {
    for (const auto& port : Entries(device / "ports")) {
      if (ReadLine(port / "link_layer") != "InfiniBand") continue;
      const std::string guid = GuidOfGid(ReadLine(port / "gids" / "0"));
      if (!guid.empty()) guids.push_back(guid);
    }
  }
  std::sort(guids.begin(), guids.end());
  return guids;
}

NodeFacts ReadNodeFacts() {
  NodeFacts facts;
  facts.host = HostName();
  facts.port_guids = ReadPortGuids(kDevices);
  ReadCores(facts);
  return facts;
}

}  // namespace coppice
