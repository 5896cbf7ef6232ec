// What names jobs, trees and placements, in the store and everywhere else. Part of the interface in
// store.h, which includes this.
#ifndef COPPICE_DB_RECORD_IDS_H_
#define COPPICE_DB_RECORD_IDS_H_

#include <cstdint>

#include "daemon/base/strong_id.h"

namespace coppice {

// All from 1, never reused.
using JobId = StrongId<struct JobIdTag, int64_t>;
using TreeId = StrongId<struct TreeIdTag, int64_t>;
using PlacementId = StrongId<struct PlacementIdTag, int64_t>;

}  // namespace coppice

#endif  // COPPICE_DB_RECORD_IDS_H_
