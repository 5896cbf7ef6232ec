// What TOML text must satisfy before toml++ may see it. Knows no key and no configuration.
#ifndef COPPICE_DAEMON_CONFIG_TOML_TEXT_H_
#define COPPICE_DAEMON_CONFIG_TOML_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// INVALID_ARGUMENT, as "ORIGIN:LINE: what is wrong", if a character beyond ASCII stands outside a
// comment or, because what is a comment is then not certain, anywhere after a text in triple
// quotes begins. Other faults are the parser's to find. O(text).
absl::Status CheckAsciiInToml(absl::string_view text, absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_TOML_TEXT_H_
