// The bytes on every channel under a mapping, kept while a search changes it: what an exchange of
// two slots would cost is counted from the exchanges of its two ranks alone (Hoefler 2011, eq.
// 3-5).
//
//      u at A, v at B         for each peer of u at Q:   A <-> Q  goes,  B <-> Q  comes
//      Try(u, slot of v)      for each peer of v at Q:   B <-> Q  goes,  A <-> Q  comes
//                                      |
//                     delta[channel] on the channels touched --> Commit() or nothing
//
// The link of Q itself carries as much as before, and what comes from one leaf switch to A or B
// is one flow: both are counted once and not for each peer.
//
// The greatest congestion alone leads nowhere: most exchanges leave it as it is. Its smooth version
//
//      soft = ( sum over channels of congestion^16 ) ^ (1/16)
//      max <= soft <= max * channels^(1/16)
//
// falls with every channel near the top that is relieved. The greatest itself is kept in a
// tournament tree over the channels.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_STATE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/search/links/traffic_routes.h"

namespace coppice {

// For one search in one thread. Where weights and distances are whole and routes single, bytes,
// hop-bytes and QAP cost are exact; otherwise they are counted anew every few thousand commits.
class TrafficState final {
 public:
  static constexpr uint32_t kNobody = 0xffffffff;

  struct Values {
    double congestion = 0;  // the greatest of all channels; infinite if a pair has no route
    double soft = 0;
    double hop_bytes = 0;
    double qap_cost = 0;  // 0 unless it is asked for
  };

  // `start` is admissible. NOT_FOUND as CountLinkTraffic. The problem must outlive the state.
  // O(pairs * length + channels).
  static absl::StatusOr<TrafficState> Make(const MappingProblem& problem, const Mapping& start,
                                           bool with_qap_cost);

  // What exchanging the contents of the slots of `rank` and `slot` would give; the slot holds
  // another rank or nobody. Forgets what was tried before. `congestion` is not filled in.
  // O(exchanges of both * length).
  Values Try(uint32_t rank, uint32_t slot);
  // The congestion of what was tried last. O(channels touched), and a few steps in the tree.
  double TriedCongestion();
  // Makes what was tried last true. From infinite congestion only Assign() leads back. Trying and
  // committing the same exchange again undoes it.
  void Commit();

  // Of the mapping as it is.
  Values Now();
  const Mapping& mapping() const { return mapping_; }
  uint32_t slot_of(uint32_t rank) const { return slot_of_rank_[rank]; }
  uint32_t rank_in(uint32_t slot) const { return rank_in_slot_[slot]; }  // or kNobody

  double bytes(ChannelIndex c) const { return bytes_[c.value()]; }
  double congestion(ChannelIndex c) const { return bytes_[c.value()] * per_byte_[c.value()]; }
  // The first channel of the greatest congestion; kNoChannel without traffic.
  ChannelIndex MostCongested();
  TrafficRoutes& routes() { return routes_; }

  // Goes over to another mapping, all at once.
  void Assign(const Mapping& mapping);

 private:
  TrafficState(const MappingProblem& problem, bool with_qap_cost);
  void CountAll();
  void CountSoft();
  void Flush();
  void AddRoute(uint32_t from, uint32_t to, double bytes);
  void Add(uint32_t channel, double bytes);
  void AddSwitchRoute(uint32_t leaf, uint32_t to, double bytes);
  void MoveExchanges(uint32_t rank, uint32_t other, uint32_t from, uint32_t to);
  void PutIncoming(uint32_t place, double sign, std::vector<double>& flows);
  double QapDelta(uint32_t rank, uint32_t other, uint32_t from, uint32_t to) const;
  double GreatestUntouched(double floor) const;

  const MappingProblem& problem_;
  bool with_qap_cost_;
  TrafficRoutes routes_;
  Mapping mapping_;
  std::vector<uint32_t> slot_of_rank_, rank_in_slot_;

  std::vector<double> per_byte_;  // [channel] 1 / capacity
  std::vector<double> bytes_;     // [channel]
  bool routeless_ = false;        // a pair that communicates has no route
  double hop_bytes_ = 0, qap_cost_ = 0;
  double scale_ = 1;      // soft is summed over congestion / scale_
  double soft_sum_ = 0;   // of 16th powers
  double soft_peak_ = 0;  // the greatest sum since all was counted: its rounding remains
  uint32_t commits_ = 0;  // since all was counted

  std::vector<double> from_leaf_, to_leaf_;  // [switch] sent to the place left, the place entered
  std::vector<uint32_t> leaves_met_;

  // What was tried last.
  uint32_t tried_rank_ = kNobody, tried_slot_ = 0;
  std::vector<double> delta_;     // [channel], 0 unless touched
  std::vector<uint8_t> touched_;  // [channel]
  std::vector<uint32_t> touched_channels_;
  bool tried_routeless_ = false;
  Values tried_;
  double tried_soft_sum_ = 0;

  // Tournament: tree_[1] is the greatest congestion, tree_[leaves_ + channel] the channel's.
  uint32_t leaves_ = 1;
  std::vector<double> tree_;
  std::vector<uint8_t> stale_;  // [channel] the tree is behind
  std::vector<uint32_t> stale_channels_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LINKS_TRAFFIC_STATE_H_
