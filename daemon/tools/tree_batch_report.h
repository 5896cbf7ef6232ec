// A planned batch as coppice-plan prints it: one line a communicator, then what all take together
// beside what one by one would take and the bounds. Decides nothing.
#ifndef COPPICE_DAEMON_TOOLS_TREE_BATCH_REPORT_H_
#define COPPICE_DAEMON_TOOLS_TREE_BATCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

// What is printed of one communicator.
struct BatchLine {
  uint32_t ranks = 0;
  std::optional<TreeType> type;  // nullopt: refused
  uint32_t switches = 0, extra_hops = 0, height = 0, radius = 0;
  std::optional<SwitchIndex> root;  // type II with switches
  double total_us = 0;
  std::string reason;  // why it is refused or has no type II tree; empty otherwise
};

struct BatchReport {
  std::vector<BatchLine> lines;
  BatchTotals batch, one_by_one, unreduced;
  BatchBounds bounds;
};

std::string BatchToJson(const Snapshot& snapshot, const BatchReport& report);
std::string BatchToText(const Snapshot& snapshot, const BatchReport& report);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_TREE_BATCH_REPORT_H_
