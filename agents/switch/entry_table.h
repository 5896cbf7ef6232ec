// All entries of a switch, and the bounds that it enforces itself: how many there are, how many
// children one may have, and how many bytes their contributions may take. The daemon's ledger
// counts the same; where the two disagree, the switch refuses and says by which bound. A plain
// value: no socket, no clock, no thread.
#ifndef COPPICE_AGENTS_SWITCH_ENTRY_TABLE_H_
#define COPPICE_AGENTS_SWITCH_ENTRY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/links/frame.h"
#include "agents/switch/entry.h"

namespace coppice {

struct TableLimits {
  uint32_t entries = 64;
  uint32_t children = 64;  // of one entry
  uint32_t segment_bytes = kMaxPayloadBytes;
  uint32_t window = 64;  // segments of one entry
  uint64_t memory_bytes = uint64_t{1} << 30;
};

class EntryTable final {
 public:
  enum class Installed { kNew, kReplaced, kAlready };

  explicit EntryTable(const TableLimits& limits) : limits_(limits) {}

  // A higher revision takes the place of a lower one of its tree.
  // INVALID_ARGUMENT: no children, segment or window, or longer ones than the switch can.
  // RESOURCE_EXHAUSTED: more than its entries, children or memory, which it names.
  // FAILED_PRECONDITION: a higher revision is installed, this one has other content, or it broke.
  absl::StatusOr<Installed> Install(const EntrySpec& spec);
  // False: it is not there, or at another revision.
  bool Remove(const Group& group);
  // Those that are not in `keep`.
  std::vector<Group> Strangers(std::span<const Group> keep) const;

  // What a hello's sender is told: kNone, and it is connected. O(log entries).
  Refusal Admit(const FrameHeader& hello, const LinkKey& key);

  // Null: none.
  Entry* Find(uint64_t tree);
  const Entry* Find(uint64_t tree) const;

  size_t size() const { return entries_.size(); }
  uint64_t memory_bytes() const { return memory_bytes_; }
  const TableLimits& limits() const { return limits_; }
  std::vector<Group> Groups() const;
  std::vector<Group> Broken() const;
  // Of entries that are gone, too.
  EntryCounters Counters() const;

 private:
  absl::Status CheckSpec(const EntrySpec& spec) const;
  absl::Status CheckRoom(const EntrySpec& spec, const Entry* replaced) const;

  const TableLimits limits_;
  std::map<uint64_t, Entry> entries_;  // by tree
  uint64_t memory_bytes_ = 0;
  EntryCounters gone_;
};

// "tree 7 at revision 2".
std::string Describe(const Group& group);

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_ENTRY_TABLE_H_
