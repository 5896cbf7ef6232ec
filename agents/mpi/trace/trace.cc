#include "agents/mpi/trace/trace.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <unordered_map>
#include <utility>

#include "agents/mpi/core/session.h"
#include "agents/mpi/trace/trace_output.h"

namespace coppice::mpi {

bool is_tracing = false;
constinit thread_local SendCounts* own_counts = nullptr;

namespace {

struct State {
  std::mutex mutex;
  std::vector<SendCounts*> threads;  // of those that go on
  PairTable ended;                   // sums of the others
  std::unordered_map<MPI_Request, std::vector<PairSum>> persistent;
  uint64_t to_other_worlds = 0;  // messages
  bool is_short = false;         // of memory: something is missing
};

State& TheState() {
  static State* const state = new State;  // outlives every static object of the program
  return *state;
}

// Where this thread's messages go instead of the trace.
__attribute__((tls_model("initial-exec"))) thread_local std::vector<PairSum>* diverted = nullptr;

// A thread's counts, for as long as it goes on.
class ThreadCounts final {
 public:
  ThreadCounts() = default;
  ~ThreadCounts() {
    if (counts_ == nullptr) return;
    State& state = TheState();
    const std::lock_guard lock(state.mutex);
    try {
      state.ended.Add(counts_->pairs());
    } catch (const std::exception&) {
      state.is_short = true;
    }
    std::erase(state.threads, counts_.get());
    own_counts = nullptr;
  }

  // Throws if there is no memory.
  SendCounts& Get() {
    if (counts_ == nullptr) {
      auto made = std::make_unique<SendCounts>();
      State& state = TheState();
      const std::lock_guard lock(state.mutex);
      state.threads.push_back(made.get());
      counts_ = std::move(made);
    }
    return *counts_;
  }

 private:
  std::unique_ptr<SendCounts> counts_;
};

thread_local ThreadCounts thread_counts;

// Not while a Recording lives: it holds the lock.
SendCounts* OwnCounts() {
  try {
    return &thread_counts.Get();
  } catch (const std::exception&) {  // no memory, which is no error of the program's
    TheState().is_short = true;
    return nullptr;
  }
}

bool IsPredefinedType(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED + 1;
  return PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
         combiner == MPI_COMBINER_NAMED;
}

}  // namespace

void Recording::Open(MPI_Comm comm) {
  counts_ = OwnCounts();
  if (counts_ == nullptr) return;
  if (Session::Get().has_threads()) lock_ = std::unique_lock(TheState().mutex);
  ranks_ = RanksOf(comm);
  if (ranks_ == nullptr) return;
  local_ = Sink(&ranks_->local, counts_);
  peers_ = Sink(&ranks_->peers(), counts_);
}

void Recording::Sink::Send(int to, uint64_t bytes, uint64_t messages) {
  const int world = ranks_->World(to);
  if (world == MPI_UNDEFINED) {
    if (to >= 0) TheState().to_other_worlds += messages;  // no MPI_PROC_NULL, no MPI_ROOT
    return;
  }
  try {
    if (diverted == nullptr) {
      counts_->pairs().Add(world, messages, bytes);
    } else {
      diverted->push_back({world, messages, bytes});
    }
  } catch (const std::exception&) {  // no memory, which is no error of the program's
    TheState().is_short = true;
  }
}

void Recording::Remember(int to, MPI_Comm comm, MPI_Datatype type, uint64_t gone) {
  const int world = ranks_->peers().World(to);
  if (world == MPI_UNDEFINED || type == MPI_DATATYPE_NULL || !IsPredefinedType(type)) return;
  try {
    counts_->Remember(type, BytesOf(1, type));
    counts_->Remember(to, comm, world, gone);
  } catch (const std::exception&) {  // no memory: the next one is found anew
    return;
  }
  own_counts = counts_;
}

void TraceAnySend(int count, MPI_Datatype type, int to, MPI_Comm comm) {
  const uint64_t gone = communicators_gone.load(std::memory_order_acquire);
  Recording recording(comm);
  if (!recording) return;
  recording.peers().Send(to, BytesOf(count, type), 1);
  if (diverted == nullptr) recording.Remember(to, comm, type, gone);
}

void TracePartitionedSend(int partitions, MPI_Count count, MPI_Datatype type, int to,
                          MPI_Comm comm) {
  Recording recording(comm);
  if (!recording) return;
  const uint64_t elements = static_cast<uint64_t>(partitions) * static_cast<uint64_t>(count);
  recording.peers().Send(to, elements * BytesOf(1, type), 1);
}

PersistentRecording::PersistentRecording() : own_(own_counts) {
  own_counts = nullptr;
  diverted = &sent_;
}

PersistentRecording::~PersistentRecording() {
  diverted = nullptr;
  own_counts = own_;
}

void PersistentRecording::Attach(MPI_Request request) {
  if (!IsTracing() || sent_.empty()) return;
  const std::lock_guard lock(TheState().mutex);
  TheState().persistent[request] = sent_;
}

void TraceStart(MPI_Request request) {
  if (!IsTracing()) return;
  SendCounts* const own = OwnCounts();
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  const auto found = state.persistent.find(request);
  if (own == nullptr || found == state.persistent.end()) return;
  try {
    for (const PairSum& sent : found->second) own->pairs().Add(sent.to, sent.messages, sent.bytes);
  } catch (const std::exception&) {
    state.is_short = true;
  }
}

void TraceRequestFreed(MPI_Request request) {
  if (!IsTracing()) return;
  const std::lock_guard lock(TheState().mutex);
  TheState().persistent.erase(request);
}

void StartTrace() {
  const Settings& settings = Session::Get().settings();
  is_tracing = !settings.trace_file.empty() || settings.put_pattern;
}

namespace {

// What all threads have sent.
std::vector<PairSum> AddedUp() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  try {
    PairTable all;
    all.Add(state.ended);
    for (SendCounts* const counts : state.threads) all.Add(counts->pairs());
    return all.Sorted();
  } catch (const std::exception&) {
    state.is_short = true;
    return {};
  }
}

}  // namespace

void EndTrace() {
  if (!is_tracing) return;
  is_tracing = false;
  const std::vector<PairSum> sent = AddedUp();
  const State& state = TheState();
  if (state.is_short)
    std::fprintf(stderr, "coppice: the trace lacks messages for want of memory\n");
  if (state.to_other_worlds > 0) {
    Session::Get().Say("messages of rank 0 to processes of other worlds, which no trace has: " +
                       std::to_string(state.to_other_worlds));
  }
  OutputTrace(sent);
}

}  // namespace coppice::mpi
