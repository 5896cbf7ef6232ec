#include "daemon/manager/switches/switch_table.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr uint32_t kShortSegmentBytes = 1024;  // below it two in flight are worth no less

absl::Status BadAbility(absl::string_view field, uint64_t value, uint64_t least, uint64_t most) {
  return absl::InvalidArgumentError(absl::StrCat("hello.abilities.", field, ": ", value,
                                                 "; a switch that aggregates has ", least, " to ",
                                                 most));
}

absl::Status CheckAbilities(const SwitchAbilities& abilities) {
  struct Bound {
    absl::string_view field;
    uint64_t value, least, most;
  };
  const Bound bounds[] = {
      {"entries", abilities.entries, 1, kMaxSwitchEntries},
      {"children", abilities.children, 2, kMaxEntryChildren},
      {"segment_bytes", abilities.segment_bytes, kMinSegmentBytes, kMaxSegmentBytes},
      {"window", abilities.window, 1, kMaxSegmentWindow},
  };
  for (const Bound& bound : bounds) {
    if (bound.value >= bound.least && bound.value <= bound.most) continue;
    return BadAbility(bound.field, bound.value, bound.least, bound.most);
  }
  if (abilities.operations == 0 || abilities.types == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.abilities.", abilities.operations == 0 ? "operations" : "types",
                     ": none; name what the switch combines"));
  }
  // All of its entries, each with all its children, at the least that TermsFor gives.
  const uint64_t least = uint64_t{abilities.entries} * abilities.children * kMinSegmentBytes;
  if (abilities.memory_bytes >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "hello.abilities.memory_bytes: ", abilities.memory_bytes, "; ", abilities.entries,
      " entries of ", abilities.children, " children take at least ", least,
      ": give it more memory, or fewer entries or children"));
}

uint32_t RoundedDown(uint64_t bytes) {
  return static_cast<uint32_t>(bytes / kMinSegmentBytes * kMinSegmentBytes);
}

}  // namespace

std::string ToString(const SwitchGroup& group) {
  return absl::StrCat("tree ", group.tree.value(), " revision ", group.revision);
}

absl::Status CheckSwitchHello(const SwitchHello& hello) {
  if (hello.guid == Guid(0)) {
    return absl::InvalidArgumentError(
        "hello.switch_guid: 0; name the switch of the fabric that this one stands at");
  }
  if (!IsHostAndPort(hello.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.address: \"", absl::CHexEscape(hello.address.substr(0, 64)),
                     "\"; give HOST:PORT where members and other switches reach it"));
  }
  if (hello.version.size() > kMaxWordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.version: more than ", kMaxWordBytes, " characters; give a version"));
  }
  if (const std::string fault = TextFault(hello.version); !fault.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.version: ", fault, "; give a version in plain text"));
  }
  RETURN_IF_ERROR(CheckAbilities(hello.abilities));
  if (hello.groups.size() <= hello.abilities.entries) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("hello.groups: ", hello.groups.size(),
                                                 " of a switch of ", hello.abilities.entries,
                                                 " entries"));
}

std::vector<uint32_t> NumbersAtParents(const TreeRecord& record) {
  std::vector<uint32_t> numbers(record.parents.size()), next(record.parents.size());
  for (size_t node = 0; node < record.parents.size(); ++node) {
    if (record.parents[node] >= 0) numbers[node] = next[record.parents[node]]++;
  }
  return numbers;
}

std::optional<CarriedTree> CarriedTreeOf(const TreeRecord& record) {
  const size_t ranks = record.ranks.size();
  if (record.switches.empty()) return std::nullopt;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (record.parents[rank] < static_cast<int64_t>(ranks)) return std::nullopt;
  }
  const std::vector<uint32_t> numbers = NumbersAtParents(record);
  CarriedTree tree{{record.id, record.revision}, record.carriage, {}};
  for (size_t i = 0; i < record.switches.size(); ++i) {
    const int32_t parent = record.parents[ranks + i];
    if (parent >= 0 && parent < static_cast<int64_t>(ranks)) return std::nullopt;
    tree.entries.push_back({record.switches[i].guid,
                            parent < 0 ? Guid(0) : record.switches[parent - ranks].guid,
                            numbers[ranks + i], record.switches[i].children});
  }
  return tree;
}

CarriageRecord TermsFor(const CarriedTree& tree, absl::Span<const SwitchAbilities> abilities) {
  uint64_t longest = kMaxSegmentBytes, window = kMaxSegmentWindow;
  uint64_t bytes_a_child = uint64_t{kMaxSegmentBytes} * kMaxSegmentWindow;
  for (size_t i = 0; i < tree.entries.size(); ++i) {
    const SwitchAbilities& one = abilities[i];
    const uint64_t children = std::max(tree.entries[i].children, 1u);
    longest = std::min<uint64_t>(longest, one.segment_bytes);
    window = std::min<uint64_t>(window, one.window);
    bytes_a_child = std::min(bytes_a_child, one.memory_bytes / one.entries / children);
  }
  uint64_t segment = RoundedDown(std::min(longest, bytes_a_child));
  if (window > 1 && bytes_a_child < 2 * segment && segment > kShortSegmentBytes) {
    segment = std::max(kShortSegmentBytes, RoundedDown(bytes_a_child / 2));
  }
  segment = std::max<uint64_t>(segment, kMinSegmentBytes);
  CarriageRecord terms;
  terms.segment_bytes = static_cast<uint32_t>(segment);
  terms.window = static_cast<uint32_t>(std::clamp<uint64_t>(bytes_a_child / segment, 1, window));
  return terms;
}

