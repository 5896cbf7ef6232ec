#include "daemon/mapping/input/trace_file.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"

namespace coppice {
namespace {

constexpr absl::string_view kVersion = "1";

absl::StatusOr<uint64_t> ReadRanks(LineScanner& lines) {
  if (!lines.NextLine() || lines.NextWord() != "coppice-trace") {
    return lines.Error("a trace begins with coppice-trace 1");
  }
  const absl::string_view version = lines.NextWord();
  if (version != kVersion || !lines.NextWord().empty()) {
    return lines.Error(absl::StrCat("a trace of version ", Quoted(version),
                                    "; this program reads version ", kVersion));
  }
  while (lines.NextLine()) {
    const absl::string_view word = lines.NextWord();
    if (word.empty() || (word[0] >= '0' && word[0] <= '9') || word == "end") break;
    if (word != "ranks") continue;
    uint64_t ranks = 0;
    if (!ParseCount(lines.NextWord(), ranks) || !lines.NextWord().empty() || ranks == 0 ||
        ranks > Pattern::kMaxRanks) {
      return lines.Error(
          absl::StrCat("the line is not ranks COUNT with a count of 1 to ", Pattern::kMaxRanks));
    }
    return ranks;
  }
  return lines.Error("the line ranks COUNT is missing");
}

absl::Status NoRank(const LineScanner& lines, const char* what, absl::string_view word,
                    uint64_t ranks) {
  return lines.Error(
      absl::StrCat(what, " ", Quoted(word), " is none of the ranks 0 to ", ranks - 1));
}

// The pairs of one line, whose first word is `sender_word`.
absl::Status ReadRow(LineScanner& lines, absl::string_view sender_word, uint64_t ranks,
                     std::vector<Pattern::Entry>& entries) {
  uint64_t sender = 0;
  if (!ParseCount(sender_word, sender) || sender >= ranks) {
    return NoRank(lines, "sender", sender_word, ranks);
  }
  const size_t before = entries.size();
  for (absl::string_view word; !(word = lines.NextWord()).empty();) {
    uint64_t to = 0, messages = 0, bytes = 0;
    if (!ParseCount(word, to) || to >= ranks) return NoRank(lines, "receiver", word, ranks);
    if (!ParseCount(lines.NextWord(), messages) || !ParseCount(lines.NextWord(), bytes) ||
        messages == 0) {
      return lines.Error(absl::StrCat("receiver ", to,
                                      " is not followed by MESSAGES BYTES, of which the messages "
                                      "are 1 or more"));
    }
    entries.push_back({static_cast<uint32_t>(sender), static_cast<uint32_t>(to),
                       static_cast<double>(bytes), static_cast<double>(messages)});
  }
  if (entries.size() == before) {
    return lines.Error("the line has no receivers; a rank that sent nothing has no line");
  }
  return absl::OkStatus();
}

absl::Status ReadEnd(LineScanner& lines, size_t pairs) {
  uint64_t promised = 0;
  if (!ParseCount(lines.NextWord(), promised) || !lines.NextWord().empty() || promised != pairs) {
    return lines.Error(absl::StrCat("the file has ", pairs,
                                    " pairs, but its end says something else; trace the run anew"));
  }
  if (lines.NextLineThatSays("")) return lines.Error("there is more after the end");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Pattern>> ReadTraceFile(absl::string_view text,
                                                             absl::string_view origin) {
  LineScanner lines(text, origin);
  ASSIGN_OR_RETURN(const uint64_t ranks, ReadRanks(lines));
  std::vector<Pattern::Entry> entries;
  while (lines.NextLine()) {
    const absl::string_view word = lines.NextWord();
    if (word != "end") {
      RETURN_IF_ERROR(ReadRow(lines, word, ranks, entries));
      continue;
    }
    RETURN_IF_ERROR(ReadEnd(lines, entries.size()));
    auto pattern = Pattern::Make(static_cast<uint32_t>(ranks), std::move(entries));
    if (!pattern.ok()) return lines.ErrorOfAll(pattern.status().message());
    return pattern;
  }
  return lines.ErrorOfAll("has no end; it was cut off: trace the run anew");
}

}  // namespace coppice
