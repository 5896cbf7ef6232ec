#include "db/text_list.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

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
