// Text files that people name on a command line.
#ifndef COPPICE_PROTO_TEXT_TEXT_FILE_H_
#define COPPICE_PROTO_TEXT_TEXT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// The whole file, or standard input if `path` is "-"; at most 1 GiB. NOT_FOUND, PERMISSION_DENIED
// or another code of absl::ErrnoToStatus; INVALID_ARGUMENT: over the limit, a folder or a device.
// The message names the file.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

struct TextLine {
  uint32_t number = 0;  // from 1
  absl::string_view text;
};
// The lines that say something: neither blank nor begun by #. Blanks around a line, with them the
// \r of a Windows file, and a byte order mark are no part of it.
std::vector<TextLine> LinesOf(absl::string_view text);
// A line without the comment that a blank and # begin.
absl::string_view WithoutComment(absl::string_view line);

// Replaces the file `path` by `text`; "-" is standard output. NOT_FOUND, PERMISSION_DENIED: no such
// folder, no right to write there; DATA_LOSS: else not written whole. The message names the file.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);
// Whether it could write there as things are; changes nothing. For whoever works for long before
// there is something to write. Errors as WriteTextFile's.
absl::Status CheckMayWrite(const std::string& path);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_TEXT_FILE_H_
