#include "agents/node/search_outcome.h"

#include <sys/wait.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agents/node/process_family.h"

namespace coppice {
namespace {

constexpr absl::string_view kOwnWords = "coppice-search: ";
// Together less than what coppice_last_error() holds.
constexpr size_t kMostCommand = 240;
constexpr size_t kMostWords = 500;

std::string Printable(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return printable;
}

// Launchers frame what they say.
bool SaysSomething(absl::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c); });
}

std::string With(absl::string_view words) {
  return words.empty() ? std::string() : absl::StrCat(": ", words);
}

}  // namespace

std::string CommandText(const std::vector<std::string>& words) {
  const std::string text = Printable(absl::StrJoin(words, " "));
  if (text.size() <= kMostCommand) return text;
  return absl::StrCat(text.substr(0, kMostCommand), "...");
}

std::string LastWords(absl::string_view said) {
  std::vector<std::string> lines, own;
  for (const absl::string_view line : absl::StrSplit(said, '\n')) {
    const std::string text = Printable(absl::StripAsciiWhitespace(line));
    if (!SaysSomething(text)) continue;
    lines.push_back(text);
    if (absl::StartsWith(text, kOwnWords)) own.push_back(text);
  }
  const std::string words = absl::StrJoin(own.empty() ? lines : own, "; ");
  if (words.size() <= kMostWords) return words;
  return absl::StrCat("...", words.substr(words.size() - kMostWords));
}

absl::Status OutcomeOf(absl::string_view command, int wait_status, absl::string_view said) {
  const std::string words = With(LastWords(said));
  if (WIFSIGNALED(wait_status)) {
    return absl::UnknownError(absl::StrCat("\"", command, "\": what guards it was ended by signal ",
                                           WTERMSIG(wait_status), words));
  }
  const int status = WEXITSTATUS(wait_status);
  if (status == 0) return absl::OkStatus();
  const std::string text = absl::StrCat("\"", command, "\" ended with exit status ", status, words);
  if (status == kNoSuchCommand) {
    return absl::FailedPreconditionError(
        absl::StrCat(text, "; is what search.command of the agent names installed?"));
  }
  return absl::UnknownError(text);
}

}  // namespace coppice
