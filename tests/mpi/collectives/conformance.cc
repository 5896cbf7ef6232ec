// Compares the collectives that trees carry, as the preloaded library carries them out, with the
// MPI library's own, bit by bit: conformance [--full|--in-turns] [--expect-trees]
// [--exchanges] [--over-switches] [--ordered-trees] [--threads|--nonblocking] [--rounds N].
//
// --full, --in-turns: report.h's Extent; --expect-trees: a collective that should have gone along a
// tree and did not is a failure; --exchanges: COPPICE_TREES_WAY is exchange or forest;
// --nonblocking: nonblocking ones alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/mpi/collectives/cases.h"

namespace coppice::conformance {
namespace {

void CompareOn(const Shape& shape, Report* report) {
#define COPPICE_COMPARE(NAME, ...) Compare##NAME(shape, report);
  COPPICE_TREE_COLLECTIVES(COPPICE_COMPARE)
#undef COPPICE_COMPARE
  // A sample has these on two shapes only.
  const bool is_chief = shape.name == "shuffled" || shape.name == "row";
  if (report->options().extent == Extent::kSample && !is_chief) return;
  CompareErrors(shape, report);
  CompareRounding(shape, report);
  CompareUserOperations(shape, report);
  CompareReductionsAtAddresses(shape, report);
  CompareAmongOthers(shape, report);
  CompareNonblocking(shape, report);
}

Shape World() {
  Shape world = {"world", MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  return world;
}

int Main(int argc, char** argv) {
  Options options;
  bool has_threads = false, is_nonblocking = false;
  int rounds = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--full") == 0) options.extent = Extent::kWhole;
    if (std::strcmp(argv[i], "--in-turns") == 0) options.extent = Extent::kInTurns;
    if (std::strcmp(argv[i], "--expect-trees") == 0) options.expects_trees = true;
    if (std::strcmp(argv[i], "--exchanges") == 0) options.exchanges = true;
    if (std::strcmp(argv[i], "--over-switches") == 0) options.over_switches = true;
    if (std::strcmp(argv[i], "--ordered-trees") == 0) options.has_ordered_trees = true;
    if (std::strcmp(argv[i], "--threads") == 0) has_threads = true;
    if (std::strcmp(argv[i], "--nonblocking") == 0) is_nonblocking = true;
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) rounds = std::atoi(argv[++i]);
  }
  int provided = MPI_THREAD_SINGLE;
  if (has_threads) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  Report report(options);
  for (int round = 0; round < rounds; ++round) {
    if (has_threads) {
      report.Expect(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
      CompareThreads(&report);
      continue;
    }
    if (is_nonblocking) {
      CompareNonblockingAlone(World(), &report);
      continue;
    }
    std::vector<Shape> shapes = MakeShapes();
    for (const Shape& shape : shapes) {
      if (shape.comm != MPI_COMM_NULL) CompareOn(shape, &report);
      PMPI_Barrier(MPI_COMM_WORLD);
    }
    FreeShapes(&shapes);
    CompareIntercommunicator(&report);
  }
  const int status = report.Finish();
  MPI_Finalize();
  return status;
}

}  // namespace
}  // namespace coppice::conformance

int main(int argc, char** argv) { return coppice::conformance::Main(argc, argv); }
