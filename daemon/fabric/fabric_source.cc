#include "daemon/fabric/fabric_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/ibnetdiscover_reader.h"
#include "daemon/fabric/ibsim_net_reader.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

absl::Status FileError(const std::string& path, const char* did, int error) {
  const absl::StatusCode code = error == ENOENT || error == ENOTDIR ? absl::StatusCode::kNotFound
                                : error == EACCES ? absl::StatusCode::kPermissionDenied
                                                  : absl::StatusCode::kUnavailable;
  return absl::Status(
      code, absl::StrCat("fabric file ", path, ": cannot ", did, " it: ", std::strerror(error)));
}

// The bytes of a file. Its buffer is not zeroed first: that would cost as much as the reading.
struct FileText {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  absl::string_view view() const { return {bytes.get(), size}; }
};

absl::StatusOr<FileText> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, "open", errno);
  const auto close_file = absl::MakeCleanup([fd] { close(fd); });
  struct stat status = {};
  if (fstat(fd, &status) != 0) return FileError(path, "examine", errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("fabric file ", path, ": not a regular file"));
  }
  if (static_cast<uint64_t>(status.st_size) > kMaxFabricFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric file ", path, ": ", status.st_size,
                                                   " bytes are more than the limit of ",
                                                   kMaxFabricFileBytes));
  }
  FileText text;
  const auto capacity = static_cast<size_t>(status.st_size);
  text.bytes.reset(new char[capacity]);
  while (text.size < capacity) {
    const ssize_t n = read(fd, text.bytes.get() + text.size, capacity - text.size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(path, "read", errno);
    if (n == 0) break;  // it shrank
    text.size += static_cast<size_t>(n);
  }
  return text;
}

enum class Format : uint8_t { kIbnetdiscover, kIbnetdiscoverPorts, kIbsimNet };

// The first line that says something decides: a row of the -p report, or a node's header, whose
// name is S-, H- or R- and a GUID in ibnetdiscover's text and anything in ibsim's.
Format Recognise(absl::string_view text) {
  LineSplitter lines(text);
  absl::string_view line;
  while (lines.Next(&line)) {
    if (IsChatter(line)) continue;
    for (const absl::string_view type : {"CA ", "SW ", "RT "}) {
      if (absl::StartsWith(line, type)) return Format::kIbnetdiscoverPorts;
    }
    for (const absl::string_view word : {"Hca", "module", "include", "do ", "width", "speed"}) {
      if (absl::StartsWith(line, word)) return Format::kIbsimNet;
    }
    LineCursor cursor(line);
    absl::string_view skipped, name;
    if (line.front() == '[' || !cursor.Until('"', &skipped) || !cursor.Until('"', &name)) continue;
    return GuidOfNodeName(name) ? Format::kIbnetdiscover : Format::kIbsimNet;
  }
  return Format::kIbnetdiscover;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabricText(absl::string_view text,
                                                             absl::string_view origin) {
  switch (Recognise(text)) {
    case Format::kIbnetdiscoverPorts:
      return ReadIbnetdiscoverPorts(text, origin);
    case Format::kIbsimNet:
      return ReadIbsimNet(text, origin);
    case Format::kIbnetdiscover:
      break;
  }
  return ReadIbnetdiscover(text, origin);
}

absl::Status CheckFabricSpec(absl::string_view spec) {
  if (absl::StartsWith(spec, "model:")) return absl::OkStatus();
  if (absl::StartsWith(spec, "file:") && spec.size() > 5) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "fabric \"", spec.substr(0, 80), "\": expected file:PATH or model:NAME(ARGUMENT=VALUE,...)"));
}

absl::StatusOr<std::shared_ptr<const Fabric>> LoadFabric(absl::string_view spec) {
  RETURN_IF_ERROR(CheckFabricSpec(spec));
  if (absl::ConsumePrefix(&spec, "model:")) return GenerateModel(spec);
  const std::string path(absl::StripPrefix(spec, "file:"));
  ASSIGN_OR_RETURN(const FileText text, ReadFile(path));
  return ReadFabricText(text.view(), path);
}

}  // namespace coppice
