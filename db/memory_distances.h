// Measured distances in memory, as sqlite_distances.h keeps them in the database.
#ifndef COPPICE_DB_MEMORY_DISTANCES_H_
#define COPPICE_DB_MEMORY_DISTANCES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/distance_records.h"

namespace coppice {

// Contracts as of the mutations and of Store.
class MemoryDistances {
 public:
  void Put(PutDistances& put) {
    for (const auto& pair : put.drop) distances_.erase(pair);
    for (DistanceRecord& record : put.put) {
      std::pair<std::string, std::string> key{record.host_a, record.host_b};
      distances_.insert_or_assign(std::move(key), std::move(record));
    }
  }
  std::vector<DistanceRecord> List() const {
    std::vector<DistanceRecord> distances;
    for (const auto& [hosts, record] : distances_) distances.push_back(record);
    return distances;
  }

 private:
  std::map<std::pair<std::string, std::string>, DistanceRecord> distances_;
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_DISTANCES_H_
