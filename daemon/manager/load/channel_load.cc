#include "daemon/manager/load/channel_load.h"

#include <algorithm>

namespace coppice {
namespace {

double Share(double rate, double capacity) {
  return capacity > 0 ? std::clamp(rate / capacity, 0.0, 1.0) : 0;
}

}  // namespace

void ChannelLoad::Restore(const LinkLoadRecord& record, absl::Duration until) {
  restored_ = std::clamp(record.average, 0.0, 1.0);
  peak_ = std::clamp(record.peak, 0.0, 1.0);
  peaked_ = record.peaked;
  read_ = record.updated;
  measured_ = until;
}

void ChannelLoad::Take(const Growth& bytes, absl::Duration length, double capacity,
                       absl::Duration now, absl::Time wall, absl::Duration time_constant) {
  const double seconds = absl::ToDoubleSeconds(length);
  if (seconds <= 0) return;
  certainty_ = bytes.certainty;
  if (bytes.is_stopped) {
    measured_ = now;
    return;
  }
  const double constant = std::max(absl::ToDoubleSeconds(time_constant), 1e-3);
  const double rate = static_cast<double>(bytes.count) / seconds;
  const bool counts = bytes.certainty == Certainty::kExact ||
                      (bytes.certainty == Certainty::kAtLeast && rate > average_.value());
  if (!counts) {
    average_.Skip(seconds, constant);
    return;
  }
  average_.Add(rate, seconds, constant);
  restored_ = -1;
  measured_ = now;
  life_ = std::max(kLoadLife, 3 * length);
  read_ = wall;
  if (const double share = Share(rate, capacity);
      share > peak_ || peaked_ == absl::InfinitePast()) {
    peak_ = share;
    peaked_ = wall;
  }
}

double ChannelLoad::Average(double capacity, absl::Duration now) const {
  if (read_ == absl::InfinitePast() || now - measured_ > life_) return 0;
  return restored_ >= 0 ? restored_ : Share(average_.value(), capacity);
}

}  // namespace coppice
