#include "daemon/tree/batch/grid.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::StatusOr<uint32_t> CellCount(absl::Span<const uint32_t> sizes) {
  uint64_t cells = 1;
  for (const uint32_t size : sizes) {
    if (size == 0) return absl::InvalidArgumentError("an axis of the grid has size 0");
    cells *= size;
    if (cells > UINT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("the grid has more than ", UINT32_MAX, " processes"));
    }
  }
  if (sizes.empty()) return absl::InvalidArgumentError("the grid has no axis");
  return static_cast<uint32_t>(cells);
}

absl::StatusOr<std::vector<uint32_t>> AxesOf(const ProcessGrid& grid) {
  const auto count = static_cast<uint32_t>(grid.sizes.size());
  std::vector<uint32_t> axes = grid.axes;
  if (axes.empty()) {
    for (uint32_t axis = 0; axis < count; ++axis) axes.push_back(axis);
  }
  std::vector<bool> named(count, false);
  for (const uint32_t axis : axes) {
    if (axis >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " of a grid of ", count, " axes; they are numbered from 0"));
    }
    if (named[axis]) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is named twice"));
    }
    named[axis] = true;
  }
  return axes;
}

absl::Status CheckOrder(absl::Span<const uint32_t> order, uint32_t cells) {
  if (order.empty()) return absl::OkStatus();
  if (order.size() != cells) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order names ", order.size(), " ranks of a grid of ", cells));
  }
  std::vector<bool> named(cells, false);
  for (const uint32_t rank : order) {
    if (rank >= cells || named[rank]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the order names rank ", rank, rank < cells ? " twice" : "", ", but ",
                       "must name each of 0 to ", cells - 1, " once"));
    }
    named[rank] = true;
  }
  return absl::OkStatus();
}

// Distance in rank between neighbours along each axis.
std::vector<uint32_t> Strides(const ProcessGrid& grid) {
  const size_t axes = grid.sizes.size();
  std::vector<uint32_t> strides(axes, 1);
  for (size_t i = 1; i < axes; ++i) {
    if (grid.order == GridOrder::kFirstAxisFastest) {
      strides[i] = strides[i - 1] * grid.sizes[i - 1];
    } else {
      strides[axes - 1 - i] = strides[axes - i] * grid.sizes[axes - i];
    }
  }
  return strides;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> ParseGridSizes(absl::string_view text) {
  std::vector<uint32_t> sizes;
  for (const absl::string_view word : absl::StrSplit(text, 'x')) {
    uint32_t size = 0;
    const bool digits = word.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(word, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" is no process grid, such as 256x160 or 32x32x40"));
    }
    sizes.push_back(size);
  }
  RETURN_IF_ERROR(CellCount(sizes).status());
  return sizes;
}

absl::StatusOr<std::vector<BatchCommunicator>> GridLines(const ProcessGrid& grid,
                                                         absl::Span<const EndpointIndex> members,
                                                         absl::Span<const uint32_t> rank_order) {
  ASSIGN_OR_RETURN(const uint32_t cells, CellCount(grid.sizes));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> axes, AxesOf(grid));
  if (members.size() < cells) {
    return absl::InvalidArgumentError(
        absl::StrCat("the grid has ", cells, " processes, but there are ", members.size(),
                     " members; take a smaller grid or name more members"));
  }
  RETURN_IF_ERROR(CheckOrder(rank_order, cells));
  const std::vector<uint32_t> strides = Strides(grid);
  std::vector<BatchCommunicator> lines;
  for (const uint32_t axis : axes) {
    const uint32_t size = grid.sizes[axis], stride = strides[axis];
    for (uint32_t first = 0; first < cells; ++first) {
      if (first / stride % size != 0) continue;
      BatchCommunicator& line = lines.emplace_back();
      line.members.reserve(size);
      for (uint32_t i = 0; i < size; ++i) {
        const uint32_t rank = first + i * stride;
        line.members.push_back(members[rank_order.empty() ? rank : rank_order[rank]]);
      }
    }
  }
  return lines;
}

absl::StatusOr<std::vector<BatchCommunicator>> RandomGroups(
    uint32_t count, uint32_t size, uint64_t seed, absl::Span<const EndpointIndex> members) {
  if (size == 0 || size > members.size()) {
    return absl::InvalidArgumentError(absl::StrCat("groups of ", size, " out of ", members.size(),
                                                   " members; a group has 1 to all of them"));
  }
  std::mt19937_64 random(seed);
  std::vector<EndpointIndex> deck(members.begin(), members.end());
  std::vector<BatchCommunicator> groups(count);
  for (BatchCommunicator& group : groups) {
    // The first `size` steps of a Fisher-Yates shuffle; the deck need not be put in order again.
    for (uint32_t i = 0; i < size; ++i) std::swap(deck[i], deck[i + random() % (deck.size() - i)]);
    group.members.assign(deck.begin(), deck.begin() + size);
  }
  return groups;
}

}  // namespace coppice
