// Which methods of the daemon a process of the node may call through the agent.
#ifndef COPPICE_AGENTS_NODE_PASSED_METHODS_H_
#define COPPICE_AGENTS_NODE_PASSED_METHODS_H_

#include "absl/strings/string_view.h"

namespace coppice {

// "/coppice.v1.Trees/CreateTree". What users may do and what everybody may read; nothing that
// administers the daemon. Of a stream of requests (KeepAlive) it passes one.
bool IsPassedOn(absl::string_view method);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PASSED_METHODS_H_
