#include "agents/mpi/tree/tree_collectives.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/elements.h"
#include "agents/mpi/tree/passage.h"
#include "agents/mpi/tree/pipeline.h"
#include "agents/mpi/tree/started.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/ways.h"

namespace coppice::mpi {
namespace {

std::atomic<uint64_t> counted[kTreeCounts];

// Of the nonblocking form of `what`.
TreeCount StartedCount(TreeCount what) {
  return static_cast<TreeCount>(kCountIbarrier + (what - kCountBarrier));
}

// How a collective is called: to be carried out, or only to be started.
struct Call {
  MPI_Comm comm;
  int* error;
  MeasuredCall* measured;  // if it is to be carried out
  MPI_Request* request;    // if it is started; else null

  bool IsStarted() const { return request != nullptr; }
};

bool Native(const Call& call) {
  CountTree(call.IsStarted() ? kCountInative : kCountNative);
  return false;
}

CommunicatorTree* TreeFor(const Call& call, coppice_operation operation, const SwitchWork& work) {
  return call.IsStarted() ? PresentTreeOf(call.comm, operation, work.bytes)
                          : TreeOf(call.comm, operation, work.bytes, work);
}

Way WayFor(const Call& call, TreeCount what, uint64_t bytes, bool in_rank_order,
           CommunicatorTree* tree) {
  return call.IsStarted() ? SettledWayOf(call.comm, what, bytes, in_rank_order, tree)
                          : WayOf(call.comm, what, bytes, in_rank_order, tree, call.measured);
}

// The same number on all members; so is the answer. Collectives that are under way use the buffers.
bool HasRoom(const Call& call, size_t bytes, CommunicatorTree* tree, TreeBuffers* buffers) {
  if (call.IsStarted()) return buffers->Has(bytes);
  tree->started.Drain();
  return buffers->Reserve(call.comm, bytes);
}

// Room for so many elements along the way.
bool HasRoomAlong(const Call& call, Way way, const TypeLayout& layout, int count,
                  CommunicatorTree* tree) {
  if (way == Way::kExchange) return HasRoom(call, RoomFor(layout, count), tree, &tree->whole);
  if (way != Way::kForest) {
    const size_t bytes = Pipeline::PieceBytes(tree->tags, tree->ShapeOf(way), layout, count);
    return HasRoom(call, bytes, tree, &tree->pieces);
  }
  const std::vector<int> first = tree->FirstElements(count);
  bool has_room = true;
  for (size_t number = 0; number < tree->forest.size(); ++number) {
    ForestPart& part = tree->forest[number];
    const int own = first[number + 1] - first[number];
    const size_t bytes = Pipeline::PieceBytes(part.tags, part.shape, layout, own);
    has_room &= own == 0 || HasRoom(call, bytes, tree, &part.pieces);
  }
  return has_room;
}

// True if the word of the tree's root reaches all ranks.
enum class Reach { kAll, kSome };

// Starts it along a tree over the ranks, or carries it out. What is only started brings no word of
// the root: members would hear it when they are at different collectives.
bool Go(const Call& call, Reach reach, Route route) {
  CommunicatorTree* const tree = route.tree;
  const TreeCount what = route.what;
  if (call.IsStarted()) {
    *call.request = tree->started.Start(call.comm, std::make_unique<Passage>(std::move(route)));
    ++tree->untold;
    CountTree(StartedCount(what));
    return true;
  }
  tree->started.Drain();
  route.flow.word = reach == Reach::kAll && tree->IsRoot() && tree->IsChanged();
  Passage passage(std::move(route));
  {
    const RequestErrors returned(Session::Get().has_threads());
    *call.error = passage.Run();
  }
  if (reach == Reach::kAll) {
    tree->is_change_told = passage.word();
    tree->untold = 0;
  } else {
    ++tree->untold;
  }
  CountTree(what);
  if (*call.error != MPI_SUCCESS) HandleError(call.comm, *call.error);
  return true;
}

// Carries it out along switches; false, on all members: they are not there any more.
bool RunAlongSwitches(const Call& call, const CommunicatorTree& tree, const SwitchWork& work,
                      const void* data, void* result, TreeCount what) {
  const std::string_view part(static_cast<const char*>(data), data == nullptr ? 0 : work.bytes);
  if (!tree.carried->Carry(work, part, result)) return Native(call);
  CountTree(what);
  CountTree(kCountOverSwitches);
  *call.error = MPI_SUCCESS;
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

// What Reduce and Allreduce have in common.
struct ReductionCall {
  TreeCount what;
  coppice_operation operation;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root;  // of an Allreduce any
};

struct ReductionWay {
  CommunicatorTree* tree = nullptr;
  Way way = Way::kNative;
  SwitchWork work;
};

// How it goes, and, over the ranks, what this one does. `may` says whether the buffers are ones, of
// elements that are laid out so.
template <class May>
ReductionWay WayOfReduction(const Call& how, const ReductionCall& call, const May& may,
                            Flow* flow) {
  const ReductionWay native;
  TypeLayout& layout = flow->layout;
  if (call.count <= 0 || !LayoutOf(call.type, &layout) || layout.size == 0) return native;
  const Reduction reduction = ReductionOf(call.op, call.type);
  if (reduction == Reduction::kNotOurs) return native;
  if (!may(layout)) {
    SpoilTreesOf(how.comm);
    return native;
  }
  ReductionWay found;
  const auto bytes = static_cast<uint64_t>(call.count) * static_cast<uint64_t>(layout.size);
  found.work = ReductionWork(call.op, layout, bytes);
  const bool in_rank_order = reduction == Reduction::kRankOrder;
  // The trees of a forest are in no order of ranks: it looks for the tree that a Reduce would take.
  const coppice_operation asked = in_rank_order ? COPPICE_OPERATION_REDUCE : call.operation;
  CommunicatorTree* const tree = TreeFor(how, asked, found.work);
  if (tree == nullptr || !tree->IsMember(call.root)) return native;
  if (tree->carried == nullptr && in_rank_order && !tree->shape.is_ordered) return native;
  found.tree = tree;
  found.way = WayFor(how, call.what, bytes, in_rank_order, tree);
  if (found.way == Way::kNative || tree->carried != nullptr) return found;
  if (!HasRoomAlong(how, found.way, layout, call.count, tree)) return native;
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

// Each of collective_table.h: as Tree... of the header, or Start....

bool GoBarrier(MPI_Comm /*comm*/, const Call& call) {
  const SwitchWork work;
  CommunicatorTree* const tree = TreeFor(call, COPPICE_OPERATION_BARRIER, work);
  if (tree == nullptr) return Native(call);
  const Way way = WayFor(call, kCountBarrier, 0, false, tree);
  if (way == Way::kNative) return Native(call);
  if (tree->carried != nullptr) {
    return RunAlongSwitches(call, *tree, work, nullptr, nullptr, kCountBarrier);
  }
  Route route = {kCountBarrier, tree, way, {}, {}};
  LayoutOf(MPI_BYTE, &route.flow.layout);
  if (way == Way::kExchange) return Go(call, Reach::kSome, std::move(route));
  route.flow.count = 1;
  route.flow.goes_up = true;
  route.flow.has_result = true;
  GoDown(tree->ShapeOf(way), &route.flow);
  return Go(call, Reach::kAll, std::move(route));
}

// Whether all members have room for what may be packed, or say that nothing is.
bool HasRoomForBcast(const Call& call, MPI_Count bytes, bool is_plain, CommunicatorTree* tree) {
  // What members ask each other depends on the bytes alone, which are the same at all of them.
  if (bytes > kMaxPacked) return !call.IsStarted() && AllSay(call.comm, is_plain);
  return HasRoom(call, static_cast<size_t>(bytes), tree, &tree->whole);
}

bool BcastAlongSwitches(const Call& call, const CommunicatorTree& tree, const SwitchWork& work,
                        const RepackedData& repacked, void* data) {
  const bool is_sender = repacked.is_sender;
  *call.error = is_sender ? Repack(repacked, tree) : MPI_SUCCESS;
  if (*call.error == MPI_SUCCESS) {
    if (!RunAlongSwitches(call, tree, work, is_sender ? data : nullptr, is_sender ? nullptr : data,
                          kCountBcast)) {
      return false;
    }
    if (!is_sender) *call.error = Repack(repacked, tree);
  }
  if (*call.error != MPI_SUCCESS) HandleError(call.comm, *call.error);
  return true;
}

bool GoBcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
             const Call& call) {
  TypeLayout layout;
  if (count < 0 || !LayoutOf(type, &layout)) return Native(call);
  const MPI_Count bytes = count * layout.size;
  if (bytes == 0 || bytes > INT_MAX) return Native(call);
  if (buffer == MPI_IN_PLACE || !IsBuffer(buffer, count, layout)) {
    SpoilTreesOf(comm);
    return Native(call);
  }
  SwitchWork work;
  work.bytes = static_cast<uint64_t>(bytes);
  CommunicatorTree* const tree = TreeFor(call, COPPICE_OPERATION_BCAST, work);
  if (tree == nullptr || !tree->IsMember(root)) return Native(call);
  const Way way = WayFor(call, kCountBcast, work.bytes, false, tree);
  if (way == Way::kNative) return Native(call);
  const bool is_plain = layout.IsPlainBytes();
  if (!HasRoomForBcast(call, bytes, is_plain, tree)) return Native(call);
  Route route = {kCountBcast, tree, way, {}, {}};
  Flow& flow = route.flow;
  LayoutOf(MPI_BYTE, &flow.layout);
  flow.count = static_cast<int>(bytes);
  flow.has_result = true;
  flow.result = is_plain ? buffer : tree->whole[0];
  route.repacked = {!is_plain, tree->shape.rank == root, buffer, count, type, flow.result,
                    flow.count};
  if (tree->carried != nullptr) {
    return BcastAlongSwitches(call, *tree, work, route.repacked, flow.result);
  }
  BcastWays(tree->ShapeOf(way), root, &flow);
  return Go(call, tree->shape.root == root ? Reach::kAll : Reach::kSome, std::move(route));
}

bool GoReduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
              MPI_Comm comm, const Call& call) {
  Flow flow;
  const auto may = [&](const TypeLayout& layout) {
    return MayReduce(send, receive, count, layout, root, comm);
  };
  const ReductionWay found = WayOfReduction(
      call, {kCountReduce, COPPICE_OPERATION_REDUCE, count, type, op, root}, may, &flow);
  if (found.way == Way::kNative) return Native(call);
  CommunicatorTree* const tree = found.tree;
  flow.input = send == MPI_IN_PLACE ? receive : send;
  if (tree->carried != nullptr) {
    void* const result = tree->shape.rank == root ? receive : nullptr;
    return RunAlongSwitches(call, *tree, found.work, flow.input, result, kCountReduce);
  }
  const TreeShape& shape = tree->ShapeOf(found.way);
  flow.has_result = shape.rank == root;
  flow.result = receive;
  // The tree's root has the result; it goes to the call's root in one more message.
  if (shape.root != root) {
    if (shape.rank == root) flow.down_from = shape.root;
    if (shape.rank == shape.root) flow.down_to = {root};
  }
  return Go(call, Reach::kSome, {kCountReduce, tree, found.way, std::move(flow), {}});
}

bool GoAllreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm /*comm*/, const Call& call) {
  Flow flow;
  const auto may = [&](const TypeLayout& layout) {
    return MayAllreduce(send, receive, count, layout);
  };
  const ReductionWay found = WayOfReduction(
      call, {kCountAllreduce, COPPICE_OPERATION_ALLREDUCE, count, type, op, 0}, may, &flow);
  if (found.way == Way::kNative) return Native(call);
  CommunicatorTree* const tree = found.tree;
  flow.input = send == MPI_IN_PLACE ? receive : send;
  if (tree->carried != nullptr) {
    return RunAlongSwitches(call, *tree, found.work, flow.input, receive, kCountAllreduce);
  }
  flow.has_result = true;
  flow.result = receive;
  const bool is_exchanged = found.way == Way::kExchange;
  if (!is_exchanged && found.way != Way::kForest) GoDown(tree->ShapeOf(found.way), &flow);
  return Go(call, is_exchanged ? Reach::kSome : Reach::kAll,
            {kCountAllreduce, tree, found.way, std::move(flow), {}});
}

void SayCounts() {
  uint64_t own[kTreeCounts];
  uint64_t all[kTreeCounts];
  coppice_mpi_tree_counts(own, kTreeCounts);
  PMPI_Reduce(own, all, kTreeCounts, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (Session::Get().world_rank() != 0) return;
#define COPPICE_NAME(NAME, FORTRAN, ...) #FORTRAN,
#define COPPICE_NAME_STARTED(NAME, FORTRAN, ...) "i" #FORTRAN,
  constexpr const char* kNames[kTreeCounts] = {
      "asked",
      "granted",
      COPPICE_TREE_COLLECTIVES(COPPICE_NAME) "native",
      "revised",
      "gone",
      "released",
      "over_switches",
      COPPICE_TREE_COLLECTIVES(COPPICE_NAME_STARTED) "inative"};
#undef COPPICE_NAME_STARTED
#undef COPPICE_NAME
  std::string line = "trees:";
  for (int i = 0; i < kTreeCounts; ++i) {
    line += " " + std::string(kNames[i]) + "=" + std::to_string(all[i]);
  }
  Session::Get().Say(line);
}

}  // namespace

void CountTree(TreeCount what) { counted[what].fetch_add(1, std::memory_order_relaxed); }

#define COPPICE_TREE_BODY(NAME, FORTRAN, ARGUMENTS, TRACE)                              \
  bool Tree##NAME(ARGUMENTS(COPPICE_PARAMETER), MeasuredCall* measured, int* error) {   \
    return Go##NAME(ARGUMENTS(COPPICE_ARGUMENT), Call{comm, error, measured, nullptr}); \
  }                                                                                     \
  bool Start##NAME(ARGUMENTS(COPPICE_PARAMETER), MPI_Request* request, int* error) {    \
    return MayStart() &&                                                                \
           Go##NAME(ARGUMENTS(COPPICE_ARGUMENT), Call{comm, error, nullptr, request});  \
  }
