#include "agents/mpi/tree/exchange.h"

namespace coppice::mpi {
namespace {

class Exchanging final {
 public:
  Exchanging(const TreeTags& tags, const TypeLayout& layout, MPI_Op op, void* result, void* arrival)
      : tags_(tags), layout_(layout), op_(op), result_(result), arrival_(arrival) {}

  void Take(const ExchangeStep& step) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int peer = tags_.members.World(step.peer);
    const int tag = tags_.first_tag + kExchangeTag;
    void* const into = step.combines ? arrival_ : result_;
    if (step.receive.is_there) {
      Check(PMPI_Irecv(At(into, step.receive), step.receive.count, layout_.type, peer, tag,
                       tags_.comm, &requests[0]));
    }
    if (step.send.is_there) {
      Check(PMPI_Isend(At(result_, step.send), step.send.count, layout_.type, peer, tag, tags_.comm,
                       &requests[1]));
    }
    for (MPI_Request& request : requests) Check(PMPI_Wait(&request, MPI_STATUS_IGNORE));
    if (step.combines) Combine(step);
  }

  void Copy(const void* from, void* to, int count) {
    if (count > 0) Check(CopyElements(tags_, layout_, from, to, count));
  }

  int error() const { return error_; }

 private:
  void* At(void* origin, const ExchangeStep::Part& part) const {
    return ElementAt(origin, layout_, part.first);
  }

  void Combine(const ExchangeStep& step) {
    const ExchangeStep::Part& part = step.receive;
    if (part.count == 0) return;
    void* const own = At(result_, part);
    void* const came = At(arrival_, part);
    if (step.is_peer_later) {
      Check(PMPI_Reduce_local(own, came, part.count, layout_.type, op_));
      Copy(came, own, part.count);
    } else {
      Check(PMPI_Reduce_local(came, own, part.count, layout_.type, op_));
    }
  }

  void Check(int error) {
    if (error_ == MPI_SUCCESS) error_ = error;
  }

  const TreeTags& tags_;
  const TypeLayout& layout_;
  const MPI_Op op_;
  void* const result_;
  void* const arrival_;
  int error_ = MPI_SUCCESS;
};

}  // namespace

int RunExchange(const TreeTags& tags, const std::vector<ExchangeStep>& steps,
                const TypeLayout& layout, int count, MPI_Op op, const void* input, void* result,
                void* room) {
  Exchanging exchange(tags, layout, op, result, OriginIn(room, layout, count));
  if (input != result) exchange.Copy(input, result, count);
  for (const ExchangeStep& step : steps) exchange.Take(step);
  return exchange.error();
}

}  // namespace coppice::mpi
