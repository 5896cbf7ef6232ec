// An independent verifier of everything that fabric.h promises. Uses the public interface only.
#ifndef COPPICE_TESTS_SUPPORT_FABRIC_CHECK_H_
#define COPPICE_TESTS_SUPPORT_FABRIC_CHECK_H_

#include <optional>

#include "absl/status/status.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// INTERNAL, naming the object: rows unsorted or of another vertex, a port used twice, a link whose
// ends and channels disagree, a component that is not connected or is split, an order or a lookup
// that is wrong. O((vertices + links) log vertices).
absl::Status CheckFabric(const Fabric& fabric);

// The lowest vertex that has this LID: it is unique in its subnet, not in the fabric. O(vertices).
std::optional<VertexIndex> FindLid(const Fabric& fabric, Lid lid);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_FABRIC_CHECK_H_
