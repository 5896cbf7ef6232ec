// Dense quadratic assignment: what every method finds within a budget, how near that is to the best
// known, what one swap costs, and how long GraphHunter's methods take to a given accuracy with more
// workers (Baranov 2022, table and figures 4 and 5). Instances are
// NAME.dat of a folder, each with the best known cost in NAME.sln where there is one: by default
// those of tests/data; README.md says where larger ones are to be had.
//
//   coppice_qap_benchmark --data=FOLDER --instances=tai125e01,sko100a --methods=memetic
//   --seconds=60 --seeds=10 coppice_qap_benchmark --swap            ns of one swap cost, by
//   instance coppice_qap_benchmark --workers=1,2,4,8 --accuracy=5 --methods=parallel-annealing
//
// The budget is processor time divided by the threads, so that a machine shared with other work
// gives the same search as an idle one.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/dense/dense_qap.h"

namespace coppice {
namespace {

constexpr char kData[] = COPPICE_DATA_DIR "/qap";
constexpr char kInstances[] = "nested27,tai60a,nug30,bur26a,ste36a,chr25a,els19";

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
    return absl::StrSplit(Text(name, preset), ',');
  }
};

struct Instance {
  std::string name;
  MappingProblem problem;
  std::optional<double> best_known;
};

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<double> BestKnown(const std::string& name, const std::string& folder) {
  if (name == "tai100a") return 21044752;  // better than the solution that QAPLIB keeps
  const std::optional<std::string> text = ReadText(absl::StrCat(folder, "/", name, ".sln"));
  if (!text) return std::nullopt;
  std::istringstream numbers(*text);
  double size = 0, cost = 0;
  numbers >> size >> cost;
  return cost;
}

std::optional<Instance> Load(const std::string& name, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", name, ".dat");
  const std::optional<std::string> text = ReadText(path);
  if (!text) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    return std::nullopt;
  }
  const absl::StatusOr<QapInstance> read = ReadQaplib(*text, path);
  if (!read.ok()) {
    std::fprintf(stderr, "%s\n", std::string(read.status().message()).c_str());
    return std::nullopt;
  }
  Instance instance{name, {}, BestKnown(name, folder)};
  instance.problem.pattern = read->flows;
  instance.problem.distances = read->distances;
  instance.problem.places = Places::Numbered(read->flows->rank_count(), 1).value();
  instance.problem.objective = {.qap_cost = 1};
  return instance;
}

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Trial {
  double cost = 0, seconds = 0;     // of budget, when it ended
  double best_at = 0;               // when the best was found
  std::optional<double> target_at;  // when the target was reached
};

Trial RunTrial(const MappingAlgorithm& algorithm, const Instance& instance,
               const AlgorithmOptions& options, double seconds, double target) {
  const double begin = ProcessorSeconds();
  const auto elapsed = [&] { return (ProcessorSeconds() - begin) / options.threads; };
  std::mutex mutex;
  Trial trial;
  double best = std::numeric_limits<double>::infinity();
  // Asking for processor time takes as long as some swaps: one call in 16 does.
  std::atomic<uint32_t> calls = 0;
  std::atomic<bool> over = false;
  const SearchControl control(
      [&] {
        if (!over && calls++ % 16 == 0 && elapsed() >= seconds) over = true;
        return over.load();
      },
      [&](const Mapping& mapping) {
        const double cost =
            QapCost(*instance.problem.pattern, *instance.problem.distances, mapping);
        const std::lock_guard<std::mutex> lock(mutex);
        if (cost >= best) return;
        best = cost;
        trial.best_at = elapsed();
        if (cost > target) return;
        trial.target_at = elapsed();
        over = true;
      },
      [&] { return seconds - elapsed(); });
  const absl::StatusOr<Mapped> mapped =
      RunAlgorithm(algorithm, instance.problem, {}, options, control);
  if (!mapped.ok()) {
    std::fprintf(stderr, "%s\n", mapped.status().ToString().c_str());
    trial.cost = best;
  } else {
    trial.cost = QapCost(*instance.problem.pattern, *instance.problem.distances, mapped->mapping);
  }
  trial.seconds = elapsed();
  return trial;
}

std::string Accuracy(double cost, std::optional<double> best_known) {
  if (!best_known || *best_known == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", 100 * (cost - *best_known) / *best_known);
  return text;
}

AlgorithmOptions OptionsFor(const MappingAlgorithm& algorithm, const Arguments& arguments) {
  AlgorithmOptions options;
  options.threads = static_cast<uint32_t>(arguments.Number("threads", 2));
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    const std::string name(parameter.name);
    if (arguments.values.count(name) != 0) {
      options.parameters.emplace_back(parameter.name, arguments.Number(name, parameter.preset));
    } else if (name == "epochs") {
      options.parameters.emplace_back(parameter.name, parameter.greatest);
    }
  }
  return options;
}

