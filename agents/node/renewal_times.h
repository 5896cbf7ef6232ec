// When a lease is renewed, and how long a try may take, so that two of them may fail before it runs
// out, however short it is:
//
//   0        1/3   1/2   2/3   5/6    1
//   |---------|-----|-----|-----|-----|
//    wait      try   pause try   pause  of the lease
#ifndef COPPICE_AGENTS_NODE_RENEWAL_TIMES_H_
#define COPPICE_AGENTS_NODE_RENEWAL_TIMES_H_

#include <algorithm>
#include <chrono>

namespace coppice {

using LeaseTime = std::chrono::milliseconds;

inline constexpr LeaseTime kLongestTry{10'000};
inline constexpr LeaseTime kLongestRenewalPause{5'000};
// However short the lease: less is a busy loop.
inline constexpr LeaseTime kShortestRenewalTime{100};
// Taken for the lease of a job that has not been renewed since the agent started.
inline constexpr LeaseTime kUnknownLease{6'000};

inline LeaseTime RenewalWait(LeaseTime lease) { return std::max(lease / 3, kShortestRenewalTime); }

inline LeaseTime SixthOf(LeaseTime lease, LeaseTime most) {
  const LeaseTime known = lease.count() > 0 ? lease : kUnknownLease;
  return std::clamp(known / 6, kShortestRenewalTime, most);
}
inline LeaseTime MostOfTry(LeaseTime lease) { return SixthOf(lease, kLongestTry); }
inline LeaseTime MostOfPause(LeaseTime lease) { return SixthOf(lease, kLongestRenewalPause); }

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_RENEWAL_TIMES_H_
