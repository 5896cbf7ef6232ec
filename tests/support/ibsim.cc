#include "tests/support/ibsim.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr char kPreloadName[] = "umad2sim/libumad2sim.so";
constexpr char kPrompt[] = "sim> ";
constexpr absl::Duration kMaxReadyTime = absl::Seconds(120);

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// AddressSanitizer's library must come before the preload, "PATH:"; empty in other builds.
std::string SanitizerLibrary() {
  void* const symbol = dlsym(RTLD_DEFAULT, "__asan_init");
  Dl_info library;
  if (symbol == nullptr || dladdr(symbol, &library) == 0 ||
      !absl::StrContains(library.dli_fname, "libasan")) {
    return "";
  }
  setenv("ASAN_OPTIONS",
         "verify_asan_link_order=0:suppressions=" COPPICE_SOURCE_DIR
         "/tests/support/asan_suppressions.txt",
         1);
  return absl::StrCat(library.dli_fname, ":");
}

}  // namespace

absl::StatusOr<std::string> IbsimSubnet::PreloadPath() {
  const std::filesystem::path roots[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                         "/usr/lib64", "/usr/lib", "/usr/local/lib"};
  for (const std::filesystem::path& root : roots) {
    std::error_code ignored;
    if (std::filesystem::exists(root / kPreloadName, ignored)) return root / kPreloadName;
  }
  return absl::NotFoundError(
      absl::StrCat(kPreloadName, " is in none of the library directories; install ibsim-utils"));
}

absl::StatusOr<std::unique_ptr<IbsimSubnet>> IbsimSubnet::Start(const std::string& net,
                                                                const std::string& host) {
  std::unique_ptr<IbsimSubnet> subnet = absl::WrapUnique(new IbsimSubnet);
  ASSIGN_OR_RETURN(subnet->preload_, PreloadPath());
  subnet->host_ = host;
  // The name of the scratch directory is unique on the machine.
  subnet->socket_name_ = std::filesystem::path(subnet->directory()).filename();
  std::ofstream(subnet->directory() + "/net") << net;
  // The defaults stop at 2,048 nodes.
  Command command{{"ibsim", "-s", "-N", "20000", "-S", "4000", "-P", "200000", "net"},
                  {{"IBSIM_SOCKNAME", subnet->socket_name_}, {"LD_PRELOAD", ""}},
                  subnet->directory(),
                  subnet->directory() + "/ibsim.log",
                  ""};
  ASSIGN_OR_RETURN(subnet->ibsim_, ChildProcess::Start(command));
  const bool ready = WaitUntil(
      [&] {
        return CountOf(ReadWholeFile(command.output), kPrompt) > 0 || !subnet->ibsim_->IsRunning();
      },
      kMaxReadyTime);
  if (!ready || !subnet->ibsim_->IsRunning()) {
    return absl::InternalError(
        absl::StrCat("ibsim is not ready: ", ReadWholeFile(command.output).substr(0, 2000)));
  }
  subnet->prompts_ = 1;
  return subnet;
}

IbsimSubnet::~IbsimSubnet() {
  if (ibsim_ != nullptr) Thaw();
}

std::vector<std::pair<std::string, std::string>> IbsimSubnet::Environment() const {
  return {{"IBSIM_SOCKNAME", socket_name_},
          {"SIM_HOST", host_},
          {"LD_PRELOAD", preload_},
          {"OSM_CACHE_DIR", directory()},
          {"OSM_TMP_DIR", directory()}};
}

absl::StatusOr<std::string> IbsimSubnet::Run(std::vector<std::string> arguments,
                                             absl::Duration limit) {
  const std::string output = absl::StrCat(directory(), "/program-", ++programs_run_);
  return RunToEnd(
      {std::move(arguments), Environment(), directory(), output + ".out", output + ".err"}, limit);
}

absl::Status IbsimSubnet::RunSubnetManager(const std::string& routing,
                                           const std::string& partitions) {
  std::vector<std::string> command = {"opensm", "--once", "-R", routing, "-f", "osm.log"};
  if (!partitions.empty()) {
    std::ofstream(directory() + "/partitions.conf") << partitions;
    command.insert(command.end(), {"-P", "partitions.conf"});
  }
  return Run(std::move(command), absl::Minutes(5)).status();
}

absl::StatusOr<std::string> IbsimSubnet::Console(const std::string& command) {
  const std::string log = directory() + "/ibsim.log";
  const size_t before = ReadWholeFile(log).size();
  RETURN_IF_ERROR(ibsim_->Write(command + "\n"));
  ++prompts_;
  std::string text;
  const bool answered = WaitUntil(
      [&] {
        text = ReadWholeFile(log);
        return CountOf(text, kPrompt) >= prompts_;
      },
      kMaxReadyTime);
  if (!answered) return absl::InternalError(absl::StrCat("ibsim took no notice of: ", command));
  const std::string said = text.substr(before);
  if (absl::StrContains(said, "# ") || absl::StrContains(said, "unknown")) {
    return absl::InvalidArgumentError(absl::StrCat("ibsim about ", command, ": ", said));
  }
  return said;
}

void IbsimSubnet::Freeze() { ibsim_->Signal(SIGSTOP); }
void IbsimSubnet::Thaw() { ibsim_->Signal(SIGCONT); }

absl::Status IbsimSubnet::Attach() {
  static bool attached = false;
  const char* preload = std::getenv("LD_PRELOAD");
  if (preload == nullptr || !absl::StrContains(preload, kPreloadName)) {
    return absl::FailedPreconditionError("not under the preload; call UsePreload in main");
  }
  if (attached) {
    return absl::FailedPreconditionError(
        "this process has had its subnet; run one test a process, as ctest does");
  }
  attached = true;
  setenv("IBSIM_SOCKNAME", socket_name_.c_str(), 1);
  setenv("SIM_HOST", host_.c_str(), 1);
  if (chdir(directory().c_str()) != 0) return absl::InternalError("cannot enter " + directory());
  return absl::OkStatus();
}

void UsePreload(char** arguments) {
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded != nullptr && absl::StrContains(preloaded, kPreloadName)) return;
  const absl::StatusOr<std::string> path = IbsimSubnet::PreloadPath();
  if (!path.ok()) {
    std::fprintf(stderr, "%s\n", std::string(path.status().message()).c_str());
    std::exit(2);
  }
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_cur, 1024);
  setrlimit(RLIMIT_NOFILE, &files);
  setenv("LD_PRELOAD", absl::StrCat(SanitizerLibrary(), *path).c_str(), 1);
  execv("/proc/self/exe", arguments);
  std::perror("cannot run again under the preload");
  std::exit(2);
}

}  // namespace coppice
