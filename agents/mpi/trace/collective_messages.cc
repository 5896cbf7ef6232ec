#include "agents/mpi/trace/collective_messages.h"

#include <algorithm>
#include <numeric>

namespace coppice::mpi {
namespace {

// The parent of `relative` in a binomial tree is `relative` without its lowest bit; its subtree
// holds the ranks from it up to the next with that bit carried:
//
//        0
//      / | |          relative ranks 0..7: 4 (100) hangs on 0, and holds 4..7
//     4  2  1
//    / |  |
//   6  5  3
//   |
//   7
int LowestBit(int relative) { return relative & -relative; }

int SubtreeSize(int relative, int size) {
  return relative == 0 ? size : std::min(LowestBit(relative), size - relative);
}

// Calls child(relative rank) for each child of `relative`, the largest subtree first.
template <typename Child>
void ForChildren(int relative, int size, Child child) {
  int bit = 1;
  while (bit < size && (relative & bit) == 0) bit <<= 1;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (relative + bit < size) child(relative + bit);
  }
}

int Relative(int rank, int size, int root) { return (rank - root + size) % size; }
int Absolute(int relative, int size, int root) {
  return static_cast<int>((static_cast<int64_t>(relative) + root) % size);
}

// Recursive halving of `bytes` along the binomial tree, then each rank passes size - 1 of the parts
// on around the ring. Part i has ceil(bytes / size) bytes, the last ones less.
void LongBcast(int rank, int size, int root, uint64_t bytes, MessageSink& sink) {
  const uint64_t part = (bytes + size - 1) / size;
  const auto range = [&](int first, int count) {
    const uint64_t begin = std::min(bytes, part * static_cast<uint64_t>(first));
    const uint64_t end = std::min(bytes, part * static_cast<uint64_t>(first + count));
    return end - begin;
  };
  const int relative = Relative(rank, size, root);
  ForChildren(relative, size, [&](int child) {
    const uint64_t share = range(child, SubtreeSize(child, size));
    if (share > 0) sink.Send(Absolute(child, size, root), share, 1);
  });
  // The ring leaves out the part that the right neighbour began with.
  const int right = (relative + 1) % size;
  sink.Send(Absolute(right, size, root), bytes - range(right, 1), size - 1);
}

}  // namespace

void BarrierMessages(int rank, int size, MessageSink& sink) {
  for (int64_t distance = 1; distance < size; distance *= 2) {
    sink.Send(static_cast<int>((rank + distance) % size), 0, 1);
  }
}

void BinomialBcastMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink) {
  ForChildren(Relative(rank, size, root), size,
              [&](int child) { sink.Send(Absolute(child, size, root), bytes, 1); });
}

void BcastMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink) {
  if (bytes < kLongBcast || size < kFewRanks) {
    BinomialBcastMessages(rank, size, root, bytes, sink);
  } else {
    LongBcast(rank, size, root, bytes, sink);
  }
}

void ReduceMessages(int rank, int size, int root, uint64_t bytes, MessageSink& sink) {
  const int relative = Relative(rank, size, root);
  if (relative == 0) return;
  sink.Send(Absolute(relative - LowestBit(relative), size, root), bytes, 1);
}

// Recursive doubling among the largest power of two; the first `extra` pairs of ranks fold into
// their odd ones before, which hand the result back after it.
//
//   0->1 2->3 4 5    ranks 1 3 4 5 double, then 1->0 3->2
void AllreduceMessages(int rank, int size, uint64_t bytes, bool commutes, MessageSink& sink) {
  if (size == 1) return;
  if (bytes >= kLongAllreduce && commutes) {
    // Ring: size - 1 steps reduce the parts, as many pass them on; of 2 * size parts the one a rank
    // ends with and the one that its neighbour ends with are not sent.
    const uint64_t part = (bytes + size - 1) / size;
    const auto bytes_of = [&](int i) {
      return std::min(bytes, part * (static_cast<uint64_t>(i) + 1)) -
             std::min(bytes, part * static_cast<uint64_t>(i));
    };
    const int right = (rank + 1) % size;
    sink.Send(right, 2 * bytes - bytes_of(right) - bytes_of((right + 1) % size), 2 * (size - 1));
    return;
  }
  int power = 1;
  while (power <= size / 2) power *= 2;
  const int extra = size - power;
  if (rank < 2 * extra && rank % 2 == 0) {
    sink.Send(rank + 1, bytes, 1);
    return;
  }
  const auto actual = [&](int folded) { return folded < extra ? 2 * folded + 1 : folded + extra; };
  const int folded = rank < 2 * extra ? rank / 2 : rank - extra;
  for (int bit = 1; bit < power; bit *= 2) sink.Send(actual(folded ^ bit), bytes, 1);
  if (rank < 2 * extra) sink.Send(rank - 1, bytes, 1);
}

void ScanMessages(int rank, int size, uint64_t bytes, MessageSink& sink) {
  for (int64_t bit = 1; bit < size; bit *= 2) {
    const int peer = static_cast<int>(rank ^ bit);
    if (peer < size) sink.Send(peer, bytes, 1);
  }
}

void GatherMessages(int rank, int size, int root, uint64_t block, MessageSink& sink) {
  const int relative = Relative(rank, size, root);
  if (relative == 0) return;
  sink.Send(Absolute(relative - LowestBit(relative), size, root),
            block * static_cast<uint64_t>(SubtreeSize(relative, size)), 1);
}

void ScatterMessages(int rank, int size, int root, uint64_t block, MessageSink& sink) {
  ForChildren(Relative(rank, size, root), size, [&](int child) {
    sink.Send(Absolute(child, size, root), block * static_cast<uint64_t>(SubtreeSize(child, size)),
              1);
  });
}

void AllgatherMessages(int rank, int size, uint64_t block, MessageSink& sink) {
  if (size == 1) return;
  if (block * static_cast<uint64_t>(size) >= kLongAllgather) {
    sink.Send((rank + 1) % size, block * static_cast<uint64_t>(size - 1), size - 1);
    return;
  }
  for (int64_t have = 1; have < size; have *= 2) {
    const int64_t blocks = std::min<int64_t>(have, size - have);
    sink.Send(static_cast<int>((rank - have + size) % size), block * static_cast<uint64_t>(blocks),
              1);
  }
}

void AllgathervMessages(int rank, const std::vector<uint64_t>& blocks, MessageSink& sink) {
  const int size = static_cast<int>(blocks.size());
  if (size <= 1) return;
  const uint64_t all = std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
  const int right = (rank + 1) % size;
  sink.Send(right, all - blocks[right], size - 1);
}

void AlltoallMessages(int rank, int size, uint64_t block, MessageSink& sink) {
  if (block > kShortAlltoall || size < kFewRanks) {
    for (int to = 0; to < size; ++to) {
      if (to != rank) sink.Send(to, block, 1);
    }
    return;
  }
  // Bruck: in step k go the blocks whose distance has bit k.
  for (int64_t bit = 1; bit < size; bit *= 2) {
    const int64_t whole = size / (2 * bit) * bit, rest = size % (2 * bit);
    const int64_t blocks = whole + std::max<int64_t>(0, rest - bit);
    sink.Send(static_cast<int>((rank + bit) % size), block * static_cast<uint64_t>(blocks), 1);
  }
}

void PairwiseMessages(int rank, const std::vector<uint64_t>& blocks, MessageSink& sink) {
  for (int to = 0; to < static_cast<int>(blocks.size()); ++to) {
    if (to != rank && blocks[to] > 0) sink.Send(to, blocks[to], 1);
  }
}

}  // namespace coppice::mpi
