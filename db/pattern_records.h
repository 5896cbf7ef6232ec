// What is stored of communication patterns. Part of the interface in store.h, which includes this.
// Plain structs; what the data means is the manager's.
#ifndef COPPICE_DB_PATTERN_RECORDS_H_
#define COPPICE_DB_PATTERN_RECORDS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "db/deed_records.h"

namespace coppice {

struct PatternRecord {
  int64_t id = 0;    // from 1, above all that were ever given
  std::string name;  // unique among the owner's, and among all of administrators
  std::string owner;
  uint32_t rank_count = 0;
  uint64_t pair_count = 0;  // unordered
  double total_bytes = 0, total_messages = 0;
  absl::Time created;
  uint64_t stored_bytes = 0;      // of its data
  bool by_administrator = false;  // put with an administrator's rights: everybody's to use
  friend bool operator==(const PatternRecord&, const PatternRecord&) = default;
};

// One part of the data of a pattern that is to come: parts are numbered from 0. One mutation each,
// so that others go on between them. ALREADY_EXISTS: that part is there, or the pattern is.
struct PutPatternPart {
  int64_t pattern = 0;
  uint32_t part = 0;
  std::string data;
};

// Makes the pattern of these parts visible, in place of the owner's of that name or, put by an
// administrator, of that of any administrator, if there is one.
// INVALID_ARGUMENT: an id below 1, no name, no ranks, totals that are negative or no numbers;
// ALREADY_EXISTS: the id is taken; FAILED_PRECONDITION: not that many parts are there, from 0 on.
struct PutPattern {
  PatternRecord pattern;
  uint32_t parts = 0;
  DeedPtr deed{};
};

// Drops what there is of the parts of a pattern that will not come. ALREADY_EXISTS: it has come.
struct DropPatternParts {
  int64_t pattern = 0;
};

// With its data. NOT_FOUND. Of administrators' `owner` means nothing.
struct DropPattern {
  std::string name;
  std::string owner{};
  bool by_administrator = false;
  DeedPtr deed{};
};

}  // namespace coppice

#endif  // COPPICE_DB_PATTERN_RECORDS_H_
