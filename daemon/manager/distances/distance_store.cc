#include "daemon/manager/distances/distance_store.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/fabric_view.h"
#include "proto/text/log.h"

namespace coppice {

absl::StatusOr<std::unique_ptr<DistanceStore>> DistanceStore::Create(Store* store,
                                                                     size_t most_pairs) {
  ASSIGN_OR_RETURN(std::vector<DistanceRecord> records, store->Distances());
  std::unique_ptr<DistanceStore> distance_store(new DistanceStore(store, most_pairs));
  PutDistances put;
  {
    std::lock_guard lock(distance_store->mutex_);
    for (DistanceRecord& record : records) distance_store->Enter(std::move(record));
    put.drop = distance_store->DropOldest();
  }
  if (!put.drop.empty()) RETURN_IF_ERROR(store->Apply(std::move(put)));
  return distance_store;
}

void DistanceStore::Enter(DistanceRecord record) {
  HostPair hosts{record.host_a, record.host_b};
  const auto old = records_.find(hosts);
  if (old != records_.end()) by_age_.erase({old->second.measured, hosts});
  by_age_.emplace(record.measured, hosts);
  records_.insert_or_assign(std::move(hosts), std::move(record));
}

std::vector<HostPair> DistanceStore::DropOldest() {
  std::vector<HostPair> dropped;
  while (records_.size() > most_pairs_) {
    const auto oldest = by_age_.begin();
    records_.erase(oldest->second);
    dropped.push_back(oldest->second);
    by_age_.erase(oldest);
  }
  return dropped;
}

void DistanceStore::Put(std::vector<DistanceRecord> records) {
  if (records.empty()) return;
  std::lock_guard writing(writing_);
  PutDistances put;
  put.put = records;
  {
    std::lock_guard lock(mutex_);
    ++revision_;
    for (DistanceRecord& record : records) Enter(std::move(record));
    put.drop = DropOldest();
    // One of them may be among the oldest itself.
    std::erase_if(put.put, [this](const DistanceRecord& record) {
      return !records_.contains({record.host_a, record.host_b});
    });
  }
  const size_t count = put.put.size();
  calls_.Submit(std::move(put), [count](absl::Status status) {
    if (!status.ok()) {
      spdlog::warn("{} measured distances are lost at the next start: {}", count,
                   status.ToString());
    }
  });
}

size_t DistanceStore::size() const {
  std::lock_guard lock(mutex_);
  return records_.size();
}

uint64_t DistanceStore::revision() const {
  std::lock_guard lock(mutex_);
  return revision_;
}

std::optional<DistanceRecord> DistanceStore::Find(const HostPair& hosts) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(hosts);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

namespace {

struct PairCounts {
  size_t tcp = 0, verbs = 0;
  void Add(Transport transport) { ++(transport == Transport::kVerbs ? verbs : tcp); }
};

// Of an even number the mean of the two in the middle. Not empty.
double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

constexpr double DistanceRecord::*kMeasures[] = {
    &DistanceRecord::latency_us, &DistanceRecord::latency_spread_us,
    &DistanceRecord::bandwidth_gbps, &DistanceRecord::bandwidth_spread_gbps};

std::optional<EndpointIndex> FirstEndpoint(const Fabric& fabric, absl::string_view name) {
  const std::optional<HostIndex> host = fabric.FindHost(name);
  if (!host.has_value()) return std::nullopt;
  return fabric.endpoints_of_host(*host).front();
}

absl::Status CheckHosts(const DistanceStore& distance_store, const Snapshot* snapshot,
                        const std::vector<std::string>& hosts) {
  absl::flat_hash_set<absl::string_view> unknown;
  for (const std::string& host : hosts) {
    if (snapshot == nullptr || !snapshot->fabric->FindHost(host).has_value()) unknown.insert(host);
  }
  if (unknown.empty()) return absl::OkStatus();
  distance_store.ForEach([&](const DistanceRecord& record) {
    unknown.erase(record.host_a);
    unknown.erase(record.host_b);
  });
  if (unknown.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("hosts: there is no host ",
                                          absl::CHexEscape(*unknown.begin()),
                                          "; `fabric nodes` lists them"));
}

std::vector<DistanceRecord> ListMeasured(const DistanceStore& distance_store,
                                         const DistanceQuery& query) {
  const absl::flat_hash_set<std::string> wanted(query.hosts.begin(), query.hosts.end());
  std::vector<DistanceRecord> page;
  if (query.limit == 0) return page;
  distance_store.ForEachAfter(query.after, [&](const DistanceRecord& record) {
    const bool is_between =
        wanted.empty() || (wanted.contains(record.host_a) && wanted.contains(record.host_b));
    const bool is_over = query.transport.value_or(record.transport) == record.transport;
    if (is_between && is_over) page.push_back(record);
    return page.size() < query.limit;
  });
  return page;
}

absl::StatusOr<DistanceRecord> Estimate(const Snapshot& snapshot, const Medians& medians,
                                        Transport transport, const std::string& a,
                                        const std::string& b) {
  const std::optional<EndpointIndex> from = FirstEndpoint(*snapshot.fabric, a);
  const std::optional<EndpointIndex> to = FirstEndpoint(*snapshot.fabric, b);
  const TransportLevel level(transport, from.has_value() && to.has_value()
                                            ? LevelOf(snapshot.routes->distances(), *from, *to)
                                            : kApart);
  const auto median = medians.find(level);
  if (median == medians.end()) return NotMeasured(a, b, level);
  DistanceRecord record = median->second;
  record.host_a = a;
  record.host_b = b;
  return record;
}

absl::StatusOr<std::vector<DistanceRecord>> ListEstimated(const DistanceStore& distance_store,
                                                          const Snapshot* snapshot,
                                                          const DistanceQuery& query,
                                                          LevelMedianCache& cache) {
  std::vector<std::string> hosts = query.hosts;
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (hosts.empty() || hosts.size() > DistanceQuery::kMaxEstimated) {
    return absl::InvalidArgumentError(absl::StrCat(
        "estimate: of ", hosts.size(), " hosts; name 1 to ", DistanceQuery::kMaxEstimated));
  }
  if (snapshot == nullptr) return NoFabricError();
  const std::shared_ptr<const Medians> medians = cache.Get(distance_store, *snapshot);
  const Transport transport =
      query.transport ? *query.transport : cache.Prevailing(distance_store, hosts);
  std::vector<DistanceRecord> page;
  const auto& [last_a, last_b] = query.after;
  for (auto a = std::lower_bound(hosts.begin(), hosts.end(), last_a); a != hosts.end(); ++a) {
    auto b = a + 1;
    if (*a == last_a) b = std::upper_bound(b, hosts.end(), last_b);
    for (; b != hosts.end(); ++b) {
      if (page.size() == query.limit) return page;
      std::optional<DistanceRecord> record = distance_store.Find({*a, *b});
      if (!record.has_value() || record->transport != transport) {
        ASSIGN_OR_RETURN(record, Estimate(*snapshot, *medians, transport, *a, *b));
      }
      page.push_back(*std::move(record));
    }
  }
  return page;
}

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

uint32_t LevelOf(const SwitchDistances& distances, EndpointIndex a, EndpointIndex b) {
  const Fabric& fabric = distances.fabric();
  const std::optional<SwitchIndex> s = fabric.attached_switch(a), t = fabric.attached_switch(b);
  if (s.has_value() && t.has_value()) {
    const uint8_t between = distances.Between(*s, *t);
    return between == SwitchDistances::kUnreachable ? kApart : between + 2u;
  }
  return distances.Hops(fabric.Vertex(a), fabric.Vertex(b)).value_or(kApart);
}

NodeLevels LevelsOf(const Snapshot& snapshot, const std::vector<std::string>& hosts) {
  const Fabric& fabric = *snapshot.fabric;
  NodeLevels levels;
  std::vector<std::optional<EndpointIndex>> representatives;  // [group]; none: not in the fabric
  absl::flat_hash_map<uint32_t, uint32_t> group_of_switch;
  std::optional<uint32_t> strangers;
  for (const std::string& name : hosts) {
    const std::optional<HostIndex> host = fabric.FindHost(name);
    const auto next = static_cast<uint32_t>(representatives.size());
    if (!host.has_value()) {
      if (!strangers.has_value()) {
        strangers = next;
        representatives.push_back(std::nullopt);
      }
      levels.group.push_back(*strangers);
      continue;
    }
    const EndpointIndex endpoint = fabric.endpoints_of_host(*host).front();
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(endpoint);
    // Back to back: a group of its own.
    const uint32_t group =
        leaf.has_value() ? group_of_switch.try_emplace(leaf->value(), next).first->second : next;
    if (group == next) representatives.push_back(endpoint);
    levels.group.push_back(group);
  }
  levels.group_count = static_cast<uint32_t>(representatives.size());
  levels.level = [&snapshot, representatives](uint32_t a, uint32_t b) {
    if (!representatives[a].has_value() || !representatives[b].has_value()) return kApart;
    return LevelOf(snapshot.routes->distances(), *representatives[a], *representatives[b]);
  };
  return levels;
}

const char* NameOf(Transport transport) { return transport == Transport::kVerbs ? "verbs" : "TCP"; }

Transport PrevailingTransport(const DistanceStore& distance_store,
                              const std::vector<std::string>& hosts) {
  const absl::flat_hash_set<absl::string_view> wanted(hosts.begin(), hosts.end());
  PairCounts all, between;
  distance_store.ForEach([&](const DistanceRecord& record) {
    all.Add(record.transport);
    const bool is_between = wanted.contains(record.host_a) && wanted.contains(record.host_b);
    if (is_between) between.Add(record.transport);
  });
  const PairCounts& counts = between.tcp + between.verbs > 0 ? between : all;
  return counts.verbs >= counts.tcp ? Transport::kVerbs : Transport::kTcp;
}

absl::Status NotMeasured(absl::string_view a, absl::string_view b, const TransportLevel& level) {
  const std::string why = absl::StrCat("the distance between ", a, " and ", b,
                                       " was not measured over ", NameOf(level.first));
  if (level.second == kApart) {
    return absl::FailedPreconditionError(
        absl::StrCat(why, ", and no links join them, so that none of others stands for it; leave ",
                     "out the one that is not in the fabric, or measure all --over tcp"));
  }
  return absl::FailedPreconditionError(absl::StrCat(why, ", nor that of any hosts ", level.second,
                                                    " links apart; coppicectl distance measure ",
                                                    "does"));
}

Medians LevelMedians(const DistanceStore& distance_store, const Snapshot& snapshot) {
  const Fabric& fabric = *snapshot.fabric;
  std::map<TransportLevel, std::array<std::vector<double>, std::size(kMeasures)>> values;
  distance_store.ForEach([&](const DistanceRecord& record) {
    const std::optional<EndpointIndex> a = FirstEndpoint(fabric, record.host_a);
    const std::optional<EndpointIndex> b = FirstEndpoint(fabric, record.host_b);
    if (!a.has_value() || !b.has_value()) return;
    auto& level = values[{record.transport, LevelOf(snapshot.routes->distances(), *a, *b)}];
    for (size_t i = 0; i < level.size(); ++i) level[i].push_back(record.*kMeasures[i]);
  });
  Medians medians;
  for (auto& [level, of_level] : values) {
    DistanceRecord& median = medians[level];
    median.transport = level.first;
    median.measured = absl::UnixEpoch();
    for (size_t i = 0; i < of_level.size(); ++i) median.*kMeasures[i] = Median(of_level[i]);
  }
  return medians;
}

std::shared_ptr<const Medians> LevelMedianCache::Get(const DistanceStore& distance_store,
                                                     const Snapshot& snapshot) {
  std::lock_guard lock(mutex_);
  const uint64_t revision = distance_store.revision();
  if (medians_ == nullptr || revision != revision_ || fabric_.lock() != snapshot.fabric ||
      routes_.lock() != snapshot.routes) {
    medians_ = std::make_shared<const Medians>(LevelMedians(distance_store, snapshot));
    revision_ = revision;
    fabric_ = snapshot.fabric;
    routes_ = snapshot.routes;
  }
  return medians_;
}

Transport LevelMedianCache::Prevailing(const DistanceStore& distance_store,
                                       const std::vector<std::string>& hosts) {
  std::lock_guard lock(mutex_);
  const uint64_t revision = distance_store.revision();
  if (!prevailing_ || revision != prevailing_revision_ || hosts != prevailing_of_) {
    prevailing_ = PrevailingTransport(distance_store, hosts);
    prevailing_revision_ = revision;
    prevailing_of_ = hosts;
  }
  return *prevailing_;
}

absl::StatusOr<std::vector<DistanceRecord>> FindDistances(const DistanceStore& distance_store,
                                                          const Snapshot* snapshot,
                                                          const DistanceQuery& query,
                                                          LevelMedianCache& medians) {
  RETURN_IF_ERROR(CheckHosts(distance_store, snapshot, query.hosts));
  return query.estimate ? ListEstimated(distance_store, snapshot, query, medians)
                        : ListMeasured(distance_store, query);
}

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
