// Dragonfly, J. Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly
// topology", ISCA 2008; and dragonfly+, A. Shpiner et al., "Dragonfly+: low cost topology for
// scaling datacenters", HiPINEB 2017, whose groups are two-level trees with global links on the
// spines.
//
//     group 0            group 1          Every pair of groups is joined by the same number of
//     global R--R--R            R--R--R          links: round k of a group's global ports 0.. goes
//     once to
//      \ | /  global      \ | /           every other group in order, so that port k (g - 1) + i of
//      a
//        R ----------------- R            group is round k's cable to its i-th other group. Ports
//        left
//                                         over by an incomplete round stay free.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/models/model_builder.h"

namespace coppice {
namespace {

// Joins groups whose global ports are spread over `carriers` switches of each group, `per_switch`
// on each. first[i] is the first of group i's carriers.
void CableGroups(ModelBuilder& builder, const std::vector<uint32_t>& first, uint64_t carriers,
                 uint64_t per_switch, ModelLink link) {
  const uint64_t groups = first.size();
  if (groups < 2) return;
  const uint64_t rounds = carriers * per_switch / (groups - 1);
  const auto carrier = [&](uint64_t group, uint64_t other, uint64_t round) {
    const uint64_t port = round * (groups - 1) + (other < group ? other : other - 1);
    return static_cast<uint32_t>(first[group] + port / per_switch);
  };
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = 0; i < groups; ++i) {
      for (uint64_t j = i + 1; j < groups; ++j) {
        builder.Cable(carrier(i, j, round), carrier(j, i, round), link);
      }
    }
  }
}

// The number of groups: as many as there can be if it is 0.
absl::StatusOr<uint64_t> Groups(const ModelArguments& arguments, uint64_t global_ports) {
  const uint64_t groups = arguments.Integer("g");
  if (groups == 0) return global_ports + 1;
  if (groups <= global_ports + 1) return groups;
  return absl::InvalidArgumentError(absl::StrCat(
      "argument g=", groups, ": the ", global_ports, " global links of a group reach at most ",
      global_ports + 1, " groups; expected a number from 0 to ", global_ports + 1));
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateDragonfly(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), a = arguments.Integer("a"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, a * h));
  const double routers = static_cast<double>(a) * static_cast<double>(groups);
  RETURN_IF_ERROR(
      ModelBuilder::CheckSize(routers, routers * static_cast<double>(p),
                              routers * (static_cast<double>(p + h) + static_cast<double>(a) / 2)));
  ModelBuilder builder(groups * a * p);
  std::vector<uint32_t> first(groups);
  for (uint64_t g = 0; g < groups; ++g) {
    for (uint64_t r = 0; r < a; ++r) {
      const uint32_t s = builder.AddSwitch(absl::StrCat("G", g, "R", r));
      if (r == 0) first[g] = s;
      for (uint64_t n = 0; n < p; ++n) {
        builder.CableHost((g * a + r) * p + n, 0, s, {arguments.Speed(0)});
      }
    }
    for (uint64_t r = 0; r < a; ++r) {
      for (uint64_t q = r + 1; q < a; ++q) {
        builder.Cable(static_cast<uint32_t>(first[g] + r), static_cast<uint32_t>(first[g] + q),
                      {arguments.Speed(1)});
      }
    }
  }
  CableGroups(builder, first, a, h, {arguments.Speed(2)});
  return builder.Build(arguments);
}

absl::StatusOr<std::shared_ptr<const Fabric>> GeneratePlus(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), leaves = arguments.Integer("leaves"),
                 spines = arguments.Integer("spines"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, spines * h));
  const double all_leaves = static_cast<double>(leaves) * static_cast<double>(groups);
  const double all_spines = static_cast<double>(spines) * static_cast<double>(groups);
  RETURN_IF_ERROR(ModelBuilder::CheckSize(
      all_leaves + all_spines, all_leaves * static_cast<double>(p),
      all_leaves * static_cast<double>(p + spines) + all_spines * static_cast<double>(h)));
  ModelBuilder builder(groups * leaves * p);
  std::vector<uint32_t> first(groups);
  for (uint64_t g = 0; g < groups; ++g) {
    std::vector<uint32_t> leaf(leaves);
    for (uint64_t l = 0; l < leaves; ++l) {
      leaf[l] = builder.AddSwitch(absl::StrCat("G", g, "L", l));
      for (uint64_t n = 0; n < p; ++n) {
        builder.CableHost((g * leaves + l) * p + n, 0, leaf[l], {arguments.Speed(0)});
      }
    }
    for (uint64_t s = 0; s < spines; ++s) {
      const uint32_t spine = builder.AddSwitch(absl::StrCat("G", g, "S", s));
      if (s == 0) first[g] = spine;
      for (const uint32_t l : leaf) builder.Cable(l, spine, {arguments.Speed(1)});
    }
  }
  CableGroups(builder, first, spines, h, {arguments.Speed(2)});
  return builder.Build(arguments);
}

}  // namespace

const Model& DragonflyModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model =
      new Model{"dragonfly",
                "groups of fully joined routers G<group>R<router>, every pair of groups joined",
                {{"p", kInteger, "2", 0, 254, "hosts on each router"},
                 {"a", kInteger, "4", 1, 254, "routers in each group"},
                 {"h", kInteger, "2", 0, 254, "global links of each router"},
                 {"g", kInteger, "0", 0, 65536, "groups; 0 = the most there can be, a h + 1"}},
                &GenerateDragonfly};
  return *model;
}

const Model& DragonflyPlusModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model = new Model{
      "dragonfly-plus",
      "groups of leaf switches G<group>L<n> and spines G<group>S<n>, every pair of groups joined",
      {{"p", kInteger, "4", 0, 254, "hosts on each leaf switch"},
       {"leaves", kInteger, "4", 1, 254, "leaf switches in each group"},
       {"spines", kInteger, "4", 1, 254, "spine switches in each group"},
       {"h", kInteger, "4", 0, 254, "global links of each spine"},
       {"g", kInteger, "0", 0, 65536, "groups; 0 = the most there can be, spines h + 1"}},
      &GeneratePlus};
  return *model;
}

}  // namespace coppice
