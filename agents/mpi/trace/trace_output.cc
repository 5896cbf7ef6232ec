#include "agents/mpi/trace/trace_output.h"

#include <errno.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/trace/pair_table.h"

namespace coppice::mpi {
namespace {

// Writes a pattern as a trace file, whose format daemon/mapping/input/pattern_file.h defines. The
// file takes the place of an older one only when it is whole and on the disk.

class TraceFileWriter final {
 public:
  TraceFileWriter(const std::string& path, const std::string& application, int ranks);
  ~TraceFileWriter();  // what is not finished is removed
  TraceFileWriter(const TraceFileWriter&) = delete;
  TraceFileWriter& operator=(const TraceFileWriter&) = delete;

  // What `sender` sends, by receiver; each sender once, in ascending order. Nothing: no row.
  void Row(int sender, const std::vector<PairSum>& pairs);
  // "": the file is there; else why it is not, with its name.
  std::string Finish();

 private:
  void Fail(const char* what);

  const std::string path_, partial_path_;
  std::FILE* file_ = nullptr;
  uint64_t pairs_ = 0;
  std::string error_;
};

// On one line.
std::string Printable(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return name;
}

TraceFileWriter::TraceFileWriter(const std::string& path, const std::string& application, int ranks)
    : path_(path), partial_path_(path + "." + std::to_string(getpid()) + ".partial") {
  file_ = std::fopen(partial_path_.c_str(), "we");
  if (file_ == nullptr) {
    Fail("cannot be created");
    return;
  }
  std::fprintf(file_, "coppice-trace 1\napplication %s\nranks %d\n", Printable(application).c_str(),
               ranks);
}

TraceFileWriter::~TraceFileWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(partial_path_.c_str());
}

void TraceFileWriter::Fail(const char* what) {
  if (error_.empty()) {
    error_ = "trace file " + path_ + " " + what + ": " + std::strerror(errno) +
             "; set COPPICE_TRACE to a file that rank 0 may write";
  }
}

void TraceFileWriter::Row(int sender, const std::vector<PairSum>& pairs) {
  if (file_ == nullptr || pairs.empty()) return;
  std::fprintf(file_, "%d", sender);
  for (const PairSum& pair : pairs) {
    std::fprintf(file_, " %" PRId32 " %" PRIu64 " %" PRIu64, pair.to, pair.messages, pair.bytes);
  }
  std::fputc('\n', file_);
  pairs_ += pairs.size();
}

std::string TraceFileWriter::Finish() {
  if (file_ == nullptr) return error_;
  std::fprintf(file_, "end %" PRIu64 "\n", pairs_);
  if (std::fflush(file_) != 0 || std::ferror(file_) || fsync(fileno(file_)) != 0) {
    Fail("cannot be written");
    return error_;
  }
  std::fclose(file_);
  file_ = nullptr;
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    Fail("cannot take its name");
    unlink(partial_path_.c_str());
  }
  return error_;
}

constexpr int kRoot = 0, kTraceTag = 0;
constexpr int kAtOnce = 16;        // ranks that are told to send ahead of the one that is heard
constexpr size_t kPieceOf = 2048;  // pairs
constexpr size_t kNumbers = 3;     // of a pair

void SendPairs(const std::vector<PairSum>& pairs, MPI_Comm comm) {
  PMPI_Recv(nullptr, 0, MPI_BYTE, kRoot, kTraceTag, comm, MPI_STATUS_IGNORE);
  const uint64_t count = pairs.size();
  PMPI_Send(&count, 1, MPI_UINT64_T, kRoot, kTraceTag, comm);
  std::vector<uint64_t> piece;
  for (size_t begin = 0; begin < pairs.size(); begin += kPieceOf) {
    const size_t end = std::min(pairs.size(), begin + kPieceOf);
    piece.clear();
    for (size_t i = begin; i < end; ++i) {
      piece.insert(piece.end(),
                   {static_cast<uint64_t>(pairs[i].to), pairs[i].messages, pairs[i].bytes});
    }
    PMPI_Send(piece.data(), static_cast<int>(piece.size()), MPI_UINT64_T, kRoot, kTraceTag, comm);
  }
}

std::vector<PairSum> ReceivePairs(int from, MPI_Comm comm) {
  uint64_t count = 0;
  PMPI_Recv(&count, 1, MPI_UINT64_T, from, kTraceTag, comm, MPI_STATUS_IGNORE);
  std::vector<PairSum> pairs(count);
  std::vector<uint64_t> piece(kPieceOf * kNumbers);
  for (size_t begin = 0; begin < count; begin += kPieceOf) {
    const size_t end = std::min<size_t>(count, begin + kPieceOf);
    PMPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_UINT64_T, from, kTraceTag, comm,
              MPI_STATUS_IGNORE);
    for (size_t i = begin; i < end; ++i) {
      const uint64_t* const numbers = &piece[(i - begin) * kNumbers];
      pairs[i] = {static_cast<int32_t>(numbers[0]), numbers[1], numbers[2]};
    }
  }
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
  if (!settings.trace_file.empty()) {
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
  if (file) {
    const std::string error = file->Finish();
    if (!error.empty()) std::fprintf(stderr, "coppice: %s\n", error.c_str());
  }
  if (settings.put_pattern) {
    put.Put(session, session.Application() + (suffix.empty() ? "" : ".spawned"));
  }
}

}  // namespace

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

}  // namespace coppice::mpi
