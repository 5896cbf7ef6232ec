#include "agents/mpi/core/run_name.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace coppice::mpi {
namespace {

constexpr int kMostAncestors = 32;  // shells and wrappers between the proxy and this process

std::vector<std::string> CommandLine(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

int ParentOf(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  const std::string key = "PPid:";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) == 0) return std::atoi(line.c_str() + key.size());
  }
  return 0;
}

// HOST:PORT of the launcher if these are the words of its proxy; else nothing.
std::string LauncherOf(const std::vector<std::string>& words) {
  if (words.empty() || words[0].substr(words[0].rfind('/') + 1) != "hydra_pmi_proxy") return "";
  const auto option = std::find(words.begin(), words.end(), "--control-port");
  if (option == words.end() || std::next(option) == words.end()) return "";
  std::string name = *std::next(option);
  std::replace(name.begin(), name.end(), ':', '-');
  return name;
}

}  // namespace

std::string RunName() {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  if (job != nullptr) return job;
  int process = getppid();
  for (int i = 0; i < kMostAncestors && process > 1; ++i) {
    const std::string launcher = LauncherOf(CommandLine(process));
    if (!launcher.empty()) return launcher;
    process = ParentOf(process);
  }
  return "world";
}

}  // namespace coppice::mpi
