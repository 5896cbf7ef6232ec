#include "daemon/fabric/topology_lines.h"

#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
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
