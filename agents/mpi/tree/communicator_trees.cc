#include "agents/mpi/tree/communicator_trees.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/kept_trees.h"
#include "agents/mpi/tree/pipeline.h"
#include "agents/mpi/tree/ways.h"

namespace coppice::mpi {
namespace {

// Of the tree for messages from kMiddle to kLong.
constexpr uint64_t kAskedInTheMiddle = uint64_t{64} << 10U;

// CreateTreeRequest.max_trees.
constexpr int kMaxForestRanks = 1024;

constexpr int WireOf(Way way) { return static_cast<int>(way) + COPPICE_WAY_NATIVE; }
static_assert(WireOf(Way::kForest) == COPPICE_WAY_FOREST);

// Of all trials that ended.
std::vector<coppice_way_time> MeasuredTimes(const CommunicatorTree& tree) {
  std::vector<coppice_way_time> times;
  for (const auto& [of, trial] : tree.trials) {
    const auto& [what, bits, has_others] = of;
    if (has_others != (tree.carried == nullptr)) continue;  // fewer ways than others of its length
    for (size_t way = 0; way < kWays; ++way) {
      const double seconds = trial.last_times()[way];
      if (!(seconds > 0)) continue;
      coppice_way_time& time = times.emplace_back();
      time.operation = OperationOf(what);
      time.length_bits = static_cast<uint32_t>(bits);
      time.way = static_cast<coppice_way>(WireOf(static_cast<Way>(way)));
      time.us = seconds * 1e6;
    }
  }
  return times;
}

// What the others are to be told.
void Set(GrantedTree granted, CommunicatorTree* tree) {
  tree->told = {};
  tree->told.id = granted.id;
  tree->told.revision = granted.revision;
  tree->told.wasted_ms = granted.wasted_ms;
  tree->told.is_carried = granted.is_carried;
  tree->told.terms = granted.terms;
  tree->addresses = std::move(granted.addresses);
  tree->told.known = static_cast<int32_t>(granted.known.size());
  std::copy(granted.known.begin(), granted.known.end(), tree->known.begin());
  tree->told.has_order = !granted.order.empty() && !granted.is_carried;
  if (tree->told.has_order) tree->near = std::move(granted.order);
  if (granted.id != 0) tree->parents = std::move(granted.parents);
  if (granted.is_carried || granted.shares.size() > tree->shares.size()) return;
  tree->told.trees = static_cast<int32_t>(granted.shares.size());
  std::copy(granted.shares.begin(), granted.shares.end(), tree->shares.begin());
  std::copy(granted.forest_parents.begin(), granted.forest_parents.end(),
            tree->forest_parents.begin());
}

void Tell(MPI_Comm comm, int from, CommunicatorTree* tree) {
  PMPI_Bcast(&tree->told, sizeof(tree->told), MPI_BYTE, from, comm);
  if (tree->told.id != 0) {
    const int ranks = static_cast<int>(tree->parents.size());
    PMPI_Bcast(tree->parents.data(), ranks, MPI_INT32_T, from, comm);
    if (tree->told.has_order) PMPI_Bcast(tree->near.data(), ranks, MPI_INT32_T, from, comm);
    const auto known_bytes = tree->told.known * static_cast<int>(sizeof(KnownTimes));
    if (known_bytes > 0) PMPI_Bcast(tree->known.data(), known_bytes, MPI_BYTE, from, comm);
    const int trees = tree->told.trees;
    if (trees > 0) {
      PMPI_Bcast(tree->shares.data(), trees, MPI_DOUBLE, from, comm);
      PMPI_Bcast(tree->forest_parents.data(), trees * ranks, MPI_INT32_T, from, comm);
    }
  }
  if (RankIn(comm) != from) Session::Get().WaitedForOthers(tree->told.wasted_ms);
}

// This member's part of a forest, if it is one.
bool InstallForest(int rank, CommunicatorTree* tree) {
  tree->forest.resize(static_cast<size_t>(tree->told.trees));
  auto parents = tree->forest_parents.cbegin();
  for (size_t number = 0; number < tree->forest.size(); ++number) {
    ForestPart& part = tree->forest[number];
    const auto end = parents + static_cast<ptrdiff_t>(tree->parents.size());
    if (!MakeTreeShape({parents, end}, rank, &part.shape)) return false;
    parents = end;
    part.tags = tree->tags;
    part.tags.first_tag += kTagsOfTree + static_cast<int>(number) * kTagsOfForestTree;
    if (!part.pieces.Start(Pipeline::Pieces(part.shape))) return false;
  }
  return true;
}

// This member's part: its place, its memory, and whom it follows, which may take *wasted_ms. May
// throw for want of memory.
bool Install(int rank, CommunicatorTree* tree, int* wasted_ms) {
  if (tree->told.is_carried) {
    tree->shape = {};
    tree->shape.rank = rank;
    tree->shape.parent = rank == 0 ? -1 : 0;
  } else if (!MakeTreeShape(tree->parents, rank, &tree->shape)) {
    return false;
  } else {
    tree->order =
        OrderByHosts(tree->told.has_order ? tree->near : DepthFirst(tree->parents), tree->hosts);
    MakeTreeShape(ChainParents(tree->order), rank, &tree->chain);
    MakeTreeShape(BinomialParents(tree->order), rank, &tree->binomial);
  }
  tree->known_count = static_cast<size_t>(tree->told.known);
  size_t pieces = 0;
  for (const Way way : {Way::kTree, Way::kChain, Way::kBinomial}) {
    pieces = std::max(pieces, Pipeline::Pieces(tree->ShapeOf(way)));
  }
  const bool was_tree = tree->forest.empty();
  if (!tree->pieces.Start(pieces) || !tree->whole.Start(1)) return false;
  if (!InstallForest(rank, tree)) return false;
  tree->revision = tree->told.revision;
  if (tree->forest.empty() != was_tree) tree->trials.clear();  // there are other ways now
  for (auto& [of, trial] : tree->trials) trial.Restart();
  if (!tree->IsRoot()) return true;
  Session& session = Session::Get();
  TreeFollower& follower = TreeFollower::Get();
  const auto follow = [&](coppice_client* client) {
    coppice_status asked = COPPICE_OK;
    tree->news = follower.Follow(client, session.Job(), tree->told.id, tree->revision, &asked);
    return asked;
  };
  *wasted_ms = session.Ask(follow).wasted_ms;
  if (tree->news == nullptr) follow(nullptr);
  return true;
}

// The tree that there was, if any, is no more. `what`: kCountRevised: another took its place; else
// it may be there still. Calls neither MPI nor the agent.
void Uninstall(TreeCount what, CommunicatorTree* tree) {
  const uint64_t id = std::exchange(tree->id, 0);
  std::vector<coppice_way_time> measured;
  if (id != 0 && tree->IsRoot() && what != kCountRevised) {
    HasMemoryFor([&] {
      measured = MeasuredTimes(*tree);
      return true;
    });
  }
  tree->carried.reset();
  if (id == 0 || !tree->IsRoot()) return;
  TreeFollower::Get().Unfollow(id);
  tree->news.reset();
  if (what != kCountRevised) GiveBack(id, std::move(measured));
  CountTree(what);
}

// Collective: all members take the tree that `from` has told of, or none of them does.
void Take(MPI_Comm comm, int from, CommunicatorTree* tree) {
  const int rank = RankIn(comm);
  const uint64_t id = tree->told.id;
  int wasted_ms = 0;
  const bool is_ready = HasMemoryFor([&] { return Install(rank, tree, &wasted_ms); });
  bool are_all_ready = AllSay(comm, is_ready, &wasted_ms);
  if (tree->news == nullptr) Session::Get().WaitedForOthers(wasted_ms);
  if (are_all_ready && tree->told.is_carried) {
    tree->was_carried = true;
    tree->patience = 1;
    std::string why_not;
    tree->carried = CarriedTree::Join(comm, from, {id, tree->revision}, tree->told.terms,
                                      tree->parents, &tree->addresses, &why_not);
    are_all_ready = tree->carried != nullptr;
    if (!why_not.empty()) Session::Get().Say("no way along switches: " + why_not);
  }
  if (are_all_ready) {
    tree->id = id;
    return;
  }
  // What some have taken and others have not is alike again.
  tree->forest.clear();
  tree->trials.clear();
  if (tree->news != nullptr) TreeFollower::Get().Unfollow(id);
  tree->news.reset();
  if (rank != from) return;
  GiveBack(id);
  CountTree(kCountGone);
}

// By rank 0, of its question, which is answered. None: there are no tags.
void TakeAnswer(CommunicatorTree* tree) {
  std::string why_not = "all tags of trees are in use, or the process can have no thread";
  GrantedTree granted;
  if (tree->question != nullptr) granted = tree->question->Take(&why_not);
  tree->question.reset();
  const int tags = std::exchange(tree->asked_tags, -1);
  const std::string reason = std::move(granted.reason);
  Set(std::move(granted), tree);
  tree->told.tags = tags;
  if (tree->told.id != 0) {
    Session::Get().Say("a communicator of " + std::to_string(tree->tags.members.size()) +
                       " ranks has a tree of " + reason);
    return;
  }
  if (tags >= 0) LeaveTags(tags, Session::Get().world_rank(), 1);
  Session::Get().Say("no tree for a communicator of " + std::to_string(tree->tags.members.size()) +
                     " ranks: " + why_not);
}

// All members take the root's word for what the tree is now.
void Renew(MPI_Comm comm, CommunicatorTree* tree) {
  tree->started.Drain();
  const int root = tree->shape.root;
  tree->patience = std::min(2 * tree->patience, CommunicatorTree::kMaxUntold);
  GrantedTree present;
  bool is_changed = tree->IsRoot() && tree->IsChanged();
  if (tree->IsRoot() && !is_changed && tree->carried != nullptr) {
    is_changed = std::chrono::steady_clock::now() >
                 tree->carried->broken_since() + CommunicatorTree::kRepairTime;
  } else if (is_changed && !tree->news->is_gone) {
    HasMemoryFor([&] {
      present = AskAgain(tree->id, tree->parents.size());
      return true;
    });
  }
  Set(std::move(present), tree);
  tree->told.is_kept = !is_changed;
  Tell(comm, root, tree);
  tree->is_change_told = false;
  tree->untold = 0;
  if (tree->told.is_kept) return;
  const bool is_replaced = tree->told.id != 0;
  Uninstall(is_replaced ? kCountRevised : kCountGone, tree);
  if (is_replaced) Take(comm, root, tree);
}

// Whether it is worth asking, which every member can tell without the others. Not if some are of
// another world, which may have no job, other settings or no library: they would not follow.
bool MayHaveTree(MPI_Comm comm) {
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  return is_inter == 0 && SizeOf(comm) >= 2 && Session::Get().Job() != 0 && IsWithinWorld(comm);
}

// Collective over `comm`, which may have one: rank 0 has it asked for, meanwhile or, where the
// program `waits`, by the next LookForTreeOf. False, on all members: there is to be none, as they
// are all on one host, where trees know no better than the MPI library, or some of them have no
// memory.
bool AskForTreeOf(MPI_Comm comm, TreesType type, coppice_operation operation, uint64_t bytes,
                  bool may_be_forest, Waits waits, CommunicatorTree* tree) {
  const bool is_leader = RankIn(comm) == 0;
  const bool is_ready = HasMemoryFor([&] {
    tree->tags.members = GroupRanks(comm);
    tree->parents.resize(tree->tags.members.size());
    tree->near.resize(tree->tags.members.size());
    tree->hosts.resize(tree->tags.members.size());
    tree->known.resize(KnownTimes::kMaxTold);
    const uint32_t max_trees = may_be_forest ? kMaxForestTrees : 0;
    tree->shares.resize(max_trees);
    tree->forest_parents.resize(max_trees * tree->parents.size());
    if (!is_leader) return true;
    std::vector<uint32_t> ranks;
    for (size_t rank = 0; rank < tree->parents.size(); ++rank) {
      ranks.push_back(static_cast<uint32_t>(tree->tags.members.World(static_cast<int>(rank))));
    }
    tree->question =
        std::make_shared<TreeQuestion>(std::move(ranks), type, operation, bytes, max_trees);
    return true;
  });
  const int own_host = Session::Get().host_number();
  int first_host = own_host, last_host = own_host;
  const bool are_ready = AllSay(comm, is_ready, &last_host, &first_host);
  if (!are_ready || first_host == last_host) {
    tree->question.reset();
    return false;
  }
  PMPI_Allgather(&own_host, 1, MPI_INT, tree->hosts.data(), 1, MPI_INT, comm);
  if (!is_leader) return true;
  tree->asked_tags = TakeTags(may_be_forest);
  const bool is_asked =
      tree->asked_tags >= 0 &&
      (waits == Waits::kProgram || HasMemoryFor([&] { return AskMeanwhile(tree->question); }));
  if (!is_asked) tree->question.reset();
  return true;
}

// Collective over `comm`, after AskForTreeOf: *tree is what was granted, if it was. False, on all
// members: there is no answer yet.
bool LookForTreeOf(MPI_Comm comm, Waits waits, CommunicatorTree* tree) {
  tree->told.is_pending = false;
  if (RankIn(comm) == 0) {
    if (tree->question != nullptr && waits == Waits::kProgram) tree->question->Ask(waits);
    if (tree->question == nullptr || tree->question->IsAnswered()) {
      TakeAnswer(tree);
    } else {
      tree->told.is_pending = true;
    }
  }
  Tell(comm, 0, tree);
  if (tree->told.is_pending) return false;
  if (tree->told.id == 0) return true;
  tree->tags.comm = TagPoolComm();
  tree->tags.first_tag = tree->told.tags;
  tree->tags.segment_bytes = TreeSegmentBytes();
  Take(comm, 0, tree);
  return true;
}

// This member's part of giving it back, at any time: there is no tree afterwards, nor a question.
// Calls neither MPI nor the agent, so that the functions of attributes may call it.
void LetGo(CommunicatorTree* tree) {
  if (tree->question != nullptr) {
    tree->question->Drop();
    tree->question.reset();
    LeaveTags(std::exchange(tree->asked_tags, -1), Session::Get().world_rank(), 1);
  }
  Uninstall(kCountReleased, tree);
}

}  // namespace

// What is kept; null: there are no trees, and none are asked for.
struct CommunicatorTrees {
  // All but `tree` is the same on all members.
  struct Place {
    enum Stage { kUnasked, kAsked, kAnswered };

