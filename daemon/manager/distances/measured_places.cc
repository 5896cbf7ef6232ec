#include "daemon/manager/distances/measured_places.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/distances/distance_listing.h"

namespace coppice {
namespace {

constexpr double kUnknown = -1;

// Seconds.
double TimeOfByte(double latency_us, double bandwidth_gbps, double message_bytes) {
  const double gap = 8 / (bandwidth_gbps * 1e9);
  return message_bytes > 0 ? gap + latency_us * 1e-6 / message_bytes : gap;
}

// [from][to], as far as it was measured; 0 within a host between ports of one switch.
std::vector<double> MeasuredTimes(const Places& places, const Fabric& fabric,
                                  const DistanceStore& distance_store, Transport transport,
                                  double message_bytes) {
  const size_t n = places.count();
  std::vector<double> times(n * n, kUnknown);
  const auto endpoint_of = [&](size_t p) {
    return places.endpoint(PlaceIndex(static_cast<uint32_t>(p)));
  };
  const auto leaf_of = [&](size_t p) { return fabric.attached_switch(endpoint_of(p)); };
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> places_of;  // by host
  for (size_t p = 0; p < n; ++p) {
    places_of[fabric.host_name(fabric.host(endpoint_of(p)))].push_back(p);
  }
  for (const auto& [host, ports] : places_of) {
    for (const size_t a : ports) {
      for (const size_t b : ports) {
        if (leaf_of(a) == leaf_of(b)) times[a * n + b] = 0;
      }
    }
  }
  distance_store.ForEach([&](const DistanceRecord& record) {
    if (record.transport != transport) return;
    const auto from = places_of.find(record.host_a), to = places_of.find(record.host_b);
    if (from == places_of.end() || to == places_of.end()) return;
    const double time = TimeOfByte(record.latency_us, record.bandwidth_gbps, message_bytes);
    for (const size_t a : from->second) {
      for (const size_t b : to->second) times[a * n + b] = times[b * n + a] = time;
    }
  });
  return times;
}

// Of the hosts of the places.
Transport TransportOf(const Places& places, const Fabric& fabric,
                      const DistanceStore& distance_store) {
  std::vector<std::string> hosts;
  for (uint32_t p = 0; p < places.count(); ++p) {
    hosts.emplace_back(fabric.host_name(fabric.host(places.endpoint(PlaceIndex(p)))));
  }
  return PrevailingTransport(distance_store, hosts);
}

using Medians = std::map<TransportLevel, LevelMedian>;

// Of two ports of one host, which nobody measures against each other: of pairs as far apart, else
// of the next that are farther, else of the farthest that there are. End: nothing was measured.
Medians::const_iterator NearestMedian(const Medians& medians, const TransportLevel& level) {
  const auto farther = medians.lower_bound(level);
  if (farther != medians.end() && farther->first.first == level.first) return farther;
  if (farther == medians.begin()) return medians.end();
  const auto nearer = std::prev(farther);
  return nearer->first.first == level.first ? nearer : medians.end();
}

absl::Status Estimate(const Places& places, const Snapshot& snapshot,
                      const DistanceStore& distance_store, Transport transport,
                      double message_bytes, std::vector<double>& times) {
  if (std::find(times.begin(), times.end(), kUnknown) == times.end()) return absl::OkStatus();
  const Fabric& fabric = *snapshot.fabric;
  const Medians medians = LevelMedians(distance_store, snapshot);
  const uint32_t n = places.count();
  for (uint32_t a = 0; a < n; ++a) {
    for (uint32_t b = 0; b < n; ++b) {
      double& time = times[size_t{a} * n + b];
      if (time != kUnknown) continue;
      const EndpointIndex from = places.endpoint(PlaceIndex(a)),
                          to = places.endpoint(PlaceIndex(b));
      const TransportLevel level(transport, LevelOf(snapshot.routes->distances(), from, to));
      const HostIndex host = fabric.host(from);
      const bool is_one_host = host == fabric.host(to);
      const auto median = is_one_host ? NearestMedian(medians, level) : medians.find(level);
      if (median == medians.end() && is_one_host) {
        time = 0;
        continue;
      }
      if (median == medians.end()) {
        return NotMeasured(fabric.host_name(host), fabric.host_name(fabric.host(to)), level);
      }
      time = TimeOfByte(median->second.latency_us, median->second.bandwidth_gbps, message_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PlaceDistances>> MeasuredDistances(
    const Places& places, const Snapshot& snapshot, const DistanceStore& distance_store,
    double message_bytes) {
  if (places.count() > PlaceDistances::kMaxMatrixPlaces) {
    return absl::InvalidArgumentError(
        absl::StrCat("measured distances between ", places.count(), " ports; map onto at most ",
                     PlaceDistances::kMaxMatrixPlaces, ", or by hops"));
  }
  const Transport transport = TransportOf(places, *snapshot.fabric, distance_store);
  std::vector<double> times =
      MeasuredTimes(places, *snapshot.fabric, distance_store, transport, message_bytes);
  RETURN_IF_ERROR(Estimate(places, snapshot, distance_store, transport, message_bytes, times));
  double least = std::numeric_limits<double>::infinity();
  for (const double time : times) {
    if (time > 0) least = std::min(least, time);
  }
  for (double& time : times) {
    if (time > 0) time /= least;
  }
  return PlaceDistances::Matrix(places.count(), std::move(times));
}

}  // namespace coppice
