#include "agents/mpi/tree/tree_collectives.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <string>
#include <string_view>

#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/elements.h"
#include "agents/mpi/tree/exchange.h"
#include "agents/mpi/tree/pipeline.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/ways.h"

namespace coppice::mpi {
namespace {

std::atomic<uint64_t> counted[kTreeCounts];

// True if the word of the tree's root reaches all ranks.
enum class Reach { kAll, kSome };

bool Native() {
  CountTree(kCountNative);
  return false;
}

// It was carried out; errors go where the program wants those of `comm`.
bool Ended(MPI_Comm comm, CommunicatorTree* tree, TreeCount what, int error) {
  CountTree(what);
  if (error != MPI_SUCCESS) {
    tree->tags.is_spoilt = true;
    HandleError(comm, error);
  }
  return true;
}

// Carries it out along a tree over the ranks.
bool Run(MPI_Comm comm, CommunicatorTree* tree, Way way, Reach reach, Flow* flow, TreeCount what,
         int* error) {
  flow->word = reach == Reach::kAll && tree->IsRoot() && tree->IsChanged();
  Pipeline pipeline(tree->tags, tree->ShapeOf(way), tree->pieces, *flow);
  {
    const RequestErrors returned(Session::Get().has_threads());
    *error = pipeline.Run();
  }
  if (reach == Reach::kAll) {
    tree->is_change_told = pipeline.word();
    tree->untold = 0;
  } else {
    ++tree->untold;
  }
  if (pipeline.is_memory_lost()) {
    tree->pieces.Leak();
    tree->whole.Leak();
  }
  return Ended(comm, tree, what, *error);
}

// From here on halves of halves are sooner than whole messages.
constexpr uint64_t kHalved = uint64_t{64} << 10U;

// Carries an Allreduce or a Barrier out by exchanges over the tree's ranks.
bool RunByExchange(MPI_Comm comm, CommunicatorTree* tree, const Flow& flow, TreeCount what,
                   int* error) {
  const auto bytes = static_cast<uint64_t>(flow.count) * static_cast<uint64_t>(flow.layout.size);
  const std::vector<ExchangeStep> steps =
      ExchangeSteps(tree->order, tree->shape.rank, flow.count, bytes >= kHalved);
  {
    const RequestErrors returned(Session::Get().has_threads());
    *error = RunExchange(tree->tags, steps, flow.layout, flow.count, flow.op, flow.input,
                         flow.result, tree->whole[0]);
  }
  ++tree->untold;
  return Ended(comm, tree, what, *error);
}

// Carries it out along switches; false, on all members: they are not there any more.
bool RunAlongSwitches(const CommunicatorTree& tree, const SwitchWork& work, const void* data,
                      void* result, TreeCount what, int* error) {
  const std::string_view part(static_cast<const char*>(data), data == nullptr ? 0 : work.bytes);
  if (!tree.carried->Carry(work, part, result)) return Native();
  CountTree(what);
  CountTree(kCountOverSwitches);
  *error = MPI_SUCCESS;
  return true;
}

void GoDown(const TreeShape& shape, Flow* flow) {
  flow->down_from = shape.parent;
  flow->down_to = shape.children;
}

// From the root of the call to the tree's root, unless they are one, and down from both: the call's
// root serves its own subtree, and is left out by its parent.
void BcastWays(const TreeShape& shape, int root, Flow* flow) {
  flow->down_to = shape.children;
  std::erase(flow->down_to, root);
  if (shape.rank == root) {
    if (shape.root != root) flow->down_to.insert(flow->down_to.begin(), shape.root);
  } else {
    flow->down_from = shape.rank == shape.root ? root : shape.parent;
  }
}

// A longer broadcast is left to the MPI library unless it is plain bytes at all members: packed, it
// would be in memory twice.
constexpr MPI_Count kMaxPacked = MPI_Count{4} << 20U;

// Packs what is broadcast, or unpacks it. Ranks may name the same data by different types and
// counts: segments of bytes are all that they have in common. By a message to itself instead of
// MPI_Pack and MPI_Unpack where MPICH refuses these, for a buffer at MPI_BOTTOM.
int Repack(bool packs, void* buffer, int count, MPI_Datatype type, void* packed, int bytes,
           const CommunicatorTree& tree) {
  const MPI_Comm comm = tree.tags.comm;
  const int own = tree.tags.members.World(tree.shape.rank);
  const int tag = tree.tags.first_tag + kCopyTag;
  int position = 0;
  if (buffer != MPI_BOTTOM) {
    return packs ? PMPI_Pack(buffer, count, type, packed, bytes, &position, comm)
                 : PMPI_Unpack(packed, bytes, &position, buffer, count, type, comm);
  }
  return packs ? PMPI_Sendrecv(buffer, count, type, own, tag, packed, bytes, MPI_PACKED, own, tag,
                               comm, MPI_STATUS_IGNORE)
               : PMPI_Sendrecv(packed, bytes, MPI_PACKED, own, tag, buffer, count, type, own, tag,
                               comm, MPI_STATUS_IGNORE);
}

// What Reduce and Allreduce have in common.
struct ReductionCall {
  TreeCount what;
  coppice_operation operation;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root;  // of an Allreduce any
  MPI_Comm comm;
};

struct ReductionWay {
  CommunicatorTree* tree = nullptr;
  Way way = Way::kNative;
  SwitchWork work;
};

// How it goes, and, over the ranks, what this one does. `may` says whether the buffers are ones, of
// elements that are laid out so.
template <class May>
ReductionWay WayOfReduction(const ReductionCall& call, const May& may, Flow* flow,
                            MeasuredCall* measured) {
  const ReductionWay native;
  TypeLayout& layout = flow->layout;
  if (call.count <= 0 || !LayoutOf(call.type, &layout) || layout.size == 0) return native;
  const Reduction reduction = ReductionOf(call.op, call.type);
  if (reduction == Reduction::kNotOurs) return native;
  if (!may(layout)) {
    SpoilTreesOf(call.comm);
    return native;
  }
  ReductionWay found;
  const auto bytes = static_cast<uint64_t>(call.count) * static_cast<uint64_t>(layout.size);
  found.work = ReductionWork(call.op, layout, bytes);
  CommunicatorTree* const tree = TreeOf(call.comm, call.operation, bytes, found.work);
  if (tree == nullptr || !tree->IsMember(call.root)) return native;
  const bool in_rank_order = reduction == Reduction::kRankOrder;
  if (tree->carried == nullptr && in_rank_order && !tree->shape.is_ordered) return native;
  found.tree = tree;
  found.way = WayOf(call.comm, call.what, bytes, in_rank_order, tree, measured);
  if (found.way == Way::kNative || tree->carried != nullptr) return found;
  const bool has_room =
      found.way == Way::kExchange
          ? tree->whole.Reserve(call.comm, RoomFor(layout, call.count))
          : tree->pieces.Reserve(
                call.comm,
                Pipeline::PieceBytes(tree->tags, tree->ShapeOf(found.way), layout, call.count));
  if (!has_room) return native;
  flow->count = call.count;
  flow->goes_up = true;
  flow->op = call.op;
  return found;
}

// Arguments that the MPI library refuses: such a call is left to it before anybody is asked or
// sent anything, because it knows what to say, and says it to all ranks that give the same ones.
// For arguments as programs give them this costs some comparisons.

// Open MPI lets a single element pass whose result goes where it lies, which MPI forbids.
#ifdef OPEN_MPI
constexpr int kMaxTogether = 1;
#else
constexpr int kMaxTogether = 0;
#endif

// Whether it takes `count` elements there, where there is a result.
bool AreBuffers(const void* send, const void* receive, int count, const TypeLayout& layout) {
  return receive != MPI_IN_PLACE && (send == MPI_IN_PLACE || IsBuffer(send, count, layout)) &&
         IsBuffer(receive, count, layout);
}

// Whether it takes them for a reduction to all.
bool MayAllreduce(const void* send, const void* receive, int count, const TypeLayout& layout) {
  return !(send == receive && send != MPI_BOTTOM && count > kMaxTogether) &&
         AreBuffers(send, receive, count, layout);
}

// The same to one rank. `receive` means something there only, and MPI_IN_PLACE is allowed there
// only. That the result goes where own data lies is seen there only, too: that rank alone leaves
// the call to the MPI library, which refuses it there before anything is sent, and may give the
// others what they wait for by calling again.
bool MayReduce(const void* send, const void* receive, int count, const TypeLayout& layout, int root,
               MPI_Comm comm) {
  const bool is_usual = layout.is_named && send != receive && send != MPI_IN_PLACE &&
                        receive != MPI_IN_PLACE && send != nullptr && receive != nullptr;
  if (is_usual) return true;
  if (RankIn(comm) != root) return send != MPI_IN_PLACE && IsBuffer(send, count, layout);
  return !(send == receive && send != MPI_BOTTOM) && AreBuffers(send, receive, count, layout);
}

void SayCounts() {
  uint64_t own[kTreeCounts];
  uint64_t all[kTreeCounts];
  coppice_mpi_tree_counts(own, kTreeCounts);
  PMPI_Reduce(own, all, kTreeCounts, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (Session::Get().world_rank() != 0) return;
#define COPPICE_NAME(NAME, FORTRAN, ...) #FORTRAN,
  constexpr const char* kNames[kTreeCounts] = {
      "asked",        "granted", COPPICE_TREE_COLLECTIVES(COPPICE_NAME) "native",
      "revised",      "gone",    "released",
      "over_switches"};
#undef COPPICE_NAME
  std::string line = "trees:";
  for (int i = 0; i < kTreeCounts; ++i) {
    line += " " + std::string(kNames[i]) + "=" + std::to_string(all[i]);
  }
  Session::Get().Say(line);
}

}  // namespace

void CountTree(TreeCount what) { counted[what].fetch_add(1, std::memory_order_relaxed); }

bool TreeBarrier(MPI_Comm comm, MeasuredCall* measured, int* error) {
  const SwitchWork work;
  CommunicatorTree* const tree = TreeOf(comm, COPPICE_OPERATION_BARRIER, 0, work);
  if (tree == nullptr) return Native();
  const Way way = WayOf(comm, kCountBarrier, 0, false, tree, measured);
  if (way == Way::kNative) return Native();
  if (tree->carried != nullptr) {
    return RunAlongSwitches(*tree, work, nullptr, nullptr, kCountBarrier, error);
  }
  Flow flow;
  LayoutOf(MPI_BYTE, &flow.layout);
  const char nothing = 0;
  char nothing_else = 0;
  flow.count = 1;
  flow.goes_up = true;
  flow.input = &nothing;
  flow.has_result = true;
  flow.result = &nothing_else;
  if (way == Way::kExchange) {
    flow.count = 0;
    return RunByExchange(comm, tree, flow, kCountBarrier, error);
  }
  GoDown(tree->ShapeOf(way), &flow);
  return Run(comm, tree, way, Reach::kAll, &flow, kCountBarrier, error);
}

bool TreeBcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MeasuredCall* measured, int* error) {
  TypeLayout layout;
  if (count < 0 || !LayoutOf(type, &layout)) return Native();
  const MPI_Count bytes = count * layout.size;
  if (bytes == 0 || bytes > INT_MAX) return Native();
  if (buffer == MPI_IN_PLACE || !IsBuffer(buffer, count, layout)) {
    SpoilTreesOf(comm);
    return Native();
  }
  SwitchWork work;
  work.bytes = static_cast<uint64_t>(bytes);
  CommunicatorTree* const tree = TreeOf(comm, COPPICE_OPERATION_BCAST, work.bytes, work);
  if (tree == nullptr || !tree->IsMember(root)) return Native();
  const Way way = WayOf(comm, kCountBcast, work.bytes, false, tree, measured);
  if (way == Way::kNative) return Native();
  // What members ask each other depends on the bytes alone, which are the same at all of them.
  const bool has_room = bytes > kMaxPacked ? AllSay(comm, layout.IsPlainBytes())
                                           : tree->whole.Reserve(comm, static_cast<size_t>(bytes));
  if (!has_room) return Native();
  const bool is_sender = tree->shape.rank == root, is_plain = layout.IsPlainBytes();
  Flow flow;
  LayoutOf(MPI_BYTE, &flow.layout);
  flow.count = static_cast<int>(bytes);
  flow.has_result = true;
  flow.result = is_plain ? buffer : tree->whole[0];
  BcastWays(tree->ShapeOf(way), root, &flow);
  const auto repack = [&] {
    return is_plain ? MPI_SUCCESS
                    : Repack(is_sender, buffer, count, type, flow.result, flow.count, *tree);
  };
  const Reach reach = tree->shape.root == root ? Reach::kAll : Reach::kSome;
  *error = is_sender ? repack() : MPI_SUCCESS;
  if (*error == MPI_SUCCESS && tree->carried != nullptr) {
    const void* const data = is_sender ? flow.result : nullptr;
    void* const result = is_sender ? nullptr : flow.result;
    if (!RunAlongSwitches(*tree, work, data, result, kCountBcast, error)) return false;
    if (!is_sender) *error = repack();
  } else if (*error == MPI_SUCCESS) {
    Run(comm, tree, way, reach, &flow, kCountBcast, error);
    if (*error != MPI_SUCCESS) return true;  // which is told already
    if (!is_sender) *error = repack();
  }
  if (*error != MPI_SUCCESS) HandleError(comm, *error);
  return true;
}

bool TreeReduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MeasuredCall* measured, int* error) {
  Flow flow;
  const auto may = [&](const TypeLayout& layout) {
    return MayReduce(send, receive, count, layout, root, comm);
  };
  const ReductionWay found = WayOfReduction(
      {kCountReduce, COPPICE_OPERATION_REDUCE, count, type, op, root, comm}, may, &flow, measured);
  if (found.way == Way::kNative) return Native();
  CommunicatorTree* const tree = found.tree;
  flow.input = send == MPI_IN_PLACE ? receive : send;
  if (tree->carried != nullptr) {
    void* const result = tree->shape.rank == root ? receive : nullptr;
    return RunAlongSwitches(*tree, found.work, flow.input, result, kCountReduce, error);
  }
  const TreeShape& shape = tree->ShapeOf(found.way);
  flow.has_result = shape.rank == root;
  flow.result = receive;
  // The tree's root has the result; it goes to the call's root in one more message.
  if (shape.root != root) {
    if (shape.rank == root) flow.down_from = shape.root;
    if (shape.rank == shape.root) flow.down_to = {root};
  }
  return Run(comm, tree, found.way, Reach::kSome, &flow, kCountReduce, error);
}

