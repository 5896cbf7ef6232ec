// A name is read as pieces, each of which stands for texts in an order: a plain piece for itself, a
// bracket for its numbers. The names are the product of the pieces, counted before any is made.
#include "proto/text/node_list.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr size_t kMaxDigits = 18;    // of a number: fits 64 bits with room to count on
constexpr size_t kMaxWordTold = 64;  // letters of a word in an error
constexpr size_t kMaxBrackets = 8;   // in one name
constexpr size_t kNoMark = absl::string_view::npos;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

std::string Padded(uint64_t number, size_t width) {
  std::string digits = absl::StrCat(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// --- Reading ---

struct Range {
  uint64_t first = 0, last = 0;
  size_t width = 0;  // of the first
};

struct Piece {
  absl::string_view text;     // plain
  std::vector<Range> ranges;  // or a bracket, if there are any
  uint64_t count = 1;         // texts that it stands for
  size_t longest = 0;         // letters
};

class ListReader {
 public:
  explicit ListReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<std::string>> Read() {
    if (absl::StripAsciiWhitespace(text_).empty()) return std::move(names_);
    for (size_t begin = 0;;) {
      const absl::StatusOr<size_t> end = EndOfName(begin);
      if (!end.ok()) return end.status();
      if (const absl::Status read = ReadName(begin, *end); !read.ok()) return read;
      if (*end == text_.size()) return std::move(names_);
      begin = *end + 1;
    }
  }

 private:
  absl::Status Error(size_t at, absl::string_view word, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("node list, letter ", at + 1, ", \"", word.substr(0, kMaxWordTold),
                     word.size() > kMaxWordTold ? "..." : "", "\": ", what));
  }

  // The comma behind the name, or the end of the text. Brackets pair and do not nest.
  absl::StatusOr<size_t> EndOfName(size_t begin) const {
    size_t open = kNoMark;
    for (size_t i = begin; i < text_.size(); ++i) {
      if (text_[i] == '[') {
        if (open != kNoMark) return Error(i, text_.substr(begin, i + 1 - begin), "brackets nest");
        open = i;
      } else if (text_[i] == ']') {
        if (open == kNoMark) {
          return Error(i, text_.substr(begin, i + 1 - begin), "a bracket is closed but not opened");
        }
        open = kNoMark;
      } else if (text_[i] == ',' && open == kNoMark) {
        return i;
      }
    }
    if (open != kNoMark) {
      return Error(open, text_.substr(begin),
                   "a bracket is not closed; write it like n[001-128,130]");
    }
    return text_.size();
  }

  absl::Status ReadName(size_t begin, size_t end) {
    while (begin < end && absl::ascii_isspace(static_cast<unsigned char>(text_[begin]))) ++begin;
    while (end > begin && absl::ascii_isspace(static_cast<unsigned char>(text_[end - 1]))) --end;
    const absl::string_view word = text_.substr(begin, end - begin);
    if (word.empty()) return Error(begin, word, "no name between commas");
    const absl::StatusOr<std::vector<Piece>> pieces = ReadPieces(begin, end);
    if (!pieces.ok()) return pieces.status();
    uint64_t count = 1;
    size_t longest = 0;
    for (const Piece& piece : *pieces) {
      longest += piece.longest;
      count = piece.count > kMaxListedNodes
                  ? kMaxListedNodes + 1
                  : std::min(count * piece.count, uint64_t{kMaxListedNodes} + 1);
    }
    if (longest > kMaxListedNameBytes) {
      return Error(begin, word,
                   absl::StrCat("a name is longer than ", kMaxListedNameBytes, " letters"));
    }
    bytes_ += std::min(count, uint64_t{kMaxListedNodes}) * longest;
    if (count + names_.size() > kMaxListedNodes || bytes_ > kMaxListedBytes) {
      return Error(begin, word,
                   absl::StrCat("the list stands for more than ", kMaxListedNodes, " names, or ",
                                kMaxListedBytes, " letters"));
    }
    Expand(*pieces, count);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Piece>> ReadPieces(size_t begin, size_t end) const {
    std::vector<Piece> pieces;
    size_t brackets = 0;
    for (size_t i = begin; i < end;) {
      Piece piece;
      if (text_[i] == '[') {
        const size_t close = text_.find(']', i);
        if (++brackets > kMaxBrackets) {
          return Error(i, text_.substr(begin, end - begin),
                       absl::StrCat("more than ", kMaxBrackets, " brackets in one name"));
        }
        if (const absl::Status read = ReadRanges(i + 1, close, piece); !read.ok()) return read;
        i = close + 1;
      } else {
        const size_t stop = std::min(text_.find('[', i), end);
        piece.text = text_.substr(i, stop - i);
        piece.longest = piece.text.size();
        i = stop;
      }
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  absl::Status ReadRanges(size_t begin, size_t close, Piece& piece) const {
    piece.count = 0;
    for (size_t i = begin;;) {
      const size_t stop = std::min(text_.find(',', i), close);
      const absl::StatusOr<Range> range = ReadRange(i, stop);
      if (!range.ok()) return range.status();
      piece.count += std::min(range->last - range->first + 1, uint64_t{kMaxListedNodes} + 1);
      piece.count = std::min(piece.count, uint64_t{kMaxListedNodes} + 1);
      piece.longest = std::max({piece.longest, range->width, absl::StrCat(range->last).size()});
      piece.ranges.push_back(*range);
      if (stop == close) return absl::OkStatus();
      i = stop + 1;
    }
  }

  absl::StatusOr<Range> ReadRange(size_t begin, size_t end) const {
    const absl::string_view word = text_.substr(begin, end - begin);
    const size_t dash = word.find('-');
    const absl::string_view first = word.substr(0, dash);
    const absl::string_view last = dash == kNoMark ? first : word.substr(dash + 1);
    for (const absl::string_view digits : {first, last}) {
      if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) {
        return Error(begin, word, "brackets hold numbers and ranges of them, like [001-128,130]");
      }
      if (digits.size() > kMaxDigits) {
        return Error(begin, word, absl::StrCat("a number has more than ", kMaxDigits, " digits"));
      }
    }
    Range range;
    range.width = first.size();
    if (!absl::SimpleAtoi(first, &range.first) || !absl::SimpleAtoi(last, &range.last)) {
      return Error(begin, word, "not a range of numbers");
    }
    if (range.last < range.first) return Error(begin, word, "the range ends before it begins");
    if (last.size() != first.size() && last[0] == '0' && last.size() > 1) {
      return Error(begin, word, "the ends of the range have zeros in front of different widths");
    }
    return range;
  }

  // The product of the pieces, the last the fastest.
  void Expand(const std::vector<Piece>& pieces, uint64_t count) {
    std::vector<std::string> made = {""};
    for (const Piece& piece : pieces) {
      if (piece.ranges.empty()) {
        for (std::string& name : made) name.append(piece.text.data(), piece.text.size());
        continue;
      }
      std::vector<std::string> longer;
      longer.reserve(made.size() * piece.count);
      for (const std::string& name : made) {
        for (const Range& range : piece.ranges) {
          for (uint64_t n = range.first; n <= range.last; ++n) {
            longer.push_back(absl::StrCat(name, Padded(n, range.width)));
          }
        }
      }
      made = std::move(longer);
    }
    if (names_.empty()) names_.reserve(count);
    std::move(made.begin(), made.end(), std::back_inserter(names_));
  }

  const absl::string_view text_;
  std::vector<std::string> names_;
  uint64_t bytes_ = 0;
};

// --- Writing ---

// A name with the number at its end, if it has one: "n", "001".
struct Numbered {
  absl::string_view prefix, digits;
  uint64_t number = 0;
};

Numbered SplitNumber(absl::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && name.size() - begin < kMaxDigits && IsDigit(name[begin - 1])) --begin;
  Numbered split = {name.substr(0, begin), name.substr(begin), 0};
  if (!split.digits.empty() && !absl::SimpleAtoi(split.digits, &split.number)) split.number = 0;
  return split;
}

// Whether `next` is what a range that began with `first` has at that number.
bool Continues(const Numbered& first, uint64_t number, const Numbered& next) {
  return !next.digits.empty() && next.prefix == first.prefix && next.number == number &&
         next.digits == Padded(number, first.digits.size());
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseNodeList(absl::string_view text) {
  return ListReader(text).Read();
}

std::string FormatNodeList(absl::Span<const std::string> names) {
  std::string list;
  for (size_t i = 0; i < names.size();) {
    if (i > 0) list += ',';
    const Numbered head = SplitNumber(names[i]);
    std::string items;  // of the bracket
    size_t end = i, count = 0;
    while (end < names.size()) {
      const Numbered first = SplitNumber(names[end]);
      if (first.digits.empty() || first.prefix != head.prefix) break;
      uint64_t next = first.number + 1;
      size_t stop = end + 1;
      while (stop < names.size() && Continues(first, next, SplitNumber(names[stop])))
        ++stop, ++next;
      absl::StrAppend(&items, count == 0 ? "" : ",", first.digits);
      if (stop - end > 1) absl::StrAppend(&items, "-", Padded(next - 1, first.digits.size()));
      count += stop - end;
      end = stop;
    }
    if (count <= 1) {
      absl::StrAppend(&list, names[i]);
      i += 1;
    } else {
      absl::StrAppend(&list, head.prefix, "[", items, "]");
      i = end;
    }
  }
  return list;
}

bool LooksLikeNodeList(absl::string_view text) {
  return text.find_first_of(",[]") != absl::string_view::npos;
}

void SortNodeNames(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const Numbered x = SplitNumber(a), y = SplitNumber(b);
    if (x.prefix != y.prefix) return x.prefix < y.prefix;
    if (x.number != y.number) return x.number < y.number;
    return x.digits.size() < y.digits.size();
  });
}

std::optional<size_t> FindRepeated(absl::Span<const std::string> names) {
  absl::flat_hash_set<absl::string_view> seen;
  seen.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second) return i;
  }
  return std::nullopt;
}

}  // namespace coppice
