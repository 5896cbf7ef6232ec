#include "agents/mpi/tree/tag_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_memory.h"

namespace coppice::mpi {
namespace {

// How long a segment of a long message may be: shorter than what the transport between hosts sends
// at once. A longer one waits until its receiver has said where it goes, which costs a round trip
// for each segment and at each step of a tree: twice the time, in all.

// Long against what a message costs besides its bytes (some microseconds, so some 10 KiB at 10
// GB/s).
constexpr int kPreset = 32 << 10;

[[maybe_unused]] constexpr int kMin = 4 << 10, kMax = 60 << 10;

#ifdef OPEN_MPI

// One part of so many of what is sent at once is more than any header takes.
constexpr uint64_t kHeaderShare = 16;

// The value of the MPI library's setting; 0: it has none of that name, or it is no number.
uint64_t Setting(const char* name) {
  int index = 0, count = 0, type_bytes = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return 0;
  int name_length = 0, level = 0, words_length = 0, binding = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (MPI_T_cvar_get_info(index, nullptr, &name_length, &level, &type, nullptr, nullptr,
                          &words_length, &binding, &scope) != MPI_SUCCESS ||
      PMPI_Type_size(type, &type_bytes) != MPI_SUCCESS) {
    return 0;
  }
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return 0;
  uint64_t of_eight = 0;
  uint32_t of_four = 0;
  void* const value = type_bytes == sizeof(of_eight) ? static_cast<void*>(&of_eight) : &of_four;
  const bool is_number =
      count == 1 && (type_bytes == sizeof(of_eight) || type_bytes == sizeof(of_four));
  const bool is_read = is_number && MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return !is_read ? 0 : of_eight + of_four;
}

// What it sends between hosts at once, header included; 0: it does not say. Settings are those of
// the parts in use: ob1 is not among them where UCX or a network of matching messages carries all,
// which do not say. An InfiniBand adapter goes before TCP.
uint64_t SentAtOnce() {
  if (Setting("pml_ob1_priority") == 0) return 0;
  const uint64_t of_adapter = Setting("btl_openib_eager_limit");
  return of_adapter != 0 ? of_adapter : Setting("btl_tcp_eager_limit");
}

#endif  // OPEN_MPI

// As this process's MPI library says (MPI_T), the library's own header taken off; 32 KiB where it
// does not. Between 4 and 60 KiB.
int SegmentBytesHere() {
#ifdef OPEN_MPI
  int threads = MPI_THREAD_SINGLE;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS) return kPreset;
  const uint64_t at_once = SentAtOnce();
  MPI_T_finalize();
  if (at_once == 0) return kPreset;
  return static_cast<int>(std::clamp<uint64_t>(at_once - at_once / kHeaderShare, kMin, kMax));
#else
  return kPreset;  // MPICH has settings of transports that it was not built with, and none of UCX
#endif
}

// How many sets of tags are looked at for each one that may come back, so that all of them are soon
// and none of the calls takes long.
constexpr size_t kLooks = 8;

struct Left {
  int first_tag;
  int leader;
  int members;
};

MPI_Comm pool = MPI_COMM_NULL;
int segment_bytes = 0;

std::mutex left_mutex;  // MPI is not called under it
std::vector<Left> left;

// Of the tags that this process hands out; MPI is called under it, but never waits for others.
std::mutex own_mutex;
int share = 0;  // sets of tags of each leader

// Of its share, since the beginning; of forests each is kSetsOfForest, from the end.
struct OwnTags {
  int used = 0;
  std::vector<int> free_again;  // the first of each
};
OwnTags of_trees, of_forests;
std::vector<Left> leaving;  // `members`: those who have not said so yet
size_t next_look = 0;

int Share() {
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &is_there);
  constexpr int kMinUpperBound = 32767;  // that every MPI has
  const int highest = is_there != 0 ? *static_cast<int*>(value) : kMinUpperBound;
  return highest / kTagsOfTree / Session::Get().world_size();
}

// own_mutex is held. Whether all members of leaving[at] have left.
bool HaveAllLeft(size_t at) {
  Left& one = leaving[at];
  while (one.members > 0) {
    int is_there = 0;
    MPI_Status status = {};
    const int tag = one.first_tag + kLeftTag;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, tag, pool, &is_there, &status) != MPI_SUCCESS) return false;
    if (is_there == 0) return false;
    PMPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, pool, MPI_STATUS_IGNORE);
    --one.members;
  }
  return true;
}