SwitchTable::Entered SwitchTable::Enter(SwitchHello hello, std::shared_ptr<const SwitchLink> link,
                                        absl::Time now, std::string identity) {
  Entered entered;
  entered.session = ++last_session_;
  const Guid guid = hello.guid;
  Switch& one = switches_[guid];
  if (one.session != 0) {
    entered.replaced = one.session;
    entered.old_link = std::move(one.link);
    sessions_.erase(one.session);
  }
  hello.groups.clear();
  one = Switch();
  one.hello = std::move(hello);
  one.session = entered.session;
  one.since = now;
  one.link = std::move(link);
  one.identity = std::move(identity);
  sessions_.emplace(entered.session, guid);
  return entered;
}

std::optional<Guid> SwitchTable::Leave(SwitchSession session, absl::Time now,
                                       absl::Duration monotonic, absl::Duration patience) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return std::nullopt;
  const Guid guid = found->second;
  Switch& one = switches_.at(guid);
  one.session = 0;
  one.since = now;
  one.gone = monotonic;
  one.patience = patience;
  one.is_given_up = false;
  one.link = nullptr;
  sessions_.erase(found);
  return guid;
}

void SwitchTable::Expect(Guid guid, absl::Time now, absl::Duration monotonic,
                         absl::Duration patience) {
  const auto [it, is_new] = switches_.try_emplace(guid);
  if (!is_new) return;
  it->second.hello.guid = guid;
  it->second.since = now;
  it->second.gone = monotonic;
  it->second.patience = patience;
}

SwitchTable::Switch* SwitchTable::Find(Guid guid) {
  const auto found = switches_.find(guid);
  return found == switches_.end() || found->second.session == 0 ? nullptr : &found->second;
}

const SwitchTable::Switch* SwitchTable::Find(Guid guid) const {
  const Switch* const known = Known(guid);
  return known == nullptr || known->session == 0 ? nullptr : known;
}

SwitchTable::Switch* SwitchTable::Find(SwitchSession session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &switches_.at(found->second);
}

const SwitchTable::Switch* SwitchTable::Find(SwitchSession session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &switches_.at(found->second);
}

const SwitchTable::Switch* SwitchTable::Known(Guid guid) const {
  const auto found = switches_.find(guid);
  return found == switches_.end() ? nullptr : &found->second;
}

std::vector<SwitchView> SwitchTable::List(Guid after, size_t limit) const {
  std::vector<SwitchView> views;
  for (auto next = switches_.upper_bound(after); next != switches_.end() && views.size() < limit;
       ++next) {
    const Switch& one = next->second;
    if (one.hello.address.empty()) continue;
    views.push_back({one.hello, one.session != 0, one.since, one.report});
  }
  return views;
}

std::vector<Guid> SwitchTable::GiveUp(absl::Duration now, absl::Duration& next) {
  std::vector<Guid> given_up;
  for (auto& [guid, one] : switches_) {
    if (one.session != 0 || one.is_given_up) continue;
    const absl::Duration left = one.gone + one.patience - now;
    if (left > absl::ZeroDuration()) {
      next = std::min(next, left);
      continue;
    }
    one.is_given_up = true;
    given_up.push_back(guid);
  }
  return given_up;
}

void SwitchTable::Hold(CarriedTree tree) {
  for (const CarriedEntry& entry : tree.entries) held_by_[entry.guid].insert(tree.group);
  const SwitchGroup group = tree.group;
  held_[group] = std::move(tree);
}

std::optional<CarriedTree> SwitchTable::Drop(const SwitchGroup& group) {
  const auto found = held_.find(group);
  if (found == held_.end()) return std::nullopt;
  CarriedTree tree = std::move(found->second);
  held_.erase(found);
  for (const CarriedEntry& entry : tree.entries) {
    const auto holder = held_by_.find(entry.guid);
    holder->second.erase(group);
    if (holder->second.empty()) held_by_.erase(holder);
  }
  return tree;
}

const CarriedTree* SwitchTable::FindHeld(const SwitchGroup& group) const {
  const auto found = held_.find(group);
  return found == held_.end() ? nullptr : &found->second;
}

std::vector<SwitchGroup> SwitchTable::RevisionsOf(TreeId tree) const {
  std::vector<SwitchGroup> groups;
  for (auto next = held_.lower_bound({tree, 0}); next != held_.end() && next->first.tree == tree;
       ++next) {
    groups.push_back(next->first);
  }
  return groups;
}

std::vector<SwitchGroup> SwitchTable::HeldBy(Guid guid) const {
  const auto found = held_by_.find(guid);
  if (found == held_by_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

bool SwitchTable::Holds(Guid guid, const SwitchGroup& group) const {
  const auto found = held_by_.find(guid);
  return found != held_by_.end() && found->second.contains(group);
}

std::optional<SwitchEntry> SwitchTable::EntryOf(const SwitchGroup& group, Guid guid) const {
  const CarriedTree* const tree = FindHeld(group);
  if (tree == nullptr) return std::nullopt;
  for (const CarriedEntry& held : tree->entries) {
    if (held.guid != guid) continue;
    SwitchEntry entry{group,
                      tree->carriage.key,
                      held.children,
                      "",
                      held.parent,
                      held.number_at_parent,
                      tree->carriage.segment_bytes,
                      tree->carriage.window};
    if (held.parent == Guid(0)) return entry;
    const Switch* const parent = Known(held.parent);
    if (parent == nullptr || parent->hello.address.empty()) return std::nullopt;
    entry.parent_address = parent->hello.address;
    return entry;
  }
  return std::nullopt;
}

}  // namespace coppice
