// Which switches of the fabric speak, and what each shall hold: the newest agent of a switch speaks
// for it, whoever came before. What a switch shall hold follows from the trees that are granted or
// on their way, whether or not it is connected. Knows no tasks, no store and no planner.
//
//   tree (record) --CarriedTreeOf--> entries --Hold--> shall be held --Drop--> (gone)
//   hello --Enter--> speaks --Leave--> gone, and remembered
#ifndef COPPICE_DAEMON_MANAGER_SWITCHES_SWITCH_TABLE_H_
#define COPPICE_DAEMON_MANAGER_SWITCHES_SWITCH_TABLE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "db/store.h"

namespace coppice {

// --- What is said and heard, as plain values: the seam to the connections that carry it ---

// What a switch can do. Operations and types are bits by the numbers that the wire has for them.
struct SwitchAbilities {
  uint32_t entries = 0;   // that it holds at once
  uint32_t children = 0;  // of one entry
  uint64_t operations = 0, types = 0;
  uint32_t segment_bytes = 0;  // the longest segment
  uint32_t window = 0;         // segments of one entry in flight
  uint64_t memory_bytes = 0;   // of all entries
  friend bool operator==(const SwitchAbilities&, const SwitchAbilities&) = default;
};

// A tree at one revision.
struct SwitchGroup {
  TreeId tree;
  uint32_t revision = 0;
  friend auto operator<=>(const SwitchGroup&, const SwitchGroup&) = default;
};

// "tree 7 revision 2"
std::string ToString(const SwitchGroup& group);

struct SwitchHello {
  Guid guid;
  std::string address;  // HOST:PORT
  std::string version;
  SwitchAbilities abilities;
  std::vector<SwitchGroup> groups;  // that it holds
};

// One entry, as it is installed. A child is a member or another switch.
struct SwitchEntry {
  SwitchGroup group;
  std::string key;  // as CarriageRecord
  uint32_t children = 0;
  std::string parent_address;  // empty: this one is the root
  Guid parent;                 // 0: none
  uint32_t number_at_parent = 0;
  uint32_t segment_bytes = 0, window = 0;
};

struct SwitchReport {
  uint32_t entries_used = 0;
  uint64_t memory_used_bytes = 0;
  uint64_t collectives = 0;  // this and the next since the switch started
  uint64_t segments_up = 0, segments_down = 0, bytes_up = 0, bytes_down = 0;
  std::map<std::string, uint64_t> refusals;  // by reason, in its words until they are taken
  uint64_t broken_count = 0;
  std::vector<SwitchGroup> broken;  // since the last report
};

// One connection of a switch. All are quick, may be called by any thread and with locks held, also
// after the connection has ended, and call nobody back. What install and remove are given is read
// by the switch in the order of these calls.
struct SwitchLink {
  std::function<void(uint64_t id, const SwitchEntry&)> install;
  std::function<void(const SwitchGroup&)> remove;
  std::function<void(const absl::Status&)> end;
};

// One connection, told from all others that there ever were; 0: none.
using SwitchSession = uint64_t;

struct SwitchView {
  SwitchHello hello;  // without its groups
  bool connected = false;
  absl::Time since;     // of being connected, or of not being
  SwitchReport report;  // the last; of one that said nothing, empty
};

// INVALID_ARGUMENT, naming the field and its bounds: no GUID; an address that is not HOST:PORT; a
// version that is too long or no plain text; abilities that no switch has, or whose memory is less
// than its entries take at the least; more groups than entries.
absl::Status CheckSwitchHello(const SwitchHello& hello);

inline constexpr uint32_t kMaxSwitchEntries = 4096;     // so that a hello that names all is 64 KB
inline constexpr uint32_t kMaxEntryChildren = 1 << 16;  // of one entry
inline constexpr uint32_t kMinSegmentBytes = 64, kMaxSegmentBytes = 64 << 10;
inline constexpr uint32_t kMaxSegmentWindow = 1024;

// --- What a tree needs of its switches ---

struct CarriedEntry {
  Guid guid;
  Guid parent;  // 0: this one is the root
  uint32_t number_at_parent = 0, children = 0;
  friend bool operator==(const CarriedEntry&, const CarriedEntry&) = default;
};
struct CarriedTree {
  SwitchGroup group;
  CarriageRecord carriage;
  std::vector<CarriedEntry> entries;
};

// [node] of the record: which child of its parent it is, from 0, in the order of the nodes; members
// come before switches. The root is 0.
std::vector<uint32_t> NumbersAtParents(const TreeRecord& record);

// Nullopt: no switches serve it, or a member's parent is a member.
std::optional<CarriedTree> CarriedTreeOf(const TreeRecord& record);

// How long segments may be, and how many of them in flight, so that no switch needs more for this
// entry than its share of the memory: then the entries that are counted are all that can run out.
// `abilities` is [entry of `tree`]. Two in flight come before long ones.
CarriageRecord TermsFor(const CarriedTree& tree, absl::Span<const SwitchAbilities> abilities);

// Not thread-safe.
class SwitchTable final {
 public:
  struct Switch {
    SwitchHello hello;          // without its groups; `address` is empty of one never heard of
    SwitchSession session = 0;  // 0: gone
    absl::Time since;
    absl::Duration gone;  // Clock::Monotonic when it went
    // How long its trees wait for it then; told: they wait no more.
    absl::Duration patience;
    bool is_given_up = false;
    std::shared_ptr<const SwitchLink> link;  // null: gone
    std::string identity;                    // as whom it came
    SwitchReport report;
    uint64_t last_task = 0;  // of this session
  };
  struct Entered {
    SwitchSession session = 0;
    SwitchSession replaced = 0;                  // 0: it had none
    std::shared_ptr<const SwitchLink> old_link;  // of the replaced
  };

