// Looks whether what the last full sweep saw still holds, by one PortInfo for every port of every
// switch and one NodeInfo for each switch, over the routes that the sweep found.
//
//    local port ok? --> first switch: port 0 --answered--> who? ports 1, 2, 3, ...   4 at a time
//                                                                |
//                      the port to the next switch is up --------+--> that switch: port 0 --> ...
//
//    all heard, no change --> who was silent at the full sweep, some of them each time
//
// A switch is asked once the port that leads to it has said that its link is up: a cable that was
// cut and a switch that lost power are heard of from the switch before, and nobody waits for those
// behind. Links that went down or came up do not end the sweep, as whoever mends wants all of them;
// switches that a lost link led to are asked over another neighbour, whose link to them is up. Any
// other change ends it: whoever hears of it reads all anew.
//
// A switch that falls silent while its links stay up is looked at twice, because packets get lost:
//
//    port 0? --2 attempts--> silent --> port 0? and who?, all attempts each --> both silent: a
//    change
//       |                                  +-- one answers --> as if nothing had been
//       +-- answered --> ports 1, 2, 3, ...
//
// The first look is short, so that both together cost little more than the patience for one
// request.
//
// That a switch says to be another one, by its GUID, is a change, too: it was exchanged, or the
// cable of the way to it was moved. Where it says nothing, its ports are what counts.
//
// What does not show here: other cables that were moved and are up again, a host that was
// exchanged, other forwarding tables. The full sweep's period catches these.
//
// Only who answered at the full sweep is missed, and only after the second look; a switch that is
// slow is asked with less patience, and for a bounded time. Silence that is expected or doubtful is
// noted and is no change, or it would be one in each sweep.
//
// Who was silent then is asked again, with less patience, and his answer is a change.
#ifndef COPPICE_DAEMON_IB_LIGHT_SWEEP_H_
#define COPPICE_DAEMON_IB_LIGHT_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/mad_engine.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

class LightSweeper {
 public:
  // Neither is owned. One object makes one sweep. `turn` counts the sweeps: of many silent ones,
  // each is asked in its turn.
  LightSweeper(MadEngine& engine, const SweptSubnet& swept, uint32_t turn)
      : engine_(engine), swept_(swept), turn_(turn) {}

  // Fills in what has changed and unanswered. UNAVAILABLE: the local port does not answer or its
  // link is down, or no switch answers of those that did.
  absl::StatusOr<LightSweepResult> Sweep();

  // After Sweep: what has changed is or may be somebody's LID, not only a link.
  bool lids_are_doubtful() const { return lids_are_doubtful_; }

 private:
  struct Progress {
    bool has_begun = false;
    uint32_t first_port = 0;  // asked alone, before all others
    uint32_t next_port = 0;
    int silences = 0;  // in a row, of ports that answered then
    int expected_silences = 0;
    absl::Duration waited;  // sum over all requests
    bool has_answered = false;
    int slow_answers = 0;
    bool is_doubtful = false;  // whether the way there is open was not told
    bool is_slow = false;
    bool is_given_up = false;
    bool is_second_look = false;
    bool is_first_port_silent = false, is_name_silent = false;  // at the second look
    DirectedRoute route;      // as the full sweep went, unless a link on that way is lost
    std::vector<bool> is_up;  // [port] as it said now
  };

  absl::Status AskLocalPort();
  void OnLocalPort(const MadOutcome& outcome);
  absl::Status Walk();
  void Begin(uint32_t index, bool is_doubtful);
  bool BeginByOtherWays();
  void AskNextPort(uint32_t index);
  void LookAgain(uint32_t index);
  void OnSignOfLife(uint32_t index);
  void OnNoSign(const MadRequest& request);
  void OnAnswer(const MadRequest& request, const MadOutcome& outcome);
  void OnIdentity(uint32_t index, const MadOutcome& outcome);
  void OnPort(const MadRequest& request, const MadOutcome& outcome);
  void FollowCable(uint32_t index, uint32_t port, const MadOutcome& outcome);
  void OnPortInfo(uint32_t index, uint32_t port, const PortInfoRecord& now);
  void CompareAddresses(const SweptSwitch& then, const PortInfoRecord& now);
  void OnSilence(const MadRequest& request);
  void NoteSilence(uint32_t index, uint32_t port);
  void GiveUp(uint32_t index, std::string what);
  absl::Status AskSilent();
  void OnSilent(const MadRequest& request, const MadOutcome& outcome);
  void ChangeOfLink(absl::string_view what);
  void Change(absl::string_view what);
  void ChangeOfNode(absl::string_view what);

  MadEngine& engine_;
  const SweptSubnet& swept_;
  const uint32_t turn_;
  LightSweepResult result_;
  bool lids_are_doubtful_ = false;
  absl::Status local_fault_;
  std::vector<Progress> progress_;         // [switch]
  std::vector<uint32_t> silent_switches_;  // switch; told nothing then
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_LIGHT_SWEEP_H_
