#include "agents/switch/entry_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agents/links/link.h"

namespace coppice {
namespace {

// Takes as long whatever the keys have in common: a stranger learns nothing from the time.
bool IsSameKey(const LinkKey& a, const LinkKey& b) {
  unsigned char difference = 0;
  for (size_t i = 0; i < kKeyBytes; ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

absl::Status CheckWithin(absl::string_view what, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", value, "; 1 to ", most, " are possible"));
}

}  // namespace

std::string Describe(const Group& group) {
  return absl::StrCat("tree ", group.tree, " at revision ", group.revision);
}

absl::Status EntryTable::CheckSpec(const EntrySpec& spec) const {
  if (spec.children == 0) return absl::InvalidArgumentError("children: an entry without any");
  absl::Status status = CheckWithin("segment_bytes", spec.segment_bytes, limits_.segment_bytes);
  if (status.ok()) status = CheckWithin("window", spec.window, limits_.window);
  if (!status.ok() || !spec.parent) return status;
  std::string host, port;
  if (SplitAddress(spec.parent->address, &host, &port)) return absl::OkStatus();
  return absl::InvalidArgumentError("parent_address: give ADDRESS:PORT");
}

absl::Status EntryTable::CheckRoom(const EntrySpec& spec, const Entry* replaced) const {
  if (spec.children > limits_.children) {
    return absl::ResourceExhaustedError(absl::StrCat(
        spec.children, " children: an entry has at most ", limits_.children, " (--children)"));
  }
  if (replaced == nullptr && entries_.size() >= limits_.entries) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", limits_.entries, " entries are used (--entries)"));
  }
  const uint64_t others =
      memory_bytes_ - (replaced == nullptr ? 0 : replaced->spec().MemoryBytes());
  if (spec.MemoryBytes() > limits_.memory_bytes - std::min(others, limits_.memory_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(spec.MemoryBytes(), " bytes: of ",
                                                     limits_.memory_bytes, " (--memory) ", others,
                                                     " are used"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EntryTable::Installed> EntryTable::Install(const EntrySpec& spec) {
  if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  const Entry* const old = Find(spec.group.tree);
  if (old != nullptr && old->spec().group.revision >= spec.group.revision) {
    const std::string there = Describe(old->spec().group);
    if (old->spec() == spec && old->health() == Entry::Health::kWhole) return Installed::kAlready;
    if (old->spec() == spec) {
      return absl::FailedPreconditionError(
          absl::StrCat(there, " lost a child or its parent; give it a higher revision"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "stale: ", there, " is installed",
        old->spec().group.revision == spec.group.revision ? " with other content" : ""));
  }
  if (absl::Status status = CheckRoom(spec, old); !status.ok()) return status;
  const Installed installed = old == nullptr ? Installed::kNew : Installed::kReplaced;
  if (old != nullptr) Remove(old->spec().group);
  memory_bytes_ += spec.MemoryBytes();
  entries_.emplace(spec.group.tree, spec);
  return installed;
}

bool EntryTable::Remove(const Group& group) {
  const auto found = entries_.find(group.tree);
  if (found == entries_.end() || found->second.spec().group != group) return false;
  gone_ += found->second.counters();
  memory_bytes_ -= found->second.spec().MemoryBytes();
  entries_.erase(found);
  return true;
}

std::vector<Group> EntryTable::Strangers(std::span<const Group> keep) const {
  std::vector<Group> kept(keep.begin(), keep.end());
  std::sort(kept.begin(), kept.end());
  std::vector<Group> strangers;
  for (const Group& group : Groups()) {
    if (!std::binary_search(kept.begin(), kept.end(), group)) strangers.push_back(group);
  }
  return strangers;
}

Refusal EntryTable::Admit(const FrameHeader& hello, const LinkKey& key) {
  Entry* const entry = Find(hello.group.tree);
  if (entry == nullptr) return Refusal::kNoSuchTree;
  if (entry->spec().group.revision != hello.group.revision) return Refusal::kStaleRevision;
  if (!IsSameKey(entry->spec().key, key)) return Refusal::kWrongKey;
  return entry->Connect(hello.child, hello.sequence);
}

Entry* EntryTable::Find(uint64_t tree) {
  const auto found = entries_.find(tree);
  return found == entries_.end() ? nullptr : &found->second;
}

const Entry* EntryTable::Find(uint64_t tree) const {
  const auto found = entries_.find(tree);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<Group> EntryTable::Groups() const {
  std::vector<Group> groups;
  groups.reserve(entries_.size());
  for (const auto& [tree, entry] : entries_) groups.push_back(entry.spec().group);
  return groups;
}

std::vector<Group> EntryTable::Broken() const {
  std::vector<Group> groups;
  for (const auto& [tree, entry] : entries_) {
    if (entry.health() == Entry::Health::kBroken) groups.push_back(entry.spec().group);
  }
  return groups;
}

EntryCounters EntryTable::Counters() const {
  EntryCounters sum = gone_;
  for (const auto& [tree, entry] : entries_) sum += entry.counters();
  return sum;
}

}  // namespace coppice
