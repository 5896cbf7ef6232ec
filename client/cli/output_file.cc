#include "client/cli/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr mode_t kModeOfNew = 0644;

// The file that a link leads to; the path itself if nothing is there.
std::string Resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real == nullptr ? path : std::string(real.get());
}

bool Holds(const std::string& path, absl::string_view text) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream held;
  if (!file || file.peek() == std::ifstream::traits_type::eof()) return false;
  held << file.rdbuf();
  return held.str() == text;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Before the mode is set, which a change of the owner takes bits from. Whoever may not give files
// away keeps at least the group, or has the file: it is right all the same.
bool KeepOwner(int fd, const struct stat& old) {
  return fchown(fd, old.st_uid, old.st_gid) == 0 ||
         fchown(fd, static_cast<uid_t>(-1), old.st_gid) == 0;
}

// The name is durable when its directory is. Not all file systems can; the file is whole anyway.
void SyncDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace

absl::StatusOr<bool> ReplaceFile(const std::string& path, absl::string_view text) {
  const std::string target = Resolved(path);
  if (Holds(target, text)) return false;
  const auto failed = [&path](const char* what) {
    return absl::InternalError(absl::StrCat(path, ": cannot be ", what, ": ", strerror(errno)));
  };
  struct stat old;
  const bool is_old = stat(target.c_str(), &old) == 0;
  const mode_t mode = is_old ? old.st_mode & 07777 : kModeOfNew;
  std::string beside = target + ".XXXXXX";
  const int fd = mkostemp(beside.data(), O_CLOEXEC);
  if (fd < 0) return failed("written beside");
  if (is_old) KeepOwner(fd, old);
  const bool is_written = fchmod(fd, mode) == 0 && WriteAll(fd, text) && fsync(fd) == 0;
  const int error = errno;
  const bool is_closed = close(fd) == 0;
  if (!is_written) errno = error;
  if (!is_written || !is_closed || rename(beside.c_str(), target.c_str()) != 0) {
    const absl::Status status = failed("replaced");
    unlink(beside.c_str());
    return status;
  }
  SyncDirectory(target);
  return true;
}

}  // namespace coppice
