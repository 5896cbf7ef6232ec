#include "daemon/mapping/input/pattern_file.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/dense_pattern.h"
#include "daemon/mapping/input/line_scanner.h"
#include "daemon/mapping/input/matrix_market.h"
#include "daemon/mapping/input/metis_graph.h"
#include "daemon/mapping/input/trace_file.h"

namespace coppice {
namespace {

constexpr absl::string_view kComments = "#%";
constexpr uint32_t kMostOfHeader = 4;  // words in a graph's first line

uint32_t CountWords(LineScanner& lines) {
  uint32_t count = 0;
  while (count <= kMostOfHeader && !lines.NextWord().empty()) ++count;
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

}  // namespace

absl::StatusOr<std::shared_ptr<const Pattern>> ReadPattern(absl::string_view text,
                                                           absl::string_view origin) {
  LineScanner lines(text, origin);
  lines.NextLine();
  const absl::string_view first = lines.NextWord();
  if (absl::StartsWithIgnoreCase(first, "%%MatrixMarket")) return ReadMatrixMarket(text, origin);
  if (first == "coppice-trace") return ReadTraceFile(text, origin);
  lines = LineScanner(text, origin);
  if (!lines.NextLineThatSays(kComments)) {
    return lines.ErrorOfAll(
        "is empty; give a Matrix Market file, a METIS graph, a dense text matrix or a trace");
  }
  const uint32_t words = CountWords(lines);
  const bool has_commas = absl::StrContains(text.substr(0, text.find('\n')), ',');
  if (words == 1 || words > kMostOfHeader || has_commas) return ReadDensePattern(text, origin);
  if (!IsSquare(text, words)) return ReadMetisGraph(text, origin);
  // A graph of words - 1 ranks, all lines as long as its header, is as square.
  auto graph = ReadMetisGraph(text, origin);
  return graph.ok() ? graph : ReadDensePattern(text, origin);
}

absl::StatusOr<std::shared_ptr<const Pattern>> WithMessages(const Pattern& bytes,
                                                            const Pattern& counts) {
  if (bytes.rank_count() != counts.rank_count()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("messages of %d ranks for a pattern of %d; give both of one run",
                        counts.rank_count(), bytes.rank_count()));
  }
  std::vector<Pattern::Entry> entries;
  entries.reserve(2 * (bytes.pair_count() + counts.pair_count()));
  for (uint32_t rank = 0; rank < bytes.rank_count(); ++rank) {
    entries.push_back({rank, rank, bytes.self_bytes(rank), counts.self_bytes(rank)});
    for (const Exchange& e : bytes.exchanges(rank)) {
      entries.push_back({rank, e.peer, e.out_bytes, 0});
    }
    for (const Exchange& e : counts.exchanges(rank)) {
      entries.push_back({rank, e.peer, 0, e.out_bytes});
    }
  }
  return Pattern::Make(bytes.rank_count(), std::move(entries));
}

}  // namespace coppice
