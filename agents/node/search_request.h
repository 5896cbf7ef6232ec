// What a process of the node asks a search for, as it can be judged without asking anybody, and as
// words of a command.
#ifndef COPPICE_AGENTS_NODE_SEARCH_REQUEST_H_
#define COPPICE_AGENTS_NODE_SEARCH_REQUEST_H_

#include <string>

#include "absl/status/status.h"
#include "agents/node/local_caller.h"
#include "agents/node/search_settings.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// Errors as SearchOrderRequest's (local.proto), of settings and request alone. `own` is the user
// that the agent runs as.
absl::Status CheckSearchRequest(const SearchSettings& settings, const LocalCaller& caller,
                                uid_t own, const v1::SearchOrderRequest& request);

// Of a search whose request was checked, for that user.
SearchWords WordsOf(const v1::GuardedSearch& search, uid_t user);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SEARCH_REQUEST_H_
