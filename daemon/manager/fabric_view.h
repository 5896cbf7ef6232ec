// What the manager shows of the fabric and of itself: the fabric as last published, how its reading
// fares, entries, the calibration of predicted times, counts of all that it holds. Values only.
#ifndef COPPICE_DAEMON_MANAGER_FABRIC_VIEW_H_
#define COPPICE_DAEMON_MANAGER_FABRIC_VIEW_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/inventory.h"
#include "daemon/tree/calibration/calibration.h"

namespace coppice {

// The fabric as last published, immutable.
struct FabricView {
  std::shared_ptr<const Snapshot> snapshot;              // version >= 1
  std::shared_ptr<const std::vector<int64_t>> link_ids;  // [link] id in the store
  std::string source;                                    // SubnetPort::Describe()
  absl::Time swept;                                      // when the sweep that produced it ended
  absl::Duration sweep_duration;
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
  bool has_subnet_manager = true, is_subnet_manager_silent = false;  // as of SweepResult
  Lid subnet_manager_lid;                                            // 0: unknown
  std::vector<UnansweredNode> unanswered;
  Unseen unseen;  // what follows from these
  // The forwarding tables, if there are any, are as they were when last read and lead over nothing
  // that is gone.
  bool routes_settled = false;
};

// What every use case that needs a fabric answers before the first sweep.
inline absl::Status NoFabricError() {
  return absl::UnavailableError("no fabric is known yet: the first sweep has not ended; try again");
}

// One kind of sweep, since the start.
struct SweepNumbers {
  uint64_t count = 0, failed = 0;
  absl::Time last_time = absl::InfinitePast();  // end of the last that went well
  absl::Duration last_duration;                 // of that one
  absl::Duration period;                        // infinite: none
  std::string last_error;                       // empty: the last one went well
};

struct SweepStanding {
  SweepNumbers full, light, counters;
  bool routes_settled = false;  // as FabricView; false before the first sweep
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
};

// --- Load of links ---

// How well what the newest two readings of a counter moved is known.
enum class Certainty : uint8_t { kUnknown, kAtLeast, kExact };

// Of one direction, in shares of the capacity.
struct DirectionMeasure {
  double average = 0;  // measured, moving average; 0 if it is too old
  double peak = 0;     // highest between two readings, since it was first read
  absl::Time peaked = absl::InfinitePast();  // when that was
  absl::Time read = absl::InfinitePast();    // newest measurement; InfinitePast: none
  double promised = 0;                       // by granted trees
  // How well what the newest two readings moved is known. At least: a count was reset or came to
  // its end in between, and the load is at least what was counted. Unknown: there are no two, or a
  // count of 32 bits stands at its end and the average is what it was when it was `read`.
  Certainty certainty = Certainty::kUnknown;
};

struct LinkMeasure {
  DirectionMeasure ab, ba;
};

struct SwitchEntries {
  SwitchIndex index;
  uint32_t entries_total = 0, entries_reserved = 0, entries_taken = 0, degree_limit = 0;
};

struct CalibrateArgs {
  std::string samples_csv;
  std::string origin;              // what errors call it
  std::vector<std::string> fixed;  // as FixConstant takes them
  ResidualScale scale = ResidualScale::kAbsolute;
  std::string name;  // of the new profile; empty: "calibrated"
  bool apply = false;
};

struct CalibrationView {
  std::vector<LatencySample> samples;
  Calibration fit;
  bool applied = false;
};

// Trees since the daemon started.
struct TreeTotals {
  uint64_t granted = 0;
  uint64_t released = 0;  // by their job, or with it
  uint64_t refused = 0;   // for want of entries
  uint64_t repaired = 0;  // planned anew
  uint64_t revoked = 0;
};

// A switch that kept a type II tree away.
struct RefusedSwitch {
  Guid guid;
  uint32_t entries_total = 0;
};

// A link that was up since the daemon's start and is not any more.
struct DownLink {
  struct End {
    Guid node;
    uint8_t port = 0;
    std::string name = {};  // description of the switch, name of the host
    bool is_switch = false;
  };
  std::array<End, 2> ends;  // in order of GUID and port
  std::string rate;         // "4xHDR", when it was up
  absl::Time since;
};

// How switches that aggregate fare, since the daemon started.
struct SwitchNumbers {
  uint64_t connected = 0;               // now
  uint64_t installs = 0, refusals = 0;  // of entries, by answers of switches
};

struct DaemonCounts {
  uint32_t active_jobs = 0, granted_trees = 0;
  uint32_t held_placements = 0;
  uint64_t placed_nodes = 0;  // that they hold
  uint64_t entries_total = 0, entries_reserved = 0, entries_taken = 0;
  TreeTotals trees;
  std::string last_sweep_error;  // empty: the last sweep went well
  // Signs that another daemon grants trees here, in words.
  std::vector<std::string> other_daemons = {};
  std::vector<DownLink> down_links = {};
  SwitchNumbers switches = {};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_FABRIC_VIEW_H_
