#include "daemon/manager/other_daemons.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"

namespace coppice {
namespace {

constexpr size_t kMaxDatabases = 16;  // an agent says what it likes

}  // namespace

void OtherDaemons::Hear(uint64_t database, absl::string_view from) {
  if (database == 0 || own_ == 0 || database == own_) return;
  const std::string name = absl::StrCat(absl::Hex(database, absl::kZeroPad16));
  std::string words = absl::StrCat(
      from, " was served by the daemon with database ", name, " before, this one has ",
      absl::Hex(own_, absl::kZeroPad16),
      ": if both run on this subnet they give away the same entries; stop one of them");
  const absl::Duration now = clock_->Monotonic();
  {
    std::lock_guard lock(mu_);
    std::erase_if(signs_, [&](const auto& sign) { return now - sign.second.heard > kKept; });
    const auto known = signs_.find(database);
    if (known != signs_.end()) {
      known->second = {std::move(words), now};
      return;
    }
    if (signs_.size() >= kMaxDatabases) return;
    signs_[database] = {words, now};
  }
  spdlog::warn("{}", words);
  events_->Append("daemon.other", absl::StrCat("database:", name), std::move(words));
}

std::vector<std::string> OtherDaemons::Signs() const {
  std::vector<std::string> words;
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(mu_);
  for (const auto& [database, sign] : signs_) {
    if (now - sign.heard <= kKept) words.push_back(sign.words);
  }
  return words;
}

}  // namespace coppice
