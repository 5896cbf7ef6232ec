#include "tests/benchmark/mapping/rivals.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

extern char** environ;

namespace coppice {
namespace {

// Scotch's own form: "0", vertices and arcs, base and flags, then degree-prefixed rows.
void WriteGraph(const Pattern& pattern, const std::string& path) {
  std::ofstream file(path);
  file << "0\n" << pattern.rank_count() << ' ' << 2 * pattern.pair_count() << "\n0 010\n";
  std::string line;
  for (uint32_t u = 0; u < pattern.rank_count(); ++u) {
    line = absl::StrCat(pattern.exchanges(u).size());
    for (const Exchange& x : pattern.exchanges(u)) {
      absl::StrAppend(&line, " ", std::max<int64_t>(1, std::llround(x.both())), " ", x.peer);
    }
    file << line << '\n';
  }
}

// Numbers places i..j-1 of `order` as the halves of domain `domain`.
void NumberDomains(const std::vector<uint32_t>& order, uint32_t begin, uint32_t end,
                   uint64_t domain, std::vector<uint64_t>& domains) {
  if (end - begin == 1) {
    domains[order[begin]] = domain;
    return;
  }
  const uint32_t middle = begin + (end - begin + 1) / 2;
  NumberDomains(order, begin, middle, 2 * domain, domains);
  NumberDomains(order, middle, end, 2 * domain + 1, domains);
}

void WriteArchitecture(const MappingProblem& problem, const std::string& path) {
  const auto sparse = MakeSparseProblem(problem).value();
  const uint32_t count = problem.places->count();
  std::vector<uint64_t> domains(count);
  NumberDomains(sparse->groups.order, 0, count, 1, domains);
  std::ofstream file(path);
  file << "deco 0\n" << count << ' ' << *std::max_element(domains.begin(), domains.end()) << '\n';
  for (uint32_t p = 0; p < count; ++p) {
    file << p << ' ' << problem.places->capacity(PlaceIndex(p)) << ' ' << domains[p] << '\n';
  }
  const PlaceDistances& d = *problem.distances;
  for (uint32_t a = 1; a < count; ++a) {
    std::string line;
    for (uint32_t b = 0; b < a; ++b) {
      const double mean = 0.5 * (d(PlaceIndex(a), PlaceIndex(b)) + d(PlaceIndex(b), PlaceIndex(a)));
      absl::StrAppend(&line, std::max<int64_t>(1, std::llround(mean)), " ");
    }
    file << line << '\n';
  }
}

// Runs it and waits. Processor seconds, or nullopt.
std::optional<double> RunProgram(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return std::nullopt;
  }
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint32_t Overfull(const Places& places, const Mapping& mapping) {
  std::vector<uint32_t> load(places.count(), 0);
  uint32_t overfull = 0;
  for (const PlaceIndex p : mapping) overfull += ++load[p.value()] > places.capacity(p) ? 1 : 0;
  return overfull;
}

}  // namespace

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::optional<RivalAnswer> RunScotch(const MappingProblem& problem, const std::string& tree,
                                     double imbalance) {
  std::string directory = "/tmp/coppice_mapping_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return std::nullopt;
  const std::string graph = directory + "/graph", target = directory + "/target",
                    result = directory + "/result";
  WriteGraph(*problem.pattern, graph);
  if (tree.empty()) {
    WriteArchitecture(problem, target);
  } else {
    std::ofstream(target) << tree;
  }
  const std::optional<double> seconds =
      RunProgram({"scotch_gmap", "-cq", absl::StrFormat("-b%g", imbalance), graph, target, result});
  std::optional<RivalAnswer> answer;
  std::ifstream file(result);
  size_t count = 0;
  if (seconds.has_value() && file >> count && count == problem.rank_count()) {
    answer.emplace();
    answer->seconds = *seconds;
    answer->mapping.resize(count);
    for (uint32_t rank = 0, place = 0; file >> rank >> place;) {
      answer->mapping[rank] = PlaceIndex(place);
    }
    answer->overfull = Overfull(*problem.places, answer->mapping);
  }
  for (const std::string& path : {graph, target, result}) unlink(path.c_str());
  rmdir(directory.c_str());
  return answer;
}

std::optional<RivalAnswer> RunMetis(const MappingProblem& problem) {
  const uint32_t places = problem.places->count();
  if (problem.rank_count() < 2 * places) return std::nullopt;
  const double begin = ProcessorSeconds();
  std::vector<uint32_t> sizes(places, problem.rank_count() / places);
  for (uint32_t p = 0; p < problem.rank_count() % places; ++p) ++sizes[p];
  const std::vector<uint32_t> parts =
      Partition(GraphOf(*problem.pattern), sizes, {1, PartitionMethod::kWays, 0.03}).value();
  std::vector<Pattern::Entry> entries;
  for (uint32_t u = 0; u < parts.size(); ++u) {
    for (const Exchange& x : problem.pattern->exchanges(u)) {
      entries.push_back({parts[u], parts[x.peer], x.out_bytes, 0});
    }
  }
  MappingProblem quotient = problem;
  quotient.pattern = Pattern::Make(places, std::move(entries)).value();
  SparseProblem one_each = *MakeSparseProblem(quotient).value();
  one_each.capacities.assign(places, 1);
  one_each.near = NearPlaces(one_each.groups, *one_each.distances, *quotient.places, nullptr);
  Seats seats(places);
  std::iota(seats.begin(), seats.end(), 0);
  SwapOptions options;
  options.near = 64;
  SwapUntilLocalOptimum(one_each, options, {}, seats);
  RivalAnswer answer;
  for (const uint32_t part : parts) answer.mapping.emplace_back(seats[part]);
  answer.seconds = ProcessorSeconds() - begin;
  answer.overfull = Overfull(*problem.places, answer.mapping);
  return answer;
}

}  // namespace coppice
