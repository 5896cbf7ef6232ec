// Least occupied height of nested groups by trying every placement: what group_slots.h is compared
// with. Shares no code with it; small only.
#ifndef COPPICE_TESTS_UNIT_TREE_SLOT_ORACLE_H_
#define COPPICE_TESTS_UNIT_TREE_SLOT_ORACLE_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/tree/group_slots.h"

namespace coppice {

inline constexpr uint32_t kOracleSlots = 256;
using SlotSet = std::bitset<kOracleSlots>;

// Slots of a group's block, from the rule alone.
uint32_t BlockSlots(const NestedGroups& groups, uint32_t part, uint32_t width);

// [limit] least occupied height over all placements in which no slot has more than `limit`
// children, for limits from 0 to rank_count; nullopt: none. The whole must not need more than
// kOracleSlots.
std::vector<std::optional<uint32_t>> LeastHeightsByTrial(const NestedGroups& groups,
                                                         uint32_t width);

// Checks an arrangement against the rule of group_slots.h; empty if it is kept, else what is wrong.
std::string WrongInArrangement(const NestedGroups& groups, uint32_t width, uint32_t degree_limit,
                               const GroupArrangement& arrangement);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_TREE_SLOT_ORACLE_H_