void PrintQuality(const Instance& instance, const MappingAlgorithm& algorithm,
                  const Arguments& arguments) {
  const double seconds = arguments.Number("seconds", 60);
  const auto seeds = static_cast<uint64_t>(arguments.Number("seeds", 10));
  const bool stop_at_best = arguments.Number("stop-at-best", 1) != 0;
  AlgorithmOptions options = OptionsFor(algorithm, arguments);
  std::vector<double> costs, times;
  size_t reached = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    options.seed = seed;
    const double target = stop_at_best && instance.best_known ? *instance.best_known : -1;
    const Trial trial = RunTrial(algorithm, instance, options, seconds, target);
    costs.push_back(trial.cost);
    times.push_back(trial.best_at);
    reached += instance.best_known && trial.cost <= *instance.best_known;
  }
  std::sort(costs.begin(), costs.end());
  std::sort(times.begin(), times.end());
  const double median = costs[(costs.size() - 1) / 2];
  std::printf("| %s | %u | %s | %g | %zu | %.0f | %s | %.0f | %s | %zu | %.2f |\n",
              instance.name.c_str(), instance.problem.rank_count(),
              std::string(algorithm.name).c_str(), seconds, costs.size(), costs.front(),
              Accuracy(costs.front(), instance.best_known).c_str(), median,
              Accuracy(median, instance.best_known).c_str(), reached, times[times.size() / 2]);
  std::fflush(stdout);
}

void PrintSwapCost(const Instance& instance) {
  const absl::StatusOr<DenseQap> qap = DenseQap::Of(instance.problem);
  if (!qap.ok()) return;
  const uint32_t size = qap->size();
  Xoshiro random(1);
  const DenseOrder order = RandomDenseOrder(size, random);
  const auto measure = [&](const DenseKernels& kernels) {
    const DenseState state(*qap, order, kernels);
    double least = 1e9, sum = 0;
    for (int round = 0; round < 7; ++round) {
      constexpr uint32_t kSwaps = 200'000;
      const auto begin = std::chrono::steady_clock::now();
      for (uint32_t i = 0; i < kSwaps; ++i) {
        const uint32_t r = random.Below(size);
        sum += state.Delta(r, (r + 1 + random.Below(size - 1)) % size);
      }
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - begin;
      least = std::min(least, spent.count() / kSwaps);
    }
    return sum == 0.5 ? 0 : least;  // uses the sum
  };
  const double fast = measure(BestKernels());
  const char* const kinds[] = {"8 bits", "16 bits", "32 bits", "double"};
  std::printf("| %s | %u | %s%s | %.1f | %.1f |\n", instance.name.c_str(), size,
              kinds[static_cast<int>(qap->element())], qap->symmetric() ? "" : ", asymmetric", fast,
              measure(PortableKernels()));
}

// Time to the accuracy, by workers, one thread for each up to --threads.
void PrintWorkers(const Instance& instance, const MappingAlgorithm& algorithm,
                  const Arguments& arguments) {
  if (!instance.best_known) return;
  const double accuracy = arguments.Number("accuracy", 5);
  const auto seeds = static_cast<uint64_t>(arguments.Number("seeds", 3));
  for (const std::string& count : arguments.List("workers", "1,2,4,8")) {
    AlgorithmOptions options = OptionsFor(algorithm, arguments);
    std::erase_if(options.parameters, [](const auto& p) { return p.first == "workers"; });
    options.parameters.emplace_back("workers", std::atof(count.c_str()));
    std::vector<double> times, costs;
    for (options.seed = 1; options.seed <= seeds; ++options.seed) {
      const Trial trial = RunTrial(algorithm, instance, options, arguments.Number("seconds", 60),
                                   *instance.best_known * (1 + accuracy / 100));
      costs.push_back(trial.cost);
      // All workers at once, as the paper runs them: the work of one.
      if (trial.target_at) {
        times.push_back(*trial.target_at * options.threads / std::atof(count.c_str()));
      }
    }
    std::sort(times.begin(), times.end());
    std::sort(costs.begin(), costs.end());
    std::printf("| %s | %s | %s | %s | %zu of %zu | ", instance.name.c_str(),
                std::string(algorithm.name).c_str(), count.c_str(),
                Accuracy(costs[costs.size() / 2], instance.best_known).c_str(), times.size(),
                costs.size());
    if (times.empty()) {
      std::printf("- |\n");
    } else {
      std::printf("%.3f |\n", times[times.size() / 2]);
    }
    std::fflush(stdout);
  }
}

int Run(const Arguments& arguments) {
  const bool swap = arguments.values.count("swap") != 0;
  const bool workers = arguments.values.count("workers") != 0;
  if (swap) {
    std::printf("| instance | n | numbers | ns a swap | portable |\n|---|---|---|---|---|\n");
  } else if (workers) {
    std::printf(
        "| instance | method | workers | median A1 %% | reached | seconds of a worker |\n"
        "|---|---|---|---|---|---|\n");
  } else {
    std::printf(
        "| instance | n | method | seconds | seeds | best | A1 %% | median | A1 %% | "
        "best known | found after s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  }
  for (const std::string& name : arguments.List("instances", kInstances)) {
    const std::optional<Instance> instance = Load(name, arguments.Text("data", kData));
    if (!instance) return 1;
    if (swap) {
      PrintSwapCost(*instance);
      continue;
    }
    for (const std::string& method : arguments.List("methods", "memetic")) {
      const absl::StatusOr<const MappingAlgorithm*> algorithm = FindMappingAlgorithm(method);
      if (!algorithm.ok()) {
        std::fprintf(stderr, "%s\n", algorithm.status().ToString().c_str());
        return 1;
      }
      workers ? PrintWorkers(*instance, **algorithm, arguments)
              : PrintQuality(*instance, **algorithm, arguments);
    }
  }
  return 0;
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  coppice::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    if (text.rfind("--", 0) != 0) continue;
    arguments.values[text.substr(2, equals == std::string::npos ? equals : equals - 2)] =
        equals == std::string::npos ? "1" : text.substr(equals + 1);
  }
  return coppice::Run(arguments);
}
