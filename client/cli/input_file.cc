#include "client/cli/input_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

absl::Status CannotRead(const std::string& path, int error) {
  return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path) {
  struct stat info = {};
  if (path != "-") {
    if (stat(path.c_str(), &info) != 0) return CannotRead(path, errno);
    // A device may never end. Pipes do: a shell's <(COMMAND) is one.
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": not a regular file: give the path of a text file"));
    }
  }
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  if (file == nullptr) return CannotRead(path, errno);
  std::string text;
  std::string block(size_t{1} << 16, '\0');
  while (const size_t size = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, size);
    if (text.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxFileBytes,
                                                     " bytes; is it the file that you meant?"));
    }
  }
  if (std::ferror(file.get()) != 0) return CannotRead(path, errno);
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadMemberFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

absl::StatusOr<std::vector<uint32_t>> RanksOfMembers(const v1::Job& job,
                                                     const std::vector<std::string>& members) {
  absl::flat_hash_map<std::string, std::deque<uint32_t>> by_port, by_host;
  for (int rank = 0; rank < job.endpoints_size(); ++rank) {
    const std::string& endpoint = job.endpoints(rank);
    by_port[endpoint].push_back(static_cast<uint32_t>(rank));
    by_host[endpoint.substr(0, endpoint.rfind('/'))].push_back(static_cast<uint32_t>(rank));
  }
  std::vector<bool> used(static_cast<size_t>(job.endpoints_size()), false);
  std::vector<uint32_t> ranks;
  for (const std::string& member : members) {
    const auto port = by_port.find(member);
    const auto host = by_host.find(member);
    if (port == by_port.end() && host == by_host.end()) {
      return absl::NotFoundError(
          absl::StrCat("member ", member, ": job ", job.id(), " has no rank there"));
    }
    std::deque<uint32_t>& waiting = port != by_port.end() ? port->second : host->second;
    while (!waiting.empty() && used[waiting.front()]) waiting.pop_front();
    if (waiting.empty()) {
      return absl::NotFoundError(absl::StrCat("member ", member, ": named more often than job ",
                                              job.id(), " has ranks there"));
    }
    used[waiting.front()] = true;
    ranks.push_back(waiting.front());
    waiting.pop_front();
  }
  return ranks;
}

absl::StatusOr<std::vector<v1::RankRange>> ParseRankRanges(absl::string_view text) {
  std::vector<v1::RankRange> ranges;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const auto bad = [&] {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks \"", part, "\": write A, A-B or A-B:STRIDE with A <= B"));
    };
    const std::vector<absl::string_view> by_stride = absl::StrSplit(part, ':');
    const std::vector<absl::string_view> ends = absl::StrSplit(by_stride[0], '-');
    uint32_t first = 0, last = 0, stride = 1;
    if (by_stride.size() > 2 || ends.size() > 2) return bad();
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        last < first) {
      return bad();
    }
    if (by_stride.size() == 2 && (!absl::SimpleAtoi(by_stride[1], &stride) || stride == 0)) {
      return bad();
    }
    v1::RankRange range;
    range.set_first(first);
    range.set_count((last - first) / stride + 1);
    range.set_stride(stride);
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace coppice
