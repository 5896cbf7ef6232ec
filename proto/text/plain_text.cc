#include "proto/text/plain_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// `rest` begins with the character `code`.
bool IsAllowed(char32_t code, absl::string_view rest, TextLines lines) {
  if (lines == TextLines::kMany && (code == '\n' || code == '\t')) return true;
  if (lines == TextLines::kMany && absl::StartsWith(rest, "\r\n")) return true;
  return IsPlain(code);
}

std::string Escaped(char32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return absl::StrFormat("\\u%04x", static_cast<uint32_t>(code));  // none is above U+FFFF
  }
}

}  // namespace

Character FirstCharacter(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  char32_t code = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (is_overlong || is_surrogate || code > 0x10FFFF) return {};
  return {code, length};
}

bool IsPlain(char32_t code) {
  const auto between = [code](char32_t first, char32_t last) {
    return first <= code && code <= last;
  };
  return code >= 0x20 && !between(0x7F, 0x9F) && code != 0x061C && !between(0x200E, 0x200F) &&
         !between(0x2028, 0x202E) && !between(0x2066, 0x206F);
}

bool IsWord(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxWordBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool IsHostAndPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return IsWord(text) && colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port >= 1 && port <= 0xffff;
}

std::string TextFault(absl::string_view text, TextLines lines) {
  for (size_t at = PrintableBytes(text); at < text.size();) {
    const Character character = FirstCharacter(text.substr(at));
    if (character.bytes == 0) return absl::StrCat("is no UTF-8 at byte ", at);
    if (!IsAllowed(character.code, text.substr(at), lines)) {
      return absl::StrFormat("holds the control character U+%04X at byte %d",
                             static_cast<uint32_t>(character.code), at);
    }
    at += character.bytes;
  }
  return {};
}

std::string ShownText(absl::string_view text, TextLines lines) {
  size_t at = PrintableBytes(text);
  std::string shown(text.substr(0, at));
  while (at < text.size()) {
    const Character character = FirstCharacter(text.substr(at));
    if (character.bytes == 0) {
      absl::StrAppendFormat(&shown, "\\x%02x", static_cast<unsigned char>(text[at]));
    } else if (IsAllowed(character.code, text.substr(at), lines)) {
      absl::StrAppend(&shown, text.substr(at, character.bytes));
    } else {
      absl::StrAppend(&shown, Escaped(character.code));
    }
    at += std::max<size_t>(character.bytes, 1);
  }
  return shown;
}

absl::string_view CutText(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && bytes - end < 3 && IsContinuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace coppice
