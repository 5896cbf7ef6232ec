// What clients' requests about history and events, agents' and switches' messages, ids and page
// tokens are read as: within what the manager may be asked, or refused with a reason. The first
// byte says which.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/rpc/request_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string broken;
  switch (data[0] % 5) {
    case 0:
      broken = coppice::BrokenByHistoryRequest(rest);
      break;
    case 1:
      broken = coppice::BrokenByEventsRequest(rest);
      break;
    case 2:
      broken = coppice::BrokenByAgentMessage(rest);
      break;
    case 3:
      broken = coppice::BrokenBySwitchMessage(rest);
      break;
    default:
      broken = coppice::BrokenByIdentifier(rest);
  }
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
