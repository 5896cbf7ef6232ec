#include "daemon/tree/member_places.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

absl::Status CheckMembers(const Fabric& fabric, Members members) {
  if (members.empty()) {
    return absl::InvalidArgumentError(
        "the communicator has no members; name at least one endpoint");
  }
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].value() < fabric.endpoint_count()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is on endpoint number ",
                                                   members[rank].value(), ", but the fabric has ",
                                                   fabric.endpoint_count(), " endpoints"));
  }
  const uint32_t component = fabric.component(fabric.Vertex(members[0]));
  for (size_t rank = 1; rank < members.size(); ++rank) {
    if (fabric.component(fabric.Vertex(members[rank])) == component) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank 0 on ", Describe(fabric, fabric.Vertex(members[0])), " and rank ", rank,
                     " on ", Describe(fabric, fabric.Vertex(members[rank])),
                     " are in different subnetworks: no cable joins them; cable these or split the "
                     "communicator"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemberPlaces> FindMemberPlaces(const Snapshot& snapshot, Members members) {
  const Fabric& fabric = *snapshot.fabric;
  if (absl::Status status = CheckMembers(fabric, members); !status.ok()) return status;
  MemberPlaces places;
  std::vector<uint64_t> by_endpoint(members.size());  // endpoint, then rank
  for (size_t rank = 0; rank < members.size(); ++rank) {
    by_endpoint[rank] = uint64_t{members[rank].value()} << 32 | rank;
  }
  std::sort(by_endpoint.begin(), by_endpoint.end());
  std::vector<uint32_t> first_rank(members.size());
  for (size_t i = 0; i < by_endpoint.size(); ++i) {
    const auto rank = static_cast<uint32_t>(by_endpoint[i]);
    const bool again = i > 0 && by_endpoint[i] >> 32 == by_endpoint[i - 1] >> 32;
    first_rank[rank] = again ? first_rank[static_cast<uint32_t>(by_endpoint[i - 1])] : rank;
  }
  places.endpoint_of_rank.resize(members.size());
  places.endpoints.reserve(members.size());
  places.ranks_at.reserve(members.size());
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    if (first_rank[rank] != rank) {
      places.endpoint_of_rank[rank] = places.endpoint_of_rank[first_rank[rank]];
      ++places.ranks_at[places.endpoint_of_rank[rank]];
      continue;
    }
    places.endpoint_of_rank[rank] = static_cast<uint32_t>(places.endpoints.size());
    places.endpoints.push_back(members[rank]);
    places.ranks_at.push_back(1);
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(members[rank]);
    if (leaf) {
      places.leaf_switches.push_back(*leaf);
    } else {
      places.all_on_switches = false;
    }
  }
  std::sort(places.leaf_switches.begin(), places.leaf_switches.end());
  places.leaf_switches.erase(std::unique(places.leaf_switches.begin(), places.leaf_switches.end()),
                             places.leaf_switches.end());
  places.leaf_of_endpoint.reserve(places.endpoints.size());
  for (const EndpointIndex endpoint : places.endpoints) {
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(endpoint);
    const auto at =
        leaf ? std::lower_bound(places.leaf_switches.begin(), places.leaf_switches.end(), *leaf)
             : places.leaf_switches.end();
    places.leaf_of_endpoint.push_back(static_cast<uint32_t>(at - places.leaf_switches.begin()));
  }
  return places;
}

}  // namespace coppice
