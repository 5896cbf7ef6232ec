#include "daemon/mapping/pattern.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

using Entry = Pattern::Entry;

absl::Status CheckEntry(const Entry& e, uint32_t rank_count) {
  if (e.from >= rank_count || e.to >= rank_count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the pattern has %d ranks (0 to %d), but one of its pairs is %d -> %d",
                        rank_count, rank_count - 1, e.from, e.to));
  }
  for (const double weight : {e.bytes, e.messages}) {
    if (std::isfinite(weight) && weight >= 0) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "the pattern's weight of %d -> %d is %g; give a number from 0 up", e.from, e.to, weight));
  }
  return absl::OkStatus();
}

// Sorts by pair and adds up what is of one pair.
void Merge(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  size_t kept = 0;
  for (const Entry& e : entries) {
    if (kept > 0 && entries[kept - 1].from == e.from && entries[kept - 1].to == e.to) {
      entries[kept - 1].bytes += e.bytes;
      entries[kept - 1].messages += e.messages;
    } else {
      entries[kept++] = e;
    }
  }
  entries.resize(kept);
}

absl::Status CheckRankCount(uint32_t rank_count) {
  if (rank_count > 0 && rank_count <= Pattern::kMaxRanks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("a pattern has 1 to %d ranks, not %d", Pattern::kMaxRanks, rank_count));
}

// Of merged entries, so that a pattern that was made can be made again from what it holds.
absl::Status CheckIdleRanks(uint32_t rank_count, const std::vector<Entry>& merged) {
  if (rank_count <= Pattern::kMaxIdleRanks) return absl::OkStatus();
  const auto talking = std::count_if(merged.begin(), merged.end(),
                                     [](const Entry& e) { return e.bytes > 0 || e.messages > 0; });
  if (talking >= rank_count / 16) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the pattern is of %d ranks, but only %d pairs of them talk; beyond %d ranks give at least "
      "one pair for 16 of them, or leave out the ranks that say nothing",
      rank_count, talking, Pattern::kMaxIdleRanks));
}

bool IsWhole(double weight) { return weight == std::floor(weight); }

// One direction of a pair in the row of one of its ranks.
struct Half {
  Exchange exchange;
  double messages;
};

// The row in the order of its peers, with one half of each.
absl::Span<const Half> MergeRow(absl::Span<Half> row) {
  std::sort(row.begin(), row.end(),
            [](const Half& a, const Half& b) { return a.exchange.peer < b.exchange.peer; });
  size_t kept = 0;
  for (const Half& half : row) {
    if (kept > 0 && row[kept - 1].exchange.peer == half.exchange.peer) {
      row[kept - 1].exchange.out_bytes += half.exchange.out_bytes;
      row[kept - 1].exchange.in_bytes += half.exchange.in_bytes;
      row[kept - 1].messages += half.messages;
    } else {
      row[kept++] = half;
    }
  }
  return row.first(kept);
}

constexpr double kExactBelow = 9007199254740992.0;  // 2^53: doubles hold every whole number below

}  // namespace

absl::StatusOr<PatternPointer> Pattern::Make(uint32_t rank_count, std::vector<Entry> entries) {
  RETURN_IF_ERROR(CheckRankCount(rank_count));
  for (const Entry& e : entries) RETURN_IF_ERROR(CheckEntry(e, rank_count));
  Merge(entries);
  RETURN_IF_ERROR(CheckIdleRanks(rank_count, entries));
  std::shared_ptr<Pattern> made(new Pattern);
  RETURN_IF_ERROR(made->AddUp(rank_count, entries));
  made->FillRows(rank_count, std::move(entries));
  return made;
}

absl::Status Pattern::AddUp(uint32_t rank_count, const std::vector<Entry>& entries) {
  double everything = 0, all_messages = 0;  // what ranks say to themselves, too
  for (const Entry& e : entries) {
    const bool is_between = e.from != e.to;
    all_messages += e.messages;
    if (is_between) total_messages_ += e.messages;
    if (e.messages > 0 && (e.bytes == 0 || !is_between)) {
      empty_messages_.push_back({e.from, e.to, 0, e.messages});
    }
    if (e.bytes == 0) continue;
    whole_ = whole_ && IsWhole(e.bytes);
    everything += e.bytes;
    if (is_between) {
      total_bytes_ += e.bytes;
    } else {
      if (self_bytes_.empty()) self_bytes_.resize(rank_count, 0.0);
      self_bytes_[e.from] = e.bytes;
    }
  }
  if (!std::isfinite(everything) || !std::isfinite(all_messages)) {
    return absl::InvalidArgumentError(
        "the pattern's weights add up to more than a double holds; scale them down");
  }
  whole_ = whole_ && everything < kExactBelow;
  return absl::OkStatus();
}

