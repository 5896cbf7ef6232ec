// The reader of Slurm's associations: any text is refused by the file's name, or read as accounts
// whose parents, and whose users' accounts, are among them.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "client/cli/associations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const absl::string_view cluster : {"", "copse"}) {
    const auto request = coppice::ParseAssociations(text, "file", cluster);
    if (!request.ok()) {
      if (!absl::StartsWith(request.status().message(), "file:")) std::abort();
      continue;
    }
    std::set<std::string> names, defaults;
    for (const auto& account : request->accounts()) {
      if (account.name().empty() || !names.insert(account.name()).second) std::abort();
    }
    if (names.empty()) std::abort();
    for (const auto& account : request->accounts()) {
      if (!account.parent().empty() && names.count(account.parent()) == 0) std::abort();
    }
    for (const auto& user : request->users()) {
      if (user.user().empty() || names.count(user.account()) == 0) std::abort();
      if (user.is_default() && !defaults.insert(user.user()).second) std::abort();
    }
  }
  return 0;
}
