#include "daemon/manager/known_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

auto NameOf(const WayTime& time) { return std::tuple(time.operation, time.length_bits, time.way); }

// A run's time joined to those before, as a moving mean.
void Join(double us, WayTime& known) {
  const double weight = 1.0 / std::min(known.runs + 1, KnownTimes::kMeanOf);
  const double deviation = std::abs(us - known.us) / known.us;
  known.spread += weight * (deviation - known.spread);
  known.us += weight * (us - known.us);
  ++known.runs;
}

absl::Status Check(absl::Span<const WayTime> measured) {
  if (measured.size() > KnownTimes::kMaxTimes) {
    return absl::InvalidArgumentError(absl::StrCat("times: ", measured.size(), " are given; give ",
                                                   KnownTimes::kMaxTimes, " at most"));
  }
  std::set<decltype(NameOf(WayTime()))> named;
  for (const WayTime& time : measured) {
    if (!(time.us > 0) || !std::isfinite(time.us)) {
      return absl::InvalidArgumentError(
          absl::StrCat("times: ", time.us, " us is none; give microseconds above 0"));
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
  std::lock_guard lock(mutex_);
  for (WayTimesRecord& record : records) Enter(std::move(record));
}

std::vector<WayTime> KnownTimes::Find(const WayTimesOf& of) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(of);
  return found == records_.end() ? std::vector<WayTime>() : found->second.times;
}

absl::Status KnownTimes::Add(const WayTimesOf& of, absl::Span<const WayTime> measured) {
  RETURN_IF_ERROR(Check(measured));
  if (measured.empty()) return absl::OkStatus();
  std::lock_guard writing(writing_);
  PutWayTimes put;
  put.record = {of, Find(of), clock_->Now()};
  std::vector<WayTime>& times = put.record.times;
  for (const WayTime& time : measured) {
    const auto known = std::find_if(times.begin(), times.end(), [&](const WayTime& other) {
      return NameOf(other) == NameOf(time);
    });
    if (known != times.end()) {
      Join(time.us, *known);
    } else {
      times.push_back({time.operation, time.length_bits, time.way, time.us, 0, 1});
    }
  }
  {
    std::lock_guard lock(mutex_);
    Leave(of);
    Enter(put.record);
    put.drop = DropOldest(of.owner);
  }
  calls_->Submit(std::move(put), [name = of.application](const absl::Status& status) {
    if (status.ok()) return;
    spdlog::warn("how soon collectives of {} went is lost at the next start: {}", name,
                 status.ToString());
  });
  return absl::OkStatus();
}

void KnownTimes::Enter(WayTimesRecord record) {
  const WayTimesOf of = record.of;
  by_age_.emplace(record.measured, of);
  of_owner_[of.owner] += record.times.size();
  count_ += record.times.size();
  records_.insert_or_assign(of, std::move(record));
}

void KnownTimes::Leave(const WayTimesOf& of) {
  const auto found = records_.find(of);
  if (found == records_.end()) return;
  const size_t times = found->second.times.size();
  by_age_.erase({found->second.measured, of});
  count_ -= times;
  if ((of_owner_[of.owner] -= times) == 0) of_owner_.erase(of.owner);
  records_.erase(found);
}

std::vector<WayTimesOf> KnownTimes::DropOldest(const std::string& owner) {
  std::vector<WayTimesOf> dropped;
  const auto drop = [&](auto oldest) {
    dropped.push_back(oldest->second);
    Leave(dropped.back());
  };
  while (of_owner_[owner] > kMaxOfOwner) {
    drop(std::find_if(by_age_.begin(), by_age_.end(),
                      [&](const auto& entry) { return entry.second.owner == owner; }));
  }
  while (count_ > kMaxOfAll) drop(by_age_.begin());
  return dropped;
}

}  // namespace coppice
