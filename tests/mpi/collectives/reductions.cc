// Reduce and Allreduce with predefined operations.
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"
#include "tests/mpi/collectives/typed_data.h"

namespace coppice::conformance {
namespace {

constexpr char kUntouchedByte = 0x5a;

struct Case {
  const Shape& shape;
  const NamedType& type;
  MPI_Op op;
  int count;
  const std::vector<int>& roots;

  std::string Text(const std::string& call) const {
    return call + " " + NameOf(op) + " " + type.name + " x" + std::to_string(count) + " on " +
           shape.name;
  }
  bool NeedsTree() const { return count > 0 && shape.size > 1; }
  // Somewhere, also where there is nothing: MPIX_Reduce_init refuses two null pointers.
  std::vector<char> Empty() const {
    std::vector<char> empty;
    empty.reserve(static_cast<size_t>(count) * type.extent + 1);
    empty.resize(static_cast<size_t>(count) * type.extent, kUntouchedByte);
    return empty;
  }
};

// In place and not, with one native result.
void CompareAllreduce(const Case& c, Report* report) {
  const std::vector<char> own = Fill(c.type, c.op, c.count, c.shape.rank, c.count);
  std::vector<char> native = c.Empty();
  NativeAllreduce(own.data(), native.data(), c.count, c.type.type, c.op, c.shape.comm);
  for (const Form form : Forms()) {
    for (const bool in_place : {false, true}) {
      std::vector<char> ours = in_place ? own : c.Empty();
      const std::string what = c.Text(NameOf(form, in_place ? "Allreduce in place" : "Allreduce"));
      const uint64_t before = report->AlongTrees();
      const int error = AllreduceBy(form, in_place ? MPI_IN_PLACE : own.data(), ours.data(),
                                    c.count, c.type.type, c.op, c.shape.comm);
      ExpectTree(form, before, c.NeedsTree(), what, report);
      report->Expect(error == MPI_SUCCESS && AreEqual(c.type, native, ours), what);
    }
  }
}

// Not in place and, where it may be, in place.
void CompareReduce(const Case& c, const std::vector<char>& own, const std::vector<char>& native,
                   int root, Form form, Report* report) {
  const bool is_root = c.shape.rank == root;
  for (const bool in_place : {false, true}) {
    if (in_place && !MayReduceInPlace(c.count, root, true, *report)) continue;
    std::vector<char> ours = in_place && is_root ? own : c.Empty();
    const std::string what = c.Text(NameOf(form, in_place ? "Reduce in place to " : "Reduce to ") +
                                    std::to_string(root));
    const void* const send = in_place && is_root ? MPI_IN_PLACE : own.data();
    // MPICH 4.0 touches it where it is not significant.
    const bool may_be_null = !is_root && c.NeedsTree() && report->options().expects_trees;
    const uint64_t before = report->AlongTrees();
    const int error = ReduceBy(form, send, may_be_null ? nullptr : ours.data(), c.count,
                               c.type.type, c.op, root, c.shape.comm);
    ExpectTree(form, before, c.NeedsTree(), what, report);
    report->Expect(error == MPI_SUCCESS, what);
    if (is_root) report->Expect(AreEqual(c.type, native, ours), what);
  }
}

// Calls compare(case) for every predefined operation on every type that it is defined for.
template <typename Compare>
void ForEachCase(const Shape& shape, const Report& report, const Compare& compare) {
  constexpr int kLong = 30011;  // more than one segment of the longest types
  const Extent extent = report.options().extent;
  int number = 0;
  for (const NamedType& type : NamedTypes()) {
    const bool is_sample =
        type.type == MPI_INT || type.type == MPI_DOUBLE || type.type == MPI_LONG_DOUBLE_INT;
    if (extent == Extent::kSample && !is_sample && shape.name != "shuffled") continue;
    for (const MPI_Op op : type.ops) {
      Trials trials = {{0, 5, 1, kLong}, Roots(shape, report)};
      if (extent == Extent::kInTurns) trials = InTurns(trials.counts, shape, number++);
      const bool is_one = op == type.ops.front() && is_sample;
      if (extent == Extent::kSample) trials.counts = {0, 5};
      if (extent != Extent::kWhole && is_one) trials.counts.push_back(kLong);
      for (const int count : trials.counts) compare(Case{shape, type, op, count, trials.roots});
    }
  }
}

// The result of Allreduce at every rank and of Reduce to every root, bit by bit, and how far the
// native one is.
void CompareSums(const Shape& shape, int count, Report* report) {
  std::vector<double> own(count);
  std::vector<double> native(count);
  std::vector<double> greatest(count);
  std::vector<double> first(count);
  for (int i = 0; i < count; ++i) {
    own[i] = std::sin(1.0 + i * 0.7 + shape.rank * 13.0) * std::exp2((shape.rank * 5 + i) % 40);
    greatest[i] = std::fabs(own[i]);
  }
  NativeAllreduce(own.data(), native.data(), count, MPI_DOUBLE, MPI_SUM, shape.comm);
  PMPI_Allreduce(MPI_IN_PLACE, greatest.data(), count, MPI_DOUBLE, MPI_SUM, shape.comm);
  MPI_Allreduce(own.data(), first.data(), count, MPI_DOUBLE, MPI_SUM, shape.comm);
  const std::string what = "rounding of " + std::to_string(count) + " sums on " + shape.name;
  for (int i = 0; i < count; ++i) {
    // Each of size - 1 additions rounds by half a unit in the last place of at most this sum.
    const double bound = 2 * shape.size * std::numeric_limits<double>::epsilon() / 2 * greatest[i];
    report->Expect(std::fabs(first[i] - native[i]) <= bound, what);
  }
  const size_t bytes = sizeof(double) * own.size();
  if (report->options().expects_trees) {
    std::vector<double> of_zero = first;
    PMPI_Bcast(of_zero.data(), count, MPI_DOUBLE, 0, shape.comm);
    report->Expect(std::memcmp(of_zero.data(), first.data(), bytes) == 0, "everywhere " + what);
  }
  for (const int root : Roots(shape, *report)) {
    std::vector<double> again(count);
    MPI_Reduce(own.data(), again.data(), count, MPI_DOUBLE, MPI_SUM, root, shape.comm);
    if (shape.rank == root && report->options().expects_trees && !report->options().exchanges) {
      report->Expect(std::memcmp(again.data(), first.data(), bytes) == 0, "equal " + what);
    }
    for (const Form form : Forms()) {
      if (form != Form::kBlocking && !AreNonblockingOnesAlongTrees(*report)) continue;
      AllreduceBy(form, own.data(), again.data(), count, MPI_DOUBLE, MPI_SUM, shape.comm);
      if (!report->options().expects_trees) continue;
      report->Expect(std::memcmp(again.data(), first.data(), bytes) == 0, "again equal " + what);
    }
  }
}

}  // namespace

std::vector<int> Roots(const Shape& shape, const Report& report) {
  std::set<int> roots = {shape.size / 3, shape.size - 1};
  if (report.options().extent == Extent::kWhole) {
    for (int root = 0; root < shape.size; ++root) roots.insert(root);
  }
  return {roots.begin(), roots.end()};
}

Trials InTurns(const std::vector<int>& counts, const Shape& shape, int number) {
  const size_t turn = static_cast<size_t>(number) + static_cast<size_t>(shape.number);
  return {{counts[turn % counts.size()]}, {static_cast<int>(turn / counts.size()) % shape.size}};
}

bool MayReduceInPlace(int count, int root, bool needs_tree, const Report& report) {
  constexpr int kShort = 100;
  return root == 0 || count <= kShort || (needs_tree && report.options().expects_trees);
}

void CompareReduce(const Shape& shape, Report* report) {
  ForEachCase(shape, *report, [report](const Case& c) {
    const std::vector<char> own = Fill(c.type, c.op, c.count, c.shape.rank, c.count + 1);
    for (const int root : c.roots) {
      std::vector<char> native = c.Empty();
      NativeReduce(own.data(), native.data(), c.count, c.type.type, c.op, root, c.shape.comm);
      for (const Form form : Forms()) CompareReduce(c, own, native, root, form, report);
    }
  });
}

void CompareAllreduce(const Shape& shape, Report* report) {
  ForEachCase(shape, *report, [report](const Case& c) { CompareAllreduce(c, report); });
}

void CompareRounding(const Shape& shape, Report* report) {
  for (const int count : {1, 100, 20000}) CompareSums(shape, count, report);
}

}  // namespace coppice::conformance
