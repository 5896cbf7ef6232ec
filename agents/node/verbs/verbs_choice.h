// Which InfiniBand port of the node is measured over. Knows no libibverbs.
#ifndef COPPICE_AGENTS_NODE_VERBS_VERBS_CHOICE_H_
#define COPPICE_AGENTS_NODE_VERBS_VERBS_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// The first active port to which all of this applies.
struct VerbsChoice {
  bool is_none = false;                 // none: TCP only
  std::string device;                   // "mlx5_0"; empty: any
  uint8_t port = 0;                     // from 1; 0: any
  std::vector<std::string> port_guids;  // one of these, 16 hex digits each; empty: any
};

// "": any port, "none", "mlx5_0" or "mlx5_0/2". INVALID_ARGUMENT: something else.
absl::StatusOr<VerbsChoice> ParseVerbsChoice(absl::string_view text);

// OK: the node has such a port, and it is active. NOT_FOUND: it has none. FAILED_PRECONDITION,
// naming device and port: it is not active, or cannot be opened.
absl::Status CheckVerbs(const VerbsChoice& choice);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_VERBS_VERBS_CHOICE_H_
