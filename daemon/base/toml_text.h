// What TOML text must satisfy before toml++ may see it: one guard for every reader of TOML, the
// configuration and the cost profiles. Knows no key and not the parser itself.
#ifndef COPPICE_DAEMON_BASE_TOML_TEXT_H_
#define COPPICE_DAEMON_BASE_TOML_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// INVALID_ARGUMENT, as "ORIGIN:LINE: what is wrong", if a character beyond ASCII stands outside a
// comment or, because what is a comment is then not certain, anywhere after a text in triple
// quotes begins. Other faults are the parser's to find. O(text).
absl::Status CheckAsciiInToml(absl::string_view text, absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_TOML_TEXT_H_
