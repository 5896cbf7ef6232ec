// The greatest congestion on a real fabric by its forwarding tables: `auto` beside every other
// method, all from the order of a random allocation and with the same budget, and the bound that
// no order is below.
//
//   coppice_congestion_benchmark [--patterns=NAME,...] [--each=1,4,8] [--allocations=1,2,3]
//                                [--methods=auto,congestion,...] [--seconds=1] [--threads=2]
//                                [--clock=processor] [--verbose=1] [--fabric=model:...]
//
// An allocation N is a random choice of hosts in random order, by N as seed; 0 is all hosts. A case
// whose ranks do not fit is left out, as is one whose ranks have a host.
//
// --clock=processor counts processor time instead of the wall's, so that a machine shared with
// other work gives much the same.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/random.h"
#include "tests/benchmark/mapping/cases.h"
#include "tests/benchmark/mapping/rivals.h"

namespace coppice {
namespace {

constexpr char kData[] = COPPICE_DATA_DIR;
constexpr char kPatterns[] =
    "comm_lammps_melt64.bytes.mat,comm_lammps_melt64.graph,comm_lammps_melt64.msgs.mat,"
    "comm_lammps_peptide64.bytes.mat,comm_lammps_peptide64.graph,comm_lammps_peptide64.msgs.mat,"
    "comm_openfoam_pitz64.bytes.mat,comm_openfoam_pitz64.graph,comm_openfoam_pitz64.msgs.mat,"
    "comm_copter2_k256.graph,comm_mdual_k1024.graph";
constexpr double kEqual = 1e-9;  // relative: the same but for rounding

struct Arguments {
  std::map<std::string, std::string> values;
  std::string Text(const std::string& name, const std::string& preset) const {
    const auto found = values.find(name);
    return found == values.end() ? preset : found->second;
  }
  double Number(const std::string& name, double preset) const {
    double value = preset;
    const auto found = values.find(name);
    return found != values.end() && absl::SimpleAtod(found->second, &value) ? value : preset;
  }
  std::vector<std::string> List(const std::string& name, const std::string& preset) const {
    return absl::StrSplit(Text(name, preset), ',', absl::SkipEmpty());
  }
};

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::shared_ptr<const Pattern> LoadPattern(const std::string& name) {
  std::ifstream file(absl::StrCat(kData, "/patterns/", name));
  return ReadPattern(std::string(std::istreambuf_iterator<char>(file), {}), name).value();
}

// nullopt: the ranks do not fit, or need no more than one host.
std::optional<MappingProblem> MakeCase(const std::shared_ptr<const Snapshot>& snapshot,
                                       const std::shared_ptr<const Pattern>& pattern, uint32_t each,
                                       uint64_t allocation) {
  const Fabric& fabric = *snapshot->fabric;
  std::vector<EndpointIndex> hosts;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h)).subspan(0, 1)) {
      if (fabric.attached_switch(e).has_value()) hosts.push_back(e);
    }
  }
  Xoshiro random(allocation);
  for (auto i = static_cast<uint32_t>(hosts.size()); i > 1; --i) {
    std::swap(hosts[i - 1], hosts[random.Below(i)]);
  }
  const uint32_t wanted = (pattern->rank_count() + each - 1) / each;
  if (wanted > hosts.size() || wanted < 2) return std::nullopt;
  if (allocation > 0) hosts.resize(wanted);
  MappingProblem problem;
  problem.pattern = pattern;
  problem.snapshot = snapshot;
  problem.places = Places::OfEndpoints(fabric, hosts, each).value();
  problem.distances = PlaceDistances::RouteLengths(*problem.places, *snapshot->routes).value();
  problem.objective = {.congestion = 1};
  return problem;
}

struct Answer {
  double congestion = 0, seconds = 0;
  std::string note;
};

struct Budget {
  double seconds = 1;
  uint32_t threads = 2;
  bool by_processor = false;
};

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Whether it is spent, from now on. By the processor: what this thread has had alone, or all
// together, as on a machine that has a processor for each.
SearchControl::Stopped Spent(const Budget& budget) {
  if (!budget.by_processor) {
    return [end = WallSeconds() + budget.seconds] { return WallSeconds() > end; };
  }
  return [main = std::this_thread::get_id(), own_end = ThreadSeconds() + budget.seconds,
          end = ProcessorSeconds() + budget.seconds * budget.threads] {
    return (std::this_thread::get_id() == main && ThreadSeconds() > own_end) ||
           ProcessorSeconds() > end;
  };
}

// Seconds until then, for methods that plan their time.
SearchControl::Remaining Left(const Budget& budget) {
  if (!budget.by_processor) {
    return [end = WallSeconds() + budget.seconds] { return end - WallSeconds(); };
  }
  return [end = ProcessorSeconds() + budget.seconds * budget.threads, threads = budget.threads] {
    return (end - ProcessorSeconds()) / threads;
  };
}

