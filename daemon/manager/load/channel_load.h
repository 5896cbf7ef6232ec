// The load of one channel over time: moving average and peak of what was measured between readings.
// Knows no ports and no other channels.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_LOAD_H_
#define COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_LOAD_H_

#include "absl/time/time.h"
#include "daemon/manager/load/link_measure.h"
#include "daemon/manager/load/moving_average.h"
#include "daemon/manager/load/port_rates.h"
#include "db/store.h"

namespace coppice {

class ChannelLoad {
 public:
  // What an earlier daemon measured, up to `until` by the monotonic clock: the average counts until
  // the first measurement here, or until it is too old; the peak stays.
  void Restore(const LinkLoadRecord& record, absl::Duration until);

  // `bytes` went over it in `length`, which ends at `now` by the monotonic and at `wall` by the
  // wall clock. `capacity` in bytes a second; 0, unknown: the load is 0. A lower bound counts where
  // it raises the average; what is unknown lets it fade. While a count stands at its end the
  // average stays as it is, and read() with it: a port that nobody clears would pass for idle.
  void Take(const Growth& bytes, absl::Duration length, double capacity, absl::Duration now,
            absl::Time wall, absl::Duration time_constant);

  // Share of the capacity, 0..1, as of `now`: 0 if the newest measurement is too old.
  double Average(double capacity, absl::Duration now) const;
  double peak() const { return peak_; }
  absl::Time peaked() const { return peaked_; }
  absl::Time read() const { return read_; }
  // Of the newest Take.
  Certainty certainty() const { return certainty_; }

 private:
  MovingAverage average_;    // bytes a second
  double restored_ = -1;     // share; below 0: none, or superseded
  absl::Duration measured_;  // end of the newest measurement, monotonic
  absl::Duration life_ = kLoadLife;
  double peak_ = 0;
  absl::Time peaked_ = absl::InfinitePast(), read_ = absl::InfinitePast();
  Certainty certainty_ = Certainty::kUnknown;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_LOAD_H_
