#include "agents/mpi/tree/tree_lines.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/segment_bytes.h"

namespace coppice::mpi {
namespace {

// How many sets of tags are looked at for each one that may come back, so that all of them are soon
// and none of the calls takes long.
constexpr size_t kLooks = 8;

struct Left {
  int tags;
  int leader;
  int members;
};

MPI_Comm lines = MPI_COMM_NULL;
int segment_bytes = 0;

std::mutex left_mutex;  // MPI is not called under it
std::vector<Left> left;

// Of the tags that this process hands out; MPI is called under it, but never waits for others.
std::mutex own_mutex;
int share = 0;  // sets of tags of each leader
int used = 0;   // of its share, since the beginning
std::vector<int> free_again;
std::vector<Left> leaving;  // `members`: those who have not said so yet
size_t next_look = 0;

int Share() {
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &is_there);
  constexpr int kLeastUpperBound = 32767;  // that every MPI has
  const int highest = is_there != 0 ? *static_cast<int*>(value) : kLeastUpperBound;
  return highest / kTagsOfTree / Session::Get().world_size();
}

// own_mutex is held. Whether all members of leaving[at] have left.
bool HaveAllLeft(size_t at) {
  Left& one = leaving[at];
  while (one.members > 0) {
    int is_there = 0;
    MPI_Status status = {};
    const int tag = one.tags + kLeftTag;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, tag, lines, &is_there, &status) != MPI_SUCCESS) return false;
    if (is_there == 0) return false;
    PMPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, lines, MPI_STATUS_IGNORE);
    --one.members;
  }
  return true;
}

// own_mutex is held.
void TakeBack(size_t looks) {
  for (; looks > 0 && !leaving.empty(); --looks) {
    if (next_look >= leaving.size()) next_look = 0;
    if (!HaveAllLeft(next_look)) {
      ++next_look;
      continue;
    }
    free_again.push_back(leaving[next_look].tags);
    leaving[next_look] = leaving.back();
    leaving.pop_back();
  }
}

}  // namespace

bool OpenTreeLines() {
  lines = FirstOwnCommunicator();
  share = Share();
  // What the least of them can do, all do.
  int least[] = {lines != MPI_COMM_NULL && share > 0 ? 1 : 0, SegmentBytesHere()};
  PMPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  segment_bytes = least[1];
  if (least[0] != 0) return true;
  // Those who have one cannot free it together with those who have none.
  lines = MPI_COMM_NULL;
  return false;
}

void CloseTreeLines() {
  if (lines == MPI_COMM_NULL) return;
  SettleTags();
  PMPI_Barrier(lines);
  {
    const std::lock_guard<std::mutex> lock(own_mutex);
    TakeBack(leaving.size());
  }
  PMPI_Comm_free(&lines);
}

MPI_Comm TreeLinesComm() { return lines; }

int TreeSegmentBytes() { return segment_bytes; }

int TakeTags() {
  const std::lock_guard<std::mutex> lock(own_mutex);
  TakeBack(kLooks);
  if (free_again.empty() && used == share) TakeBack(leaving.size());
  if (!free_again.empty()) {
    const int tags = free_again.back();
    free_again.pop_back();
    return tags;
  }
  if (used == share) return -1;
  return kTagsOfTree * (Session::Get().world_rank() * share + used++);
}

void LeaveTags(int tags, int leader, int members) {
  const std::lock_guard<std::mutex> lock(left_mutex);
  left.push_back({tags, leader, members});
}

void SettleTags() {
  if (lines == MPI_COMM_NULL) return;
  std::vector<Left> now;
  {
    const std::lock_guard<std::mutex> lock(left_mutex);
    now.swap(left);
  }
  const std::lock_guard<std::mutex> lock(own_mutex);
  for (const Left& one : now) {
    if (one.leader == Session::Get().world_rank()) {
      leaving.push_back({one.tags, one.leader, one.members - 1});
      continue;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(nullptr, 0, MPI_BYTE, one.leader, one.tags + kLeftTag, lines, &request);
    if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  }
  TakeBack(kLooks);
}

}  // namespace coppice::mpi
