// Forwarding tables for tests, as a subnet manager would write them for given routes.
#ifndef COPPICE_TESTS_SUPPORT_TABLES_H_
#define COPPICE_TESTS_SUPPORT_TABLES_H_

#include <memory>

#include "daemon/fabric/routes.h"

namespace coppice {

// Routes over tables that send every packet where `routes` does.
std::shared_ptr<const Routes> TablesLike(const Routes& routes,
                                         const std::shared_ptr<const Fabric>& fabric);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_TABLES_H_
