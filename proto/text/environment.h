// The variables that Coppice reads, so that its programs and the library that is preloaded into MPI
// programs can tell one that nobody does: a typing error would otherwise turn something off without
// a word. Plain C++, for the latter.
#ifndef COPPICE_PROTO_TEXT_ENVIRONMENT_H_
#define COPPICE_PROTO_TEXT_ENVIRONMENT_H_

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace coppice {

// Of all parts: one's users set others' as well. tests/unit/house compares it with what is read.
inline constexpr std::array<std::string_view, 30> kVariables = {
    // libcoppice, coppicectl, coppice-search
    "COPPICE_AGENT", "COPPICE_SERVER", "COPPICE_TLS_CA", "COPPICE_TLS_CERT", "COPPICE_TLS_KEY",
    "COPPICE_MUNGE", "COPPICE_MUNGE_REALM",
    // agents/mpi
    "COPPICE_APPLICATION", "COPPICE_HOST", "COPPICE_PARTITION", "COPPICE_REORDER",
    "COPPICE_REORDER_BUDGET_MS", "COPPICE_START_TIMEOUT_MS", "COPPICE_TIMEOUT_MS", "COPPICE_TRACE",
    "COPPICE_TRACE_PUT", "COPPICE_TREES", "COPPICE_TREES_AFTER", "COPPICE_TREES_MAX_BYTES",
    "COPPICE_TREES_TYPE", "COPPICE_TREES_WAY", "COPPICE_VERBOSE",
    // deploy/slurm
    "COPPICE_HOSTFILE", "COPPICE_JOB", "COPPICE_PATIENCE", "COPPICE_SLURM_JOBS",
    "COPPICE_SLURM_NODE", "COPPICE_SLURM_STEERING",
    // deploy/try
    "COPPICE_TRY_BUILD", "COPPICE_TRY_DIR"};
inline constexpr std::string_view kPrefix = "COPPICE_", kTestPrefix = "COPPICE_TEST_";

// "NAME: ...", a line each, for those of `environment` ("NAME=VALUE", null at the end) that are
// named as ours and read by no part.
inline std::string UnknownVariables(const char* const* environment) {
  std::string told;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    if (name.substr(0, kTestPrefix.size()) == kTestPrefix) continue;
    if (std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end()) continue;
    told += std::string(name) + ": nothing reads a variable of this name; check its spelling\n";
  }
  return told;
}

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_ENVIRONMENT_H_
