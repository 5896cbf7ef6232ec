#include "db/json_lists.h"

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr size_t kDigits = 20;  // of the longest 64-bit number, sign included

template <class Number>
char* Put(char* out, Number number) {
  return std::to_chars(out, out + kDigits, number).ptr;
}

// Grows `text` by at most `most` bytes, which `write(out)` fills, returning its end.
template <class Write>
void Grow(std::string& text, size_t most, Write write) {
  const size_t before = text.size();
  text.resize(before + most);
  char* end = write(text.data() + before);
  text.resize(static_cast<size_t>(end - text.data()));
}

template <class Number>
void AppendList(const std::vector<Number>& numbers, std::string& text) {
  Grow(text, numbers.size() * (kDigits + 1) + 2, [&](char* out) {
    *out++ = '[';
    for (Number number : numbers) {
      out = Put(out, number);
      *out++ = ',';
    }
    if (!numbers.empty()) --out;
    *out++ = ']';
    return out;
  });
}

// Reads left to right; the first mistake sticks.
class Reader {
 public:
  explicit Reader(std::string_view text) : begin_(text.data()), at_(begin_) {
    end_ = begin_ + text.size();
  }
  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  template <class Number>
  bool Read(Number& number, int base = 10) {
    auto [next, error] = std::from_chars(at_, end_, number, base);
    if (error != std::errc()) return false;
    at_ = next;
    return true;
  }
  // "[]", or "[" item ("," item)* "]", and then the end.
  template <class Item>
  absl::Status List(Item item) {
    if (!Take('[')) return Wrong();
    if (!Take(']')) {
      do {
        if (!item(*this)) return Wrong();
      } while (Take(','));
      if (!Take(']')) return Wrong();
    }
    return at_ == end_ ? absl::OkStatus() : Wrong();
  }
  const char* at() const { return at_; }

 private:
  absl::Status Wrong() const {
    return absl::DataLossError(absl::StrCat("wrong character at position ", at_ - begin_,
                                            " of a list of ", end_ - begin_, " characters"));
  }
  const char* begin_;
  const char* at_;
  const char* end_;
};

template <class Number>
absl::StatusOr<std::vector<Number>> ParseList(std::string_view text) {
  std::vector<Number> numbers;
  numbers.reserve(text.size() / 6);
  RETURN_IF_ERROR(Reader(text).List([&](Reader& in) {
    Number number = 0;
    if (!in.Read(number)) return false;
    numbers.push_back(number);
    return true;
  }));
  return numbers;
}

constexpr unsigned char kFirstPlain = 0x20;  // control characters below are written as \u00XX

absl::Status WrongAt(size_t position) {
  return absl::DataLossError(absl::StrCat("not a list of texts, at character ", position));
}

// The text between the quotes that begin at `at`, which moves behind them.
absl::StatusOr<std::string> ParseText(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '"') return WrongAt(at);
  std::string parsed;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] != '\\') {
      parsed += text[at];
      continue;
    }
    ++at;
    if (at < text.size() && (text[at] == '"' || text[at] == '\\')) {
      parsed += text[at];
      continue;
    }
    uint32_t code;
    const bool is_code = at + 4 < text.size() && text[at] == 'u' &&
                         absl::SimpleHexAtoi(absl::string_view(text.data() + at + 1, 4), &code);
    if (!is_code || code >= kFirstPlain) return WrongAt(at);
    parsed += static_cast<char>(code);
    at += 4;
  }
  if (at >= text.size()) return WrongAt(at);
  ++at;
  return parsed;
}

}  // namespace

void AppendNumbers(const std::vector<int64_t>& numbers, std::string& text) {
  AppendList(numbers, text);
}

void AppendNumbers(const std::vector<uint64_t>& numbers, std::string& text) {
  AppendList(numbers, text);
}

