#include "daemon/manager/known_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

auto NameOf(const WayTime& time) { return std::tuple(time.operation, time.length_bits, time.way); }
using TimesByName = std::map<decltype(NameOf(WayTime())), WayTime>;

// A run's time joined to those before, as a moving mean.
void Join(double us, JobId job, WayTime& known) {
  const double weight = 1.0 / std::min(known.runs + 1, KnownTimes::kMeanOf);
  const double deviation = std::abs(us - known.us) / known.us;
  known.spread += weight * (deviation - known.spread);
  known.us += weight * (us - known.us);
  known.last_job = job;
  ++known.runs;
}

absl::Status Check(absl::Span<const WayTime> measured) {
  if (measured.size() > KnownTimes::kMaxTimes) {
    return absl::InvalidArgumentError(absl::StrCat("times: ", measured.size(), " are given; give ",
                                                   KnownTimes::kMaxTimes, " at most"));
  }
  std::set<decltype(NameOf(WayTime()))> named;
  for (const WayTime& time : measured) {
    if (!(time.us >= KnownTimes::kLeastUs && time.us <= KnownTimes::kMostUs)) {
      return absl::InvalidArgumentError(absl::StrCat("times: ", time.us, " us is none; give ",
                                                     KnownTimes::kLeastUs, " to ",
                                                     KnownTimes::kMostUs));
    }
    if (time.length_bits > 64) {
      return absl::InvalidArgumentError(
          absl::StrCat("times: no length has ", time.length_bits, " bits; give 0 to 64"));
    }
    if (!named.insert(NameOf(time)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("times: ", ToString(time.operation), " of ", time.length_bits,
                       " bits is named twice in one way; give one time of it"));
    }
  }
  return absl::OkStatus();
}

size_t SizeOf(const WayTimesRecord& record) { return KnownTimes::kOfProgram + record.times.size(); }

std::string Plural(const std::string& name, size_t count) {
  if (count == 1) return absl::StrCat("1 ", name);
  return absl::StrCat(count, " ", name, absl::EndsWith(name, "ch") ? "es" : "s");
}

}  // namespace

std::string LayoutOf(const Snapshot& snapshot, absl::Span<const Guid> ports) {
  std::vector<EndpointIndex> members;
  members.reserve(ports.size());
  for (const Guid port : ports) {
    const std::optional<EndpointIndex> endpoint = snapshot.fabric->FindEndpoint(port);
    if (!endpoint) return "";
    members.push_back(*endpoint);
  }
  std::string layout = absl::StrCat(Plural("rank", ports.size()), ":");
  absl::flat_hash_set<uint32_t> groups;
  for (const Hierarchy::Level& level : snapshot.hierarchy->levels) {
    groups.clear();
    for (const EndpointIndex member : members) groups.insert(level.group[member.value()]);
    absl::StrAppend(&layout, layout.back() == ':' ? " " : ", ", Plural(level.name, groups.size()));
    if (groups.size() <= 1) break;
  }
  return layout;
}

void KnownTimes::Restore(std::vector<WayTimesRecord> records) {
  std::lock_guard writing(writing_);
  PutWayTimes put;
  {
    std::lock_guard lock(mutex_);
    for (WayTimesRecord& record : records) Enter(std::move(record));
    put.drop = DropOldest(nullptr);
  }
  if (!put.drop.empty()) Write(std::move(put));
}

std::vector<WayTime> KnownTimes::Find(const WayTimesOf& of) const {
  std::lock_guard lock(mutex_);
  const auto owner = owners_.find(of.owner);
  if (owner == owners_.end()) return {};
  const auto found = owner->second.records.find(of);
  if (found == owner->second.records.end()) return {};
  if (found->second.measured < clock_->Now() - kAge) return {};
  return found->second.times;
}

absl::Status KnownTimes::Add(const WayTimesOf& of, JobId job, absl::Span<const WayTime> measured) {
  RETURN_IF_ERROR(Check(measured));
  if (measured.empty()) return absl::OkStatus();
  std::lock_guard writing(writing_);
  TimesByName times;
  for (const WayTime& time : Find(of)) times.emplace(NameOf(time), time);
  PutWayTimes put;
  put.record = {of, {}, clock_->Now()};
  for (const WayTime& time : measured) {
    const auto [known, is_new] = times.try_emplace(
        NameOf(time), WayTime{time.operation, time.length_bits, time.way, time.us, 0, 1, job});
    if (!is_new && known->second.last_job == job) continue;
    if (!is_new) Join(time.us, job, known->second);
    put.record.times.push_back(known->second);
  }
  if (put.record.times.empty()) return absl::OkStatus();
  WayTimesRecord all = {of, {}, put.record.measured};
  for (const auto& [name, time] : times) all.times.push_back(time);
  {
    std::lock_guard lock(mutex_);
    Leave(of);
    Enter(std::move(all));
    put.drop = DropOldest(&of);
    const bool is_all_new = times.size() == put.record.times.size();
    if (is_all_new) put.drop.push_back(of);  // with what is too old to be told
  }
  Write(std::move(put));
  return absl::OkStatus();
}

// What was dropped and could not be written is dropped by the next start.
void KnownTimes::Write(PutWayTimes put) {
  calls_->Submit(std::move(put), [](const absl::Status& status) {
    if (status.ok()) return;
    spdlog::warn("how soon collectives of a program went is lost at the next start: {}",
                 status.ToString());
  });
}

void KnownTimes::Enter(WayTimesRecord record) {
  Owner& owner = owners_[record.of.owner];
  owner.size += SizeOf(record);
  size_ += SizeOf(record);
  owner.by_age.emplace(record.measured, record.of);
  const WayTimesOf of = record.of;
  owner.records.insert_or_assign(of, std::move(record));
}

void KnownTimes::Leave(const WayTimesOf& of) {
  const auto owner = owners_.find(of.owner);
  if (owner == owners_.end()) return;
  const auto found = owner->second.records.find(of);
  if (found == owner->second.records.end()) return;
  owner->second.by_age.erase({found->second.measured, of});
  owner->second.size -= SizeOf(found->second);
  size_ -= SizeOf(found->second);
  owner->second.records.erase(found);
  if (owner->second.records.empty()) owners_.erase(owner);
}

std::vector<WayTimesOf> KnownTimes::DropOldest(const WayTimesOf* kept) {
  std::vector<WayTimesOf> dropped;
  const auto is_too_large = [this](const auto& owner) {
    return owner.second.size > kMaxOfOwner || size_ > kMaxOfAll;
  };
  for (;;) {
    const auto largest = std::max_element(
        owners_.begin(), owners_.end(),
        [](const auto& a, const auto& b) { return a.second.size < b.second.size; });
    if (largest == owners_.end() || !is_too_large(*largest)) return dropped;
    auto oldest = largest->second.by_age.begin();
    if (kept != nullptr && oldest->second == *kept) ++oldest;
    if (oldest == largest->second.by_age.end()) return dropped;
    dropped.push_back(oldest->second);
    Leave(dropped.back());
  }
}

}  // namespace coppice