// own_mutex is held. The numbers from there on are forests'.
int FirstOfForests() {
  const int number = share - kSetsOfForest * of_forests.used;
  return kTagsOfTree * (Session::Get().world_rank() * share + number);
}

// own_mutex is held.
void TakeBack(size_t looks) {
  for (; looks > 0 && !leaving.empty(); --looks) {
    if (next_look >= leaving.size()) next_look = 0;
    if (!HaveAllLeft(next_look)) {
      ++next_look;
      continue;
    }
    const int first_tag = leaving[next_look].first_tag;
    const bool is_forest = first_tag >= FirstOfForests();
    (is_forest ? of_forests : of_trees).free_again.push_back(first_tag);
    leaving[next_look] = leaving.back();
    leaving.pop_back();
  }
}

}  // namespace

bool OpenTagPool() {
  pool = FirstOwnCommunicator();
  share = Share();
  segment_bytes = SegmentBytesHere();  // what the least of them can do, all do
  if (AllSay(MPI_COMM_WORLD, pool != MPI_COMM_NULL && share > 0, nullptr, &segment_bytes)) {
    return true;
  }
  // Those who have one cannot free it together with those who have none.
  pool = MPI_COMM_NULL;
  return false;
}

void CloseTagPool() {
  if (pool == MPI_COMM_NULL) return;
  SettleTags();
  PMPI_Barrier(pool);
  {
    const std::lock_guard<std::mutex> lock(own_mutex);
    TakeBack(leaving.size());
  }
  PMPI_Comm_free(&pool);
}

MPI_Comm TagPoolComm() { return pool; }

int TreeSegmentBytes() { return segment_bytes; }

int CopyElements(const TreeTags& tags, const TypeLayout& layout, const void* from, void* to,
                 int count) {
  if (layout.IsDense()) {
    std::memcpy(to, from, static_cast<size_t>(count) * static_cast<size_t>(layout.size));
    return MPI_SUCCESS;
  }
  const int own = Session::Get().world_rank();
  const int tag = tags.first_tag + kCopyTag;
  return PMPI_Sendrecv(from, count, layout.type, own, tag, to, count, layout.type, own, tag,
                       tags.comm, MPI_STATUS_IGNORE);
}

int TestMessage(MPI_Request* request, bool* is_complete, MPI_Status* status) {
  *is_complete = false;
  if (is_under_way != nullptr && is_under_way(*request)) return MPI_SUCCESS;
  int flag = 0;
  const int error = PMPI_Test(request, &flag, status);
  *is_complete = flag != 0;
  return error;
}

int TakeTags(bool may_be_forest) {
  const std::lock_guard<std::mutex> lock(own_mutex);
  TakeBack(kLooks);
  OwnTags& own = may_be_forest ? of_forests : of_trees;
  const int left = share - of_trees.used - kSetsOfForest * of_forests.used;
  const bool is_spent = left < (may_be_forest ? kSetsOfForest : 1);
  if (own.free_again.empty() && is_spent) TakeBack(leaving.size());
  if (!own.free_again.empty()) {
    const int tags = own.free_again.back();
    own.free_again.pop_back();
    return tags;
  }
  if (is_spent) return -1;
  ++own.used;
  if (may_be_forest) return FirstOfForests();
  return kTagsOfTree * (Session::Get().world_rank() * share + own.used - 1);
}

void LeaveTags(int tags, int leader, int members) {
  const std::lock_guard<std::mutex> lock(left_mutex);
  left.push_back({tags, leader, members});
}

void SettleTags() {
  if (pool == MPI_COMM_NULL) return;
  std::vector<Left> now;
  {
    const std::lock_guard<std::mutex> lock(left_mutex);
    now.swap(left);
  }
  const std::lock_guard<std::mutex> lock(own_mutex);
  for (const Left& one : now) {
    if (one.leader == Session::Get().world_rank()) {
      leaving.push_back({one.first_tag, one.leader, one.members - 1});
      continue;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(nullptr, 0, MPI_BYTE, one.leader, one.first_tag + kLeftTag, pool, &request);
    if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
  }
  TakeBack(kLooks);
}

}  // namespace coppice::mpi
