// Messages like a thread's last ones are counted without a look at their communicator, also where
// many communicators take turns. No MPI is started: handles are looked at as they are.
#include "agents/mpi/trace/send_counts.h"

#include <gtest/gtest.h>

#include <cstring>

namespace coppice::mpi {

std::atomic<uint64_t> communicators_gone = 0;

namespace {

// Handles as MPICH numbers them, and as Open MPI allocates them.
MPI_Comm Handle(int number) {
  const uint64_t value = sizeof(MPI_Comm) == sizeof(int)
                             ? 0x84000000U + static_cast<unsigned>(number)
                             : 0x55d0c0a01230U + static_cast<uint64_t>(number) * 0x6f0U;
  MPI_Comm comm = MPI_COMM_NULL;
  std::memcpy(&comm, &value, sizeof(comm));
  return comm;
}

TEST(SendCounts, SixteenCommunicatorsInTurns) {
  constexpr int kCommunicators = 16, kNeighbours = 6, kRounds = 10, kBytes = 8;
  SendCounts counts;
  counts.Remember(MPI_DOUBLE, kBytes);
  int found_anew = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCommunicators; ++i) {
      for (int to = 1; to <= kNeighbours; ++to) {
        if (counts.CountAgain(3, MPI_DOUBLE, to, Handle(i))) continue;
        ++found_anew;
        counts.Remember(to, Handle(i), 100 + to, communicators_gone);
        ASSERT_TRUE(counts.CountAgain(3, MPI_DOUBLE, to, Handle(i)));
      }
    }
  }
  EXPECT_EQ(found_anew, kCommunicators * kNeighbours);  // in the first round
  for (const PairSum& sum : counts.pairs().Sorted()) {
    EXPECT_EQ(sum.messages, static_cast<uint64_t>(kCommunicators * kRounds));
    EXPECT_EQ(sum.bytes, static_cast<uint64_t>(kCommunicators * kRounds * 3 * kBytes));
  }
}

TEST(SendCounts, NothingIsFoundAfterACommunicatorWent) {
  SendCounts counts;
  counts.Remember(MPI_INT, 4);
  counts.Remember(1, Handle(0), 1, communicators_gone);
  EXPECT_TRUE(counts.CountAgain(1, MPI_INT, 1, Handle(0)));
  EXPECT_FALSE(counts.CountAgain(1, MPI_DOUBLE, 1, Handle(0)));
  EXPECT_FALSE(counts.CountAgain(1, MPI_INT, 2, Handle(0)));
  EXPECT_FALSE(counts.CountAgain(1, MPI_INT, 1, Handle(1)));
  ++communicators_gone;
  EXPECT_FALSE(counts.CountAgain(1, MPI_INT, 1, Handle(0)));
}

}  // namespace
}  // namespace coppice::mpi
