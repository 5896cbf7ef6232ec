// Nonblocking collectives: several at once, waited for in whatever order, among blocking ones, and
// on communicators that are freed meanwhile. They go on while the program is in MPI for anything.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/collectives/cases.h"
#include "tests/mpi/collectives/forms.h"

namespace coppice::conformance {
namespace {

constexpr int kToken = 78;
// Of what is looked at again and again: longer than any test takes that goes well.
constexpr double kPatienceSeconds = 60;

enum class What { kSum, kMostInPlace, kBcast, kReduce, kBarrier };
constexpr What kWhats[] = {What::kSum, What::kMostInPlace, What::kBcast, What::kReduce,
                           What::kBarrier};

// One that is under way, its numbers, and what they are to become.
class Pending {
 public:
  Pending(const Shape& shape, What kind, int count, int number, MPI_Comm comm)
      : shape_(shape),
        kind_(kind),
        root_(number % shape.size),
        comm_(comm),
        own_(count),
        result_(count) {
    Renew(number);
  }

  // Other numbers, where they were.
  void Renew(int number) {
    number_ = number;
    for (size_t i = 0; i < own_.size(); ++i) own_[i] = Of(shape_.rank, static_cast<int>(i));
    const bool has_own =
        kind_ == What::kMostInPlace || (kind_ == What::kBcast && shape_.rank == root_);
    for (size_t i = 0; i < own_.size(); ++i) result_[i] = has_own ? own_[i] : -1;
  }

  void Start() { Call(Form::kNonblocking); }
  // For MPI_Start.
  void Persist() { Call(Form::kPersistent); }
  // By the blocking form.
  void CarryOut() { Call(Form::kBlocking); }

  bool IsRight() const {
    if (kind_ == What::kBarrier || (kind_ == What::kReduce && shape_.rank != root_)) return true;
    for (int i = 0; i < static_cast<int>(result_.size()); ++i) {
      if (result_[i] != Wanted(i)) return false;
    }
    return true;
  }

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  int64_t Of(int rank, int i) const { return rank * int64_t{1000} + i + number_; }
  int64_t Wanted(int i) const {
    const int64_t size = shape_.size;
    switch (kind_) {
      case What::kMostInPlace:
        return Of(shape_.size - 1, i);
      case What::kBcast:
        return Of(root_, i);
      default:
        return 1000 * size * (size - 1) / 2 + size * (i + number_);
    }
  }

  void Call(Form form) {
    const int count = static_cast<int>(own_.size());
    int64_t* const own = own_.data();
    int64_t* const result = result_.data();
    const bool is_blocking = form == Form::kBlocking;
    switch (kind_) {
      case What::kSum:
        is_blocking
            ? AllreduceBy(form, own, result, count, MPI_INT64_T, MPI_SUM, comm_)
            : StartAllreduce(form, own, result, count, MPI_INT64_T, MPI_SUM, comm_, &request);
        break;
      case What::kMostInPlace:
        is_blocking ? AllreduceBy(form, MPI_IN_PLACE, result, count, MPI_INT64_T, MPI_MAX, comm_)
                    : StartAllreduce(form, MPI_IN_PLACE, result, count, MPI_INT64_T, MPI_MAX, comm_,
                                     &request);
        break;
      case What::kBcast:
        is_blocking ? BcastBy(form, result, count, MPI_INT64_T, root_, comm_)
                    : StartBcast(form, result, count, MPI_INT64_T, root_, comm_, &request);
        break;
      case What::kReduce:
        is_blocking
            ? ReduceBy(form, own, result, count, MPI_INT64_T, MPI_SUM, root_, comm_)
            : StartReduce(form, own, result, count, MPI_INT64_T, MPI_SUM, root_, comm_, &request);
        break;
      case What::kBarrier:
        is_blocking ? BarrierBy(form, comm_) : StartBarrier(form, comm_, &request);
        break;
    }
  }

