#include "client/cli/switch_names.h"

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"

namespace coppice {
namespace {

// 16 digits, or up to 16 after "switch:" or "0x".
std::optional<uint64_t> ParseGuid(absl::string_view text) {
  const bool is_marked = absl::ConsumePrefix(&text, "switch:") | absl::ConsumePrefix(&text, "0x");
  uint64_t guid = 0;
  if (text.size() > 16 || (text.size() < 16 && !is_marked)) return std::nullopt;
  if (!absl::SimpleHexAtoi(absl::StrCat("0x", text), &guid)) return std::nullopt;
  return guid;
}

}  // namespace

absl::StatusOr<std::string> FindSwitch(Connection& connection, const std::string& name) {
  if (const std::optional<uint64_t> guid = ParseGuid(name)) return absl::StrFormat("%016x", *guid);
  const auto all = ListAll(connection, connection.fabric(),
                           &v1::Fabric::StubInterface::ListSwitches, v1::ListSwitchesRequest());
  if (!all.ok()) return all.status();
  std::string guid;
  for (const v1::Switch& s : all->switches()) {
    if (s.description() != name) continue;
    if (!guid.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("several switches are called \"", name, "\": give the GUID"));
    }
    guid = s.guid();
  }
  if (!guid.empty()) return guid;
  return absl::NotFoundError(
      absl::StrCat("no switch is called \"", name, "\": see fabric switches"));
}

SwitchNames NamesOfSwitches(Connection& connection) {
  SwitchNames names;
  const auto all = ListAll(connection, connection.fabric(),
                           &v1::Fabric::StubInterface::ListSwitches, v1::ListSwitchesRequest());
  if (!all.ok()) return names;
  for (const v1::Switch& one : all->switches()) {
    if (const std::optional<uint64_t> guid = ParseGuid(one.guid())) {
      names[*guid] = one.description();
    }
  }
  return names;
}

}  // namespace coppice
