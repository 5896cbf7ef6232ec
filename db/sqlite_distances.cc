#include "db/sqlite_distances.h"

#include <string>
#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr char kTcp[] = "tcp", kVerbs[] = "verbs";

}  // namespace

absl::Status DistanceWriter::Prepare() {
  ASSIGN_OR_RETURN(
      insert_,
      connection_.Prepare("INSERT OR REPLACE INTO distance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(drop_,
                   connection_.Prepare("DELETE FROM distance WHERE host_a = ? AND host_b = ?"));
  return absl::OkStatus();
}

absl::Status DistanceWriter::Put(const PutDistances& put) {
  for (const auto& [a, b] : put.drop) RETURN_IF_ERROR(drop_.Bind(a).Bind(b).Run());
  for (const DistanceRecord& d : put.put) {
    insert_.Bind(d.host_a).Bind(d.host_b).Bind(d.latency_us).Bind(d.latency_spread_us);
    insert_.Bind(d.bandwidth_gbps).Bind(d.bandwidth_spread_gbps).Bind(int64_t{d.samples});
    insert_.Bind(d.measured);
    RETURN_IF_ERROR(insert_.Bind(d.transport == Transport::kVerbs ? kVerbs : kTcp).Run());
  }
  return absl::OkStatus();
}

absl::Status DistanceReader::Prepare() {
  ASSIGN_OR_RETURN(list_, connection_.Prepare(R"sql(
      SELECT host_a, host_b, latency_us, latency_spread_us, bandwidth_gbps, bandwidth_spread_gbps,
             samples, measured_ns, transport FROM distance ORDER BY host_a, host_b)sql"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DistanceRecord>> DistanceReader::List() {
  std::vector<DistanceRecord> distances;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return distances;
    DistanceRecord record;
    record.host_a = std::string(list_.Text(0));
    record.host_b = std::string(list_.Text(1));
    record.latency_us = list_.Real(2);
    record.latency_spread_us = list_.Real(3);
    record.bandwidth_gbps = list_.Real(4);
    record.bandwidth_spread_gbps = list_.Real(5);
    record.samples = list_.Word(6);
    record.measured = list_.TimeAt(7);
    record.transport = list_.Text(8) == kVerbs ? Transport::kVerbs : Transport::kTcp;
    distances.push_back(std::move(record));
  }
}

}  // namespace coppice
