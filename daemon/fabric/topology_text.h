// Words, numbers and link rates inside one line of a topology text: what the readers of
// ibnetdiscover's and ibsim's formats share. Copies nothing and allocates nothing; knows no fabric.
#ifndef COPPICE_DAEMON_FABRIC_TOPOLOGY_TEXT_H_
#define COPPICE_DAEMON_FABRIC_TOPOLOGY_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Walks over one line from left to right. Every method that reads returns false, and leaves the
// position anywhere, if the text is not what it asks for.
class LineCursor {
 public:
  explicit LineCursor(absl::string_view line) : rest_(line) {}

  absl::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }
  bool LooksAt(char c) const { return !rest_.empty() && rest_.front() == c; }

  void SkipBlanks() {
    size_t n = 0;
    while (n < rest_.size() && (rest_[n] == ' ' || rest_[n] == '\t')) ++n;
    rest_.remove_prefix(n);
  }
  bool Skip(char c) {
    if (!LooksAt(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Skip(absl::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // Decimal digits with a value of at most `most`.
  bool Decimal(uint32_t most, uint32_t* value) {
    uint64_t sum = 0;
    size_t n = 0;
    for (; n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9'; ++n) {
      sum = sum * 10 + static_cast<uint64_t>(rest_[n] - '0');
      if (sum > most) return false;
    }
    rest_.remove_prefix(n);
    *value = static_cast<uint32_t>(sum);
    return n > 0;
  }
  // 1 to 16 hexadecimal digits, with or without 0x.
  bool Hex(uint64_t* value) {
    if (rest_.substr(0, 2) == "0x") rest_.remove_prefix(2);
    uint64_t sum = 0;
    size_t n = 0;
    for (; n < rest_.size(); ++n) {
      const int digit = HexDigit(rest_[n]);
      if (digit < 0) break;
      sum = sum << 4 | static_cast<uint64_t>(digit);
    }
    rest_.remove_prefix(n);
    *value = sum;
    return n > 0 && n <= 16;
  }
  // Everything up to `end`, which is skipped.
  bool Until(char end, absl::string_view* text) {
    const size_t at = rest_.find(end);
    if (at == absl::string_view::npos) return false;
    *text = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return true;
  }
  // The next run of characters that are not blanks; blanks before it are skipped.
  absl::string_view Word() {
    SkipBlanks();
    size_t n = 0;
    while (n < rest_.size() && rest_[n] != ' ' && rest_[n] != '\t') ++n;
    const absl::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }

 private:
  static int HexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }
  absl::string_view rest_;
};

// What a message may quote of a line: its first 80 bytes without anything that a terminal or a
// program would stumble over (CleanDescription). An absurd line must not make an absurd message.
std::string Excerpt(absl::string_view text);

inline constexpr uint32_t kMaxNodePorts = 254;      // IBA vol. 1, 14.2.5.3 NodeInfo: NumPorts has 8
                                                    // bits, 255 is reserved
inline constexpr uint32_t kMaxUnicastLid = 0xBFFF;  // IBA vol. 1, 4.1.3

// TYPE PORTS "NAME" REST, the header of a node. The views point into the line.
struct NodeHeader {
  absl::string_view type, name, rest;
  uint8_t ports = 0;
};

// INVALID_ARGUMENT, without origin and line: a type that is not among `types`, a number of ports
// that no node has, no name in quotes.
absl::StatusOr<NodeHeader> ParseNodeHeader(absl::string_view line,
                                           absl::Span<const absl::string_view> types);

// True if `line` says nothing about the fabric: blank, a comment, or chatter of the tools.
bool IsChatter(absl::string_view line);

// "0002c9020040b0e0" behind one of "S-", "H-", "R-": the name that ibnetdiscover gives to a node.
std::optional<Guid> GuidOfNodeName(absl::string_view name);

// A rate as ibnetdiscover prints it, in two parts: "4x" and "QDR". "??" and "???", which it prints
// for what it does not know, leave that part unknown; nullopt: no rate.
std::optional<LinkRate> ParseActiveRate(absl::string_view width, absl::string_view speed);
// The same in one word: "4xQDR", "?xSDR", "?????".
std::optional<LinkRate> ParseActiveRate(absl::string_view word);

// The rate of a link as our writers state it in a line's comment, "4xQDR", "?????"; behind it, in
// our own words, which other programs skip, a capacity that does not follow from it: " capacity
// 192 Gb/s".
std::string FormatLinkRate(LinkRate rate, float capacity_gbps);
// "NUMBER Gb/s" behind "capacity": above 0, at most 1e9. nullopt: malformed.
std::optional<float> ParseCapacity(LineCursor& cursor);

// A node description as a line, a terminal and a program may hold it: control characters become
// spaces, as infiniband-diags does it, and what else is not plain (proto/text/plain_text.h), bytes
// that are no UTF-8 among it, question marks.
std::string CleanDescription(absl::string_view description);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TOPOLOGY_TEXT_H_
