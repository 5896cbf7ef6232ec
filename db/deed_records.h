// The account of deeds: who changed what, for whom, from where, and what was denied. Part of the
// interface in store.h, which includes this.
//
// Rows are added, and bounded so that nobody washes out another's. Those of one kind (for the same
// user, of one method, with one outcome) stand singly up to a number; older ones of the kind become
// one row, which has the last of them, their number and the time of the first. Users' deeds,
// administrators' and denials have a share of rows each. Where one is full, rows of an age go; if
// there are none, whoever has the most rows has his older ones folded further.
//
// A change brings its deed with it (the member `deed` of mutations): both are durable or neither.
#ifndef COPPICE_DB_DEED_RECORDS_H_
#define COPPICE_DB_DEED_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace coppice {

enum class DeedShare : uint8_t { kUser = 1, kAdministrator = 2, kDenial = 3 };

struct DeedRecord {
  int64_t id = 0;                             // assigned by the store
  absl::Time time;                            // of the last, if there were several
  absl::Time first = absl::InfiniteFuture();  // of the first; the store knows it of single ones
  DeedShare share = DeedShare::kUser;
  std::string caller;   // who connected
  std::string user;     // for whom: whose rights the call had
  std::string origin;   // from where: "uid:1000", "ipv4:10.0.0.7:40112"
  std::string method;   // "Jobs.EndJob"
  std::string object;   // "job:7"
  std::string outcome;  // name of the status code: "OK", "PERMISSION_DENIED"
  uint32_t count = 1;   // of the same kind, of which caller, origin and object are the last one's
  friend bool operator==(const DeedRecord&, const DeedRecord&) = default;
};

using DeedPtr = std::shared_ptr<const DeedRecord>;

struct DeedLimits {
  int64_t singly = 2'000;  // of one kind; a few more until they are folded
  int64_t per_share = 50'000;
  absl::Duration age = 90 * absl::Hours(24);  // from then on rows may go for good
};

// Deeds that come without another mutation. INVALID_ARGUMENT: a count of 0, limits below 1.
struct AppendDeeds {
  std::vector<DeedRecord> deeds;
  DeedLimits limits{};
};

struct DeedFilter {
  int64_t after_id = 0;                     // only later ones
  std::string user{};                       // the caller or for whom it was; empty: any
  std::string method_prefix{};              // empty: any
  absl::Time start = absl::InfinitePast();  // not before
  bool only_denials = false;
  uint32_t limit = 1000;  // the first so many, by id
};

}  // namespace coppice

#endif  // COPPICE_DB_DEED_RECORDS_H_