// Every pair into both rows, then the two directions of a pair into one.
void Pattern::FillRows(uint32_t rank_count, std::vector<Entry> entries) {
  const auto is_exchange = [](const Entry& e) { return e.bytes > 0 && e.from != e.to; };
  bool counts_messages = false;
  std::vector<size_t> begin(rank_count + 1, 0);
  for (const Entry& e : entries) {
    if (!is_exchange(e)) continue;
    counts_messages = counts_messages || e.messages > 0;
    ++begin[e.from + 1];
    ++begin[e.to + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Half> halves(begin[rank_count]);
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  for (const Entry& e : entries) {
    if (!is_exchange(e)) continue;
    halves[next[e.from]++] = {{e.to, e.bytes, 0}, e.messages};
    halves[next[e.to]++] = {{e.from, 0, e.bytes}, 0};
  }
  entries = {};
  begin_.assign(1, 0);
  begin_.reserve(rank_count + 1);
  exchanges_.reserve(halves.size());
  for (uint32_t r = 0; r < rank_count; ++r) {
    for (const Half& half :
         MergeRow(absl::MakeSpan(halves).subspan(begin[r], begin[r + 1] - begin[r]))) {
      exchanges_.push_back(half.exchange);
      if (counts_messages) out_messages_.push_back(half.messages);
    }
    begin_.push_back(exchanges_.size());
  }
  symmetric_ = std::all_of(exchanges_.begin(), exchanges_.end(),
                           [](const Exchange& e) { return e.out_bytes == e.in_bytes; });
}

std::vector<uint32_t> Pattern::HeaviestFirst() const {
  std::vector<double> bytes(rank_count(), 0);
  for (uint32_t r = 0; r < bytes.size(); ++r) {
    for (const Exchange& x : exchanges(r)) bytes[r] += x.both();
  }
  return NumbersBy(bytes.size(), [&](uint32_t rank) { return -bytes[rank]; });
}

size_t Pattern::MemoryBytes() const {
  return sizeof(*this) + begin_.capacity() * sizeof(begin_[0]) +
         exchanges_.capacity() * sizeof(Exchange) +
         (out_messages_.capacity() + self_bytes_.capacity()) * sizeof(double) +
         empty_messages_.capacity() * sizeof(Entry);
}

absl::StatusOr<PatternPointer> AsTimes(const Pattern& pattern, double latency_seconds,
                                       double bytes_per_second) {
  if (!(latency_seconds >= 0) || !std::isfinite(latency_seconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a latency of %g s; give seconds from 0 up", latency_seconds));
  }
  if (!(bytes_per_second > 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a bandwidth of %g B/s; give one above 0", bytes_per_second));
  }
  std::vector<Entry> entries;
  entries.reserve(2 * pattern.pair_count() + pattern.empty_messages().size());
  std::vector<bool> is_counted(pattern.rank_count(), false);  // messages to itself
  for (const Entry& e : pattern.empty_messages()) {
    if (e.from == e.to) is_counted[e.from] = true;
    entries.push_back({e.from, e.to, latency_seconds * e.messages, e.messages});
  }
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    const absl::Span<const double> messages = pattern.out_messages(rank);
    const absl::Span<const Exchange> row = pattern.exchanges(rank);
    if (const double self = pattern.self_bytes(rank); self > 0) {
      const double count = is_counted[rank] ? 0 : 1;
      entries.push_back({rank, rank, latency_seconds * count + self / bytes_per_second, count});
    }
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].out_bytes == 0) continue;
      const double count = messages.empty() ? 1 : std::max(1.0, messages[i]);
      entries.push_back({rank, row[i].peer,
                         latency_seconds * count + row[i].out_bytes / bytes_per_second, count});
    }
  }
  return Pattern::Make(pattern.rank_count(), std::move(entries));
}

}  // namespace coppice
