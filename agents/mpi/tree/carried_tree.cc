#include "agents/mpi/tree/carried_tree.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/switch_tree.h"
#include "agents/mpi/tree/tree_memory.h"

namespace coppice::mpi {
namespace {

constexpr size_t kMaxAddress = 300;  // of a host's name, and a port

std::mutex live_mutex;  // of both
std::vector<CarriedTree*> live;
std::vector<std::unique_ptr<SwitchTree>> parting;  // whom others may still need

// The line of that number; empty if there is none.
std::string LineOf(const std::string& lines, size_t number) {
  size_t begin = 0;
  for (; number > 0 && begin != std::string::npos; --number) {
    begin = lines.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return "";
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

// What this process has sent may need it to look, before another can come to the collective
// (MPI 3.1, 3.5: progress). So members that wait for a switch look for messages, as those that wait
// in MPI do.
void GoOnWithMessages() {
  int is_there = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
}

// Where this member of the tree hangs, and who it is.
SwitchTreeOptions OptionsOf(int rank, const Group& group, const CarriageTerms& terms,
                            const std::vector<int32_t>& parents, const std::string& addresses) {
  const size_t self = static_cast<size_t>(rank);
  SwitchTreeOptions options;
  options.group = group;
  options.key = terms.key;
  options.leaf_address = LineOf(addresses, static_cast<size_t>(parents[self]) - parents.size());
  options.child =
      static_cast<uint32_t>(std::count(parents.begin(), parents.begin() + rank, parents[self]));
  options.segment_bytes = terms.segment_bytes;
  options.window = terms.window;
  options.self = static_cast<uint32_t>(rank);
  options.members = static_cast<uint32_t>(parents.size());
  options.max_bytes = CarriedTree::kMaxBytes;
  if (options.leaf_address.starts_with('[')) options.listen = "[::]:0";
  options.go_on_meanwhile = GoOnWithMessages;
  return options;
}

bool AreOfSwitches(const std::vector<int32_t>& parents) {
  return std::ranges::all_of(
      parents, [&](int32_t parent) { return parent >= static_cast<int32_t>(parents.size()); });
}

// Empty where it was another member who saw why.
std::string Why(const std::string& trouble) { return trouble.empty() ? "" : " (" + trouble + ")"; }

uint64_t BitOf(uint8_t number) { return uint64_t{1} << number; }

}  // namespace

SwitchWork ReductionWork(MPI_Op op, const TypeLayout& layout, uint64_t bytes) {
  return {SwitchOperationOf(op), SwitchElementOf(op, layout), bytes};
}

CarriedTree::CarriedTree(MPI_Comm comm, const CarriageTerms& terms,
                         std::unique_ptr<SwitchTree> tree)
    : comm_(comm), operations_(terms.operations), types_(terms.types), tree_(std::move(tree)) {
  const std::lock_guard lock(live_mutex);
  live.push_back(this);
}

CarriedTree::~CarriedTree() {
  const std::lock_guard lock(live_mutex);
  std::erase(live, this);
  std::erase_if(parting, [](const auto& tree) { return tree->HasEnded(); });
  if (tree_ == nullptr || !is_joined_) return;
  tree_->Leave();
  parting.push_back(std::move(tree_));
}

void StopCarriedTrees() {
  const std::lock_guard lock(live_mutex);
  for (CarriedTree* const one : live) one->tree_.reset();
  parting.clear();
}

std::unique_ptr<CarriedTree> CarriedTree::Join(MPI_Comm comm, int from, const Group& group,
                                               const CarriageTerms& terms,
                                               const std::vector<int32_t>& parents,
                                               std::string* addresses, std::string* why_not) {
  const int rank = RankIn(comm);
  bool is_ready = HasMemoryFor([&] {
    addresses->resize(terms.address_bytes);
    return AreOfSwitches(parents);
  });
  if (!AllSay(comm, is_ready)) return nullptr;
  PMPI_Bcast(addresses->data(), static_cast<int>(addresses->size()), MPI_CHAR, from, comm);
  std::unique_ptr<CarriedTree> made;
  char coordinator[kMaxAddress] = {};
  is_ready = HasMemoryFor([&] {
    std::unique_ptr<SwitchTree> tree =
        SwitchTree::Open(OptionsOf(rank, group, terms, parents, *addresses), why_not);
    if (tree == nullptr) return false;
    if (rank == 0) tree->coordinator().copy(coordinator, kMaxAddress - 1);
    made.reset(new CarriedTree(comm, terms, std::move(tree)));
    return rank != 0 || coordinator[0] != '\0' || parents.size() == 1;
  });
  // Nobody waits for one who has no thread.
  if (!AllSay(comm, is_ready)) return nullptr;
  PMPI_Bcast(coordinator, kMaxAddress, MPI_CHAR, 0, comm);
  is_ready = HasMemoryFor([&] { return made->tree_->Join(coordinator, why_not); });
  if (!AllSay(comm, is_ready)) return nullptr;
  made->is_joined_ = true;
  return made;
}

bool CarriedTree::Can(const SwitchWork& work) const {
  return !is_broken_ && work.bytes <= kMaxBytes && work.operation != ReductionOperation::kNone &&
         work.type != ElementType::kNone &&
         (operations_ & BitOf(static_cast<uint8_t>(work.operation))) != 0 &&
         (types_ & BitOf(static_cast<uint8_t>(work.type))) != 0;
}

bool CarriedTree::Carry(const SwitchWork& work, std::string_view data, void* result) {
  SwitchCollective collective;
  collective.number = carried_ + 1;
  collective.operation = work.operation;
  collective.type = work.type;
  collective.bytes = work.bytes;
  collective.data = data;
  const Carried ended = tree_->Carry(collective);
  switch (ended.how) {
    case Carried::How::kAlongTree:
      ++carried_;
      if (result != nullptr && work.bytes > 0) {
        std::memcpy(result, ended.result->data(), work.bytes);
      }
      return true;
    case Carried::How::kNatively:
      is_broken_ = true;
      broken_since_ = std::chrono::steady_clock::now();
      Session::Get().Say("a tree over switches is broken" + Why(tree_->trouble()) +
                         "; its collectives go another way");
      return false;
    case Carried::How::kLost:
      std::fprintf(stderr,
                   "coppice: rank %u of a communicator of %d is gone: nobody knows how the last "
                   "collective ended, so the job ends\n",
                   ended.lost, SizeOf(comm_));
      break;
    case Carried::How::kMisused:
      std::fprintf(stderr, "coppice: a collective could not begin along its tree; the job ends\n");
      break;
  }
  PMPI_Abort(MPI_COMM_WORLD, 1);
  return false;
}

}  // namespace coppice::mpi
