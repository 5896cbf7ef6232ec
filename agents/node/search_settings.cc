#include "agents/node/search_settings.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace coppice {
namespace {

using Words = std::vector<std::string>;

constexpr char kUid[] = "{uid}";
constexpr const char* kPlaceholders[] = {"{job}", "{application}", "{budget}", "{seed}",
                                         kUid,    "{server}",      "{agent}",  kHostFileWord};
constexpr std::chrono::hours kLongest{24};
constexpr size_t kMostAtOnce = 64;

absl::Status Bad(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("search.", key, ": ", what));
}

// Each "{" begins one of `known`.
template <class Known>
absl::Status CheckPlaceholders(absl::string_view key, const Words& words, const Known& known) {
  for (const std::string& word : words) {
    for (size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
      const absl::string_view rest = absl::string_view(word).substr(at);
      if (std::any_of(std::begin(known), std::end(known),
                      [rest](absl::string_view name) { return absl::StartsWith(rest, name); })) {
        continue;
      }
      return Bad(key, absl::StrCat("\"", word, "\": there are the placeholders ",
                                   absl::StrJoin(known, ", "), " and no others"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTime(absl::string_view key, std::chrono::milliseconds time,
                       std::chrono::milliseconds least) {
  if (time >= least && time <= kLongest) return absl::OkStatus();
  return Bad(key, absl::StrCat("give a time from ", least.count(), "ms to 24h"));
}

absl::Status CheckCommand(const SearchSettings& settings) {
  const Words& command = settings.command;
  if (command.empty()) {
    if (settings.as_user.empty()) return absl::OkStatus();
    return Bad("as_user", "there is no search.command that it could start; give one");
  }
  if (command[0].empty()) return Bad("command", "its first word is empty; name a program");
  if (!HasWord(command, "{job}")) {
    return Bad("command", "no word of it has {job}: every search would be the same one");
  }
  return CheckPlaceholders("command", command, kPlaceholders);
}

absl::Status CheckAsUser(const Words& words) {
  if (words.empty()) return absl::OkStatus();
  if (words[0].empty()) return Bad("as_user", "its first word is empty; name a program");
  // Without it everybody's search would be the agent's own.
  if (!HasWord(words, kUid)) return Bad("as_user", "no word of it has {uid}, the caller's");
  return CheckPlaceholders("as_user", words, std::vector<absl::string_view>{kUid});
}

}  // namespace

std::vector<std::string> FillWords(const Words& words, const SearchWords& values) {
  Words filled;
  for (const std::string& word : words) filled.push_back(absl::StrReplaceAll(word, values));
  return filled;
}

bool HasWord(const Words& words, absl::string_view placeholder) {
  return std::any_of(words.begin(), words.end(), [placeholder](const std::string& word) {
    return absl::StrContains(word, placeholder);
  });
}

absl::Status CheckSearchSettings(const SearchSettings& settings) {
  constexpr std::chrono::milliseconds kNone{0}, kOne{1};
  for (const absl::Status& status : {CheckCommand(settings), CheckAsUser(settings.as_user),
                                     CheckTime("max_budget", settings.max_budget, kOne),
                                     CheckTime("grace", settings.grace, kNone)}) {
    if (!status.ok()) return status;
  }
  if (settings.at_once >= 1 && settings.at_once <= kMostAtOnce) return absl::OkStatus();
  return Bad("at_once", absl::StrCat("give 1 to ", kMostAtOnce));
}

}  // namespace coppice
