// What is said between members of a tree that carries data and its switches, and from switch to
// switch: frames over TCP. agents/switch/README.md says who may send what. Plain C++, for the
// library that is preloaded into MPI programs; knows no socket.
//
//   0 magic "CPSW"   4 version   5 kind   6 operation and flags   7 type
//   8 tree (8)      16 revision           20 child
//  24 sequence (8)  32 segment            36 length of the payload that follows
//
// All numbers are little endian. Whatever arrives is untrusted: a header is judged before a byte of
// its payload is kept.
#ifndef COPPICE_AGENTS_LINKS_FRAME_H_
#define COPPICE_AGENTS_LINKS_FRAME_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

inline constexpr size_t kHeaderBytes = 40;
inline constexpr uint32_t kMaxPayloadBytes = 64 << 10;
inline constexpr size_t kKeyBytes = 16;
// FrameHeader::child of what the parent says.
inline constexpr uint32_t kFromParent = UINT32_MAX;

// Numbers on the wire; never given to something else.
enum class FrameKind : uint8_t {
  kHello = 1,     // a child's first: tree, revision, child; payload: the key
  kWelcome,       // the parent's answer to it
  kRefusal,       // the last of a connection; payload: RefusalPayload
  kContribution,  // up
  kResult,        // down
  kPing,
  kPong,
};
inline constexpr uint8_t kLastFrameKind = static_cast<uint8_t>(FrameKind::kPong);

// As in proto/coppice/v1/switches.proto, also by number.
enum class ReductionOperation : uint8_t {
  kNone = 0,
  kSum,
  kProduct,
  kMinimum,
  kMaximum,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kTake,
};
inline constexpr uint8_t kLastOperation = static_cast<uint8_t>(ReductionOperation::kTake);

// As in proto/coppice/v1/switches.proto, also by number.
enum class ElementType : uint8_t {
  kNone = 0,
  kBytes,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kHalf,
  kBfloat16,
};
inline constexpr uint8_t kLastElementType = static_cast<uint8_t>(ElementType::kBfloat16);

// A tree at one revision.
struct Group {
  uint64_t tree = 0;
  uint32_t revision = 0;
  friend auto operator<=>(const Group&, const Group&) = default;
};

// What who belongs to a tree at this revision can show.
using LinkKey = std::array<char, kKeyBytes>;

struct FrameHeader {
  FrameKind kind = FrameKind::kPing;
  ReductionOperation operation = ReductionOperation::kNone;
  // Of a contribution: the result's payload is wanted; who does not want it gets an empty result.
  bool wants_result = false;
  ElementType type = ElementType::kNone;
  Group group;
  uint32_t child = 0;     // the sender's number in the entry, or kFromParent
  uint64_t sequence = 0;  // of the collective in this tree, from 1
  uint32_t segment = 0;   // of the message, from 0
  uint32_t length = 0;    // bytes of payload
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

std::array<char, kHeaderBytes> EncodeHeader(const FrameHeader& header);
// One payload for all that it goes to. Null: none.
using SharedBytes = std::shared_ptr<const std::string>;

// False: it is none of ours, of another version, or has numbers that mean nothing. `bytes` has
// kHeaderBytes.
bool DecodeHeader(std::string_view bytes, FrameHeader* header);

// Why something is refused. Numbers on the wire; never given to something else.
enum class Refusal : uint32_t {
  kNone = 0,
  kMalformed = 1,  // no frame, or not the one that may come there
  kNoHello = 2,    // in time
  kTooManyStrangers = 3,
  kNoSuchTree = 4,
  kStaleRevision = 5,  // another one is installed
  kWrongKey = 6,
  kNoSuchChild = 7,
  kChildTaken = 8,        // somebody else is connected as that child
  kBadOperation = 9,      // not one that this switch does
  kBadType = 10,          // the operation is not defined on it
  kBadLength = 11,        // longer than a segment, or no whole number of elements
  kOtherCollective = 12,  // another operation, type or length than the first child's
  kTwice = 13,
  kOutOfTurn = 14,      // not the segment that follows
  kOutsideWindow = 15,  // too many that have no result yet
  kTwoPayloads = 16,    // to be taken of one child only
  kBroken = 17,         // the tree lost a member or a switch at this revision
  kUnread = 18,         // what was sent to it is not read
  kRemoved = 19,        // the daemon has taken the tree away
};
inline constexpr uint32_t kLastRefusal = static_cast<uint32_t>(Refusal::kRemoved);

// "stale revision"; of a number that is none of these "unknown reason".
std::string_view RefusalName(Refusal refusal);

inline constexpr size_t kMaxRefusalText = 200;
// The number and a text of at most kMaxRefusalText, which is cut.
std::string RefusalPayload(Refusal refusal, std::string_view text);
// kMalformed: it is none, or has a number that is none of these.
Refusal ParseRefusal(std::string_view payload);

// Cuts a stream of bytes into frames, with a buffer of one frame of the longest that is allowed.
class FrameParser final {
 public:
  enum class State { kNeedsMore, kFrame, kMalformed };

  explicit FrameParser(uint32_t max_payload) : max_payload_(max_payload) {}

  // From the next frame on. What Next gave stays valid until Room.
  void Allow(uint32_t max_payload) { max_payload_ = max_payload; }

  // Where the next bytes go: at least one, once Next has said kNeedsMore. Then Filled.
  std::span<char> Room();
  void Filled(size_t bytes) { end_ += bytes; }
  void Drop() { begin_ = end_ = 0; }

  // Takes the next frame out. `payload` is valid until Room. kMalformed stays.
  State Next(FrameHeader* header, std::string_view* payload);
  bool IsEmpty() const { return begin_ == end_; }
  size_t capacity() const { return buffer_.size(); }

 private:
  uint32_t max_payload_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_LINKS_FRAME_H_
