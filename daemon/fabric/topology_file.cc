#include "daemon/fabric/topology_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

absl::Status FileError(const std::string& path, const char* did, int error) {
  const absl::StatusCode code = error == ENOENT || error == ENOTDIR ? absl::StatusCode::kNotFound
                                : error == EACCES ? absl::StatusCode::kPermissionDenied
                                                  : absl::StatusCode::kUnavailable;
  return absl::Status(
      code, absl::StrCat("fabric file ", path, ": cannot ", did, " it: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<TopologyFile> TopologyFile::Open(const std::string& path) {
  // A pipe without a writer must not block the daemon.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(path, "open", errno);
  struct stat status = {};
  const int examined = fstat(fd, &status);
  const int error = errno;
  TopologyFile file(path, fd, static_cast<uint64_t>(status.st_size));
  if (examined != 0) return FileError(path, "examine", error);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric file ", path, ": not a regular file: give the path of a text file"));
  }
  if (file.size_ > kMaxFabricFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric file ", path, ": ", file.size_,
                                                   " bytes are more than the limit of ",
                                                   kMaxFabricFileBytes));
  }
  return file;
}

TopologyFile::TopologyFile(TopologyFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      offset_(other.offset_) {}

TopologyFile::~TopologyFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<size_t> TopologyFile::Read(char* buffer, size_t size) {
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset_));
  ssize_t n = 0;
  do {
    n = pread(fd_, buffer, size, static_cast<off_t>(offset_));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return FileError(path_, "read", errno);
  offset_ += static_cast<uint64_t>(n);
  return static_cast<size_t>(n);
}

}  // namespace coppice
