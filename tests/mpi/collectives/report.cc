#include "tests/mpi/collectives/report.h"

#include <cstdio>

#include "tests/mpi/tree_counts.h"

namespace coppice::conformance {
namespace {

constexpr int kMaxLines = 20;

}  // namespace

void Report::Expect(bool holds, const std::string& what) {
  ++compared_;
  if (holds) return;
  if (++failed_ > kMaxLines) return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "rank %d: differs: %s\n", rank, what.c_str());
}

uint64_t Report::AlongTrees() const {
  static auto* const read = FindTreeCounts();
  uint64_t counts[mpi::kTreeCounts] = {};
  if (read != nullptr) read(counts, mpi::kTreeCounts);
#define COPPICE_SUM(NAME, FORTRAN, ...) +counts[mpi::kCount##NAME] + counts[mpi::kCountI##FORTRAN]
  return 0 COPPICE_TREE_COLLECTIVES(COPPICE_SUM);
#undef COPPICE_SUM
}

void Report::ExpectTree(uint64_t before, bool needs_tree, const std::string& what) {
  if (options_.expects_trees) {
    Expect(AlongTrees() == before + (needs_tree ? 1 : 0),
           what + (needs_tree ? ": ran natively" : ": there should be no tree"));
  }
}

void Report::Add(const Report& other) {
  compared_ += other.compared_;
  failed_ += other.failed_;
}

int Report::Finish() {
  int64_t own[2] = {compared_, failed_};
  int64_t all[2] = {0, 0};
  uint64_t along = AlongTrees();
  uint64_t all_along = 0;
  PMPI_Allreduce(own, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Allreduce(&along, &all_along, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::printf("compared %lld, differ %lld, along trees %llu\n", static_cast<long long>(all[0]),
                static_cast<long long>(all[1]), static_cast<unsigned long long>(all_along));
    std::fflush(stdout);
  }
  return all[1] == 0 ? 0 : 1;
}

}  // namespace coppice::conformance