COPPICE_TREE_COLLECTIVES(COPPICE_TREE_BODY)
#undef COPPICE_TREE_BODY

bool UsesTrees() {
  const Session& session = Session::Get();
  return session.IsUp() && session.settings().trees != TreesWhen::kNever;
}

int CommunicatorMade(MPI_Comm comm) {
  const Session& session = Session::Get();
  if (!session.IsUp() || session.settings().trees != TreesWhen::kCreation) return MPI_SUCCESS;
  return WithMemory(comm, [comm] { TreeOf(comm, COPPICE_OPERATION_ALLREDUCE, 0, SwitchWork()); });
}

int PrepareTreesOf(MPI_Comm comm) {
  const Settings& settings = Session::Get().settings();
  if (!UsesTrees() || settings.trees != TreesWhen::kCreation) return MPI_SUCCESS;
  if (settings.trees_after != 0) return CommunicatorMade(comm);
  return WithMemory(comm, [comm, way = settings.trees_way] {
    TypeLayout layout;
    LayoutOf(MPI_BYTE, &layout);
    SwitchWork of_ranks;
    of_ranks.operation = ReductionOperation::kNone;
    for (const uint64_t bytes : {uint64_t{0}, kMiddle, kLong, kForestFrom}) {
      // With COPPICE_TREES_WAY=forest any Allreduce would ask for the forest.
      const bool is_any = bytes == kForestFrom || way != TreesWay::kForest;
      const auto operation = is_any ? COPPICE_OPERATION_ALLREDUCE : COPPICE_OPERATION_REDUCE;
      CommunicatorTree* const tree = TreeOf(comm, operation, bytes, of_ranks);
      if (tree == nullptr || tree->carried != nullptr) continue;
      const auto in_segments = [comm, room = RoomFor(layout, tree->tags.segment_bytes)](
                                   TreeBuffers* buffers) { buffers->Reserve(comm, room); };
      tree->ForEachBuffers(in_segments);
      tree->whole.Reserve(comm, std::max(bytes, kMiddle));
    }
  });
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
