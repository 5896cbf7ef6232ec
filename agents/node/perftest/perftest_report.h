// What perftest's ib_write_lat and ib_write_bw print, as far as a measurement needs it.
//
//   ---------------------------------------------------------------------------------------
//    #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]  ...
//    8       1000          0.86           5.34         0.90               0.91         ...
//   ---------------------------------------------------------------------------------------
//
// One heading, under which is one row. Between them may be lines that begin with no digit, such as
// "Conflicting CPU frequency values detected". Written after perftest 4.5 (Debian 12) and its
// source; headings of other units or with other columns are refused.
#ifndef COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_REPORT_H_
#define COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/ping_pong.h"

namespace coppice {

// Of ib_write_lat: half a round trip in microseconds. The mean is t_typical, the median, which what
// the operating system took away does not move; the deviation is t_stdev, of all iterations.
// INVALID_ARGUMENT, naming what is wrong: there is no row of messages of so many bytes.
absl::StatusOr<Spread> ParseLatencyReport(absl::string_view output, uint32_t bytes);
// Of ib_write_bw --report_gbits: the average in Gbit/s. It tells no deviation, which is 0.
absl::StatusOr<Spread> ParseBandwidthReport(absl::string_view output, uint32_t bytes);

// Of a program that failed: the last lines that say something, fit for people.
std::string LastWords(absl::string_view output);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_REPORT_H_
