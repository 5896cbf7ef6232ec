// Looks whether what the last full sweep saw still holds, by one PortInfo for every port of every
// switch, over the routes that the sweep found.
//
//    local port ok? --> switches next to it: port 0 --answered--> their ports 1, 2, ...  4 at a
//    time
//                                               |
//                                               +--> the switches behind: port 0 --> ...
//
// A switch is asked once the switch before it on its route has answered: when a switch or the
// cable to it is lost, what is behind costs nothing, and the sweep ends after the patience for one
// node, not for all of them. What does not show here: a cable that was moved and is up again, a
// host that was exchanged, other forwarding tables. The full sweep's period catches these.
//
// Where nobody answered at the full sweep, nobody is missed now; but he is asked again, with less
// patience, and his answer is a change.
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
  // Neither is owned. One object makes one sweep.
  LightSweeper(MadEngine& engine, const SweptSubnet& swept) : engine_(engine), swept_(swept) {}

  // Fills in what has changed and unanswered. UNAVAILABLE: the local port does not answer or its
  // link is down, or no switch answers of those that did.
  absl::StatusOr<LightSweepResult> Sweep();

 private:
  struct Progress {
    uint32_t next_port = 1;
    int silences = 0;  // in a row
    bool has_answered = false;
    bool is_given_up = false;
  };

  void OnOutcome(const MadRequest& request, const MadOutcome& outcome);
  absl::Status AskLocalPort();
  void OnLocalPort(const MadOutcome& outcome);
  void OnPort(const MadRequest& request, const MadOutcome& outcome);
  void OnPortInfo(uint32_t index, uint32_t port, const PortInfoRecord& now);
  void CompareAddresses(const SweptSwitch& then, const PortInfoRecord& now);
  void OnSilence(uint32_t index, uint32_t port);
  void OnSilentEnd(const MadRequest& request, const MadOutcome& outcome);
  void Begin(uint32_t index);
  void BeginBehind(uint32_t index);
  void AskNextPort(uint32_t index);
  void AskSilentEnds();
  void Change(absl::string_view what);

  MadEngine& engine_;
  const SweptSubnet& swept_;
  LightSweepResult result_;
  absl::Status local_fault_;
  std::vector<Progress> progress_;             // [switch]
  std::vector<std::vector<uint32_t>> behind_;  // [switch], switches whose routes pass it last
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_LIGHT_SWEEP_H_
