#include "agents/mpi/trace/trace.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "agents/mpi/core/session.h"

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
thread_local std::vector<PairSum>* diverted = nullptr;

// Where there is no memory for it, which is no error of the program's, the trace lacks something.
template <class Work>
void Note(const Work& work) {
  const bool is_noted = HasMemoryFor([&] {
    work();
    return true;
  });
  if (!is_noted) TheState().is_short = true;
}

// A thread's counts, for as long as it goes on.
class ThreadCounts final {
 public:
  ThreadCounts() = default;
  ~ThreadCounts() {
    if (counts_ == nullptr) return;
    State& state = TheState();
    const std::lock_guard lock(state.mutex);
    Note([&] { state.ended.Add(counts_->pairs()); });
    std::erase(state.threads, counts_.get());
    own_counts = nullptr;
  }

  // Null: there is no memory. Not while a Recording lives: it holds the lock.
  SendCounts* Get() {
    if (counts_ == nullptr) {
      Note([this] {
        auto made = std::make_unique<SendCounts>();
        State& state = TheState();
        const std::lock_guard lock(state.mutex);
        state.threads.push_back(made.get());
        counts_ = std::move(made);
      });
    }
    return counts_.get();
  }

 private:
  std::unique_ptr<SendCounts> counts_;
};

thread_local ThreadCounts thread_counts;

}  // namespace

void Recording::Open(MPI_Comm comm) {
  counts_ = thread_counts.Get();
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
  Note([&] {
    if (diverted == nullptr) {
      counts_->pairs().Add(world, messages, bytes);
    } else {
      diverted->push_back({world, messages, bytes});
    }
  });
}

void Recording::Remember(int to, MPI_Comm comm, MPI_Datatype type, uint64_t gone) {
  const int world = ranks_->peers().World(to);
  if (world == MPI_UNDEFINED || type == MPI_DATATYPE_NULL || !IsPredefined(type)) return;
  HasMemoryFor([&] {  // or the next one is found anew
    counts_->Remember(type, BytesOf(1, type));
    counts_->Remember(to, comm, world, gone);
    own_counts = counts_;
    return true;
  });
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
  SendCounts* const own = thread_counts.Get();
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  const auto found = state.persistent.find(request);
  if (own == nullptr || found == state.persistent.end()) return;
  Note([&] {
    for (const PairSum& sent : found->second) own->pairs().Add(sent.to, sent.messages, sent.bytes);
  });
}

void TraceRequestFreed(MPI_Request request) {
  if (!IsTracing()) return;
  const std::lock_guard lock(TheState().mutex);
  TheState().persistent.erase(request);
}

void StartTrace() {
  const Settings& settings = Session::Get().settings();
  is_tracing = settings.has_trace_file || settings.put_pattern;
}

namespace {

// What all threads have sent.
std::vector<PairSum> AddedUp() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  std::vector<PairSum> sent;
  Note([&] {
    PairTable all;
    all.Add(state.ended);
    for (SendCounts* const counts : state.threads) all.Add(counts->pairs());
    sent = all.Sorted();
  });
  return sent;
}

// Writes a pattern as a trace file, whose format daemon/mapping/input/pattern_file.h defines. The
// file takes the place of an older one only when it is whole and on the disk.
class TraceFileWriter final {
 public:
  TraceFileWriter(const std::string& path, std::string application, int ranks)
      : path_(path), partial_path_(path + "." + std::to_string(getpid()) + ".partial") {
    file_ = std::fopen(partial_path_.c_str(), "we");
    if (file_ == nullptr) {
      Fail("cannot be created");
      return;
    }
    std::ranges::replace_if(
        application, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '_');
    std::fprintf(file_, "coppice-trace 1\napplication %s\nranks %d\n", application.c_str(), ranks);
  }
  ~TraceFileWriter() {  // what is not finished is removed
    if (file_ == nullptr) return;
    std::fclose(file_);
    unlink(partial_path_.c_str());
  }
  TraceFileWriter(const TraceFileWriter&) = delete;
  TraceFileWriter& operator=(const TraceFileWriter&) = delete;

  // What `sender` sends, by receiver; each sender once, in ascending order. Nothing: no row.
  void Row(int sender, const std::vector<PairSum>& pairs) {
    if (file_ == nullptr || pairs.empty()) return;
    std::fprintf(file_, "%d", sender);
    for (const PairSum& pair : pairs) {
      std::fprintf(file_, " %" PRId64 " %" PRIu64 " %" PRIu64, pair.to, pair.messages, pair.bytes);
    }
    std::fputc('\n', file_);
    pairs_ += pairs.size();
  }

  // Says on stderr why there is no file, if there is none.
  void Finish() {
    if (file_ == nullptr) return;
    std::fprintf(file_, "end %" PRIu64 "\n", pairs_);
    if (std::fflush(file_) != 0 || std::ferror(file_) || fsync(fileno(file_)) != 0) {
      return Fail("cannot be written");
    }
    std::fclose(std::exchange(file_, nullptr));
    if (std::rename(partial_path_.c_str(), path_.c_str()) == 0) return;
    Fail("cannot take its name");
    unlink(partial_path_.c_str());
  }

 private:
  void Fail(const char* what) const {
    std::fprintf(
        stderr,
        "coppice: trace file %s %s: %s; set COPPICE_TRACE to a file that rank 0 may write\n",
        path_.c_str(), what, std::strerror(errno));
  }

  const std::string path_, partial_path_;
  std::FILE* file_ = nullptr;
  uint64_t pairs_ = 0;
};

