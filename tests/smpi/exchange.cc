#include "tests/smpi/exchange.h"

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace {

constexpr int kTag = 1;
constexpr double kHead = 1e-3;  // seconds; far more than thousands of ranks take to agree

int MostBytes(const std::vector<Message>& messages) {
  int most = 0;
  for (const Message& message : messages) most = std::max(most, message.bytes);
  return most;
}

// Returns on all ranks at the same moment, and that; after a barrier they would leave it one by
// one.
double StartTogether() {
  const double now = MPI_Wtime();
  double start = 0;
  MPI_Allreduce(&now, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  start += kHead;
  const timespec wait = {0, static_cast<long>((start - MPI_Wtime()) * 1e9)};
  nanosleep(&wait, nullptr);
  return start;
}

// Triples (sender, receiver, bytes) of all ranks on rank 0, in order of senders.
std::vector<int> GatherTriples(const std::vector<Message>& sent) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> mine;
  for (const Message& message : sent) {
    mine.insert(mine.end(), {rank, message.peer, message.bytes});
  }
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(size), starts(size);
  MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (int r = 0; r < size; ++r) {
    starts[r] = total;
    total += counts[r];
  }
  std::vector<int> all(total);
  MPI_Gatherv(mine.data(), count, MPI_INT, all.data(), counts.data(), starts.data(), MPI_INT, 0,
              MPI_COMM_WORLD);
  return all;
}

}  // namespace

void TimeRounds(const std::vector<Message>& sent, const std::vector<Message>& received,
                int rounds) {
  // Contents do not matter: all messages share one buffer each way.
  std::vector<char> out(MostBytes(sent)), in(MostBytes(received));
  std::vector<MPI_Request> requests(sent.size() + received.size());
  const double start = StartTogether();
  for (int round = 0; round < rounds; ++round) {
    MPI_Request* request = requests.data();
    for (const Message& message : received) {
      MPI_Irecv(in.data(), message.bytes, MPI_CHAR, message.peer, kTag, MPI_COMM_WORLD, request++);
    }
    for (const Message& message : sent) {
      MPI_Isend(out.data(), message.bytes, MPI_CHAR, message.peer, kTag, MPI_COMM_WORLD, request++);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  const double mine = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("seconds %.9e\n", slowest / rounds);
}

void WritePattern(const std::string& path, const std::vector<Message>& sent) {
  const std::vector<int> triples = GatherTriples(sent);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != 0) return;
  std::ofstream file(path);
  file << "%%MatrixMarket matrix coordinate integer general\n"
       << size << ' ' << size << ' ' << triples.size() / 3 << '\n';
  for (size_t i = 0; i < triples.size(); i += 3) {
    file << triples[i] + 1 << ' ' << triples[i + 1] + 1 << ' ' << triples[i + 2] << '\n';
  }
  file.close();
  if (!file) Refuse(path + ": cannot be written");
}

void Refuse(const std::string& message) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stderr, "%s\n", message.c_str());
  exit(2);  // SMPI's own, of the rank
}
