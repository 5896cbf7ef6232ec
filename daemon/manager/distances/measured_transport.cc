#include "daemon/manager/distances/measured_transport.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace coppice {
namespace {

struct PairCounts {
  size_t tcp = 0, verbs = 0;
  void Add(Transport transport) { ++(transport == Transport::kVerbs ? verbs : tcp); }
};

}  // namespace

const char* NameOf(Transport transport) { return transport == Transport::kVerbs ? "verbs" : "TCP"; }

Transport PrevailingTransport(const DistanceShelf& shelf, const std::vector<std::string>& hosts) {
  const absl::flat_hash_set<absl::string_view> wanted(hosts.begin(), hosts.end());
  PairCounts all, between;
  shelf.ForEach([&](const DistanceRecord& record) {
    all.Add(record.transport);
    const bool is_between = wanted.contains(record.host_a) && wanted.contains(record.host_b);
    if (is_between) between.Add(record.transport);
  });
  const PairCounts& counts = between.tcp + between.verbs > 0 ? between : all;
  return counts.verbs >= counts.tcp ? Transport::kVerbs : Transport::kTcp;
}

}  // namespace coppice
