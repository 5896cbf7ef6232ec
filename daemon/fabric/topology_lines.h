// What both readers of topology files share: the lines, and how nodes and links found in them
// become a fabric.
//
// The lines of a topology text, one after another, from memory or from a file. A file is read in
// blocks, so that reading takes the memory of one block and not of the whole text:
//
//     block    |...line 7\n line 8\n lin|          the cut line moves to the front, and the next
//                                 \___             block is read behind it
//              |line 9\n line 10\n ...|
//
// Knows no syntax but the end of a line.
#ifndef COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_
#define COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/forwarding_tables.h"

namespace coppice {

// Words, numbers and link rates inside one line of a topology text: what the readers of
// ibnetdiscover's and ibsim's formats share. Copies nothing and allocates nothing; knows no fabric.

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

// The file behind a topology text, read from front to back in blocks. Refuses what is no fabric
// file before it reads a byte: folders, devices, gigabytes. Knows no syntax.

// The largest file read, 1 GiB: about ten times a fabric of 131,072 endpoints.
inline constexpr uint64_t kMaxFabricFileBytes = uint64_t{1} << 30;

// Owns the descriptor. Not thread-safe.
class TopologyFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: as the system says; INVALID_ARGUMENT: no regular
  // file, or one over the limit. Every message names the path.
  static absl::StatusOr<TopologyFile> Open(const std::string& path);

  TopologyFile(TopologyFile&& other) noexcept;
  TopologyFile& operator=(TopologyFile&&) = delete;
  ~TopologyFile();

  const std::string& path() const { return path_; }

  // Reads up to `size` bytes into `buffer`; 0 at the end. What is appended to the file after Open
  // is not read. UNAVAILABLE: it cannot be read.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);
  // Back to the first byte.
  void Rewind() { offset_ = 0; }

 private:
  TopologyFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  uint64_t size_;
  uint64_t offset_ = 0;
};

// Cuts at '\n', numbers from 1, drops a '\r' before the end and the byte order mark that some
// editors put in front of a text. Not thread-safe.
class TopologyLines {
 public:
  // `origin` names the text in messages: a path. The text must outlive this.
  TopologyLines(absl::string_view text, absl::string_view origin);
  // Reads `file`, which must outlive this, from its beginning on.
  explicit TopologyLines(TopologyFile& file);

  TopologyLines(const TopologyLines&) = delete;
  TopologyLines& operator=(const TopologyLines&) = delete;

  // False at the end, and if the file cannot be read on: then status() says why. `line` is valid
  // until the next call.
  bool Next(absl::string_view* line) {
    const size_t end = rest_.find('\n');
    if (end == absl::string_view::npos) return NextAcrossBlocks(line);
    Take(end, end + 1, line);
    return true;
  }
  // The number of the last line given.
  uint32_t number() const { return number_; }
  // True if the text ended before the last line did: it may be cut off.
  bool unfinished() const { return unfinished_; }
  // INVALID_ARGUMENT: a line of a file longer than kMaxLine; else what TopologyFile::Read says.
  const absl::Status& status() const { return status_; }
  // Back to the first line.
  void Rewind();

  const std::string& origin() const { return origin_; }
  // INVALID_ARGUMENT, "net.txt:12: `what`", of the last line given.
  absl::Status Error(absl::string_view what) const;

  static constexpr size_t kBlock = size_t{256} << 10;
  // The longest lines of real texts are a few hundred bytes; this ends the search for one in what
  // is no text at all.
  static constexpr size_t kMaxLine = kBlock / 2;

 private:
  void Take(size_t length, size_t consumed, absl::string_view* line) {
    *line = rest_.substr(0, length);
    rest_.remove_prefix(consumed);
    if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
    ++number_;
  }
  bool NextAcrossBlocks(absl::string_view* line);
  // Moves what is left to the front and reads behind it; false at the end of the file.
  bool Refill();

  absl::string_view text_;  // all of it, if it is in memory
  TopologyFile* file_ = nullptr;
  std::unique_ptr<char[]> block_;
  absl::string_view rest_;
  std::string origin_;
  absl::Status status_;
  uint32_t number_ = 0;
  bool unfinished_ = false;
};

// Between the readers of topology texts and FabricBuilder: a text states every cable twice, once at
// either end, and this checks that both ends agree before the cable becomes a link.
//
//        Switch 36 "S-a"                    line 7: port 3 of a -> port 9 of b  \  one cable
//        [3]  "S-b"[9]                      line 9: port 9 of b -> port 3 of a  /
//        Switch 36 "S-b"
//        [9]  "S-a"[3]                      a line without its counterpart is an error
//
// Every message names origin, line and node. Cost: one hash lookup and one search of the other
// node's lines a cable. Knows no syntax.

// One end of a cable, as a line of the node that was started last states it.
struct PortLine {
  uint32_t line = 0;
  PortNum port;
  Guid remote;
  PortNum remote_port;
  LinkRate rate;
  float capacity_gbps = 0;  // 0 = from the rate
  Guid port_guid;           // of adapters; 0 = node GUID + port
  Lid lid;                  // of adapters
  uint8_t lmc = 0;
};

// Not thread-safe. Every error is INVALID_ARGUMENT.
class TopologyAssembler {
 public:
  // `origin` names the text in messages: a path.
  explicit TopologyAssembler(absl::string_view origin) : origin_(origin) {}

  // Start a node, whose port lines follow. Errors: a GUID of 0 or a GUID seen before.
  absl::Status StartSwitch(SwitchInfo info, uint32_t line);
  absl::Status StartAdapter(AdapterInfo info, uint32_t line);
  bool HasNode() const { return !nodes_.empty(); }

  // Errors: no node was started, a port beyond the node's count, a port named twice.
  absl::Status AddPort(const PortLine& port);

  // Pairs the lines and builds. Errors: no node at all, a cable to a node that has no header, to a
  // port beyond its count, to itself, one whose other end names another cable or none, and what
  // FabricBuilder::Build finds.
  absl::StatusOr<std::shared_ptr<const Fabric>> Finish();

  // "net.txt:12: `what`".
  absl::Status Error(uint32_t line, absl::string_view what) const;

 private:
  struct Node {
    Guid guid;
    uint32_t line;
    uint32_t first_end;  // into ends_; the next node's first_end is the end
    uint8_t port_count;
    bool is_switch;
  };
  struct End {
    Guid remote;
    uint32_t line;
    float capacity_gbps;
    PortNum port, remote_port;
    LinkRate rate;
  };

  absl::Status StartNode(Guid guid, bool is_switch, uint8_t port_count, uint32_t line);
  absl::Status PairEnds(uint32_t node, bool late, size_t& waiting);
  const End* FindEnd(uint32_t node, PortNum port) const;
  absl::Status OneSided(uint32_t node, const End& end, uint32_t other, const End* found) const;
  std::string PortName(uint32_t node, PortNum port) const;

  std::string origin_;
  FabricBuilder builder_;
  std::vector<Node> nodes_;  // numbered as the builder numbers them
  std::vector<End> ends_;
  std::bitset<256> named_;  // ports of the last node
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_
