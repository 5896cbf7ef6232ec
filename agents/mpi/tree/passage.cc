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
  } else if (route.way == Way::kForest) {
    Divide(flow);
  } else {
    pipelines_.emplace_back(tree_->tags, tree_->ShapeOf(route.way), tree_->pieces, std::move(flow));
  }
}

void Passage::Divide(const Flow& flow) {
  const std::vector<int> first = tree_->FirstElements(flow.count);
  for (size_t number = 0; number < tree_->forest.size(); ++number) {
    const ForestPart& part = tree_->forest[number];
    Flow own = flow;
    own.count = first[number + 1] - first[number];
    if (own.count == 0) continue;
    own.input = ElementAt(flow.input, flow.layout, first[number]);
    own.result = ElementAt(flow.result, flow.layout, first[number]);
    own.has_result = true;
    own.down_from = part.shape.parent;
    own.down_to = part.shape.children;
    own.word = flow.word && number == 0;
    pipelines_.emplace_back(part.tags, part.shape, part.pieces, std::move(own));
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
  bool are_over = true;
  for (Pipeline& one : pipelines_) are_over &= one.Advance();
  if (!are_over || (exchange_.has_value() && !exchange_->Advance())) return false;
  End();
  return true;
}

int Passage::Run() {
  if (!has_begun_) Begin();
  if (is_over_) return error_;
  Pipeline::Run(&pipelines_);
  if (exchange_.has_value()) exchange_->Run();
  End();
  return error_;
}

void Passage::End() {
  is_over_ = true;
  if (exchange_.has_value()) error_ = exchange_->error();
  bool is_memory_lost = false;
  for (const Pipeline& one : pipelines_) {
    if (error_ == MPI_SUCCESS) error_ = one.error();
    is_memory_lost |= one.is_memory_lost();
  }
  if (error_ != MPI_SUCCESS) tree_->tags.is_spoilt = true;
  if (is_memory_lost) tree_->ForEachBuffers([](TreeBuffers* buffers) { buffers->Leak(); });
  if (error_ == MPI_SUCCESS && !repacked_.is_sender) error_ = Repack(repacked_, *tree_);
}

}  // namespace coppice::mpi
