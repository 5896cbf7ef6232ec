// An Allreduce without a root: ranks exchange the message, or halves of it, in the order of a tree
// (rank_order.h). What a step receives is combined with the result so far in the ranks' order, so
// that all ranks get the same bits.
#ifndef COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_
#define COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "agents/mpi/tree/elements.h"
#include "agents/mpi/tree/rank_order.h"
#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_memory.h"

namespace coppice::mpi {

// What is combined, and where: `input` may be `result`.
struct ExchangedData {
  TypeLayout layout;
  int count = 0;
  MPI_Op op = MPI_OP_NULL;
  const void* input = nullptr;
  void* result = nullptr;
};

class Exchanging final {
 public:
  // One rank's part. Tags and room must outlive it; room[0] has place for all elements when it
  // begins.
  Exchanging(const TreeTags& tags, std::vector<ExchangeStep> steps, const ExchangedData& data,
             const TreeBuffers& room);

  // As Pipeline's. After an error the steps are taken all the same, so that no rank waits for one
  // that has failed.
  bool Advance();
  int Run();
  int error() const { return error_; }

 private:
  void Begin();
  void Post(const ExchangeStep& step);
  bool IsThrough();
  void Combine(const ExchangeStep& step);
  void Copy(const void* from, void* to, int count);
  void* At(void* origin, const ExchangeStep::Part& part) const {
    return ElementAt(origin, data_.layout, part.first);
  }
  void Check(int error) {
    if (error_ == MPI_SUCCESS) error_ = error;
  }

  const TreeTags& tags_;
  const std::vector<ExchangeStep> steps_;
  const ExchangedData data_;
  const TreeBuffers& room_;
  void* arrival_ = nullptr;  // what comes, before it is combined
  bool has_begun_ = false;
  size_t step_ = 0;
  bool is_posted_ = false;  // that step is
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int error_ = MPI_SUCCESS;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_EXCHANGE_H_
