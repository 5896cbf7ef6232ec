// What the words of `coppicectl map` mean: the grammar of `coppice-plan map`
// (daemon/tools/map_options.h), which lies where a client must not look. Both are held to
// tests/support/map_words.h.
#ifndef COPPICE_CLIENT_CLI_MAP_WORDS_H_
#define COPPICE_CLIENT_CLI_MAP_WORDS_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coppice/v1/mapping.pb.h"

namespace coppice {

// Each is nullopt if `text` is not of its form.
// Names and weights: "congestion", "dilation,qap", "congestion=1,dilation=0.5"; a name alone
// weighs 1.
std::optional<v1::MappingObjective> ParseObjective(absl::string_view text);
// "NAME=VALUE".
std::optional<std::pair<std::string, double>> ParseParameter(absl::string_view text);
// Above 0, and at most a year.
std::optional<absl::Duration> ParseBudget(absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_MAP_WORDS_H_