    CommunicatorTree tree;
    Stage stage = kUnasked;
    uint64_t uses = 0;   // collectives
    uint64_t next = 0;   // the number of the one that asks, or looks for the answer
    uint64_t pause = 0;  // collectives from one look to the next, twice as many each time
    bool may_be_forest = false;
  };
  // A tree of the type that is wanted; where that turns out to be over switches, one over the ranks
  // beside it, for what switches cannot do and while they are away.
  struct OfLength {
    Place wanted, over_ranks;
    // Of the last PresentTreeOf that found none.
    bool is_missed = false;
    coppice_operation operation = COPPICE_OPERATION_ALLREDUCE;
    uint64_t asked = 0;
  };
  OfLength of_short, of_middle, of_long, of_forest;
  bool were_started = false;  // collectives, since the last TreeOf
  bool is_closed = false;     // no trees any more; the same on all members

  template <class Work>
  void ForEachLength(const Work& work) {
    for (OfLength* const of : {&of_short, &of_middle, &of_long, &of_forest}) work(of);
  }
  template <class Work>
  void ForEachPlace(const Work& work) {
    ForEachLength([&work](OfLength* of) {
      work(&of->wanted);
      work(&of->over_ranks);
    });
  }
  template <class Work>
  void ForEach(const Work& work) {
    ForEachPlace([&work](Place* place) { work(&place->tree); });
  }
  // Gives them back.
  void Close() {
    ForEach(LetGo);
    is_closed = true;
  }
};

namespace {

bool are_on = false;  // from StartCommunicatorTrees to EndCommunicatorTrees

std::mutex freed_mutex;  // nobody is called under it
std::vector<std::unique_ptr<CommunicatorTrees>> freed;

thread_local EndingCommunicator* ending = nullptr;

// When the communicator goes. The rest is left to others (kept_trees.h).
void Forget(CommunicatorTrees* gone) {
  std::unique_ptr<CommunicatorTrees> trees(gone);
  if (trees == nullptr || !Session::Get().IsUp()) return;
  trees->Close();
  trees->ForEach([](CommunicatorTree* tree) {
    const TreeTags& tags = tree->tags;
    if (tags.comm != MPI_COMM_NULL && !tags.is_spoilt) {
      LeaveTags(tags.first_tag, tags.members.World(0), tags.members.size());
    }
  });
  const std::lock_guard<std::mutex> lock(freed_mutex);
  freed.push_back(std::move(trees));
}

void DeleteFreed() {
  std::vector<std::unique_ptr<CommunicatorTrees>> now;
  const std::lock_guard<std::mutex> lock(freed_mutex);
  now.swap(freed);
}

// False: `comm` is none, or there are no trees. *trees may be null even if it was seen before.
bool Find(MPI_Comm comm, bool* was_seen, CommunicatorTrees** trees) {
  return are_on && !EndingCommunicator::Is(comm) && FindKeptTrees(comm, was_seen, trees);
}

// When all members see a communicator for the first time. From here on they count alike, so one
// that finds no memory cannot go another way than the others: it throws std::bad_alloc.
CommunicatorTrees* Begin(MPI_Comm comm) {
  const Settings& settings = Session::Get().settings();
  std::unique_ptr<CommunicatorTrees> made;
  if (MayHaveTree(comm)) made = std::make_unique<CommunicatorTrees>();
  if (!KeepTrees(comm, made.get())) throw std::bad_alloc();
  CommunicatorTrees* const trees = made.release();
  if (trees == nullptr) return nullptr;
  trees->ForEachPlace([&settings](CommunicatorTrees::Place* place) {
    place->next = place->pause = static_cast<uint64_t>(settings.trees_after);
  });
  if (settings.trees == TreesWhen::kCreation) trees->of_short.wanted.next = 0;
  const bool may_be_forest = SizeOf(comm) <= kMaxForestRanks;
  trees->of_forest.wanted.may_be_forest = trees->of_forest.over_ranks.may_be_forest = may_be_forest;
  return trees;
}

// Whether it was asked for in vain; the same on all members.
bool IsLacking(const CommunicatorTrees::Place& place) {
  return place.stage == CommunicatorTrees::Place::kAnswered && place.tree.id == 0 &&
         !place.tree.was_carried;
}

// Which of them is for such messages, and which length it is asked for.
CommunicatorTrees::OfLength* TreesFor(coppice_operation operation, uint64_t bytes,
                                      CommunicatorTrees* trees, uint64_t* asked) {
  const Settings& settings = Session::Get().settings();
  const bool is_forest_due = settings.IsWayFixed()
                                 ? settings.trees_way == TreesWay::kForest && bytes > 0
                                 : bytes >= kForestFrom;
  const bool may_be_one = !IsLacking(trees->of_forest.wanted);
  if (operation == COPPICE_OPERATION_ALLREDUCE && is_forest_due && may_be_one) {
    *asked = std::max(bytes, kForestFrom);
    return &trees->of_forest;
  }
  const bool is_middle = bytes >= kMiddle && bytes < kLong && !settings.IsWayFixed();
  *asked = bytes < kMiddle ? bytes : is_middle ? kAskedInTheMiddle : std::max(bytes, kLong);
  if (bytes < kMiddle) return &trees->of_short;
  return is_middle ? &trees->of_middle : &trees->of_long;
}

// Collective, before each collective of that length: it is asked for, or the answer is looked for,
// if this is the one that does so. False, on all members: no tree of the communicator is asked for
// again.
bool Advance(MPI_Comm comm, TreesType type, coppice_operation operation, uint64_t bytes,
             CommunicatorTrees::Place* place) {
  using Stage = CommunicatorTrees::Place;
  if (place->stage == Stage::kAnswered || place->uses++ < place->next) return true;
  const uint64_t now = place->uses - 1;  // later than `next` if collectives were only started there
  const Waits waits = place->pause == 0 ? Waits::kProgram : Waits::kMeanwhile;
  if (place->stage == Stage::kUnasked) {
    SettleFreedTrees();
    if (!AskForTreeOf(comm, type, operation, bytes, place->may_be_forest, waits, &place->tree)) {
      return false;
    }
    place->stage = Stage::kAsked;
    place->next = now + place->pause;
    if (place->pause != 0) return true;
  }
  if (LookForTreeOf(comm, waits, &place->tree)) {
    place->stage = Stage::kAnswered;
    if (place->tree.id != 0) place->pause = 0;  // if it is lost, another is asked for soon
  } else {
    place->pause *= 2;
    place->next = now + place->pause;
  }
  return true;
}

// A tree over switches went with a switch, which may be there again: another is asked for,
// meanwhile and ever more seldom. The same on all members.
void AskAnewIfLost(CommunicatorTrees::Place* place) {
  using Stage = CommunicatorTrees::Place;
  if (place->stage != Stage::kAnswered || place->tree.id != 0 || !place->tree.was_carried) return;
  TreeTags& tags = place->tree.tags;
  if (tags.comm != MPI_COMM_NULL && !tags.is_spoilt) {
    LeaveTags(tags.first_tag, tags.members.World(0), tags.members.size());
  }
  tags.comm = MPI_COMM_NULL;
  place->stage = Stage::kUnasked;
  place->pause = std::max(2 * place->pause, uint64_t{CommunicatorTree::kMaxUntold});
  place->next = place->uses + place->pause;
}

// Whether all members hold the root's broadcast now; the same on all of them.
bool IsDue(CommunicatorTree* tree) {
  if (tree->id == 0) return false;
  if (tree->carried == nullptr) {
    return tree->is_change_told || tree->untold >= CommunicatorTree::kMaxUntold;
  }
  return tree->carried->is_broken() && ++tree->untold >= tree->patience;
}

// Those of `comm`, for a collective of so many bytes; null, on all members: there are none.
CommunicatorTrees* TreesOf(MPI_Comm comm, uint64_t bytes) {
  const Settings& settings = Session::Get().settings();
  if (settings.IsWayFixed() && bytes > static_cast<uint64_t>(settings.trees_max_bytes)) {
    return nullptr;
  }
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees)) return nullptr;
  if (!was_seen) trees = Begin(comm);
  return trees == nullptr || trees->is_closed ? nullptr : trees;
}

