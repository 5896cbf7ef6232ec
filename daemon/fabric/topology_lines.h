// Fabrics as text, read and written; and what the readers share: the lines, words and numbers
// within them, and how nodes and cables found in them become a fabric.
#ifndef COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_
#define COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/forwarding_tables.h"

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

// TYPE PORTS "NAME" REST, the header of a node. The views point into the line.
struct NodeHeader {
  std::optional<AdapterKind> kind;  // nullopt: a switch
  absl::string_view name, rest;
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

// The largest file read, 1 GiB: about ten times a fabric of 131,072 endpoints.
inline constexpr uint64_t kMaxFabricFileBytes = uint64_t{1} << 30;

// NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: as the system says; INVALID_ARGUMENT: no regular file,
// or one over the limit. Every message names the path. Reads by way of `buffer`, which outlives it.
absl::StatusOr<std::ifstream> OpenFabricFile(const std::string& path, absl::Span<char> buffer);

// The lines of a topology text, one after another, of which no more than one is in memory. Cuts at
// '\n', numbers from 1, drops a '\r' before the end and the byte order mark that some editors put
// in front of a text. Not thread-safe.
class TopologyLines {
 public:
  // `in` is seekable and outlives this. `origin` names the text in messages: a path.
  TopologyLines(std::istream& in, absl::string_view origin)
      : in_(in), buffer_(new char[kMaxLine + 1]), origin_(origin) {}

  // False at the end, and if the text cannot be read on: then status() says why. `line` is valid
  // until the next call.
  bool Next(absl::string_view* line);
  // The number of the last line given.
  uint32_t number() const { return number_; }
  // True if the text ended before the last line did: it may be cut off.
  bool unfinished() const { return unfinished_; }
  // INVALID_ARGUMENT: a line longer than kMaxLine; UNAVAILABLE: the text cannot be read.
  const absl::Status& status() const { return status_; }
  // Back to the first line.
  void Rewind();

  const std::string& origin() const { return origin_; }
  // INVALID_ARGUMENT, "net.txt:12: `what`", of the last line given.
  template <class... What>
  absl::Status Error(const What&... what) const {
    return absl::InvalidArgumentError(absl::StrCat(origin_, ":", number_, ": ", what...));
  }

  // The longest lines of real texts are a few hundred bytes; this ends the search for one in what
  // is no text at all.
  static constexpr size_t kMaxLine = size_t{128} << 10;

 private:
  std::istream& in_;
  std::unique_ptr<char[]> buffer_;
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

  // Starts a node, whose port lines follow. Errors: a GUID of 0 or a GUID seen before.
  absl::Status StartNode(StatedNode record, uint32_t line);

  // Errors: no node was started, a port beyond the node's count, a port named twice.
  absl::Status AddPort(const PortLine& port);

  // Pairs the lines and builds. Errors: no node at all, a cable to a node that has no header, to a
  // port beyond its count, to itself, one whose other end names another cable or none, and what
  // FabricBuilder::Build finds.
  absl::StatusOr<std::shared_ptr<const Fabric>> Finish();

  // "net.txt:12: `what`".
  template <class... What>
  absl::Status Error(uint32_t line, const What&... what) const {
    return absl::InvalidArgumentError(absl::StrCat(origin_, ":", line, ": ", what...));
  }

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
    bool is_paired = false;
  };

  absl::Span<End> EndsOf(uint32_t node);
  absl::Status PairEnd(uint32_t node, End& end);
  End* FindEnd(uint32_t node, PortNum port);
  absl::Status OneSided(uint32_t node, const End& end, uint32_t other, const End* found) const;
  std::string PortName(uint32_t node, PortNum port) const;

  std::string origin_;
  FabricBuilder builder_;
  std::vector<Node> nodes_;  // numbered as the builder numbers them
  std::vector<End> ends_;
  std::bitset<256> named_;  // ports of the last node
};

// The readers. Texts may carry the tools' chatter ("DR path ...", "ibwarn: ...") in front and in
// between. Readers must not guess: whatever is not understood is an error with its line.

// What ibnetdiscover prints in its default form:
//
//     Switch  36 "S-0002c9020040b0e0"      # "leaf 3" enhanced port 0 lid 7 lmc 0
//     [1]  "H-0002c9030006db4c"[1](2c9030006db4d)      # "n1 mlx5_0" lid 3 4xQDR
//     Ca  1 "H-0002c9030006db4c"           # "n1 mlx5_0"
//     [1](2c9030006db4d)  "S-0002c9020040b0e0"[1]      # lid 3 lmc 0 "leaf 3" lid 7 4xQDR
//
// also with -f and -g, and with our own "capacity 192 Gb/s" behind a rate that names none. Comments
// may be missing: then LIDs are 0, rates unknown, descriptions empty. Every cable must be stated at
// both ends. INVALID_ARGUMENT: origin, line and object; else what `lines` cannot read.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscover(TopologyLines& lines);

// The report of ibnetdiscover -p, one line a port:
//
//     CA   3  1 0x0002c9030006db4d 4x QDR - SW   7  1 0x0002c9020040b0e0 ( 'n1 mlx5_0' - 'leaf 3' )
//     SW   7  2 0x0002c9020040b0e0 4x ???                                    'leaf 3'
//
// It names ports only, so: a node has as many ports as its highest line; an adapter's GUID is its
// port GUID less the port number, as vendors number them, and the port GUID itself where that
// would merge adapters with different descriptions. Errors as above.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbnetdiscoverPorts(TopologyLines& lines);

// Writes a fabric as ibnetdiscover prints it in its default form, so that every tool that reads
// that text reads ours, and the reader gets an equal fabric back. Total; the same text for equal
// fabrics (it bears no date). A capacity that does not follow from width and speed is kept as
// "capacity 192 Gb/s" behind the rate. LMCs are kept for adapters. Cost: about 100 bytes a port
// line.
std::string WriteIbnetdiscover(const Fabric& fabric);

// ibsim's net files: topology text with node names of any kind and GUIDs counted up from a base. A
// file that ibsim loads and that this reads gives the fabric that ibsim then simulates. Understood:
// Switch, Hca, Ca and Rt headers, port lines with w= and s= options and "lid N lmc N", switchguid,
// hcaguids, caguid and rtguid with = or +, devid, width, speed, module prefixes, comments. Not
// understood, and refused by name: include, do, pdebug and aliases (@).
//
// A node without a GUID of its own gets the next one, as ibsim counts: switches from 0x200000 by 1,
// adapters from 0x100000 by their ports + 1. A rate and a capacity in a port line's comment, where
// our writer keeps what ibsim cannot say, go before w= and s=. INVALID_ARGUMENT: origin, line,
// object; else what `lines` cannot read.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadIbsimNet(TopologyLines& lines);

// Writes a fabric as a net file for ibsim. Total; the same text for equal fabrics. Nodes are named
// by the host (adapters) or the description (switches), then by the whole description, then by
// letter and GUID, whichever is unique first; characters other than letters, digits, '_', '.' and
// '-' become '_', so that SIM_HOST=n0000 and ibsim's `Unlink "S5"[1]` work.
//
// What ibsim cannot hold: port GUIDs other than node GUID + port, vendor ids, 2x links and speeds
// beyond QDR (it gets the widest and fastest it knows below them) and capacities, which a comment
// keeps for the reader, node descriptions beyond 64 characters.
std::string WriteIbsimNet(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TOPOLOGY_LINES_H_
