#include "agents/node/search_guard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/node/process_family.h"
#include "agents/node/search_request.h"
#include "agents/node/settings.h"
#include "client/connection.h"

namespace coppice {
namespace {

constexpr size_t kMostInput = size_t{64} << 20;
constexpr size_t kLongestHost = 253;  // as of names in the DNS

int Fail(absl::string_view what, int exit_status = EXIT_FAILURE) {
  std::fprintf(stderr, "coppice-agent %s: %s\n", kGuardCommand, std::string(what).c_str());
  return exit_status;
}

// Exactly so many bytes; false: there are less.
bool ReadAll(char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = read(STDIN_FILENO, bytes, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

// Nullopt: the agent is gone, or it is no agent.
std::optional<v1::GuardedSearch> ReadSearch() {
  size_t size = 0;
  for (char digit = 0; ReadAll(&digit, 1);) {
    if (digit == '\n' && size <= kMostInput) {
      std::string text(size, '\0');
      v1::GuardedSearch search;
      if (!ReadAll(text.data(), size) || !search.ParseFromString(text)) return std::nullopt;
      return search;
    }
    if (digit < '0' || digit > '9' || size > kMostInput) return std::nullopt;
    size = 10 * size + static_cast<size_t>(digit - '0');
  }
  return std::nullopt;
}

// Names of a fabric's hosts are what each node calls itself, and launchers hand them to ssh: none
// may be an option.
absl::Status CheckHosts(const v1::GuardedSearch& search) {
  for (const std::string& host : search.hosts()) {
    const bool is_name = !host.empty() && host.size() <= kLongestHost &&
                         absl::ascii_isalnum(static_cast<unsigned char>(host[0])) &&
                         std::all_of(host.begin(), host.end(), [](unsigned char c) {
                           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
                         });
    if (is_name) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "host \"", absl::CEscape(host.substr(0, kLongestHost)),
        "\" of the job: is no name of letters, digits and . - _ that a launcher could be given"));
  }
  return absl::OkStatus();
}

absl::Status CheckAddresses(const v1::GuardedSearch& search) {
  if (absl::StartsWith(search.server(), "-")) {
    return absl::InvalidArgumentError("the daemon's address begins with -");
  }
  if (!absl::StartsWith(search.agent(), "/")) {
    return absl::InvalidArgumentError("the agent's socket is no path from the root");
  }
  return CheckServer(search.server());
}

// A file of the user's alone for as long as the guard lives.
class HostsFile final {
 public:
  explicit HostsFile(const v1::GuardedSearch& search) {
    std::string hosts;
    for (const std::string& host : search.hosts()) absl::StrAppend(&hosts, host, "\n");
    const char* const folder = std::getenv("TMPDIR");
    path_ = absl::StrCat(folder != nullptr && *folder != '\0' ? folder : "/tmp",
                         "/coppice-hosts-XXXXXX");
    const int fd = mkostemp(path_.data(), O_CLOEXEC);
    is_written_ =
        fd >= 0 && write(fd, hosts.data(), hosts.size()) == static_cast<ssize_t>(hosts.size());
    if (!is_written_) Fail(absl::StrCat(path_, ": ", std::strerror(errno)));
    if (fd < 0) path_.clear();
    if (fd >= 0) close(fd);
  }
  ~HostsFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  HostsFile(const HostsFile&) = delete;

  bool is_written() const { return is_written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_written_ = false;
};

}  // namespace

std::string GuardInput(const v1::GuardedSearch& search) {
  const std::string text = search.SerializeAsString();
  return absl::StrCat(text.size(), "\n", text);
}

absl::StatusOr<std::vector<std::string>> GuardedCommand(const SearchSettings& settings,
                                                        const v1::GuardedSearch& search,
                                                        uid_t user) {
  const LocalCaller caller{user, getpid(), absl::StrCat(user)};
  for (const absl::Status& status :
       {CheckSearchSettings(settings), CheckAddresses(search), CheckHosts(search),
        CheckSearchRequest(settings, caller, user, search.request())}) {
    if (!status.ok()) return status;
  }
  return FillWords(settings.command, WordsOf(search, user));
}

int GuardSearch(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads what is said once the agent is gone
  const std::optional<v1::GuardedSearch> search = ReadSearch();
  if (!search || arguments.size() != 1) {
    return Fail("is for coppice-agent to start; see coppicectl search");
  }
  Settings settings;
  if (const absl::Status read = ReadSettingsFile(arguments[0], settings); !read.ok()) {
    return Fail(read.message());
  }
  absl::StatusOr<std::vector<std::string>> words =
      GuardedCommand(settings.search, *search, getuid());
  if (!words.ok()) return Fail(words.status().message());
  std::optional<HostsFile> file;
  if (HasWord(*words, kHostFileWord)) {
    if (search->hosts_size() == 0) {
      return Fail("has no hosts for {hostfile}: restart the agent, its configuration has changed");
    }
    file.emplace(*search);
    if (!file->is_written()) return EXIT_FAILURE;
    words = FillWords(*words, {{kHostFileWord, file->path()}});
  }
  const absl::StatusOr<int> exit_status = RunFamily(*words);
  return exit_status.ok() ? *exit_status : Fail(exit_status.status().message(), kNoSuchCommand);
}

}  // namespace coppice