  const Shape& shape_;
  const What kind_;
  const int root_;
  int number_ = 0;
  const MPI_Comm comm_;
  std::vector<int64_t> own_, result_;
};

// In one segment, and in several.
constexpr int kCounts[] = {3, 9001};

// Of each kind and length, blocking: trees and buffers are there then.
void AskForTrees(const Shape& shape, MPI_Comm comm) {
  for (const int count : kCounts) {
    for (const What kind : kWhats) Pending(shape, kind, count, 0, comm).CarryOut();
  }
}

// Two of each kind and length, which are not started.
std::vector<Pending> Many(const Shape& shape, MPI_Comm comm) {
  std::vector<Pending> many;
  for (int number = 0; number < 2; ++number) {
    for (const What kind : kWhats) {
      for (const int count : kCounts) many.emplace_back(shape, kind, count, 3 * number, comm);
    }
  }
  return many;
}

void ExpectAll(const std::vector<Pending>& many, const std::string& what, Report* report) {
  for (const Pending& one : many) report->Expect(one.IsRight(), what);
}

// They went along trees, unless the communicator is of one rank.
void ExpectTrees(uint64_t before, size_t count, const Shape& shape, const std::string& what,
                 Report* report) {
  if (!AreNonblockingOnesAlongTrees(*report)) return;
  report->Expect(report->AlongTrees() == before + (shape.size > 1 ? count : 0),
                 what + ": some ran natively");
}

enum class Order { kBackwards, kAny, kTested };

void Await(Order order, std::vector<MPI_Request>* requests) {
  const int count = static_cast<int>(requests->size());
  if (order == Order::kBackwards) {
    for (int i = count; i-- > 0;) MPI_Wait(&(*requests)[i], MPI_STATUS_IGNORE);
    return;
  }
  std::vector<int> places(count);
  for (int left = count; left > 0;) {
    int done = 1;
    if (order == Order::kAny) {
      MPI_Waitany(count, requests->data(), places.data(), MPI_STATUS_IGNORE);
    } else {
      MPI_Testsome(count, requests->data(), &done, places.data(), MPI_STATUSES_IGNORE);
    }
    left -= done;
  }
}

void CompareOrders(const Shape& shape, Report* report) {
  for (const Order order : {Order::kBackwards, Order::kAny, Order::kTested}) {
    const std::string what = "several at once on " + shape.name;
    std::vector<Pending> many = Many(shape, shape.comm);
    const uint64_t before = report->AlongTrees();
    std::vector<MPI_Request> requests;
    for (Pending& one : many) {
      one.Start();
      requests.push_back(one.request);
    }
    ExpectTrees(before, many.size(), shape, what, report);
    Await(order, &requests);
    ExpectAll(many, what, report);
  }
}

// Every second one is a blocking one, and none of the others is waited for before the end.
void CompareMixed(const Shape& shape, Report* report) {
  const std::string what = "among blocking ones on " + shape.name;
  std::vector<Pending> many = Many(shape, shape.comm);
  const uint64_t before = report->AlongTrees();
  for (size_t i = 0; i < many.size(); ++i) i % 2 == 0 ? many[i].Start() : many[i].CarryOut();
  ExpectTrees(before, many.size(), shape, what, report);
  for (size_t i = many.size(); i-- > 0;) MPI_Wait(&many[i].request, MPI_STATUS_IGNORE);
  ExpectAll(many, what, report);
}

// A program that computes and looks now and then: it is complete before anybody waits for it.
void CompareOverlap(const Shape& shape, Report* report) {
  constexpr int kSlice = 2000;
  uint64_t computed = 1;
  for (const What kind : kWhats) {
    Pending one(shape, kind, kCounts[1], 1, shape.comm);
    one.Start();
    const double end = MPI_Wtime() + kPatienceSeconds;
    int is_complete = 0;
    while (is_complete == 0 && MPI_Wtime() < end) {
      for (int i = 0; i < kSlice; ++i) computed = computed * 6364136223846793005U + 1;
      MPI_Test(&one.request, &is_complete, MPI_STATUS_IGNORE);
    }
    report->Expect(is_complete != 0 && one.IsRight() && computed != 0,
                   "complete while it computes on " + shape.name);
    MPI_Wait(&one.request, MPI_STATUS_IGNORE);
  }
}

// One rank is in another call of MPI, until the others are through: its part goes on.
void CompareElsewhere(const Shape& shape, Report* report) {
  for (int busy = 0; busy < shape.size; ++busy) {
    for (const What kind : {What::kSum, What::kBarrier}) {
      Pending one(shape, kind, kCounts[busy % 2], busy, shape.comm);
      one.Start();
      if (shape.rank != busy) {
        MPI_Wait(&one.request, MPI_STATUS_IGNORE);
        MPI_Send(nullptr, 0, MPI_BYTE, busy, kToken, shape.comm);
      } else {
        for (int others = 1; others < shape.size; ++others) {
          MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, kToken, shape.comm, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&one.request, MPI_STATUS_IGNORE);
      }
      report->Expect(one.IsRight(), "while one rank is elsewhere on " + shape.name);
    }
  }
}

// On two communicators members do one thing first or the other: to start is to wait for nobody.
void CompareTwoCommunicators(const Shape& shape, Report* report) {
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(shape.comm, &other);
  AskForTrees(shape, other);
  const bool is_first = shape.rank % 2 == 0;
  for (const What kind : kWhats) {
    Pending started(shape, kind, kCounts[0], 2, shape.comm);
    Pending carried_out(shape, What::kSum, kCounts[0], 2, other);
    if (is_first) started.Start();
    carried_out.CarryOut();
    if (!is_first) started.Start();
    MPI_Wait(&started.request, MPI_STATUS_IGNORE);
    Pending here(shape, kind, kCounts[0], 4, shape.comm), there(shape, kind, kCounts[0], 5, other);
    (is_first ? here : there).Start();
    (is_first ? there : here).Start();
    for (Pending* const one : {&there, &here}) MPI_Wait(&one->request, MPI_STATUS_IGNORE);
    report->Expect(started.IsRight() && carried_out.IsRight() && here.IsRight() && there.IsRight(),
                   "on two communicators like " + shape.name);
  }
  MPI_Comm_free(&other);
}

// Open MPI makes duplicates by nonblocking collectives of its own on this communicator. It starts
// some of them when members look for messages, which they do before one of the program's or after
// it: natively these take each other's messages.
void CompareDuplicates(const Shape& shape, Report* report) {
  constexpr int kRounds = 10;
  const std::string what = "beside a duplicate of " + shape.name + " in the making";
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request making = MPI_REQUEST_NULL;
    MPI_Comm_idup(shape.comm, &made, &making);
    std::vector<Pending> many = Many(shape, shape.comm);
    const uint64_t before = report->AlongTrees();
    for (size_t i = 0; i < many.size(); ++i) {
      int is_made = 0;
      if ((static_cast<int>(i) + shape.rank) % 3 == 0)
        MPI_Test(&making, &is_made, MPI_STATUS_IGNORE);
      i % 5 == 4 ? many[i].CarryOut() : many[i].Start();
    }
    ExpectTrees(before, many.size(), shape, what, report);
    MPI_Wait(&making, MPI_STATUS_IGNORE);
    for (Pending& one : many) MPI_Wait(&one.request, MPI_STATUS_IGNORE);
    ExpectAll(many, what, report);
    MPI_Comm_free(&made);
  }
}

void AddVectors(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    auto* const from = static_cast<int64_t*>(in) + 3 * i;
    auto* const to = static_cast<int64_t*>(inout) + 3 * i;
    to[0] += from[0];
    to[2] += from[2];
  }
}

