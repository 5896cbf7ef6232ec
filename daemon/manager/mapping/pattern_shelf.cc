#include "daemon/manager/mapping/pattern_shelf.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/mapping/pattern_codec.h"

namespace coppice {
namespace {

constexpr size_t kPartBytes = 256 << 10;
constexpr uint64_t kLeastBytes = 4096;  // that a pattern takes: pages of the database, its record
constexpr size_t kLongestName = 128;
constexpr uint64_t kMega = 1'000'000;

uint64_t Taken(const PatternRecord& record) { return std::max(record.stored_bytes, kLeastBytes); }

std::string Key(absl::string_view name) { return std::string(name); }

absl::Status NoSuchPattern(absl::string_view name) {
  return absl::NotFoundError(
      absl::StrCat("no pattern is stored as ", name, "; coppicectl pattern list shows them"));
}

}  // namespace

absl::Status CheckPatternName(absl::string_view name) {
  const bool good = !name.empty() && name.size() <= kLongestName &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                             absl::string_view("._-+/@").find(c) != absl::string_view::npos;
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", name.substr(0, kLongestName),
                                                 "\" is no name of a pattern; give 1 to ",
                                                 kLongestName, " letters, digits and . _ - + / @"));
}

absl::StatusOr<std::unique_ptr<PatternShelf>> PatternShelf::Create(Store* store, const Clock* clock,
                                                                   uint64_t max_bytes) {
  ASSIGN_OR_RETURN(std::vector<PatternRecord> records, store->Patterns());
  std::unique_ptr<PatternShelf> shelf(new PatternShelf(store, clock, max_bytes));
  absl::MutexLock writing(&shelf->writing_);
  absl::MutexLock lock(&shelf->mutex_);
  for (PatternRecord& record : records) {
    shelf->last_id_ = std::max(shelf->last_id_, record.id);
    std::string name = record.name;
    shelf->records_.emplace(std::move(name), std::move(record));
  }
  return shelf;
}

absl::Status PatternShelf::MakeRoom(const PatternRecord& record) const {
  uint64_t others = 0;
  for (const auto& [name, other] : records_) {
    if (name != record.name) others += Taken(other);
  }
  const uint64_t wanted = Taken(record);
  if (wanted <= max_bytes_ && others <= max_bytes_ - wanted) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("pattern ", record.name, " takes ", wanted / kMega + 1, " MB, but of the ",
                   max_bytes_ / kMega, " MB for all patterns others take ", others / kMega,
                   " MB; delete some (coppicectl pattern delete), or raise the limit"));
}

absl::Status PatternShelf::DropUnfinished() {
  if (unfinished_ == 0) return absl::OkStatus();
  const absl::Status dropped = store_->Apply(DropPatternParts{unfinished_});
  // It may have come although its write was told as failed.
  if (!dropped.ok() && !absl::IsAlreadyExists(dropped)) return dropped;
  unfinished_ = 0;
  return absl::OkStatus();
}

absl::Status PatternShelf::Write(const PatternRecord& record, absl::string_view data) {
  RETURN_IF_ERROR(DropUnfinished());
  unfinished_ = record.id;
  uint32_t part = 0;
  for (size_t at = 0; at < data.size(); at += kPartBytes) {
    RETURN_IF_ERROR(
        store_->Apply(PutPatternPart{record.id, part++, std::string(data.substr(at, kPartBytes))}));
  }
  RETURN_IF_ERROR(store_->Apply(PutPattern{record, part}));
  unfinished_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<PatternRecord> PatternShelf::Put(absl::string_view name, absl::string_view owner,
                                                const Pattern& pattern,
                                                const MayChange& may_change) {
  RETURN_IF_ERROR(CheckPatternName(name));
  const std::string data = EncodePattern(pattern);
  absl::MutexLock writing(&writing_);
  PatternRecord record;
  record.id = last_id_ + 1;
  record.name = Key(name);
  record.owner = std::string(owner);
  record.rank_count = pattern.rank_count();
  record.pair_count = pattern.pair_count();
  record.total_bytes = pattern.total_bytes();
  record.total_messages = pattern.total_messages();
  record.created = clock_->Now();
  record.stored_bytes = data.size();
  {
    absl::MutexLock lock(&mutex_);
    if (const auto old = records_.find(name); old != records_.end()) {
      RETURN_IF_ERROR(may_change(old->second));
    }
    RETURN_IF_ERROR(MakeRoom(record));
  }
  ++last_id_;  // also after a failure: its parts may be there
  if (absl::Status written = Write(record, data); !written.ok()) {
    static_cast<void>(DropUnfinished());  // the next write tries again
    Reread();
    return written;
  }
  absl::MutexLock lock(&mutex_);
  records_.insert_or_assign(record.name, record);
  return record;
}

void PatternShelf::Reread() {
  const absl::StatusOr<std::vector<PatternRecord>> there = store_->Patterns();
  if (!there.ok()) return;  // the next write will tell
  absl::MutexLock lock(&mutex_);
  records_.clear();
  for (const PatternRecord& record : *there) records_.emplace(record.name, record);
}

absl::StatusOr<PatternRecord> PatternShelf::Get(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = records_.find(name);
  if (found == records_.end()) return NoSuchPattern(name);
  return found->second;
}

std::vector<PatternRecord> PatternShelf::List(absl::string_view after, size_t limit) const {
  std::vector<PatternRecord> page;
  absl::MutexLock lock(&mutex_);
  for (auto next = records_.upper_bound(after); next != records_.end() && page.size() < limit;
       ++next) {
    page.push_back(next->second);
  }
  return page;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternShelf::Load(absl::string_view name) {
  ASSIGN_OR_RETURN(PatternRecord record, Get(name));
  absl::StatusOr<std::string> data = store_->PatternData(record.id);
  if (absl::IsNotFound(data.status())) {
    // Another took its place meanwhile: once more, while nobody writes.
    absl::MutexLock writing(&writing_);
    ASSIGN_OR_RETURN(record, Get(name));
    data = store_->PatternData(record.id);
  }
  RETURN_IF_ERROR(data.status());
  return DecodePattern(*data);
}

absl::Status PatternShelf::Delete(absl::string_view name, const MayChange& may_change) {
  absl::MutexLock writing(&writing_);
  {
    absl::MutexLock lock(&mutex_);
    const auto found = records_.find(name);
    if (found == records_.end()) return NoSuchPattern(name);
    RETURN_IF_ERROR(may_change(found->second));
  }
  // A deletion that was told as failed may have been done.
  const absl::Status dropped = store_->Apply(DropPattern{Key(name)});
  if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
  absl::MutexLock lock(&mutex_);
  records_.erase(records_.find(name));
  return absl::OkStatus();
}

}  // namespace coppice
