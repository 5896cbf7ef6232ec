// The one interface of all mapping algorithms, and the table of them by name.
//
// A new algorithm is a function in algorithm/, declared in algorithms.h, and its entry in
// algorithm.cc. It is a function of values: problem, start, options with a seed; its only door to
// the world is SearchControl. Equal seeds give equal results for any number of threads, as long
// as it ends by itself and not by the clock; for those that span processes, equal seeds and equally
// many workers in all give equal results for any number of processes, too.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct AlgorithmOptions {
  uint64_t seed = 1;
  uint32_t threads = 1;
  // What only some algorithms know, by the names that their entries list.
  std::vector<std::pair<std::string, double>> parameters;
};

struct AlgorithmParameter {
  absl::string_view name;
  double preset;
  double least, greatest;
  absl::string_view meaning;
};

struct Mapped {
  Mapping mapping;
  std::string note;  // what was decided on the way, for whoever asks why; "" = nothing to say
};

class MethodOptions;

// The problem is checked, `start` admissible. FAILED_PRECONDITION, naming what is missing: the
// algorithm needs symmetric distances, places of equal size, ...; RESOURCE_EXHAUSTED: the problem
// is beyond its memory, with the limit. Stopped early, it returns the best so far.
using MappingRun = absl::StatusOr<Mapped>(const MappingProblem& problem, const Mapping& start,
                                          const MethodOptions& options,
                                          const SearchControl& control);

// What a search holds at its greatest beside what every one does, a few copies of the pattern and
// of the mapping: whoever runs several searches asks before.
enum class SearchMemory : uint8_t {
  kNothingElse,
  kLinks,         // bytes of channels, and tables of routes
  kDense,         // matrices of all slots
  kPopulations,   // these, and as many individuals as CheckPopulationMemory() allows
  kEigenvectors,  // of the ranks, as many as its option of that name says
  kPortfolio      // of several methods, by size and objective
};

struct MappingAlgorithm {
  absl::string_view name;
  absl::string_view source;  // paper and section, or what it is
  // True: improves `start`, never returns worse by the problem's objective (or by the measure that
  // the source minimises, which `source` then names). False: takes no notice of it.
  bool refines = false;
  std::vector<AlgorithmParameter> parameters;
  SearchMemory memory = {};  // in front of `run`, so that no row leaves it out
  MappingRun* run = nullptr;
  // Its workers may be spread over the processes of SearchControl::team(); every one of them then
  // returns the same mapping. False: it searches alone, whatever the team.
  bool spans_processes = false;
  absl::string_view needs_fabric = "";  // what for; "": it does without one

  // Without the checks of RunAlgorithm. FAILED_PRECONDITION: there is no fabric, and it needs one.
  absl::StatusOr<Mapped> Run(const MappingProblem& problem, const Mapping& start,
                             const AlgorithmOptions& options, const SearchControl& control) const;
};

// What a run is asked to do; parameters by the names of its algorithm's entry.
class MethodOptions final : public AlgorithmOptions {
 public:
  // The algorithm must outlive it.
  MethodOptions(const MappingAlgorithm& algorithm, const AlgorithmOptions& given)
      : AlgorithmOptions(given), algorithm_(algorithm) {}

  const MappingAlgorithm& algorithm() const { return algorithm_; }
  // The given value of a parameter, or its preset; as a count; as yes or no.
  double Of(absl::string_view name) const;
  uint32_t Count(absl::string_view name) const { return static_cast<uint32_t>(Of(name)); }
  bool Is(absl::string_view name) const { return Of(name) != 0; }
  // The value, or `otherwise` where it is 0.
  double Or(absl::string_view name, double otherwise) const {
    return Is(name) ? Of(name) : otherwise;
  }

 private:
  const MappingAlgorithm& algorithm_;
};

// All algorithms, in the order of the specification's table.
absl::Span<const MappingAlgorithm* const> MappingAlgorithms();

// INVALID_ARGUMENT lists the names.
absl::StatusOr<const MappingAlgorithm*> FindMappingAlgorithm(absl::string_view name);

// Null: it has none of that name.
const AlgorithmParameter* FindParameter(const MappingAlgorithm& algorithm, absl::string_view name);

// INVALID_ARGUMENT: a parameter that the algorithm does not have (lists those it has), or out of
// range (names it).
absl::Status CheckParameters(const MappingAlgorithm& algorithm, const AlgorithmOptions& options);

// Runs an algorithm whoever asks: checks problem and parameters first, starts from the present
// order if `start` is empty, and verifies what comes out (INTERNAL: mapping_metrics.h).
absl::StatusOr<Mapped> RunAlgorithm(const MappingAlgorithm& algorithm,
                                    const MappingProblem& problem, const Mapping& start,
                                    const AlgorithmOptions& options, const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_H_
