// What is stored of measured distances between hosts. Part of the interface in store.h, which
// includes this. Plain structs; how many are kept, and which go, is the manager's.
#ifndef COPPICE_DB_DISTANCE_RECORDS_H_
#define COPPICE_DB_DISTANCE_RECORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace coppice {

// What a distance was measured over. Figures over two cannot be compared.
enum class Transport { kTcp, kVerbs };

// Of one pair of hosts, by their names in the fabric; the one that measured comes first.
struct DistanceRecord {
  std::string host_a, host_b;    // host_a < host_b, as bytes
  double latency_us = 0;         // half a round trip: mean of the samples kept
  double latency_spread_us = 0;  // their standard deviation
  double bandwidth_gbps = 0;     // of one direction
  double bandwidth_spread_gbps = 0;
  uint32_t samples = 0;  // of latency, kept
  absl::Time measured;
  Transport transport = Transport::kTcp;
  friend bool operator==(const DistanceRecord&, const DistanceRecord&) = default;
};

// Drops pairs, whether or not they are there, then puts others, each in place of the one of the
// same hosts. INVALID_ARGUMENT: hosts without a name or not in order; a latency or bandwidth that
// is not above 0, a spread below 0, or either infinite; no samples.
struct PutDistances {
  std::vector<DistanceRecord> put;
  std::vector<std::pair<std::string, std::string>> drop;  // host_a, host_b
};

}  // namespace coppice

#endif  // COPPICE_DB_DISTANCE_RECORDS_H_
