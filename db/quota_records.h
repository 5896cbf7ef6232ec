// What is stored of quotas: limits that an administrator gave to one holder, where the
// configuration's are for all. Part of the interface in store.h, which includes this. Plain
// structs; which limits there are, and what counts against them, is the manager's.
#ifndef COPPICE_DB_QUOTA_RECORDS_H_
#define COPPICE_DB_QUOTA_RECORDS_H_

#include <cstdint>
#include <string>

#include "db/deed_records.h"

namespace coppice {

// A grant counts against its user; accounts and tenants are groups of users.
enum class QuotaHolder : uint8_t { kUser = 1, kAccount = 2, kTenant = 3 };

struct QuotaRecord {
  QuotaHolder kind = QuotaHolder::kUser;
  std::string holder;  // owner of jobs, as JobRecord has it
  std::string limit;   // "entries"
  int64_t value = 0;   // most that may be held; INT64_MAX: as much as there is
  friend bool operator==(const QuotaRecord&, const QuotaRecord&) = default;
};

// Puts the limit in place of the holder's present one, or drops that, if there is one.
// INVALID_ARGUMENT: no holder, no name of a limit, a value below 0.
struct PutQuota {
  QuotaRecord quota;
  bool drop = false;
  DeedPtr deed{};
};

}  // namespace coppice

#endif  // COPPICE_DB_QUOTA_RECORDS_H_
