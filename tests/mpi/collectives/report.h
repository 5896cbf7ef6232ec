// Counts what was compared and what differed, on each rank; one line on stderr for each difference,
// and one on stdout at the end.
#ifndef COPPICE_TESTS_MPI_COLLECTIVES_REPORT_H_
#define COPPICE_TESTS_MPI_COLLECTIVES_REPORT_H_

#include <mpi.h>

#include <cstdint>
#include <string>

namespace coppice::conformance {

// Of the product of operations, types, sizes, roots and communicators.
enum class Extent {
  kSample,   // every operation on every type on one communicator, three types on the others
  kInTurns,  // every operation on every type on every communicator; sizes and roots take turns
  kWhole,
};

// What was asked for on the command line.
struct Options {
  Extent extent = Extent::kSample;
  bool expects_trees = false;      // a collective that ran natively is a failure
  bool exchanges = false;          // an Allreduce goes another way than a Reduce
  bool over_switches = false;      // trees are, where these can
  bool has_ordered_trees = false;  // all of them carry operations that do not commute, too
};

class Report final {
 public:
  explicit Report(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }

  // `what` names the case.
  void Expect(bool holds, const std::string& what);

  // Counts collectives that went along trees, in all forms. Around each call that is compared:
  uint64_t AlongTrees() const;
  // Along a tree it has gone if there is to be one; a single rank or nothing to send needs none.
  void ExpectTree(uint64_t before, bool needs_tree, const std::string& what);

  void Add(const Report& other);

  // Collective over the world: sums up and says. 0 if nothing differed.
  int Finish();

 private:
  Options options_;
  int64_t compared_ = 0;
  int64_t failed_ = 0;
};

}  // namespace coppice::conformance

#endif  // COPPICE_TESTS_MPI_COLLECTIVES_REPORT_H_