// Whether a tree over the ranks may be wanted beside the one that is wanted.
bool MayWantSwitches(const CommunicatorTrees::OfLength& of) {
  return of.wanted.tree.was_carried ||
         (Session::Get().settings().trees_type == TreesType::kSwitches &&
          of.wanted.stage == CommunicatorTrees::Place::kAnswered);
}

// Collective, with what TreesFor found: as TreeOf.
CommunicatorTree* Follow(MPI_Comm comm, coppice_operation operation, uint64_t asked,
                         const SwitchWork& work, CommunicatorTrees::OfLength* of,
                         CommunicatorTrees* trees) {
  const auto advance = [&](TreesType type, CommunicatorTrees::Place* place) {
    const bool may_be = Advance(comm, type, operation, asked, place);
    if (may_be && IsDue(&place->tree)) Renew(comm, &place->tree);
    return may_be;
  };
  AskAnewIfLost(&of->wanted);
  const TreesType type = Session::Get().settings().trees_type;
  CommunicatorTree* tree = &of->wanted.tree;
  bool may_be = advance(tree->was_carried ? TreesType::kSwitches : type, &of->wanted);
  const bool is_over_ranks = tree->id != 0 && tree->carried == nullptr;
  if (may_be && MayWantSwitches(*of) && !is_over_ranks && !tree->Carries(work)) {
    may_be = advance(TreesType::kRanks, &of->over_ranks);
    tree = &of->over_ranks.tree;
  }
  if (!may_be) trees->Close();
  return may_be && tree->id != 0 ? tree : nullptr;
}