// Communicator, type and operation are freed while collectives on them are under way.
void CompareFreed(const Shape& shape, Report* report) {
  constexpr int kPairs = 700;
  const std::string what = "on one like " + shape.name + " that is freed";
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(shape.comm, &comm);
  AskForTrees(shape, comm);
  MPI_Datatype gap = MPI_DATATYPE_NULL, pair = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT64_T, &gap);
  MPI_Type_create_resized(gap, 0, 3 * sizeof(int64_t), &pair);
  MPI_Type_free(&gap);
  MPI_Type_commit(&pair);
  MPI_Op add = MPI_OP_NULL;
  MPI_Op_create(AddVectors, 1, &add);
  std::vector<int64_t> own(3 * kPairs, shape.rank), sums(own.size(), -1), told(own.size(), -1);
  MPI_Allreduce(own.data(), sums.data(), kPairs, pair, add, comm);
  std::fill(sums.begin(), sums.end(), -1);
  if (shape.rank == 0) std::fill(told.begin(), told.end(), 5);
  std::vector<Pending> many = Many(shape, comm);
  const uint64_t before = report->AlongTrees();
  for (Pending& one : many) one.Start();
  MPI_Request requests[2];
  MPI_Iallreduce(own.data(), sums.data(), kPairs, pair, add, comm, &requests[0]);
  MPI_Ibcast(told.data(), kPairs, pair, 0, comm, &requests[1]);
  ExpectTrees(before, many.size() + 2, shape, what, report);
  MPI_Type_free(&pair);
  MPI_Op_free(&add);
  MPI_Comm_free(&comm);
  // What is freed is settled before another one has a tree.
  MPI_Comm_dup(shape.comm, &comm);
  AskForTrees(shape, comm);
  MPI_Comm_free(&comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (Pending& one : many) MPI_Wait(&one.request, MPI_STATUS_IGNORE);
  ExpectAll(many, what, report);
  const int64_t sum = int64_t{shape.size} * (shape.size - 1) / 2;
  for (size_t i = 0; i < own.size(); ++i) {
    const bool is_gap = i % 3 == 1;
    report->Expect(sums[i] == (is_gap ? -1 : sum), what);
    report->Expect(told[i] == (is_gap && shape.rank != 0 ? -1 : 5), what);
  }
}

