// The reader of node lists: any text is refused with its place, or read as names that are written
// and read again as the same. And that of communicators, which names the line.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/text/node_list.h"
#include "proto/text/rank_ranges.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto communicators = coppice::ParseCommunicators(text, "file");
  if (!communicators.ok() && !absl::StartsWith(communicators.status().message(), "file:")) {
    std::abort();
  }
  if (communicators.ok() && communicators->front().ranges.front().count() == 0) std::abort();
  const auto names = coppice::ParseNodeList(text);
  if (!names.ok()) {
    if (!absl::StrContains(names.status().message(), "node list, letter ")) std::abort();
    return 0;
  }
  if (names->size() > coppice::kMaxListedNodes) std::abort();
  const auto again = coppice::ParseNodeList(coppice::FormatNodeList(*names));
  if (!again.ok() || *again != *names) std::abort();
  return 0;
}
