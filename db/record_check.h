// Refuses records that must not be kept, before the database sees them: INVALID_ARGUMENT, naming
// the record. Shape only; what the present state forbids is the database's own matter.
#ifndef COPPICE_DB_RECORD_CHECK_H_
#define COPPICE_DB_RECORD_CHECK_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "db/store.h"

namespace coppice {

absl::Status CheckShape(const Mutation& mutation);

// 0, 1, 2 for "info", "warning", "error"; -1 for anything else.
int SeverityRank(std::string_view severity);

std::string PortName(Guid node, uint8_t port);  // "port 0002c9020040b0e0/7"

}  // namespace coppice

#endif  // COPPICE_DB_RECORD_CHECK_H_
