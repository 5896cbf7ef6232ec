// What a text may hold that people and programs are shown: the one check of names and notes that a
// caller gives, and the one way to show a text that was not checked. Texts from outside would
// otherwise write to whoever looks: ESC steers a terminal, CR and LF forge lines, and bidirectional
// controls turn around what is read. Common to daemon, agents and clients; knows none of them.
//
// Refused and escaped are: control characters (C0, DEL, C1), the separators of lines and paragraphs
// (U+2028, U+2029), bidirectional controls (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
// U+2069), the deprecated format characters behind them (to U+206F), and bytes that are no UTF-8.
#ifndef COPPICE_PROTO_TEXT_PLAIN_TEXT_H_
#define COPPICE_PROTO_TEXT_PLAIN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// Whether a text may have lines: then LF, CR before LF, and TAB are as good as letters.
enum class TextLines { kOne, kMany };

struct Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: what is there is no UTF-8 (RFC 3629, section 4)
};

// The first character of `text`, which is not empty. UTF-8 knows no overlong forms, no surrogates
// and nothing above U+10FFFF.
Character FirstCharacter(absl::string_view text);

// Whether it may stand in a name.
bool IsPlain(char32_t code);

// Whether it may be the name of a host or a user: 1 to kMaxWordBytes characters of ASCII, of which
// none is a space or a control character.
inline constexpr size_t kMaxWordBytes = 255;
bool IsWord(absl::string_view text);

// Whether it is HOST:PORT: a word, a colon, and a port of 1 to 65535. Not whether there is such a
// host.
bool IsHostAndPort(absl::string_view text);

// How many bytes at the beginning of `text` are printable ASCII, which most texts are throughout.
inline size_t PrintableBytes(absl::string_view text) {
  size_t at = 0;
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x7e) ++at;
  return at;
}

// What keeps `text` from being a name or a note, to be put behind what it is the text of: "holds
// the control character U+001B at byte 3". Empty: nothing. O(bytes).
std::string TextFault(absl::string_view text, TextLines lines = TextLines::kOne);

// `text` as it may be shown: "\n", "\r", "\t", "\u001b" for what is not plain, as JSON writes them,
// and "\xff" for a byte that is no UTF-8. A text that is plain comes back as it is. O(bytes).
std::string ShownText(absl::string_view text, TextLines lines = TextLines::kOne);

// `text` cut to at most `bytes`, not through the middle of a character.
absl::string_view CutText(absl::string_view text, size_t bytes);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_PLAIN_TEXT_H_
