#include "agents/mpi/core/communicator_ranks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "agents/mpi/core/returned_errors.h"

namespace coppice::mpi {

std::atomic<uint64_t> communicators_gone = 0;

namespace {

int kept_key = MPI_KEYVAL_INVALID;

struct Last {
  MPI_Comm comm = MPI_COMM_NULL;
  const CommunicatorRanks* ranks = nullptr;
  uint64_t gone = 0;
};
// Of the thread's last communicators, by handle: those that are used in turns, too.
constexpr size_t kLasts = 64;
thread_local Last lasts[kLasts];

// MPICH's handles are numbers, Open MPI's addresses: Fibonacci hashing (Knuth, TAOCP 6.4).
Last& LastOf(MPI_Comm comm) {
  uint64_t handle = 0;
  static_assert(sizeof(comm) <= sizeof(handle));
  std::memcpy(&handle, &comm, sizeof(comm));
  return lasts[(handle * 0x9E3779B97F4A7C15u >> 32U) % kLasts];
}

int Forget(MPI_Comm, int, void* value, void*) {
  communicators_gone.fetch_add(1, std::memory_order_release);
  delete static_cast<CommunicatorRanks*>(value);
  return MPI_SUCCESS;
}

CommunicatorRanks* Find(MPI_Comm comm) {
  auto* const ranks = new CommunicatorRanks;
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  ranks->is_inter = is_inter != 0;
  ranks->rank = RankIn(comm);
  ranks->local = GroupRanks(comm, PMPI_Comm_group);
  if (ranks->is_inter) ranks->remote = GroupRanks(comm, PMPI_Comm_remote_group);
  return ranks;
}

// By `create`, which makes one of a group.
template <class Create>
MPI_Comm Own(MPI_Comm comm, const Create& create) {
  const ReturnedErrors returned(comm);
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  const int error = create(group, &own);
  PMPI_Group_free(&group);
  if (error != MPI_SUCCESS || own == MPI_COMM_NULL) return MPI_COMM_NULL;
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  return own;
}

}  // namespace

GroupRanks::GroupRanks(MPI_Comm comm, int (*group_of)(MPI_Comm, MPI_Group*)) {
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  group_of(comm, &group);
  PMPI_Group_size(group, &size_);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int same = MPI_UNEQUAL;
  PMPI_Group_compare(group, world, &same);
  if (same != MPI_IDENT) {
    std::vector<int> own(size_);
    std::iota(own.begin(), own.end(), 0);
    world_.resize(size_);
    PMPI_Group_translate_ranks(group, size_, own.data(), world, world_.data());
  }
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
}

const CommunicatorRanks* RanksOf(MPI_Comm comm) {
  const uint64_t gone_before = communicators_gone.load(std::memory_order_acquire);
  Last& last = LastOf(comm);
  if (comm == last.comm && gone_before == last.gone) return last.ranks;
  if (comm == MPI_COMM_NULL || kept_key == MPI_KEYVAL_INVALID) return nullptr;
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(comm, kept_key, &value, &is_there);
  auto* ranks = static_cast<CommunicatorRanks*>(value);
  if (!is_there) {
    ranks = Find(comm);
    PMPI_Comm_set_attr(comm, kept_key, ranks);
  }
  last = {comm, ranks, gone_before};
  return ranks;
}

void StartCommunicatorRanks() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Forget, &kept_key, nullptr);
}

void EndCommunicatorRanks() {
  if (kept_key == MPI_KEYVAL_INVALID) return;
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    void* value = nullptr;
    int is_there = 0;
    PMPI_Comm_get_attr(comm, kept_key, &value, &is_there);
    if (is_there) PMPI_Comm_delete_attr(comm, kept_key);
  }
  PMPI_Comm_free_keyval(&kept_key);
}

bool IsWithinWorld(MPI_Comm comm) {
  constexpr int kAtOnce = 256;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int same = MPI_UNEQUAL, size = 0;
  PMPI_Group_compare(group, world, &same);
  PMPI_Group_size(group, &size);
  bool is_within = true;
  for (int first = 0; is_within && same == MPI_UNEQUAL && first < size; first += kAtOnce) {
    int own[kAtOnce], of_world[kAtOnce];
    const int count = std::min(kAtOnce, size - first);
    std::iota(own, own + count, first);
    PMPI_Group_translate_ranks(group, count, own, world, of_world);
    is_within = std::count(of_world, of_world + count, MPI_UNDEFINED) == 0;
  }
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return is_within;
}

MPI_Comm OwnCommunicator(MPI_Comm comm) {
  return Own(comm,
             [comm](MPI_Group group, MPI_Comm* own) { return PMPI_Comm_create(comm, group, own); });
}

MPI_Comm FirstOwnCommunicator() {
  constexpr int kCreationTag = 0;  // nobody sends anything else yet
  return Own(MPI_COMM_WORLD, [](MPI_Group group, MPI_Comm* own) {
    return PMPI_Comm_create_group(MPI_COMM_WORLD, group, kCreationTag, own);
  });
}

}  // namespace coppice::mpi
