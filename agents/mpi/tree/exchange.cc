#include "agents/mpi/tree/exchange.h"

#include <utility>

namespace coppice::mpi {

Exchanging::Exchanging(const TreeTags& tags, std::vector<ExchangeStep> steps,
                       const ExchangedData& data, const TreeBuffers& room)
    : tags_(tags), steps_(std::move(steps)), data_(data), room_(room) {}

bool Exchanging::Advance() {
  if (!has_begun_) Begin();
  for (; step_ < steps_.size(); ++step_) {
    if (!is_posted_) Post(steps_[step_]);
    if (!IsThrough()) return false;
    is_posted_ = false;
    if (steps_[step_].combines) Combine(steps_[step_]);
  }
  return true;
}

int Exchanging::Run() {
  while (!Advance()) {
    for (MPI_Request& request : requests_) Check(PMPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  return error_;
}

void Exchanging::Begin() {
  has_begun_ = true;
  arrival_ = OriginIn(room_[0], data_.layout, data_.count);
  if (data_.input != data_.result) Copy(data_.input, data_.result, data_.count);
}

void Exchanging::Post(const ExchangeStep& step) {
  const int peer = tags_.members.World(step.peer);
  const int tag = tags_.first_tag + kExchangeTag;
  void* const into = step.combines ? arrival_ : data_.result;
  if (step.receive.is_there) {
    Check(PMPI_Irecv(At(into, step.receive), step.receive.count, data_.layout.type, peer, tag,
                     tags_.comm, &requests_[0]));
  }
  if (step.send.is_there) {
    Check(PMPI_Isend(At(data_.result, step.send), step.send.count, data_.layout.type, peer, tag,
                     tags_.comm, &requests_[1]));
  }
  is_posted_ = true;
}

// Whether both messages of the step are complete, or have failed.
bool Exchanging::IsThrough() {
  for (MPI_Request& request : requests_) {
    bool is_complete = false;
    const int error = TestMessage(&request, &is_complete, MPI_STATUS_IGNORE);
    Check(error);
    if (error != MPI_SUCCESS) request = MPI_REQUEST_NULL;
    if (error == MPI_SUCCESS && !is_complete) return false;
  }
  return true;
}

void Exchanging::Copy(const void* from, void* to, int count) {
  if (count > 0) Check(CopyElements(tags_, data_.layout, from, to, count));
}

void Exchanging::Combine(const ExchangeStep& step) {
  const ExchangeStep::Part& part = step.receive;
  if (part.count == 0) return;
  void* const own = At(data_.result, part);
  void* const came = At(arrival_, part);
  if (step.is_peer_later) {
    Check(PMPI_Reduce_local(own, came, part.count, data_.layout.type, data_.op));
    Copy(came, own, part.count);
  } else {
    Check(PMPI_Reduce_local(came, own, part.count, data_.layout.type, data_.op));
  }
}

}  // namespace coppice::mpi
