// Dimension-order routing (W. Dally, B. Towles, "Principles and Practices of Interconnection
// Networks", section 8.4): correct the lowest wrong coordinate first.
//
//      (0,1)---(1,1)---(2,1)       from (0,0) to (2,1) in a mesh: x first, (1,0), (2,0), then
//        |       |       ^         y, (2,1). In a torus of extent 3 the way down is shorter:
//      (0,0)-->(1,0)-->(2,0)       (0,0) -> (2,0) over the cable round the end, then (2,1).
#include "daemon/fabric/grid_layout.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"

namespace coppice {
namespace {

absl::Status BadSwitch(const Fabric& fabric, SwitchIndex s, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(fabric, fabric.Vertex(s)), ": ", what,
                   "; dimension order needs descriptions such as \"sw(0,1;4x4 torus)\", use "
                   "shortest paths on another fabric"));
}

}  // namespace

absl::StatusOr<GridLayout> GridLayout::FromDescriptions(const Fabric& fabric) {
  GridLayout layout;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    RETURN_IF_ERROR(layout.AddPosition(fabric, SwitchIndex(s)));
  }
  RETURN_IF_ERROR(layout.FindNeighbours(fabric));
  return layout;
}

absl::Status GridLayout::AddPosition(const Fabric& fabric, SwitchIndex s) {
  const auto position = ParsePosition(fabric.switch_info(s).description);
  if (!position) return BadSwitch(fabric, s, "its description names no position on a grid");
  if (s.value() == 0) {
    extents_ = position->extents;
    kind_ = position->kind;
  } else if (position->extents != extents_ || position->kind != kind_) {
    return BadSwitch(
        fabric, s,
        absl::StrCat("its grid is not that of ", Describe(fabric, fabric.Vertex(SwitchIndex(0)))));
  }
  at_.insert(at_.end(), position->at.begin(), position->at.end());
  return absl::OkStatus();
}

absl::Status GridLayout::FindNeighbours(const Fabric& fabric) {
  const size_t dimensions = extents_.size();
  absl::flat_hash_map<std::vector<int32_t>, uint32_t> by_position;
  by_position.reserve(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const int32_t* first = at(SwitchIndex(s));
    const auto [other, fresh] =
        by_position.try_emplace(std::vector<int32_t>(first, first + dimensions), s);
    if (!fresh) {
      return BadSwitch(fabric, SwitchIndex(s),
                       absl::StrCat("its position is that of ",
                                    Describe(fabric, VertexIndex(other->second)), ", too"));
    }
  }
  neighbours_.assign(2 * dimensions * fabric.switch_count(), kNobody);
  for (const auto& [position, s] : by_position) {
    std::vector<int32_t> next = position;
    for (size_t d = 0; d < dimensions; ++d) {
      for (const int32_t up : {0, 1}) {
        next[d] = position[d] + (up == 1 ? 1 : -1);
        if (kind_ == GridKind::kTorus) next[d] = (next[d] + extents_[d]) % extents_[d];
        const auto it = by_position.find(next);
        if (it != by_position.end() && it->second != s) {
          neighbours_[2 * (dimensions * s + d) + up] = it->second;
        }
      }
      next[d] = position[d];
    }
  }
  return absl::OkStatus();
}

std::optional<SwitchIndex> GridLayout::Next(SwitchIndex s, SwitchIndex to) const {
  const size_t dimensions = extents_.size();
  const int32_t* here = at(s);
  const int32_t* there = at(to);
  for (size_t d = 0; d < dimensions; ++d) {
    if (here[d] == there[d]) continue;
    bool up = there[d] > here[d];
    if (kind_ == GridKind::kTorus) {
      const int32_t ahead = (there[d] - here[d] + extents_[d]) % extents_[d];
      up = 2 * ahead <= extents_[d];
    }
    const uint32_t next = neighbours_[2 * (dimensions * s.value() + d) + (up ? 1 : 0)];
    if (next == kNobody) return std::nullopt;
    return SwitchIndex(next);
  }
  return std::nullopt;
}

}  // namespace coppice
