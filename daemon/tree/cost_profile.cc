// The built-in profiles, and where each of their constants comes from.
#include "daemon/tree/cost_profile.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace coppice {
namespace {

// The least that an InfiniBand packet within one subnet carries beside its payload: LRH 8, BTH 12,
// ICRC 4, VCRC 2 (IBA vol. 1, 5.2). A reliable SEND has no more; a datagram would add DETH 8, a
// packet to another subnet GRH 40.
constexpr uint32_t kLeastHeaderBytes = 8 + 12 + 4 + 2;

// Chen 2024. Stated there: a = delta * l + phi = 1.12 us and b = theta = 0.01 us for Barrier and
// Bcast (3.1), and delta = 4 on the two-level fat tree (6.1.1: "4 links"). How a splits, and the
// switches' constants, follow from two measured differences:
//  - 6.1.1: hierarchical trees are "about 0.6 us" faster than k-ary ones of the same height,
//    because one of their two steps crosses 2 links instead of 4. Up and down that is 4 links, so
//    l = 0.15 us, and phi = 1.12 - 4 * 0.15 = 0.52 us.
//  - 6.2.1: type II is "about 1 us" faster than the 64-ary type I tree. For 64 processes on 4 leaf
//    switches type I takes 2 * (1.12 + 63 * 0.01) = 3.5 us; type II pays 0.52 us once at the NICs,
//    6 links and three times phi of a switch: 2.5 us leaves about 0.4 us for each.
// The text gives nothing more. Assumed: sending a copy costs what matching a packet costs; a
// switch matches five times as fast as a NIC, because it need not cross a host interface; both
// reduce at 10 GB/s, about line rate. The reason that long payloads prefer type I is then the one
// of section 5: one switch reduces the packets of its many children one after another, while many
// NICs reduce two or three packets each at the same time.
CostProfile PaperProfile() {
  CostProfile profile;
  profile.name = "paper";
  profile.nic = {.forward_us = 0.52,
                 .forward_us_per_byte = 0,
                 .match_us = 0.01,
                 .reduce_us_per_byte = 1e-4,
                 .send_us = 0.01};
  profile.switch_ = {.forward_us = 0.4,
                     .forward_us_per_byte = 0,
                     .match_us = 0.002,
                     .reduce_us_per_byte = 1e-4,
                     .send_us = 0.002};
  profile.link_us = 0.15;
  profile.same_host_us = 0.05;  // one chip holds both ports (2.3): a turn inside it, no link
  profile.mean_route_links = 4;
  profile.port_gbps = 100;  // not stated; generation of 25 Gb/s lanes, four to a port
  profile.header_bytes = kLeastHeaderBytes;
  return profile;
}

// A generic InfiniBand HDR fabric (200 Gb/s, ConnectX-6 and Quantum class). An estimate:
//  - port-to-port latency of a Quantum (QM8700) switch below 0.13 us (product brief); with a few
//    metres of cable at 5 ns/m about 0.15 us a link;
//  - NIC-to-NIC latency of ConnectX-6 below 0.6 us through no switch (product brief); store and
//    forward at a NIC that also reduces about 0.7 us, with 5 million reduced packets a second;
//  - SHARP on 128 nodes of two levels: 8 B Allreduce in about 2.2-2.8 us (Graham et al., "Scalable
//    Hierarchical Aggregation Protocol", COMHPC 2016): two switch levels up and down, so about
//    0.35 us each, and a packet matched in a few nanoseconds;
//  - reduction at line rate in both: 25 GB/s = 4e-5 us a byte.
CostProfile HdrProfile() {
  CostProfile profile;
  profile.name = "hdr";
  profile.is_estimate = true;
  profile.nic = {.forward_us = 0.7,
                 .forward_us_per_byte = 0,
                 .match_us = 0.02,
                 .reduce_us_per_byte = 4e-5,
                 .send_us = 0.02};
  profile.switch_ = {.forward_us = 0.35,
                     .forward_us_per_byte = 0,
                     .match_us = 0.003,
                     .reduce_us_per_byte = 4e-5,
                     .send_us = 0.003};
  profile.init_us = 0.3;  // post a work request, ring the doorbell
  profile.link_us = 0.15;
  profile.same_host_us = 0.2;  // through the host's PCIe switch or memory
  profile.mean_route_links = 4;
  profile.port_gbps = 200;
  profile.mtu_bytes = 4096;
  profile.header_bytes = kLeastHeaderBytes;
  return profile;
}

}  // namespace

std::vector<std::string> BuiltInProfileNames() { return {"paper", "hdr"}; }

absl::StatusOr<CostProfile> BuiltInProfile(absl::string_view name) {
  if (name == "paper") return PaperProfile();
  if (name == "hdr") return HdrProfile();
  return absl::NotFoundError(
      absl::StrCat("no built-in cost profile is named \"", name,
                   "\"; there are: ", absl::StrJoin(BuiltInProfileNames(), ", ")));
}

}  // namespace coppice
