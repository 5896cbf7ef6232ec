// What is stored of placements: nodes that are held for a job to come. Part of the interface in
// store.h, which includes this. Plain structs; why these nodes, and for how long, is the manager's.
//
//   held --StartPlacement--> started     a held placement has its nodes for itself; the others
//    |----EndPlacement-----> released    are kept for whoever asks, until PrunePlacements drops
//    +----EndPlacement-----> expired     them
#ifndef COPPICE_DB_PLACEMENT_RECORDS_H_
#define COPPICE_DB_PLACEMENT_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/deed_records.h"
#include "db/record_ids.h"

namespace coppice {

enum class PlacementState : uint8_t { kHeld = 1, kStarted = 2, kReleased = 3, kExpired = 4 };

struct PlacementRecord {
  PlacementId id;
  std::string request_id;            // empty: none; else unique among the owner's placements
  uint64_t request_fingerprint = 0;  // of the request's content
  std::string name;                  // what the scheduler calls it
  std::string owner;                 // user
  std::vector<std::string> nodes;    // host names, distinct, in the order of the ranks
  uint32_t ranks_per_node = 1;
  std::vector<uint32_t> permutation;  // [rank] position in nodes * ranks_per_node; empty: none
  bool is_exclusive = false;          // nobody else may be placed on the nodes' leaf switches
  absl::Duration term;                // that each renewal begins anew
  uint64_t fabric_version = 0;        // snapshot that it was planned on
  std::string reason;                 // in words
  std::string measures;               // JSON, see manager
  PlacementState state = PlacementState::kHeld;
  JobId job;                      // of a started one: which took the nodes; else 0
  absl::Time created, ended;      // ended: InfiniteFuture while held
  bool by_administrator = false;  // made with an administrator's rights
  friend bool operator==(const PlacementRecord&, const PlacementRecord&) = default;
};

// All of them or none. ALREADY_EXISTS: an id or the owner's request_id is taken, also by a
// placement that is over and kept. FAILED_PRECONDITION: a node is held by another placement
// (named), also by one before it in the list. Checked in this order for one after the other.
// INVALID_ARGUMENT: an id below 1, a state other than held, no nodes, a node twice in one
// placement, no term, no ranks.
struct PutPlacements {
  std::vector<PlacementRecord> placements;
  DeedPtr deed{};
};

// Gives the nodes free. NOT_FOUND: no such held placement. INVALID_ARGUMENT: a state that is not
// released or expired.
struct EndPlacement {
  PlacementId placement;
  PlacementState state = PlacementState::kReleased;
  absl::Time time;
  DeedPtr deed{};
};

// Drops the placement that ended first, as PruneJobs does with jobs.
struct PrunePlacements {
  int64_t keep = 100'000;
  absl::Time before = absl::InfinitePast();
  uint32_t rows = 16;
};

}  // namespace coppice

#endif  // COPPICE_DB_PLACEMENT_RECORDS_H_
