// Who talks to whom, and how much: the communication pattern of a job as one immutable value
// (Hoefler 2011, section 2: G; Wang 2015, 3.1: the communication matrix).
#ifndef COPPICE_DAEMON_MAPPING_PATTERN_H_
#define COPPICE_DAEMON_MAPPING_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/text/limits.h"

namespace coppice {

// What a rank sends to a peer and hears from it. At least one of the two is above 0.
struct Exchange {
  uint32_t peer;
  double out_bytes;
  double in_bytes;
  double both() const { return out_bytes + in_bytes; }
};

using PatternPointer = std::shared_ptr<const class Pattern>;

// Compressed sparse rows over ranks 0..P-1; each pair is in both ranks' rows. Thread-safe.
class Pattern final {
 public:
  struct Entry {
    uint32_t from = 0, to = 0;
    double bytes = 0;
    double messages = 0;
  };
  static constexpr uint32_t kMaxRanks = kMaxJobRanks;
  static constexpr uint32_t kMaxIdleRanks = 1 << 20;

  // Entries of one ordered pair are added up; a rank's bytes to itself (self_bytes) and messages
  // without bytes (empty_messages) are kept apart; pairs with neither are dropped.
  // INVALID_ARGUMENT, naming the pair: a rank that is not below `rank_count`, a weight that is
  // negative, NaN or infinite, a sum that overflows; naming the limit: no ranks, more than
  // kMaxRanks, or more than kMaxIdleRanks with less than a pair that talks for 16 of them, so that
  // few bytes of a file never take much memory. O(entries log(entries per rank)).
  static absl::StatusOr<PatternPointer> Make(uint32_t rank_count, std::vector<Entry> entries);

  uint32_t rank_count() const { return static_cast<uint32_t>(begin_.size() - 1); }
  // Pairs of two different ranks, in either direction, that exchange anything.
  size_t pair_count() const { return exchanges_.size() / 2; }

  // By peer, ascending.
  absl::Span<const Exchange> exchanges(uint32_t rank) const {
    return absl::MakeConstSpan(exchanges_).subspan(begin_[rank], begin_[rank + 1] - begin_[rank]);
  }
  // Messages sent to the peers of exchanges(rank), one for one; empty if the pattern counts none.
  absl::Span<const double> out_messages(uint32_t rank) const {
    if (out_messages_.empty()) return {};
    return absl::MakeConstSpan(out_messages_)
        .subspan(begin_[rank], begin_[rank + 1] - begin_[rank]);
  }
  // What a rank sends to itself: it crosses no link, but counts where a place is not at distance 0
  // from itself, as in some QAP instances.
  double self_bytes(uint32_t rank) const { return self_bytes_.empty() ? 0 : self_bytes_[rank]; }
  bool has_self_bytes() const { return !self_bytes_.empty(); }  // some rank's are above 0
  // Messages that carry no byte, and all messages of a rank to itself, by pair; bytes are 0. They
  // weigh nothing but where weights are times (AsTimes).
  absl::Span<const Entry> empty_messages() const { return empty_messages_; }

  double total_bytes() const { return total_bytes_; }        // between different ranks
  double total_messages() const { return total_messages_; }  // those without bytes, too
  // w(u,v) = w(v,u) for all u, v.
  bool symmetric() const { return symmetric_; }
  // Every weight is a whole number, and their sum is below 2^53: sums are exact.
  bool whole() const { return whole_; }

  // All ranks, those first that exchange most bytes; of equal ones the lower.
  std::vector<uint32_t> HeaviestFirst() const;

  size_t MemoryBytes() const;

 private:
  Pattern() = default;
  // All but the exchanges, of merged entries. INVALID_ARGUMENT: a sum that overflows.
  absl::Status AddUp(uint32_t rank_count, const std::vector<Entry>& entries);
  void FillRows(uint32_t rank_count, std::vector<Entry> entries);

  std::vector<size_t> begin_;        // [rank_count + 1] into exchanges_
  std::vector<Exchange> exchanges_;  // each pair twice
  std::vector<double> out_messages_;
  std::vector<double> self_bytes_;  // [rank_count], or empty: all 0
  std::vector<Entry> empty_messages_;
  double total_bytes_ = 0, total_messages_ = 0;
  bool symmetric_ = true, whole_ = true;
};

// Weights as times: t = latency_seconds * messages + bytes / bytes_per_second (Baranov 2022, the
// communication graph's weights), in seconds; bytes of a rank to itself and messages without bytes
// alike. Bytes of a pair whose messages are not known count as one message.
// INVALID_ARGUMENT: a latency below 0, a bandwidth not above 0, or a result out of range.
absl::StatusOr<PatternPointer> AsTimes(const Pattern& pattern, double latency_seconds,
                                       double bytes_per_second);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_PATTERN_H_
