// Moves one collective's message along a tree, segment by segment, so that a segment is on its way
// up or down while the next one is combined:
//
//     children ---> chain of combination ---> parent          up: reduce
//     source   ---> receive buffer       ---> targets         down: distribute
//
// A rank's part is said by Flow; ranks' parts fit together, which is whose make them's care. Up
// never waits for down anywhere, so that no ranks wait for each other in a circle.
//
// Down messages carry a word for all ranks: see communicator_trees.h. A first message without any
// element says it; the first segment is in a message of its own then. Any other length than was
// expected is an error, which goes on downwards: no rank waits for one that has failed. Between two
// ranks one collective sends one kind of message in each direction, so that MPI's order of messages
// is all that tells segments apart, and tags need only tell trees and kinds apart.
#ifndef COPPICE_AGENTS_MPI_TREE_PIPELINE_H_
#define COPPICE_AGENTS_MPI_TREE_PIPELINE_H_

#include <mpi.h>

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "agents/mpi/tree/elements.h"
#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/tree_shape.h"

namespace coppice::mpi {

// What one rank does in one collective.
struct Flow {
  static constexpr int kNobody = -1;

  TypeLayout layout;  // of an element
  int count = 0;      // 1 at least

  bool goes_up = false;
  MPI_Op op = MPI_OP_NULL;      // MPI_OP_NULL: nothing to combine
  const void* input = nullptr;  // own data

  // Where the down message goes, if it comes here. Null is as good as any: so is MPI_BOTTOM.
  bool has_result = false;
  void* result = nullptr;
  int down_from = kNobody;  // kNobody: it begins here, or does not come here
  std::vector<int> down_to;

  bool word = false;  // to be told along the way down, if it begins here
};

class Pipeline final {
 public:
  // How much memory one needs: so many pieces in a tree of that shape, and so many bytes in each of
  // them, the same on all ranks that give the same arguments.
  static size_t Pieces(const TreeShape& shape);
  static size_t PieceBytes(const TreeTags& tags, const TreeShape& shape, const TypeLayout& layout,
                           int count);

  // All but the flow must outlive it; `pieces` are as many and as long as it needs when it begins.
  // Has all memory of its own then, or throws std::bad_alloc: nothing was sent yet.
  Pipeline(const TreeTags& tags, const TreeShape& shape, const TreeBuffers& pieces, Flow flow);

  // Does what can be done now; waits for nobody. True: this rank's part is done and its buffers are
  // its own again. error(): an error of MPI's, after which messages may be on their way still.
  bool Advance();
  int error() const { return error_; }
  // Advances all until then, and waits within MPI; of kMaxForestTrees at most.
  static void Run(std::deque<Pipeline>* pipelines);

  // What came down; flow.word if it begins here.
  bool word() const { return word_; }

  // After an error: MPI may still send from the memory that it was given.
  bool is_memory_lost() const { return is_memory_lost_; }

 private:
  // Accumulators, so that one is sent while the next is filled.
  static constexpr int kSlots = 4;

  void Allocate();
  void Begin();
  // Until one of those that Advance found awaited is complete.
  static void Wait(std::deque<Pipeline>* pipelines);
  void WaitForSends();
  std::array<std::vector<MPI_Request>*, 3> Sends() {
    return {&slot_sends_, &leaf_sends_, &down_sends_};
  }
  bool AreSent();
  // Do what can be done. Return what must be complete before more can be, null if that is nothing
  // of their own.
  MPI_Request* MoveUp();
  MPI_Request* MoveDown();
  bool IsUpDone() const { return up_ == segments_.count(); }
  bool IsDownDone() const { return flow_.down_from == Flow::kNobody || down_ == segments_.count(); }

  bool IsLeaf() const { return shape_.children.empty(); }
  bool IsResultAccumulator() const;
  void* Accumulator(int segment);
  const void* Input(int segment) const;
  void* Result(int segment) const;

  // One segment's chain, from its end. Returns what it waits for, null when it is whole.
  MPI_Request* Combine();
  MPI_Request* TakeFirst();
  void PostFirst(int segment);
  MPI_Request* TakeNext(size_t place);
  void PostNext(size_t place, int segment);
  void Finish(int segment);

  // True when all of segment down_ has come; else *awaited is what has not.
  bool HasCome(MPI_Request** awaited);
  bool ComesDown(const MPI_Request* request) const;
  void Look(const MPI_Status& status);
  void TellOfError();
  void SendDown(const void* data, int segment);
  void Copy(const void* from, void* to, int segment);
  void Send(const void* data, int segment, int to, TreeTag tag, MPI_Request* request);
  void SendElements(const void* data, int count, int to, TreeTag tag, MPI_Request* request);
  void Receive(void* data, int segment, int from, TreeTag tag, MPI_Request* request);
  // True if complete, or failed.
  bool IsComplete(MPI_Request* request, MPI_Status* status = MPI_STATUS_IGNORE);
  bool Check(int error);
  void Abandon();

  const TreeTags& tags_;
  const TreeShape& shape_;
  const TreeBuffers& pieces_;
  const Flow flow_;
  const Segments segments_;
  int error_ = MPI_SUCCESS;
  bool word_;
  bool has_begun_ = false, is_over_ = false;
  MPI_Request* awaited_[2] = {};  // upwards and downwards; null: nothing
  size_t sends_ = 0, sent_ = 0;   // all before these are complete: which of Sends(), and in it

  int up_ = 0;            // segments combined
  size_t place_ = 0;      // in the chain of segment up_
  int first_posted_ = 0;  // segments whose first receive was posted
  int down_posted_ = 0;
  int down_ = 0;                                 // segments received
  MPI_Request rest_receive_ = MPI_REQUEST_NULL;  // the first segment, after the word
  bool is_memory_lost_ = false;

  void* slots_[kSlots] = {};
  std::vector<MPI_Request> slot_sends_;     // [slot]
  std::vector<void*> arrivals_;             // [place in the chain], not of the first
  std::vector<MPI_Request> up_receives_;    // [place in the chain]
  std::vector<MPI_Request> leaf_sends_;     // [segment]
  std::vector<MPI_Request> down_receives_;  // [segment]
  std::vector<MPI_Request> down_sends_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_PIPELINE_H_
