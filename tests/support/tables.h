// Forwarding tables for tests: as a subnet manager would write them for given routes, and as text.
#ifndef COPPICE_TESTS_SUPPORT_TABLES_H_
#define COPPICE_TESTS_SUPPORT_TABLES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/routes.h"

namespace coppice {

// Routes over tables that send every packet where `routes` does.
std::shared_ptr<const Routes> TablesLike(const Routes& routes,
                                         const std::shared_ptr<const Fabric>& fabric);

// Of one text (forwarding_tables.h).
absl::StatusOr<ForwardingTables> ReadForwardingTables(const Fabric& fabric, absl::string_view text);
// The same form, switches by index; switches without a table are left out. ReadForwardingTables
// returns tables that answer port() alike. O(switches * LIDs).
std::string WriteForwardingTables(const Fabric& fabric, const ForwardingTables& tables);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_TABLES_H_
