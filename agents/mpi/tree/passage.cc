#include "agents/mpi/tree/passage.h"

#include <cstdint>
#include <utility>

#include "agents/mpi/tree/rank_order.h"

namespace coppice::mpi {
namespace {

// From here on halves of halves are sooner than whole messages.
constexpr uint64_t kHalved = uint64_t{64} << 10U;

std::vector<ExchangeStep> StepsOf(const CommunicatorTree& tree, const Flow& flow) {
  const auto bytes = static_cast<uint64_t>(flow.count) * static_cast<uint64_t>(flow.layout.size);
  return ExchangeSteps(tree.order, tree.shape.rank, flow.count, bytes >= kHalved);
}

}  // namespace

// By a message to itself instead of MPI_Pack and MPI_Unpack where MPICH refuses these, for a buffer
// at MPI_BOTTOM.
int Repack(const RepackedData& data, const CommunicatorTree& tree) {
  if (!data.is_there) return MPI_SUCCESS;
  const MPI_Comm comm = tree.tags.comm;
  const int own = tree.tags.members.World(tree.shape.rank);
  const int tag = tree.tags.first_tag + kCopyTag;
  int position = 0;
  if (data.buffer != MPI_BOTTOM) {
    return data.is_sender ? PMPI_Pack(data.buffer, data.count, data.type, data.packed, data.bytes,
                                      &position, comm)
                          : PMPI_Unpack(data.packed, data.bytes, &position, data.buffer, data.count,
                                        data.type, comm);
  }
  return data.is_sender ? PMPI_Sendrecv(data.buffer, data.count, data.type, own, tag, data.packed,
                                        data.bytes, MPI_PACKED, own, tag, comm, MPI_STATUS_IGNORE)
                        : PMPI_Sendrecv(data.packed, data.bytes, MPI_PACKED, own, tag, data.buffer,
                                        data.count, data.type, own, tag, comm, MPI_STATUS_IGNORE);
}

Passage::Passage(Route route) : tree_(route.tree), repacked_(route.repacked) {
  Flow& flow = route.flow;
  if (route.what == kCountBarrier) {
    flow.input = &nothing_[0];
    flow.result = &nothing_[1];
  }
  if (route.way == Way::kExchange) {
    const ExchangedData data = {flow.layout, flow.count, flow.op, flow.input, flow.result};
    exchange_.emplace(tree_->tags, StepsOf(*tree_, flow), data, tree_->whole);
  } else {
    pipeline_.emplace(tree_->tags, tree_->ShapeOf(route.way), tree_->pieces, std::move(flow));
  }
}

void Passage::Begin() {
  has_begun_ = true;
  if (!repacked_.is_sender) return;
  error_ = Repack(repacked_, *tree_);
  is_over_ = error_ != MPI_SUCCESS;
}

bool Passage::Advance() {
  if (!has_begun_) Begin();
  if (is_over_) return true;
  if (!(pipeline_.has_value() ? pipeline_->Advance() : exchange_->Advance())) return false;
  End(pipeline_.has_value() ? pipeline_->error() : exchange_->error());
  return true;
}

int Passage::Run() {
  if (!has_begun_) Begin();
  if (!is_over_) End(pipeline_.has_value() ? pipeline_->Run() : exchange_->Run());
  return error_;
}

void Passage::End(int error) {
  is_over_ = true;
  error_ = error;
  if (error != MPI_SUCCESS) tree_->tags.is_spoilt = true;
  if (pipeline_.has_value() && pipeline_->is_memory_lost()) {
    tree_->pieces.Leak();
    tree_->whole.Leak();
  }
  if (error == MPI_SUCCESS && !repacked_.is_sender) error_ = Repack(repacked_, *tree_);
}

}  // namespace coppice::mpi