  Entered Enter(SwitchHello hello, std::shared_ptr<const SwitchLink> link, absl::Time now,
                std::string identity);
  // The switch that has gone; nullopt: that session is over already, or never was.
  std::optional<Guid> Leave(SwitchSession session, absl::Time now, absl::Duration monotonic,
                            absl::Duration patience);
  // One that an earlier run of the daemon gave entries, if nothing is known of it.
  void Expect(Guid guid, absl::Time now, absl::Duration monotonic, absl::Duration patience);

  // Null: it does not speak now.
  Switch* Find(Guid guid);
  const Switch* Find(Guid guid) const;
  Switch* Find(SwitchSession session);
  const Switch* Find(SwitchSession session) const;
  // Null: it never spoke and is not expected.
  const Switch* Known(Guid guid) const;
  // By GUID, those after `after` that ever spoke.
  std::vector<SwitchView> List(Guid after, size_t limit) const;
  size_t connected_count() const { return sessions_.size(); }

  // Those whose trees have waited long enough by `now`, each once; `next` becomes, if it is later,
  // the time until another's have.
  std::vector<Guid> GiveUp(absl::Duration now, absl::Duration& next);

  // --- Groups that shall be held ---
  void Hold(CarriedTree tree);
  std::optional<CarriedTree> Drop(const SwitchGroup& group);
  // Null: it shall not be held.
  const CarriedTree* FindHeld(const SwitchGroup& group) const;
  // Of one tree, by revision.
  std::vector<SwitchGroup> RevisionsOf(TreeId tree) const;
  std::vector<SwitchGroup> HeldBy(Guid guid) const;
  bool Holds(Guid guid, const SwitchGroup& group) const;
  // As it is to be installed. Nullopt: that switch has no such entry, or where its parent listens
  // is not known yet.
  std::optional<SwitchEntry> EntryOf(const SwitchGroup& group, Guid guid) const;
  size_t held_count() const { return held_.size(); }

 private:
  std::map<Guid, Switch> switches_;
  absl::flat_hash_map<SwitchSession, Guid> sessions_;
  SwitchSession last_session_ = 0;
  std::map<SwitchGroup, CarriedTree> held_;
  std::map<Guid, std::set<SwitchGroup>> held_by_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWITCHES_SWITCH_TABLE_H_
