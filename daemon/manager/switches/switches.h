// The use case of switches that aggregate: one says that it stands at a switch of the fabric and
// what it can do; that rules the ledger of entries from then on, over the configuration's rules,
// and trees are given to it (SwitchInstaller).
//
//   hello --checked--> abilities: store, then ledger --> installer: keep, installs
//   gone ------------> installer: its trees wait; ledger: no entry of it for new trees
#ifndef COPPICE_DAEMON_MANAGER_SWITCHES_SWITCHES_H_
#define COPPICE_DAEMON_MANAGER_SWITCHES_SWITCHES_H_

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/manager/switches/installation.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/topology.h"

namespace coppice {

// Switches that refused a tree, by GUID, with their words: one request goes round them.
using AvoidedSwitches = std::map<Guid, std::string>;

// Nothing of these is free any more in `capacity`, which is [switch] of `fabric`.
void Avoid(const Fabric& fabric, const AvoidedSwitches& avoided,
           std::vector<SwitchCapacity>& capacity);
// Ends the reason of a tree that went round them, or an error; empty if none is avoided.
std::string WordsOf(const AvoidedSwitches& avoided);
absl::Status GoneRound(const absl::Status& refusal, const AvoidedSwitches& avoided);
void Add(const std::vector<RefusingSwitch>& refusing, AvoidedSwitches& avoided);

// What the record's switches would carry it with, and a new key, if all of them speak; where only
// some do the reason says so. Anything else that it had is taken away. INTERNAL: no key can be had.
absl::Status GiveCarriage(const SwitchInstaller& installer, TreeRecord& record);

// Thread-safe.
class Switches : private UseCase {
 public:
  // Both outlive it.
  Switches(const UseCase& with, Topology* topology) : UseCase(with), topology_(topology) {}

  struct Connected {
    SwitchSession session = 0;
    std::string name;               // as the fabric has it
    std::vector<SwitchGroup> keep;  // as SwitchInstaller::Connected
  };
  // Status codes: proto/coppice/v1/switches.proto. Blocks for the store. `link` may be called
  // before this returns.
  absl::StatusOr<Connected> Connect(SwitchHello hello, SwitchLink link, std::string identity);
  // A session that is over is left alone.
  void Disconnect(SwitchSession session);
  // The daemon stops, and its switches are about to go: as SwitchInstaller::Stop.
  void Stop() { installer_->Stop(); }
  // As the installer's.
  absl::Status TakeResult(SwitchSession session, uint64_t id, const std::string& error) {
    return installer_->TakeResult(session, id, error);
  }
  void TakeReport(SwitchSession session, SwitchReport report) {
    installer_->TakeReport(session, std::move(report));
  }
  std::vector<SwitchView> List(Guid after, size_t limit) const {
    return installer_->List(after, limit);
  }
  std::optional<SwitchHello> HelloOf(Guid guid) const { return installer_->HelloOf(guid); }
  // What the installer's timer does, for whoever turns the clock by hand.
  absl::Duration Expire() { return installer_->Expire(); }

 private:
  Topology* const topology_;
  std::mutex changing_;  // ledger and installer agree on who speaks; taken before all other locks
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWITCHES_SWITCHES_H_
