// One entry of a switch: a tree at one revision, as this switch sees it. Takes what its children
// send, combines it in the order of their numbers, and says what goes up and what goes down. A
// plain value: no socket, no clock, no thread.
//
//    child 0   child 1   child 2            All children send the same segments in the same order:
//   s0 s1 s2   s0        s0 s1              the k-th of one belongs to the k-th of each other. From
//      \         |        /                 the oldest segment without a result, s0, at most
//      `window`
//       window: [s0 | s1 | s2 |   ]         are under way; nobody may be further ahead.
//                 |
//                 up to the parent; or, at the root, down to all
//
// A contribution whose turn has not come is kept, so that the same tree gives the same bits whoever
// comes first. Fail-stop: what lost a child or its parent, or was sent something that is refused,
// is never used again at this revision.
#ifndef COPPICE_AGENTS_SWITCH_ENTRY_H_
#define COPPICE_AGENTS_SWITCH_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/links/frame.h"

namespace coppice {

struct EntryParent {
  std::string address;
  std::string guid;     // for messages
  uint32_t number = 0;  // which child of the parent this switch is
  friend bool operator==(const EntryParent&, const EntryParent&) = default;
};

struct EntrySpec {
  Group group;
  LinkKey key{};
  uint32_t children = 0;
  std::optional<EntryParent> parent;  // nullopt: this is the root
  uint32_t segment_bytes = 0;
  uint32_t window = 0;
  friend bool operator==(const EntrySpec&, const EntrySpec&) = default;

  // What it may keep of its children's contributions at once.
  uint64_t MemoryBytes() const { return uint64_t{children} * window * segment_bytes; }
};

struct EntryCounters {
  uint64_t collectives = 0;    // whose first segment came down
  uint64_t segments_up = 0;    // taken from children
  uint64_t segments_down = 0;  // given to children
  uint64_t bytes_up = 0;       // payload
  uint64_t bytes_down = 0;

  EntryCounters& operator+=(const EntryCounters& other) {
    collectives += other.collectives;
    segments_up += other.segments_up;
    segments_down += other.segments_down;
    bytes_up += other.bytes_up;
    bytes_down += other.bytes_down;
    return *this;
  }
};

class Entry final {
 public:
  struct Up {
    FrameHeader header;
    SharedBytes payload;
  };
  struct Down {
    FrameHeader header;
    SharedBytes payload;
    std::vector<bool> wants;  // by child; the others get the header with no payload
  };
  // What follows from a message; nothing, if it waits for others.
  struct Answer {
    Refusal refusal = Refusal::kNone;
    std::optional<Up> up;
    std::optional<Down> down;
  };
  enum class Health {
    kWhole,
    kLeft,    // a child or the parent went while nothing was under way
    kBroken,  // some collective cannot be ended
  };

  // `spec` is one that EntryTable takes.
  explicit Entry(EntrySpec spec);

  // Whether `child`, who has the key, may be connected; it is from then on. It goes on with
  // `sequence`, and sends nothing before it.
  Refusal Connect(uint32_t child, uint64_t sequence);

  // From a connected child. Refused: Break it.
  Answer Contribute(uint32_t child, const FrameHeader& header, std::string_view payload);
  // From the parent. Refused: Break it.
  Answer TakeResult(const FrameHeader& header, std::string_view payload);

  // A child or the parent is gone. True: it is broken by that.
  bool Lose();
  // Forgets what is under way. True: it was not broken before.
  bool Break();

  const EntrySpec& spec() const { return spec_; }
  Health health() const { return health_; }
  const EntryCounters& counters() const { return counters_; }
  // Of contributions that are kept; at most spec().MemoryBytes().
  size_t held_bytes() const { return held_bytes_; }
  size_t segments_under_way() const { return slots_.size(); }

 private:
  // A segment under way.
  struct Slot {
    FrameHeader first;  // of who opened it
    uint32_t turn = 0;  // the child that is combined next
    std::string combined;
    bool has_payload = false;                         // to take
    bool is_up = false;                               // waits for its result
    std::vector<std::optional<std::string>> waiting;  // by child, from `turn` on
    std::vector<bool> wants;                          // by child
  };
  // Of a child, or of the entry: the last segment, and how many there were.
  struct Progress {
    uint64_t sequence = 0;
    uint32_t segment = 0;
    uint64_t count = 0;
    bool is_at_start = true;  // nothing of `sequence` yet
  };

  Refusal Check(uint32_t child, const FrameHeader& header, std::string_view payload) const;
  Refusal CheckPlace(uint32_t child, const FrameHeader& header) const;
  Refusal CheckSame(const Slot& slot, const FrameHeader& header, std::string_view payload) const;
  Refusal CheckResult(const FrameHeader& header, std::string_view payload) const;
  void Open(const FrameHeader& header);
  void Put(Slot& slot, uint32_t child, std::string_view payload);
  void CombineNext(Slot& slot, std::string_view payload);
  Answer Complete(Slot& slot);
  Down Close(SharedBytes payload);

  const EntrySpec spec_;
  Health health_ = Health::kWhole;
  std::vector<bool> connected_;     // by child
  std::vector<Progress> children_;  // by child
  Progress opened_;
  uint64_t closed_ = 0;     // segments that have a result
  std::deque<Slot> slots_;  // from the oldest without a result; number closed_ + its place
  size_t held_bytes_ = 0;
  EntryCounters counters_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_ENTRY_H_
