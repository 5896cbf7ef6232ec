// What holds for every request, however malformed: shared by a test and a fuzz target.
#ifndef COPPICE_TESTS_UNIT_RPC_REQUEST_PROPERTIES_H_
#define COPPICE_TESTS_UNIT_RPC_REQUEST_PROPERTIES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// What is broken; empty: nothing. `data`: the wire form of GetPortHistoryRequest or
// ListEventsRequest.
std::string BrokenByHistoryRequest(absl::string_view data);
std::string BrokenByEventsRequest(absl::string_view data);
// `data`: the wire form of AgentMessage.
std::string BrokenByAgentMessage(absl::string_view data);
std::string BrokenBySwitchMessage(absl::string_view data);
// `text`: an id, a GUID or a page token.
std::string BrokenByIdentifier(absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_REQUEST_PROPERTIES_H_