constexpr int kRoot = 0, kTraceTag = 0;
constexpr int kAtOnce = 16;        // ranks that are told to send ahead of the one that is heard
constexpr size_t kPieceOf = 2048;  // pairs

// Calls transfer(first pair, bytes) for each piece of them.
template <class Transfer>
void InPieces(size_t pairs, const Transfer& transfer) {
  for (size_t begin = 0; begin < pairs; begin += kPieceOf) {
    transfer(begin, static_cast<int>(std::min(kPieceOf, pairs - begin) * sizeof(PairSum)));
  }
}

void SendPairs(const std::vector<PairSum>& pairs, MPI_Comm comm) {
  PMPI_Recv(nullptr, 0, MPI_BYTE, kRoot, kTraceTag, comm, MPI_STATUS_IGNORE);
  const uint64_t count = pairs.size();
  PMPI_Send(&count, 1, MPI_UINT64_T, kRoot, kTraceTag, comm);
  InPieces(count, [&](size_t begin, int bytes) {
    PMPI_Send(&pairs[begin], bytes, MPI_BYTE, kRoot, kTraceTag, comm);
  });
}

std::vector<PairSum> ReceivePairs(int from, MPI_Comm comm) {
  uint64_t count = 0;
  PMPI_Recv(&count, 1, MPI_UINT64_T, from, kTraceTag, comm, MPI_STATUS_IGNORE);
  std::vector<PairSum> pairs(count);
  InPieces(count, [&](size_t begin, int bytes) {
    PMPI_Recv(&pairs[begin], bytes, MPI_BYTE, from, kTraceTag, comm, MPI_STATUS_IGNORE);
  });
  return pairs;
}

// What tells this world from the one that it was spawned by; empty: it was not spawned. At the
// root.
std::string SpawnedSuffix(const Session& session) {
  if (!session.is_spawned()) return "";
  char node[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  PMPI_Get_processor_name(node, &length);
  return ".spawned." + std::string(node) + "." + std::to_string(getpid());
}

// All pairs of the world as libcoppice wants them.
class PatternToPut {
 public:
  void Row(int sender, const std::vector<PairSum>& pairs) {
    for (const PairSum& pair : pairs) {
      from_.push_back(static_cast<uint32_t>(sender));
      to_.push_back(static_cast<uint32_t>(pair.to));
      bytes_.push_back(static_cast<double>(pair.bytes));
      messages_.push_back(static_cast<double>(pair.messages));
    }
  }

  void Put(Session& session, const std::string& name) {
    coppice_pattern pattern = {};
    pattern.size = sizeof(pattern);
    pattern.name = name.c_str();
    pattern.rank_count = static_cast<uint32_t>(session.world_size());
    pattern.pair_count = from_.size();
    pattern.from = from_.data();
    pattern.to = to_.data();
    pattern.bytes = bytes_.data();
    pattern.messages = messages_.data();
    const Session::Answer answer =
        session.Ask([&](coppice_client* client) { return coppice_pattern_put(client, &pattern); });
    if (answer.status != COPPICE_OK) {
      std::fprintf(stderr, "coppice: the pattern of %s is not kept: %s\n", name.c_str(),
                   answer.why_not.c_str());
    } else {
      session.Say("the pattern of " + name + " is kept");
    }
  }

 private:
  std::vector<uint32_t> from_, to_;
  std::vector<double> bytes_, messages_;
};

void GatherPairs(const std::vector<PairSum>& own, MPI_Comm comm, Session& session) {
  const Settings& settings = session.settings();
  std::optional<TraceFileWriter> file;
  const std::string suffix = SpawnedSuffix(session);
  if (settings.has_trace_file) {
    file.emplace(settings.trace_file + suffix, session.Application(), session.world_size());
  }
  PatternToPut put;
  const auto row = [&](int sender, const std::vector<PairSum>& pairs) {
    if (file) file->Row(sender, pairs);
    if (settings.put_pattern) put.Row(sender, pairs);
  };
  row(kRoot, own);
  int told = 1;
  for (int rank = 1; rank < session.world_size(); ++rank) {
    for (; told < session.world_size() && told < rank + kAtOnce; ++told) {
      PMPI_Send(nullptr, 0, MPI_BYTE, told, kTraceTag, comm);
    }
    row(rank, ReceivePairs(rank, comm));
  }
  if (file) file->Finish();
  if (settings.put_pattern) {
    put.Put(session, session.Application() + (suffix.empty() ? "" : ".spawned"));
  }
}

// Collective over the world: gathers what each rank sent at rank 0, which writes it to the
// session's trace file, puts it at the daemon, or both. Ranks are heard one after the other in
// pieces of some 50 kB, so that rank 0 holds no more than a rank's pairs for a file; for the daemon
// it holds all. A world that was spawned has names of its own, so that it does not write over its
// parents'. What goes wrong is said on stderr and fails nothing.
void OutputTrace(const std::vector<PairSum>& own) {
  Session& session = Session::Get();
  MPI_Comm comm = OwnCommunicator(MPI_COMM_WORLD);
  if (comm == MPI_COMM_NULL) {
    if (session.world_rank() == kRoot) {
      std::fprintf(stderr, "coppice: no trace: the MPI library has no communicator to gather it\n");
    }
    return;
  }
  if (session.world_rank() == kRoot) {
    GatherPairs(own, comm, session);
  } else {
    SendPairs(own, comm);
  }
  PMPI_Comm_free(&comm);
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
