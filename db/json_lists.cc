#include "db/json_lists.h"

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

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

constexpr unsigned char kFirstPlain = 0x20;  // control characters below are written as \u00XX

}  // namespace

// --- Reading ---

absl::Status JsonReader::Wrong() const {
  return absl::DataLossError(absl::StrCat("wrong character at position ", at_ - begin_,
                                          " of a list of ", end_ - begin_, " characters"));
}

bool JsonReader::QuotedGuid(Guid& guid) {
  constexpr size_t kHexDigits = 16;
  if (rest().size() < kHexDigits + 2 || at_[0] != '"' || at_[kHexDigits + 1] != '"') return false;
  uint64_t value = 0;
  const char* const past = at_ + kHexDigits + 1;
  const auto [next, error] = std::from_chars(at_ + 1, past, value, 16);
  if (error != std::errc() || next != past) return false;
  guid = Guid(value);
  at_ = past + 1;
  return true;
}

bool JsonReader::Text(std::string& text) {
  if (!Skip('"')) return false;
  for (;;) {
    const size_t plain = rest().find_first_of("\"\\");
    if (plain == std::string_view::npos) return false;
    text.append(at_, plain);
    at_ += plain;
    if (Skip('"')) return true;
    if (!Escaped(text)) return false;
  }
}

// From the backslash on.
bool JsonReader::Escaped(std::string& text) {
  const std::string_view escaped = rest().substr(0, 6);
  const char kind = escaped.size() < 2 ? 0 : escaped[1];
  if (kind == '"' || kind == '\\') {
    text += kind;
    at_ += 2;
    return true;
  }
  uint8_t code = 0;
  if (escaped.size() < 6 || escaped.substr(1, 3) != "u00") return false;
  const auto [next, error] = std::from_chars(at_ + 4, at_ + 6, code, 16);
  if (error != std::errc() || next != at_ + 6 || code >= kFirstPlain) return false;
  text += static_cast<char>(code);
  at_ += 6;
  return true;
}

// --- Writing ---

void AppendText(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < kFirstPlain) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void AppendNumbers(const std::vector<Number>& numbers, std::string& text) {
  Grow(text, numbers.size() * (kDigits + 1) + 2, [&](char* out) {
    *out++ = '[';
    for (const Number number : numbers) {
      out = Put(out, number);
      *out++ = ',';
    }
    if (!numbers.empty()) --out;
    *out++ = ']';
    return out;
  });
}
template void AppendNumbers(const std::vector<int64_t>& numbers, std::string& text);
template void AppendNumbers(const std::vector<uint64_t>& numbers, std::string& text);
template void AppendNumbers(const std::vector<uint32_t>& numbers, std::string& text);

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

template <class Number>
absl::StatusOr<std::vector<Number>> ParseNumbers(std::string_view text) {
  std::vector<Number> numbers;
  numbers.reserve(text.size() / 6);
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.Number(numbers.emplace_back()); }));
  return numbers;
}
template absl::StatusOr<std::vector<int64_t>> ParseNumbers(std::string_view text);
template absl::StatusOr<std::vector<uint64_t>> ParseNumbers(std::string_view text);
template absl::StatusOr<std::vector<uint32_t>> ParseNumbers(std::string_view text);

absl::StatusOr<std::vector<Guid>> ParseGuids(std::string_view text) {
  std::vector<Guid> guids;
  guids.reserve(text.size() / 19);
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.QuotedGuid(guids.emplace_back()); }));
  return guids;
}

absl::Status ParseTreeNodes(std::string_view text, TreeRecord& tree) {
  tree.ranks.clear();
  tree.parents.clear();
  tree.edge_links_up.clear();
  tree.edge_links_down.clear();
  return JsonReader(text).List([&](JsonReader& in) {
    int64_t rank = 0;
    int32_t parent = 0;
    uint32_t up = 0, down = 0;
    if (!(in.Skip('[') && in.Number(rank) && in.Skip(',') && in.Number(parent) && in.Skip(',') &&
          in.Number(up) && in.Skip(',') && in.Number(down) && in.Skip(']'))) {
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
    if (i > 0) text += ',';
    AppendText(texts[i], text);
  }
  text += ']';
}

absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text) {
  std::vector<std::string> texts;
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.Text(texts.emplace_back()); }));
  return texts;
}

}  // namespace coppice
