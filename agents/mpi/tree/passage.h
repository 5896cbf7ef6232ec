// One collective's way through this member, over the ranks of a communicator's tree: along it,
// another one or all trees of a forest (pipeline.h), or by exchanges (exchange.h). It is advanced
// until it is over: in one go by a blocking collective, or whenever the program is in MPI
// (started.h).
#ifndef COPPICE_AGENTS_MPI_TREE_PASSAGE_H_
#define COPPICE_AGENTS_MPI_TREE_PASSAGE_H_

#include <mpi.h>

#include <deque>
#include <optional>

#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/communicator_trees.h"
#include "agents/mpi/tree/exchange.h"
#include "agents/mpi/tree/pipeline.h"
#include "agents/mpi/tree/trial.h"

namespace coppice::mpi {

// What is broadcast and is more than plain bytes, at this member. Ranks may name the same data by
// different types and counts: segments of bytes are all that they have in common. So it is packed
// at the call's root and unpacked elsewhere.
struct RepackedData {
  bool is_there = false, is_sender = false;
  void* buffer = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  void* packed = nullptr;  // of so many bytes
  int bytes = 0;
};

// Does so, if there is something, by a message of the tree to this process itself where it has to.
// An error of MPI's.
int Repack(const RepackedData& data, const CommunicatorTree& tree);

// What one member does in one collective.
struct Route {
  TreeCount what = kCountBarrier;  // or kCountBcast, ...
  CommunicatorTree* tree = nullptr;
  Way way = Way::kTree;  // not kNative
  // Of a Barrier without input and result; by exchanges or a forest only these, layout, count and
  // operation.
  Flow flow;
  RepackedData repacked;
};

class Passage final {
 public:
  // The tree outlives it and is not replaced meanwhile; its buffers are long enough. It has all
  // memory of its own then, or throws std::bad_alloc: nothing was sent yet.
  explicit Passage(Route route);
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // Does what can be done now; waits for nobody. True: it is over, its buffers are the program's
  // again, and error() is what MPI returns. After an error of messages the tree's tags are spoilt.
  bool Advance();
  // Advances until then, and waits within MPI. Returns error().
  int Run();
  int error() const { return error_; }

  // What the root has said along the way down, if it reaches this member.
  bool word() const { return !pipelines_.empty() && pipelines_.front().word(); }

 private:
  // A forest's trees.
  void Divide(const Flow& flow);
  void Begin();
  void End();

  CommunicatorTree* const tree_;
  const RepackedData repacked_;
  char nothing_[2] = {};  // what a Barrier sends and receives
  std::deque<Pipeline> pipelines_;
  std::optional<Exchanging> exchange_;  // instead
  bool has_begun_ = false, is_over_ = false;
  int error_ = MPI_SUCCESS;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_PASSAGE_H_