void CountUse(CommunicatorTrees::Place* place) {
  if (place->stage != CommunicatorTrees::Place::kAnswered) ++place->uses;
}

// Collective: what collectives that were only started lacked, trees and room in their buffers.
void MakeUpForStarted(MPI_Comm comm, CommunicatorTrees* trees) {
  SwitchWork of_ranks;
  of_ranks.operation = ReductionOperation::kNone;
  trees->ForEachLength([&](CommunicatorTrees::OfLength* of) {
    if (!std::exchange(of->is_missed, false) || trees->is_closed) return;
    Follow(comm, of->operation, of->asked, of_ranks, of, trees);
  });
  trees->ForEach([comm](CommunicatorTree* tree) {
    tree->ForEachBuffers([comm, tree](TreeBuffers* buffers) {
      if (tree->id == 0 || !buffers->IsGrowthWanted()) return;
      tree->started.Drain();
      buffers->Grow(comm);
    });
  });
}

}  // namespace

bool CommunicatorTree::IsChanged() const {
  return news->is_gone.load(std::memory_order_relaxed) ||
         news->revision.load(std::memory_order_relaxed) > revision;
}

CommunicatorTree* TreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes,
                         const SwitchWork& work) {
  CommunicatorTrees* const trees = TreesOf(comm, bytes);
  if (trees == nullptr) return nullptr;
  if (std::exchange(trees->were_started, false)) MakeUpForStarted(comm, trees);
  if (trees->is_closed) return nullptr;
  uint64_t asked = 0;
  CommunicatorTrees::OfLength* const of = TreesFor(operation, bytes, trees, &asked);
  return Follow(comm, operation, asked, work, of, trees);
}

