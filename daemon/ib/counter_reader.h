// Reads what the cabled ports of all switches have counted, by performance management packets to
// the switches' LIDs.
//
//    switch: ClassPortInfo --answered--> 4 lanes, each:  next port -> PortCountersExtended
//            (once, then known)                                          |  (nodes that have it)
//                                                                        v
//                                           one CounterReading <-- PortCounters
//                                                                     (nodes that need it)
//
// A port's reading is whole or there is none: half of one would look like counters that went back.
// Only so many switches are open at a time as the window has places, and a switch's first request
// goes alone, so that a silent switch costs one place for the patience of one request. Patience is
// short and a slow switch's time is bounded: the next reading comes soon, and others wait for the
// port.
//
// A switch is known by LID, and an answer does not say whose it is: after the subnet manager has
// given other LIDs, counters are right again with the next full sweep. Whoever knows that LIDs have
// changed does not read.
#ifndef COPPICE_DAEMON_IB_COUNTER_READER_H_
#define COPPICE_DAEMON_IB_COUNTER_READER_H_

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/mad_codec.h"
#include "daemon/ib/mad_engine.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

// What is known of a switch's performance management from one reading to the next.
struct PerformanceAgent {
  Lid lid;
  bool is_known = false;  // abilities were told, since the last full sweep
  CounterAbilities abilities;
  std::bitset<256> without_extended;  // ports that refused what was offered
  bool was_given_up = false;          // at the last reading: asked with less patience
  Lid served_at;                      // where it redirects to; 0: it answers for itself
};
using PerformanceAgents = absl::flat_hash_map<Guid, PerformanceAgent>;

// After each full sweep: forgets who is gone, and all that is known of the others but their
// silence, as it may have been an accident.
void RenewAgents(const SweptSubnet& swept, PerformanceAgents& agents);

class CounterReader {
 public:
  // None is owned. One object makes one sweep.
  CounterReader(MadEngine& engine, const Clock& clock, const SweptSubnet& swept,
                PerformanceAgents& agents)
      : engine_(engine), clock_(clock), swept_(swept), agents_(agents) {}

  // Fills in readings and unanswered. UNAVAILABLE: the local port does not answer.
  absl::StatusOr<CounterSweep> Read();

 private:
  static constexpr uint32_t kLanes = 4;

  // One port on its way.
  struct Lane {
    bool is_busy = false;
    CounterReading reading;
  };
  struct Progress {
    CounterAbilities abilities;
    uint32_t next_port = 1;
    uint32_t under_way = 0;  // requests
    int silences = 0;        // in a row
    absl::Duration waited;   // sum over all requests
    bool has_answered = false;
    bool has_second_chance = false;
    bool is_given_up = false;
    std::vector<Lane> lanes;  // kLanes while the switch is open, else none
  };

  void OpenMore();
  void Open(uint32_t index);
  void OnOutcome(const MadRequest& request, const MadOutcome& outcome);
  // True: it is asked again, elsewhere.
  bool OnClassPortInfo(uint32_t index, const MadOutcome& outcome);
  bool FollowRedirection(uint32_t index, const MadOutcome& outcome);
  bool OnCounters(uint32_t index, uint32_t lane, MadAttribute attribute, const MadOutcome& outcome);
  bool OnRefusal(uint32_t index, uint32_t lane, MadAttribute attribute, uint16_t status);
  bool TakeSecondChance(uint32_t index);
  void OnSilence(uint32_t index, std::string what);
  void GiveUp(uint32_t index, std::string what);
  bool StartLane(uint32_t index, uint32_t lane);
  void Ask(uint32_t index, uint32_t lane, MadAttribute attribute, uint32_t port);
  void Note(uint32_t index, std::string what, bool is_silent = true);

  MadEngine& engine_;
  const Clock& clock_;
  const SweptSubnet& swept_;
  PerformanceAgents& agents_;
  CounterSweep result_;
  std::vector<Progress> progress_;  // [switch]
  uint32_t next_switch_ = 0;
  uint32_t open_ = 0;    // switches
  uint32_t silent_ = 0;  // switches, some of which may have answered later
  bool one_answered_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_COUNTER_READER_H_
