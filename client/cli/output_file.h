// Files that others read while this program writes them anew.
#ifndef COPPICE_CLIENT_CLI_OUTPUT_FILE_H_
#define COPPICE_CLIENT_CLI_OUTPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Makes the file hold `text`, at once: a reader sees what was there or all that is new, also after
// a crash. Its mode stays, and its owner where the caller may keep it; a new one is readable by
// all. A link is followed. False: that was its text already, and it was not touched. INTERNAL names
// the file that cannot be written, and why.
absl::StatusOr<bool> ReplaceFile(const std::string& path, absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_OUTPUT_FILE_H_