CommunicatorTree* PresentTreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes) {
  CommunicatorTrees* const trees = TreesOf(comm, bytes);
  if (trees == nullptr) return nullptr;
  trees->were_started = true;
  uint64_t asked = 0;
  CommunicatorTrees::OfLength* const of = TreesFor(operation, bytes, trees, &asked);
  const auto is_over_ranks = [](const CommunicatorTree& tree) {
    return tree.id != 0 && tree.carried == nullptr;
  };
  CountUse(&of->wanted);
  CommunicatorTree* tree = &of->wanted.tree;
  if (MayWantSwitches(*of) && !is_over_ranks(*tree)) {
    CountUse(&of->over_ranks);
    tree = &of->over_ranks.tree;
  }
  if (is_over_ranks(*tree) && !tree->is_change_told) return tree;
  of->is_missed = true;
  of->operation = operation;
  of->asked = asked;
  return nullptr;
}

void SpoilTreesOf(MPI_Comm comm) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees) || trees == nullptr) return;
  trees->ForEach([](CommunicatorTree* tree) { tree->tags.is_spoilt = true; });
}

EndingCommunicator::EndingCommunicator(const MPI_Comm* comm)
    : comm_(comm == nullptr ? MPI_COMM_NULL : *comm), outer_(ending) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  // Which MPI does not free.
  const bool is_predefined = comm_ == MPI_COMM_WORLD || comm_ == MPI_COMM_SELF;
  if (!is_predefined && Find(comm_, &was_seen, &trees)) {
    if (!was_seen) KeepTrees(comm_, nullptr);
    if (trees != nullptr) trees->Close();
  }
  ending = this;
}

EndingCommunicator::~EndingCommunicator() { ending = outer_; }

bool EndingCommunicator::Is(MPI_Comm comm) {
  const EndingCommunicator* one = ending;
  while (one != nullptr && one->comm_ != comm) one = one->outer_;
  return one != nullptr;
}

void SettleFreedTrees() {
  DeleteFreed();
  if (TagPoolComm() == MPI_COMM_NULL) return;
  TellWhatIsGivenBack();
  SettleTags();
}

void StartCommunicatorTrees() {
  if (Session::Get().settings().trees == TreesWhen::kNever || Session::Get().Job() == 0) return;
  if (Session::Get().hosts() < 2) {
    Session::Get().Say("no trees: all ranks are on one host, where the MPI library knows better");
    return;
  }
  if (!OpenTagPool()) {
    Session::Get().Say("no trees: the MPI library has no communicator or no tags for them");
    return;
  }
  StartKeepingTrees(Forget);
  are_on = true;
}

void EndCommunicatorTrees() {
  if (!std::exchange(are_on, false)) return;
  EndKeepingTrees();
  DeleteFreed();
  StopAskingMeanwhile();
  GiveBackAll(Waits::kProgram);
  CloseTagPool();
}

}  // namespace coppice::mpi
