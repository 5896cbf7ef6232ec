// A pattern as bytes, in the form that pattern_store.h states.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/mapping/input/pattern_file.h"

namespace coppice {
namespace {

constexpr char kMagic[] = "CPP1";
enum Flag : uint64_t { kWholeBytes = 1, kHasMessages = 2, kWholeMessages = 4 };
constexpr double kExactBelow = 9007199254740992.0;  // 2^53

bool IsWhole(double value) { return value == std::floor(value) && value < kExactBelow; }

void PutVarint(uint64_t value, std::string& out) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void PutWeight(double value, bool whole, std::string& out) {
  if (whole) return PutVarint(static_cast<uint64_t>(value), out);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

struct Sent {
  uint32_t peer;
  double bytes, messages;
};

// What each rank sends, itself among the peers. Ranks are asked for in order, from 0.
class Senders {
 public:
  explicit Senders(const Pattern& pattern)
      : pattern_(pattern), empty_(pattern.empty_messages().begin()) {}

  // By peer; valid until the next.
  const std::vector<Sent>& Next(uint32_t rank) {
    sent_.clear();
    const absl::Span<const Exchange> row = pattern_.exchanges(rank);
    const absl::Span<const double> messages = pattern_.out_messages(rank);
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].out_bytes == 0) continue;
      sent_.push_back({row[i].peer, row[i].out_bytes, messages.empty() ? 0 : messages[i]});
    }
    double self_messages = 0;
    for (; empty_ != pattern_.empty_messages().end() && empty_->from == rank; ++empty_) {
      if (empty_->to == rank) {
        self_messages = empty_->messages;
      } else {
        sent_.push_back({empty_->to, 0, empty_->messages});
      }
    }
    const double self = pattern_.self_bytes(rank);
    if (self > 0 || self_messages > 0) sent_.push_back({rank, self, self_messages});
    std::sort(sent_.begin(), sent_.end(),
              [](const Sent& a, const Sent& b) { return a.peer < b.peer; });
    return sent_;
  }

 private:
  const Pattern& pattern_;
  absl::Span<const Pattern::Entry>::iterator empty_;
  std::vector<Sent> sent_;
};

uint64_t FlagsOf(const Pattern& pattern) {
  uint64_t flags = kWholeBytes | kWholeMessages;
  Senders senders(pattern);
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    for (const Sent& sent : senders.Next(rank)) {
      if (!IsWhole(sent.bytes)) flags &= ~uint64_t{kWholeBytes};
      if (!IsWhole(sent.messages)) flags &= ~uint64_t{kWholeMessages};
      if (sent.messages != 0) flags |= kHasMessages;
    }
  }
  return flags;
}

class Reader {
 public:
  explicit Reader(absl::string_view data) : data_(data) {}

  absl::StatusOr<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == data_.size()) return Lost("ends in the middle of a number");
      const auto byte = static_cast<uint8_t>(data_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    return Lost("a number of more than 64 bits");
  }
  absl::StatusOr<double> Weight(bool whole) {
    if (whole) {
      ASSIGN_OR_RETURN(const uint64_t value, Varint());
      return static_cast<double>(value);
    }
    if (data_.size() - at_ < 8) return Lost("ends in the middle of a weight");
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= uint64_t{static_cast<uint8_t>(data_[at_++])} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  size_t left() const { return data_.size() - at_; }
  absl::Status Lost(absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat("stored pattern, byte ", at_, ": ", what, "; put the pattern again"));
  }

 private:
  const absl::string_view data_;
  size_t at_ = 0;
};

// Calls `take` with each entry of the rank.
template <class Take>
absl::Status ReadRank(uint32_t rank, uint64_t flags, Reader& reader, Take take) {
  ASSIGN_OR_RETURN(const uint64_t count, reader.Varint());
  if (count > reader.left()) return reader.Lost("more pairs than bytes are left");
  uint64_t peer = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const uint64_t step, reader.Varint());
    if (step > Pattern::kMaxRanks) return reader.Lost("a rank that there is not");
    peer += step;
    if (peer > Pattern::kMaxRanks) return reader.Lost("a rank that there is not");
    Pattern::Entry entry{rank, static_cast<uint32_t>(peer), 0, 0};
    ASSIGN_OR_RETURN(entry.bytes, reader.Weight((flags & kWholeBytes) != 0));
    if ((flags & kHasMessages) != 0) {
      ASSIGN_OR_RETURN(entry.messages, reader.Weight((flags & kWholeMessages) != 0));
    }
    take(entry);
  }
  return absl::OkStatus();
}

// Calls `take` with each entry, in order; returns the number of ranks.
template <class Take>
absl::StatusOr<uint32_t> ReadEntries(absl::string_view data, Take take) {
  if (!absl::ConsumePrefix(&data, kMagic)) {
    return absl::DataLossError("stored pattern: it does not begin as one; put the pattern again");
  }
  Reader reader(data);
  ASSIGN_OR_RETURN(const uint64_t flags, reader.Varint());
  ASSIGN_OR_RETURN(const uint64_t ranks, reader.Varint());
  if (flags > 7) return reader.Lost("flags of another version");
  if (ranks == 0 || ranks > Pattern::kMaxRanks || ranks > reader.left()) {
    return reader.Lost("more ranks than bytes are left, or none");
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    RETURN_IF_ERROR(ReadRank(rank, flags, reader, take));
  }
  if (reader.left() != 0) return reader.Lost("more bytes than there should be");
  return static_cast<uint32_t>(ranks);
}

}  // namespace

std::string EncodePattern(const Pattern& pattern) {
  const uint64_t flags = FlagsOf(pattern);
  std::string out = kMagic;
  PutVarint(flags, out);
  PutVarint(pattern.rank_count(), out);
  Senders senders(pattern);
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    const std::vector<Sent>& row = senders.Next(rank);
    PutVarint(row.size(), out);
    uint32_t last = 0;
    for (const Sent& sent : row) {
      PutVarint(sent.peer - last, out);
      last = sent.peer;
      PutWeight(sent.bytes, (flags & kWholeBytes) != 0, out);
      if ((flags & kHasMessages) != 0) PutWeight(sent.messages, (flags & kWholeMessages) != 0, out);
    }
  }
  return out;
}

size_t DecodingBytes(absl::string_view data) {
  size_t entries = 0;
  const absl::StatusOr<uint32_t> ranks =
      ReadEntries(data, [&entries](const Pattern::Entry&) { ++entries; });
  // What is not read to its end is not made either.
  return MakingBytes(entries, ranks.value_or(0));
}

absl::StatusOr<std::shared_ptr<const Pattern>> DecodePattern(absl::string_view data) {
  std::vector<Pattern::Entry> entries;
  ASSIGN_OR_RETURN(const uint32_t ranks, ReadEntries(data, [&entries](const Pattern::Entry& entry) {
                     entries.push_back(entry);
                   }));
  absl::StatusOr<std::shared_ptr<const Pattern>> pattern = Pattern::Make(ranks, std::move(entries));
  if (pattern.ok()) return pattern;
  return absl::DataLossError(absl::StrCat("stored pattern, byte ", data.size(), ": ",
                                          pattern.status().message(), "; put the pattern again"));
}

}  // namespace coppice
