#include "daemon/mapping/input/pattern_file.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/line_scanner.h"
#include "daemon/mapping/input/square_matrix.h"

namespace coppice {
namespace {

constexpr absl::string_view kComments = "#%";
constexpr uint32_t kMaxOfHeader = 4;  // words in a graph's first line

uint32_t CountWords(LineScanner& lines) {
  uint32_t count = 0;
  while (count <= kMaxOfHeader && !lines.NextWord().empty()) ++count;
  return count;
}

// Whether all lines hold `size` words and are as many.
bool IsSquare(absl::string_view text, uint32_t size) {
  LineScanner lines(text, "");
  uint32_t rows = 0;
  while (lines.NextLineThatSays(kComments)) {
    if (++rows > size || CountWords(lines) != size) return false;
  }
  return rows == size;
}

enum class FileKind : uint8_t { kMatrixMarket, kTrace, kOther };

FileKind KindOf(absl::string_view text) {
  LineScanner lines(text, "");
  lines.NextLine();
  const absl::string_view first = lines.NextWord();
  // Also one that is written wrongly: as a comment of a graph it would be passed over.
  const bool is_comment = absl::StartsWith(first, "%");
  const absl::string_view word = first.substr(std::min(first.find_first_not_of('%'), first.size()));
  if (is_comment && (absl::StartsWithIgnoreCase(word, "matrix") ||
                     absl::EqualsIgnoreCase(lines.NextWord(), "matrix"))) {
    return FileKind::kMatrixMarket;
  }
  return first == "coppice-trace" ? FileKind::kTrace : FileKind::kOther;
}

size_t CountAllWords(absl::string_view text) {
  size_t count = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool is_word = !absl::ascii_isspace(static_cast<unsigned char>(c)) && c != ',';
    count += is_word && !in_word;
    in_word = is_word;
  }
  return count;
}

// With what stands after the last line end.
size_t CountLines(absl::string_view text) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Ranks that a file has: as many as lines or words, unless it says how many there are.
size_t MostRanks(absl::string_view text, size_t entries) {
  LineScanner lines(text, "");
  uint64_t promised = entries + CountLines(text);
  switch (KindOf(text)) {
    case FileKind::kMatrixMarket:
      lines.NextLineThatSays(kComments);
      (void)ParseCount(lines.NextWord(), promised);
      break;
    case FileKind::kTrace:
      while (lines.NextLine() && lines.NextWord() != "ranks") continue;
      (void)ParseCount(lines.NextWord(), promised);
      break;
    case FileKind::kOther:
      break;
  }
  // More are refused before they take room.
  return std::min<size_t>(promised, std::max<size_t>(Pattern::kMaxIdleRanks, 16 * entries));
}

// A pattern's own messages, of pairs with bytes and of all others.
void AddCounted(const Pattern& counts, std::vector<Pattern::Entry>& entries) {
  for (uint32_t rank = 0; rank < counts.rank_count(); ++rank) {
    const absl::Span<const double> messages = counts.out_messages(rank);
    for (size_t i = 0; i < messages.size(); ++i) {
      entries.push_back({rank, counts.exchanges(rank)[i].peer, 0, messages[i]});
    }
  }
  const auto& empty = counts.empty_messages();
  entries.insert(entries.end(), empty.begin(), empty.end());
}

void AddWeights(const Pattern& counts, std::vector<Pattern::Entry>& entries) {
  for (uint32_t rank = 0; rank < counts.rank_count(); ++rank) {
    entries.push_back({rank, rank, 0, counts.self_bytes(rank)});
    for (const Exchange& e : counts.exchanges(rank)) {
      entries.push_back({rank, e.peer, 0, e.out_bytes});
    }
  }
}

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

absl::StatusOr<PatternPointer> ReadPattern(absl::string_view text, absl::string_view origin) {
  const FileKind kind = KindOf(text);
  if (kind == FileKind::kMatrixMarket) return ReadMatrixMarket(text, origin);
  if (kind == FileKind::kTrace) return ReadTraceFile(text, origin);
  LineScanner lines(text, origin);
  if (!lines.NextLineThatSays(kComments)) {
    return lines.ErrorOfAll(
        "is empty; give a Matrix Market file, a METIS graph, a dense text matrix or a trace");
  }
  const uint32_t words = CountWords(lines);
  const bool has_commas = absl::StrContains(text.substr(0, text.find('\n')), ',');
  if (words == 1 || words > kMaxOfHeader || has_commas) return ReadDensePattern(text, origin);
  if (!IsSquare(text, words)) return ReadMetisGraph(text, origin);
  // A graph of words - 1 ranks, all lines as long as its header, is as square.
  auto graph = ReadMetisGraph(text, origin);
  const bool is_graph = graph.ok() && (*graph)->rank_count() > 1 && !(*graph)->has_self_bytes();
  return is_graph ? graph : ReadDensePattern(text, origin);
}

absl::StatusOr<PatternPointer> WithMessages(const Pattern& bytes, const Pattern& counts) {
  if (bytes.rank_count() != counts.rank_count()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("messages of %d ranks for a pattern of %d; give both of one run",
                        counts.rank_count(), bytes.rank_count()));
  }
  std::vector<Pattern::Entry> entries;
  entries.reserve(2 * (bytes.pair_count() + counts.pair_count() + bytes.rank_count()));
  for (uint32_t rank = 0; rank < bytes.rank_count(); ++rank) {
    entries.push_back({rank, rank, bytes.self_bytes(rank), 0});
    for (const Exchange& e : bytes.exchanges(rank)) {
      entries.push_back({rank, e.peer, e.out_bytes, 0});
    }
  }
  const bool counts_messages = counts.total_messages() > 0 || !counts.empty_messages().empty();
  counts_messages ? AddCounted(counts, entries) : AddWeights(counts, entries);
  return Pattern::Make(bytes.rank_count(), std::move(entries));
}

size_t MakingBytes(size_t entries, size_t ranks) {
  // Counted from Pattern::Make and found to be enough
  // (tests/unit/manager/mapping/search_bytes_test.cc): a list that has grown, the two halves of
  // each entry, what is kept of them.
  constexpr size_t kOfEntry = 200, kOfRank = 80;
  return kOfEntry * entries + kOfRank * ranks;
}

size_t ReadingBytes(absl::string_view text) {
  const size_t entries = CountAllWords(text);  // none of them says two
  return MakingBytes(entries, MostRanks(text, entries));
}

absl::StatusOr<PatternPointer> ReadTraceFile(absl::string_view text, absl::string_view origin) {
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