bool TreeAllreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MeasuredCall* measured, int* error) {
  Flow flow;
  const auto may = [&](const TypeLayout& layout) {
    return MayAllreduce(send, receive, count, layout);
  };
  const ReductionWay found =
      WayOfReduction({kCountAllreduce, COPPICE_OPERATION_ALLREDUCE, count, type, op, 0, comm}, may,
                     &flow, measured);
  if (found.way == Way::kNative) return Native();
  CommunicatorTree* const tree = found.tree;
  flow.input = send == MPI_IN_PLACE ? receive : send;
  if (tree->carried != nullptr) {
    return RunAlongSwitches(*tree, found.work, flow.input, receive, kCountAllreduce, error);
  }
  flow.has_result = true;
  flow.result = receive;
  if (found.way == Way::kExchange) return RunByExchange(comm, tree, flow, kCountAllreduce, error);
  GoDown(tree->ShapeOf(found.way), &flow);
  return Run(comm, tree, found.way, Reach::kAll, &flow, kCountAllreduce, error);
}

bool UsesTrees() {
  const Session& session = Session::Get();
  return session.IsUp() && session.settings().trees != TreesWhen::kNever;
}

int CommunicatorMade(MPI_Comm comm) {
  const Session& session = Session::Get();
  if (!session.IsUp() || session.settings().trees != TreesWhen::kCreation) return MPI_SUCCESS;
  return WithMemory(comm, [comm] { TreeOf(comm, COPPICE_OPERATION_ALLREDUCE, 0, SwitchWork()); });
}

void StartTrees() {
  StartCommunicatorTrees();
  CommunicatorMade(MPI_COMM_WORLD);
}

void EndTrees() {
  if (!UsesTrees()) return;
  PMPI_Barrier(MPI_COMM_WORLD);  // nobody is in a collective any more
  StopCarriedTrees();
  EndCommunicatorTrees();
  SayCounts();
}

}  // namespace coppice::mpi

int coppice_mpi_tree_counts(uint64_t* counts, int size) {
  using coppice::mpi::counted;
  for (int i = 0; i < std::min<int>(size, coppice::mpi::kTreeCounts); ++i) {
    counts[i] = counted[i].load(std::memory_order_relaxed);
  }
  return coppice::mpi::kTreeCounts;
}
