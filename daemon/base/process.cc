#include "daemon/base/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"

namespace coppice {
namespace {

uint64_t CountOpenFiles() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count - 1;  // without the directory's own
}

// When the machine was started.
absl::Time BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    int64_t seconds = 0;
    std::string name;
    if (absl::StartsWith(line, "btime ") && std::istringstream(line) >> name >> seconds) {
      return absl::FromUnixSeconds(seconds);
    }
  }
  return absl::InfinitePast();
}

}  // namespace

ProcessNumbers ReadProcess() {
  ProcessNumbers numbers;
  numbers.open_files = CountOpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) numbers.max_open_files = limit.rlim_cur;

  // proc(5): fields from the third on follow the name, which is in parentheses and may hold any.
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return numbers;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  uint64_t user = 0, system = 0, start = 0, resident_pages = 0;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  fields >> user >> system;
  for (int field = 16; field < 20; ++field) fields >> skipped;
  fields >> numbers.threads >> skipped >> start >> numbers.virtual_bytes >> resident_pages;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  numbers.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  numbers.cpu_time = absl::Seconds(static_cast<double>(user + system) / ticks);
  numbers.start_time = BootTime() + absl::Seconds(static_cast<double>(start) / ticks);
  return numbers;
}

}  // namespace coppice
