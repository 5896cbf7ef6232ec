// From slots and rows to what was asked for.
#ifndef COPPICE_DB_HISTORY_POINTS_H_
#define COPPICE_DB_HISTORY_POINTS_H_

#include <optional>
#include <vector>

#include "db/store.h"

namespace coppice {

// Whether the slot's label lies in the asked time.
bool IsAsked(const HistoryQuery& query, const HistorySlot& slot);

// The point of one slot, `row` being the port's, if there is one; nullopt: nothing is known.
std::optional<HistoryPoint> PointOf(const HistorySlot& slot, const HistoryRow* row);

// Sorts by time and adds up what has the same label. O(n log n).
std::vector<HistoryPoint> MergePoints(std::vector<HistoryPoint> points);

}  // namespace coppice

#endif  // COPPICE_DB_HISTORY_POINTS_H_
