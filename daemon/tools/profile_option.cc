#include "daemon/tools/profile_option.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"

namespace coppice {

void AddProfileOption(CLI::App& command, std::string& profile) {
  AddText(command, "--profile", profile,
          absl::StrCat("costs: a TOML file or one of ", absl::StrJoin(BuiltInProfileNames(), ", "),
                       "; default ", profile));
}

absl::StatusOr<CostProfile> LoadProfile(const std::string& name) {
  absl::StatusOr<CostProfile> built_in = BuiltInProfile(name);
  if (built_in.ok()) return built_in;
  const absl::StatusOr<std::string> text = ReadTextFile(name);
  if (text.ok()) return ParseProfile(*text, name);
  if (!absl::IsNotFound(text.status())) return text.status();
  return absl::NotFoundError(absl::StrCat("--profile ", name, ": neither a file nor one of ",
                                          absl::StrJoin(BuiltInProfileNames(), ", ")));
}

}  // namespace coppice