// What a method makes of a case; nullopt: it declines.
std::optional<Answer> Solve(const MappingAlgorithm& method, const MappingProblem& problem,
                            const Budget& budget) {
  AlgorithmOptions options;
  options.threads = budget.threads;
  for (const AlgorithmParameter& parameter : method.parameters) {
    if (method.name == "auto") break;  // goes on until the deadline
    // What only ends a search sooner than its budget.
    for (const char* name : {"outer-iterations", "rounds", "epochs", "steps"}) {
      if (parameter.name == name) options.parameters.emplace_back(name, parameter.greatest);
    }
  }
  const double begin = WallSeconds();
  const SearchControl control(Spent(budget), nullptr, Left(budget));
  const absl::StatusOr<Mapped> mapped = RunAlgorithm(method, problem, {}, options, control);
  if (!mapped.ok()) return std::nullopt;
  return Answer{*Measure(problem, mapped->mapping)->max_congestion, WallSeconds() - begin,
                mapped->note};
}

struct Tally {
  uint32_t cases = 0, above = 0, equal = 0, proven = 0;
  double log_ratio = 0;  // auto over the best other
};

void Compare(const std::string& name, const MappingProblem& problem, const Arguments& arguments,
             const Budget& budget, Tally& tally) {
  const bool verbose = arguments.Number("verbose", 0) != 0;
  const std::vector<std::string> wanted = arguments.List("methods", "");
  const CongestionBound bound = FindCongestionBound(problem);
  std::optional<Answer> ours, best;
  std::string best_name = "-";
  for (const MappingAlgorithm* method : MappingAlgorithms()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), method->name) == wanted.end()) {
      continue;
    }
    const std::optional<Answer> answer = Solve(*method, problem, budget);
    if (!answer) continue;
    if (verbose) {
      std::printf("    %-20s %.9g  %.3f s  %s\n", std::string(method->name).c_str(),
                  answer->congestion, answer->seconds, answer->note.c_str());
    }
    if (method->name == "auto") {
      ours = answer;
    } else if (!best || answer->congestion < best->congestion * (1 - kEqual)) {
      best = answer;
      best_name = std::string(method->name);
    }
  }
  ++tally.cases;
  const double value = ours ? ours->congestion : 0, other = best ? best->congestion : value;
  const bool proven = value <= bound.value * (1 + kEqual) ||
                      (ours && (ours->note.find("optimum") != std::string::npos ||
                                ours->note.find("proven:") != std::string::npos));
  const char* verdict = proven ? "proven" : "";
  if (value > other * (1 + kEqual)) {
    verdict = "ABOVE";
    ++tally.above;
  } else if (proven) {
    ++tally.proven;
  } else if (best && value >= other * (1 - kEqual)) {
    verdict = "equal";
    ++tally.equal;
  }
  if (other > 0 && value > 0) tally.log_ratio += std::log(value / other);
  std::printf("%-52s %12.6g %12.6g %12.6g  %-20s %6.2f  %s\n", name.c_str(), bound.value, value,
              other, best_name.c_str(), ours ? ours->seconds : 0.0, verdict);
  std::fflush(stdout);
}

int Main(const Arguments& arguments) {
  BenchmarkTarget target;
  target.fabric = absl::StrCat("file:", kData, "/plafrim/ibnetdiscover.txt");
  target.tables = absl::StrCat(kData, "/plafrim/ibroute.txt");
  if (const std::string model = arguments.Text("fabric", ""); !model.empty()) {
    target.fabric = model;
    target.tables.clear();
  }
  const std::shared_ptr<const Snapshot> snapshot = LoadSnapshot(target);
  const Budget budget = {arguments.Number("seconds", 1),
                         static_cast<uint32_t>(arguments.Number("threads", 2)),
                         arguments.Text("clock", "wall") == "processor"};
  std::printf("%-52s %12s %12s %12s  %-20s %6s\n", "pattern, ranks a host, allocation", "bound",
              "auto", "best other", "which", "s");
  Tally tally;
  for (const std::string& name : arguments.List("patterns", kPatterns)) {
    const std::shared_ptr<const Pattern> pattern = LoadPattern(name);
    for (const std::string& each_text : arguments.List("each", "1,2,4,8,9,16")) {
      for (const std::string& allocation_text : arguments.List("allocations", "0,1,2,3")) {
        const auto each = static_cast<uint32_t>(std::atoi(each_text.c_str()));
        const auto allocation = static_cast<uint64_t>(std::atoi(allocation_text.c_str()));
        const auto problem = MakeCase(snapshot, pattern, each, allocation);
        if (!problem) continue;
        Compare(absl::StrCat(name, " ", each, " ", allocation), *problem, arguments, budget, tally);
      }
    }
  }
  std::printf(
      "%u cases: %u at a proven bound, %u above another, %u equal to another and unproven; "
      "mean ratio to the best other %.4f\n",
      tally.cases, tally.proven, tally.above, tally.equal,
      std::exp(tally.log_ratio / std::max(1U, tally.cases)));
  return tally.above > 0 ? 1 : 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  coppice::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    if (parts.first.rfind("--", 0) != 0) {
      std::fprintf(stderr, "%s is no option; see the head of congestion_benchmark.cc\n", argv[i]);
      return 2;
    }
    arguments.values[parts.first.substr(2)] = parts.second;
  }
  return coppice::Main(arguments);
}
