#include "daemon/fabric/topology_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

TopologyLines::TopologyLines(absl::string_view text, absl::string_view origin)
    : text_(absl::StripPrefix(text, kByteOrderMark)), rest_(text_), origin_(origin) {}

TopologyLines::TopologyLines(TopologyFile& file)
    : file_(&file), block_(new char[kBlock]), origin_(file.path()) {
  file_->Rewind();
}

void TopologyLines::Rewind() {
  if (file_ != nullptr) file_->Rewind();
  rest_ = text_;
  status_ = absl::OkStatus();
  number_ = 0;
  unfinished_ = false;
}

absl::Status TopologyLines::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(origin_, ":", number_, ": ", what));
}

bool TopologyLines::Refill() {
  if (file_ == nullptr) return false;
  if (!rest_.empty()) std::memmove(block_.get(), rest_.data(), rest_.size());
  const absl::StatusOr<size_t> read =
      file_->Read(block_.get() + rest_.size(), kBlock - rest_.size());
  rest_ = absl::string_view(block_.get(), rest_.size() + (read.ok() ? *read : 0));
  if (!read.ok()) status_ = read.status();
  return read.ok() && *read > 0;
}

bool TopologyLines::NextAcrossBlocks(absl::string_view* line) {
  size_t end = absl::string_view::npos;
  while (end == absl::string_view::npos) {
    if (file_ != nullptr && rest_.size() > kMaxLine) {
      ++number_;
      status_ = Error(absl::StrCat("a line of more than ", kMaxLine,
                                   " bytes: is this a fabric's text at all?"));
      return false;
    }
    size_t searched = rest_.size();
    const bool more = Refill();
    if (number_ == 0 && absl::ConsumePrefix(&rest_, kByteOrderMark)) searched = 0;
    if (!more) {
      if (!status_.ok() || rest_.empty()) return false;
      unfinished_ = true;
      Take(rest_.size(), rest_.size(), line);
      return true;
    }
    end = rest_.find('\n', searched);
  }
  Take(end, end + 1, line);
  return true;
}

}  // namespace coppice
