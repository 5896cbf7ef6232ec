// The live subnet as a SubnetPort: management packets through libibumad, as root on hardware or
// under ibsim's preload on a simulated subnet, with no difference between them here.
#ifndef COPPICE_DAEMON_IB_UMAD_SUBNET_PORT_H_
#define COPPICE_DAEMON_IB_UMAD_SUBNET_PORT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/ib/mad_engine.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

// Which port of this machine to speak through: `umad` or `umad:CA:PORT`.
struct PortSelection {
  std::string adapter;  // empty: the first usable port
  int port = 0;
  friend bool operator==(const PortSelection&, const PortSelection&) = default;
};

// "umad" or "umad:mlx5_0:1".
std::string ToString(const PortSelection& selection);

// Inverse of ToString. INVALID_ARGUMENT: anything else; the message quotes it.
absl::StatusOr<PortSelection> ParsePortSelection(absl::string_view spec);

// Asks libibumad for the port and returns it with its name and number filled in. Of several ports
// takes the first, by adapter name, whose link is active, else the first whose link is up, else the
// first. NOT_FOUND: no such adapter or port; FAILED_PRECONDITION: it is no InfiniBand port.
absl::StatusOr<PortSelection> FindPort(const PortSelection& selection);

class UmadTransport;

// Not thread-safe; successive sweeps may come from different threads. The device is opened by the
// first sweep and kept open. After a sweep that failed the next one chooses again where the choice
// is free, and opens anew what was lost. At most one object of this kind in a process.
class UmadSubnetPort final : public SubnetPort {
 public:
  // `spec` is "umad" or "umad:ADAPTER:PORT". INVALID_ARGUMENT: it is neither. Opens nothing yet.
  static absl::StatusOr<std::unique_ptr<UmadSubnetPort>> Create(absl::string_view spec,
                                                                MadEngineOptions options = {},
                                                                const Clock& clock = SystemClock());
  ~UmadSubnetPort() override;

  // The port that is open, else the one that was asked for.
  std::string Describe() const override;

  // Besides SubnetPort's errors: PERMISSION_DENIED (needs root), FAILED_PRECONDITION (the port is
  // no InfiniBand port). Every message names the port. Takes at most a few seconds longer than the
  // subnet needs to answer, however many nodes are silent side by side; a local port that is silent
  // is reported within twice the sum of the engine's timeouts.
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override;
  // Both work on what the last sweep that succeeded saw. FAILED_PRECONDITION also when the port
  // that it came through is no longer the one that is open: sweep again. Counters are read by LID;
  // from a light sweep that doubts these to the next full sweep there are none, as they might be
  // another switch's.
  absl::StatusOr<LightSweepResult> LightSweep() override;
  absl::StatusOr<CounterSweep> ReadCounters() override;

 private:
  UmadSubnetPort(PortSelection wanted, MadEngineOptions options, const Clock& clock);
  absl::Status EnsureOpen();
  absl::Status EnsureSwept();
  absl::StatusOr<SweepResult> SweepAll(const SweepOptions& options, SweptSubnet& swept);
  absl::Status Open();
  void Close();
  void CloseUnlessStillBest();
  template <class Call>
  auto Ask(const Call& call) -> decltype(call());

  const PortSelection wanted_;
  const MadEngineOptions options_;
  const Clock& clock_;
  PortSelection port_;  // what is open
  std::unique_ptr<UmadTransport> transport_;
  std::unique_ptr<MadEngine> engine_;                    // null: not open
  bool has_failed_ = false;                              // the last call of any of the three
  std::shared_ptr<const Fabric> last_fabric_;            // of the last sweep, null: none
  std::shared_ptr<const ForwardingTables> last_tables_;  //
  std::shared_ptr<const Partitions> last_partitions_;
  std::optional<SweptSubnet> swept_;  // by the last full sweep that succeeded
  uint32_t light_sweeps_ = 0;
  bool is_sweeping_ = false;        // a full sweep has the engine, which must stay
  bool lids_are_doubtful_ = false;  // by a light sweep since
  PerformanceAgents agents_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_UMAD_SUBNET_PORT_H_
