#include "agents/switch/entry.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "agents/switch/combine.h"

namespace coppice {
namespace {

// Whether `header` is after the last segment of `progress`, in the order of sequence and segment.
template <class Progress>
bool IsLater(const FrameHeader& header, const Progress& progress) {
  if (header.sequence != progress.sequence) return header.sequence > progress.sequence;
  return progress.is_at_start || header.segment > progress.segment;
}

// Whether it is the next one: of the same collective, or the first of a later one. Some numbers may
// have gone to collectives that the members ran without the tree.
template <class Progress>
bool IsNext(const FrameHeader& header, const Progress& progress) {
  if (header.sequence == progress.sequence && !progress.is_at_start) {
    return header.segment == progress.segment + 1;
  }
  return header.sequence >= progress.sequence && header.segment == 0;
}

template <class Progress>
void Advance(const FrameHeader& header, Progress* progress) {
  progress->sequence = header.sequence;
  progress->segment = header.segment;
  progress->is_at_start = false;
  ++progress->count;
}

bool IsWholeElements(const FrameHeader& header, size_t bytes) {
  return bytes % ElementBytes(header.type) == 0;
}

}  // namespace

Entry::Entry(EntrySpec spec)
    : spec_(std::move(spec)), connected_(spec_.children), children_(spec_.children) {}

Refusal Entry::Connect(uint32_t child, uint64_t sequence) {
  if (child >= spec_.children) return Refusal::kNoSuchChild;
  if (health_ != Health::kWhole) return Refusal::kBroken;
  if (connected_[child]) return Refusal::kChildTaken;
  connected_[child] = true;
  children_[child].sequence = sequence;
  return Refusal::kNone;
}

Refusal Entry::CheckPlace(uint32_t child, const FrameHeader& header) const {
  const Progress& progress = children_[child];
  if (header.sequence == 0) return Refusal::kOutOfTurn;
  if (!IsLater(header, progress)) return Refusal::kTwice;
  if (progress.count - closed_ >= spec_.window) return Refusal::kOutsideWindow;
  return IsNext(header, progress) ? Refusal::kNone : Refusal::kOutOfTurn;
}

Refusal Entry::CheckSame(const Slot& slot, const FrameHeader& header,
                         std::string_view payload) const {
  const FrameHeader& first = slot.first;
  if (header.sequence != first.sequence || header.segment != first.segment) {
    return Refusal::kOutOfTurn;
  }
  if (header.operation != first.operation || header.type != first.type) {
    return Refusal::kOtherCollective;
  }
  if (header.operation == ReductionOperation::kTake) {
    return slot.has_payload && !payload.empty() ? Refusal::kTwoPayloads : Refusal::kNone;
  }
  return payload.size() == first.length ? Refusal::kNone : Refusal::kOtherCollective;
}

Refusal Entry::Check(uint32_t child, const FrameHeader& header, std::string_view payload) const {
  if (health_ != Health::kWhole) return Refusal::kBroken;
  if (child >= spec_.children || header.child != child || !connected_[child]) {
    return Refusal::kNoSuchChild;
  }
  if (header.group.tree != spec_.group.tree) return Refusal::kNoSuchTree;
  if (header.group.revision != spec_.group.revision) return Refusal::kStaleRevision;
  if (header.operation == ReductionOperation::kNone) return Refusal::kBadOperation;
  if (!IsDefined(header.operation, header.type)) return Refusal::kBadType;
  if (payload.size() > spec_.segment_bytes || !IsWholeElements(header, payload.size())) {
    return Refusal::kBadLength;
  }
  const Refusal refusal = CheckPlace(child, header);
  if (refusal != Refusal::kNone) return refusal;
  const uint64_t place = children_[child].count - closed_;
  if (place < slots_.size()) return CheckSame(slots_[place], header, payload);
  return IsNext(header, opened_) ? Refusal::kNone : Refusal::kOutOfTurn;
}

void Entry::Open(const FrameHeader& header) {
  Slot& slot = slots_.emplace_back();
  slot.first = header;
  slot.waiting.resize(spec_.children);
  slot.wants.resize(spec_.children);
  Advance(header, &opened_);
}

Entry::Answer Entry::Contribute(uint32_t child, const FrameHeader& header,
                                std::string_view payload) {
  Answer answer;
  answer.refusal = Check(child, header, payload);
  if (answer.refusal != Refusal::kNone) return answer;
  const uint64_t place = children_[child].count - closed_;
  if (place == slots_.size()) {
    Open(header);
    slots_.back().first.length = static_cast<uint32_t>(payload.size());
  }
  Advance(header, &children_[child]);
  ++counters_.segments_up;
  counters_.bytes_up += payload.size();
  Slot& slot = slots_[place];
  slot.wants[child] = header.wants_result;
  slot.has_payload |= !payload.empty();
  Put(slot, child, payload);
  return slot.turn == spec_.children ? Complete(slot) : answer;
}

// What comes before its turn is kept; what comes in its turn takes those that waited for it along.
void Entry::Put(Slot& slot, uint32_t child, std::string_view payload) {
  if (child != slot.turn) {
    slot.waiting[child].emplace(payload);
    held_bytes_ += payload.size();
    return;
  }
  CombineNext(slot, payload);
  while (slot.turn < spec_.children && slot.waiting[slot.turn]) {
    const std::string next = *std::exchange(slot.waiting[slot.turn], std::nullopt);
    held_bytes_ -= next.size();
    CombineNext(slot, next);
  }
}

void Entry::CombineNext(Slot& slot, std::string_view payload) {
  const bool is_taken = slot.first.operation == ReductionOperation::kTake && !payload.empty();
  if (slot.turn == 0 || is_taken) {
    slot.combined.assign(payload);
    held_bytes_ += payload.size();
  } else if (slot.first.operation != ReductionOperation::kTake) {
    Combine(slot.first.operation, slot.first.type, payload, &slot.combined);
  }
  ++slot.turn;
}

// All children are combined. Segments are complete in their order, as each child sends in order.
Entry::Answer Entry::Complete(Slot& slot) {
  Answer answer;
  held_bytes_ -= slot.combined.size();
  slot.first.length = static_cast<uint32_t>(slot.combined.size());
  auto combined = std::make_shared<const std::string>(std::move(slot.combined));
  slot.combined.clear();
  if (!spec_.parent) {
    answer.down = Close(std::move(combined));
    return answer;
  }
  slot.is_up = true;
  answer.up.emplace();
  answer.up->header = slot.first;
  answer.up->header.child = spec_.parent->number;
  answer.up->header.wants_result =
      std::find(slot.wants.begin(), slot.wants.end(), true) != slot.wants.end();
  answer.up->payload = std::move(combined);
  return answer;
}

Refusal Entry::CheckResult(const FrameHeader& header, std::string_view payload) const {
  if (health_ != Health::kWhole) return Refusal::kBroken;
  if (header.group.tree != spec_.group.tree) return Refusal::kNoSuchTree;
  if (header.group.revision != spec_.group.revision) return Refusal::kStaleRevision;
  if (slots_.empty() || !slots_.front().is_up) return Refusal::kOutOfTurn;
  const Slot& slot = slots_.front();
  const FrameHeader& first = slot.first;
  if (header.sequence != first.sequence || header.segment != first.segment) {
    return Refusal::kOutOfTurn;
  }
  if (header.operation != first.operation || header.type != first.type) {
    return Refusal::kOtherCollective;
  }
  const bool is_wanted = std::find(slot.wants.begin(), slot.wants.end(), true) != slot.wants.end();
  if (!is_wanted) return payload.empty() ? Refusal::kNone : Refusal::kBadLength;
  // What is taken may be of another switch's child.
  const bool is_elsewhere = first.operation == ReductionOperation::kTake && first.length == 0 &&
                            payload.size() <= spec_.segment_bytes &&
                            IsWholeElements(header, payload.size());
  return is_elsewhere || payload.size() == first.length ? Refusal::kNone : Refusal::kBadLength;
}

Entry::Answer Entry::TakeResult(const FrameHeader& header, std::string_view payload) {
  Answer answer;
  answer.refusal = CheckResult(header, payload);
  if (answer.refusal == Refusal::kNone) {
    answer.down = Close(std::make_shared<const std::string>(payload));
  }
  return answer;
}

// The oldest has its result.
Entry::Down Entry::Close(SharedBytes payload) {
  Slot& slot = slots_.front();
  Down down;
  down.header = slot.first;
  down.header.kind = FrameKind::kResult;
  down.header.child = kFromParent;
  down.header.wants_result = false;
  down.wants = std::move(slot.wants);
  const auto wanted = static_cast<uint64_t>(std::count(down.wants.begin(), down.wants.end(), true));
  counters_.segments_down += spec_.children;
  counters_.bytes_down += wanted * payload->size();
  if (slot.first.segment == 0) ++counters_.collectives;
  down.payload = std::move(payload);
  slots_.pop_front();
  ++closed_;
  return down;
}

bool Entry::Lose() {
  if (!slots_.empty()) return Break();
  if (health_ == Health::kWhole) health_ = Health::kLeft;
  return false;
}

bool Entry::Break() {
  slots_.clear();
  held_bytes_ = 0;
  return std::exchange(health_, Health::kBroken) != Health::kBroken;
}

}  // namespace coppice
