// Turns what a user types behind --fabric, or an administrator into the configuration, into a
// fabric. Knows files and models; a live subnet (umad) is daemon/ib's.
#ifndef COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_
#define COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Loads `spec`:
//   file:PATH          ibnetdiscover's text in either form or an ibsim net file, told apart by
//                      content
//   model:NAME(ARGS)   a generated fabric (models/model.h)
// A file is read in blocks: loading takes less than twice the memory of the fabric.
// INVALID_ARGUMENT: neither of the two, a malformed text or a file over the limit, naming the
// object; NOT_FOUND: no such file; PERMISSION_DENIED, UNAVAILABLE: it cannot be read.
absl::StatusOr<std::shared_ptr<const Fabric>> LoadFabric(absl::string_view spec);

// INVALID_ARGUMENT if `spec` is neither file:... nor model:...; looks at the prefix only.
absl::Status CheckFabricSpec(absl::string_view spec);

// The text of any of the formats; `origin` names it in messages. INVALID_ARGUMENT as above.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabricText(absl::string_view text,
                                                             absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_
