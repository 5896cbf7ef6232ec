// Reads an 8,192-host subnet under ibsim and OpenSM with our discovery and with the reference
// tools, turn by turn in one run, and prints the ratios of wall time:
//
//   discovery without tables / ibnetdiscover     bound 0.5
//   discovery with all tables / dump_lfts        bound 0.15
//
// Ours is a sweep of an open port, as the daemon does it; the tools' time includes their start. The
// first sweep, which opens the port, is printed beside it. Exits 1 if a bound is missed.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"
#include "daemon/ib/umad_subnet_port.h"
#include "tests/support/ibsim.h"

namespace coppice {
namespace {

constexpr char kFabric[] = "fat-tree(supernodes=16,leaves=32,spines=16,hosts-per-leaf=16,tops=64)";
constexpr int kRounds = 5;

double Median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

absl::StatusOr<double> TimeTool(IbsimSubnet& subnet, const std::string& tool) {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(subnet.Run({"sh", "-c", tool + " > /dev/null"}, absl::Minutes(5)).status());
  return absl::ToDoubleSeconds(absl::Now() - start);
}

absl::StatusOr<double> TimeSweep(UmadSubnetPort& port, bool tables) {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const SweepResult result, port.Sweep({.read_forwarding_tables = tables}));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (!result.unanswered.empty() || result.fabric->endpoint_count() != 8192) {
    return absl::InternalError("the sweep is incomplete");
  }
  return seconds;
}

absl::StatusOr<bool> Measure() {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Fabric> fabric, GenerateModel(kFabric));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<IbsimSubnet> subnet,
      IbsimSubnet::Start(WriteIbsimNet(*fabric), std::string(fabric->host_name(HostIndex(0)))));
  RETURN_IF_ERROR(subnet->RunSubnetManager("ftree"));
  RETURN_IF_ERROR(subnet->Attach());
  ASSIGN_OR_RETURN(const std::unique_ptr<UmadSubnetPort> port, UmadSubnetPort::Create("umad"));
  ASSIGN_OR_RETURN(const double first, TimeSweep(*port, false));
  std::vector<double> graph, whole, ibnetdiscover;
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN_OR_RETURN(ibnetdiscover.emplace_back(), TimeTool(*subnet, "ibnetdiscover"));
    ASSIGN_OR_RETURN(graph.emplace_back(), TimeSweep(*port, false));
    ASSIGN_OR_RETURN(whole.emplace_back(), TimeSweep(*port, true));
  }
  ASSIGN_OR_RETURN(const double dump_lfts, TimeTool(*subnet, "dump_lfts"));
  const double graph_ratio = Median(graph) / Median(ibnetdiscover);
  const double whole_ratio = Median(whole) / dump_lfts;
  std::printf("8,192 hosts, 832 switches, medians of %d\n", kRounds);
  std::printf("%-34s %8.3f s\n", "first sweep, opening the port", first);
  std::printf("%-34s %8.3f s\n", "discovery without tables", Median(graph));
  std::printf("%-34s %8.3f s   ratio %.3f (bound 0.5)\n", "ibnetdiscover", Median(ibnetdiscover),
              graph_ratio);
  std::printf("%-34s %8.3f s\n", "discovery with all tables", Median(whole));
  std::printf("%-34s %8.3f s   ratio %.3f (bound 0.15)\n", "dump_lfts", dump_lfts, whole_ratio);
  return graph_ratio <= 0.5 && whole_ratio <= 0.15;
}

}  // namespace
}  // namespace coppice

int main(int, char** argv) {
  coppice::UsePreload(argv);
  const absl::StatusOr<bool> within = coppice::Measure();
  if (!within.ok()) {
    std::fprintf(stderr, "%s\n", within.status().ToString().c_str());
    return 2;
  }
  return *within ? 0 : 1;
}