// Persistent ones, started again and again with other numbers, among blocking ones; at last after
// the communicator was freed.
void CompareRestarted(const Shape& shape, Report* report) {
  constexpr int kRounds = 4;
  const std::string what = "started again on one like " + shape.name;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(shape.comm, &comm);
  AskForTrees(shape, comm);
  std::vector<Pending> many = Many(shape, comm);
  for (Pending& one : many) one.Persist();
  std::vector<MPI_Request> requests;
  for (const Pending& one : many) requests.push_back(one.request);
  for (int round = 0; round < kRounds; ++round) {
    for (Pending& one : many) one.Renew(round);
    const uint64_t before = report->AlongTrees();
    const int half = static_cast<int>(requests.size()) / 2;
    MPI_Startall(half, requests.data());
    if (round + 1 == kRounds) MPI_Comm_free(&comm);
    for (size_t i = half; i < requests.size(); ++i) MPI_Start(&requests[i]);
    ExpectTrees(before, many.size(), shape, what, report);
    std::vector<MPI_Request> awaited = requests;
    round == 0 ? static_cast<void>(MPI_Waitall(static_cast<int>(awaited.size()), awaited.data(),
                                               MPI_STATUSES_IGNORE))
               : Await(round == 1 ? Order::kBackwards : Order::kTested, &awaited);
    report->Expect(awaited == requests, "requests stay, " + what);
    ExpectAll(many, what, report);
    if (comm != MPI_COMM_NULL) Pending(shape, What::kSum, kCounts[1], round, comm).CarryOut();
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

// All but the root have less room for a broadcast: they hear of it when they wait, by the handler
// of the world, to which Open MPI 4.1 hands all errors of nonblocking collectives.
void CompareShortages(const Shape& shape, Report* report) {
  constexpr int kNumbers = 100;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(shape.comm, &comm);
  MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  AskForTrees(shape, comm);
  int numbers[kNumbers] = {};
  const bool is_root = shape.rank == 0;
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_Ibcast(numbers, is_root ? kNumbers : kNumbers / 2, MPI_INT, 0, comm, &request);
  if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  int of_class = MPI_SUCCESS;
  MPI_Error_class(error, &of_class);
  report->Expect(
      of_class == (is_root ? MPI_SUCCESS : MPI_ERR_TRUNCATE) && request == MPI_REQUEST_NULL,
      "a broadcast that is too long on one like " + shape.name);
  MPI_Comm_free(&comm);
}

}  // namespace

// Of the world, which has trees from MPI_Init on (COPPICE_TREES=creation, COPPICE_TREES_AFTER=0).
void CompareNonblockingAlone(const Shape& shape, Report* report) {
  constexpr int kMost = 9001;
  for (const int count : {1, 700, kMost}) {
    for (const What kind : kWhats) {
      Pending one(shape, kind, count, 1, shape.comm);
      const uint64_t before = report->AlongTrees();
      one.Start();
      ExpectTrees(before, 1, shape, "without a blocking one before", report);
      MPI_Wait(&one.request, MPI_STATUS_IGNORE);
      report->Expect(one.IsRight(), "without a blocking one before");
    }
  }
}

void CompareNonblocking(const Shape& shape, Report* report) {
  if (Forms().size() == 1) return;
  AskForTrees(shape, shape.comm);
  CompareOrders(shape, report);
  CompareMixed(shape, report);
  CompareOverlap(shape, report);
  CompareElsewhere(shape, report);
  CompareTwoCommunicators(shape, report);
  if (!AreNonblockingOnesAlongTrees(*report)) return;
  CompareDuplicates(shape, report);
  CompareFreed(shape, report);
  CompareRestarted(shape, report);
  CompareShortages(shape, report);
}

}  // namespace coppice::conformance