void AppendGuids(absl::Span<const Guid> guids, std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  Grow(text, guids.size() * 19 + 2, [&](char* out) {
    *out++ = '[';
    for (Guid guid : guids) {
      *out++ = '"';
      for (int shift = 60; shift >= 0; shift -= 4) *out++ = kHex[(guid.value() >> shift) & 15];
      *out++ = '"';
      *out++ = ',';
    }
    if (!guids.empty()) --out;
    *out++ = ']';
    return out;
  });
}

void AppendTreeNodes(const TreeRecord& tree, std::string& text) {
  const size_t nodes = tree.parents.size();
  Grow(text, nodes * (4 * 11 + 6) + 2, [&](char* out) {
    *out++ = '[';
    for (size_t node = 0; node < nodes; ++node) {
      *out++ = '[';
      out = Put(out, node < tree.ranks.size() ? int64_t{tree.ranks[node]} : int64_t{-1});
      *out++ = ',';
      out = Put(out, tree.parents[node]);
      *out++ = ',';
      out = Put(out, tree.edge_links_up[node]);
      *out++ = ',';
      out = Put(out, tree.edge_links_down[node]);
      *out++ = ']';
      *out++ = ',';
    }
    if (nodes > 0) --out;
    *out++ = ']';
    return out;
  });
}

absl::StatusOr<std::vector<int64_t>> ParseSigned(std::string_view text) {
  return ParseList<int64_t>(text);
}

absl::StatusOr<std::vector<uint64_t>> ParseUnsigned(std::string_view text) {
  return ParseList<uint64_t>(text);
}

absl::StatusOr<std::vector<Guid>> ParseGuids(std::string_view text) {
  std::vector<Guid> guids;
  guids.reserve(text.size() / 19);
  RETURN_IF_ERROR(Reader(text).List([&](Reader& in) {
    uint64_t value = 0;
    if (!in.Take('"')) return false;
    const char* first = in.at();
    if (!in.Read(value, 16) || in.at() - first != 16 || !in.Take('"')) return false;
    guids.push_back(Guid(value));
    return true;
  }));
  return guids;
}

absl::Status ParseTreeNodes(std::string_view text, TreeRecord& tree) {
  tree.ranks.clear();
  tree.parents.clear();
  tree.edge_links_up.clear();
  tree.edge_links_down.clear();
  return Reader(text).List([&](Reader& in) {
    int64_t rank = 0;
    int32_t parent = 0;
    uint32_t up = 0, down = 0;
    if (!(in.Take('[') && in.Read(rank) && in.Take(',') && in.Read(parent) && in.Take(',') &&
          in.Read(up) && in.Take(',') && in.Read(down) && in.Take(']'))) {
      return false;
    }
    if (rank < -1 || rank > UINT32_MAX) return false;
    if (rank >= 0) {
      if (tree.ranks.size() != tree.parents.size()) return false;
      tree.ranks.push_back(static_cast<uint32_t>(rank));
    }
    tree.parents.push_back(parent);
    tree.edge_links_up.push_back(up);
    tree.edge_links_down.push_back(down);
    return true;
  });
}

void AppendTexts(const std::vector<std::string>& texts, std::string& text) {
  text += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    text += i == 0 ? "\"" : ",\"";
    for (const char c : texts[i]) {
      if (c == '"' || c == '\\') {
        text += '\\';
        text += c;
      } else if (static_cast<unsigned char>(c) < kFirstPlain) {
        absl::StrAppendFormat(&text, "\\u%04x", static_cast<unsigned>(c));
      } else {
        text += c;
      }
    }
    text += '"';
  }
  text += ']';
}

absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text) {
  std::vector<std::string> texts;
  if (text == "[]") return texts;
  if (text.empty() || text[0] != '[') return WrongAt(0);
  for (size_t at = 1;;) {
    absl::StatusOr<std::string> parsed = ParseText(text, at);
    if (!parsed.ok()) return parsed.status();
    texts.push_back(*std::move(parsed));
    if (at + 1 == text.size() && text[at] == ']') return texts;
    if (at >= text.size() || text[at] != ',') return WrongAt(at);
    ++at;
  }
}

}  // namespace coppice
