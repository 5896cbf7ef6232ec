// The key "profile": a built-in profile's name, a file, or the constants themselves in a table.
#ifndef COPPICE_DAEMON_CONFIG_PROFILE_KEY_H_
#define COPPICE_DAEMON_CONFIG_PROFILE_KEY_H_

#include "absl/strings/string_view.h"
#include "daemon/config/toml_section.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// A text with a "/" or ending in ".toml" is a file, relative to `directory`; another is a name. An
// error becomes the file's and names the line of the profile's key that is wrong.
void ReadProfileKey(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    CostProfile& profile);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_PROFILE_KEY_H_
