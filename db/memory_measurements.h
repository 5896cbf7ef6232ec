// Counters, load and history of the store that forgets, by the rules of load_records.h.
#ifndef COPPICE_DB_MEMORY_MEASUREMENTS_H_
#define COPPICE_DB_MEMORY_MEASUREMENTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "db/store.h"

namespace coppice {

// Not thread-safe. Contracts as of Store and its mutations, which have passed CheckShape.
class MemoryMeasurements {
 public:
  // The links exist. Whole or not at all.
  absl::Status Put(const PutCounters& put);
  void Prune(const PruneHistory& prune);

  StoredLoad Load() const;
  std::vector<PortCounterRecord> Counters(Guid node) const;
  std::vector<HistoryPoint> History(const HistoryQuery& query) const;

 private:
  using PortKey = std::pair<Guid, uint8_t>;
  struct Past {
    std::map<int64_t, HistorySlot> slots;
    std::map<std::pair<int64_t, PortKey>, HistoryRow> rows;
    int64_t last_closed() const { return slots.empty() ? 0 : slots.rbegin()->first; }
  };

  absl::Status Check(const PutCounters& put) const;
  Past& Of(HistoryResolution resolution) { return histories_[static_cast<size_t>(resolution) - 1]; }
  const Past& Of(HistoryResolution resolution) const {
    return histories_[static_cast<size_t>(resolution) - 1];
  }

  std::map<PortKey, PortCounterRecord> ports_;
  std::map<std::pair<int64_t, bool>, LinkLoadRecord> loads_;
  std::array<Past, 3> histories_;  // [resolution - 1]
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_MEASUREMENTS_H_
