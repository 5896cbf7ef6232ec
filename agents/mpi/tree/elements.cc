#include "agents/mpi/tree/elements.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace coppice::mpi {
namespace {

// No more segments than requests can be had for.
constexpr MPI_Count kMostSegments = 512;

// Of a predefined type, of those of MPI_Type_create_f90_* too: nobody may free them, and Open MPI
// ends a program that does.
bool IsPredefinedCombiner(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

bool IsNamed(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  return PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
         IsPredefinedCombiner(combiner);
}

// Predefined types, and any number of such beside each other.
bool IsInOrder(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) {
    return false;
  }
  if (IsPredefinedCombiner(combiner)) return true;
  const bool is_contiguous = combiner == MPI_COMBINER_CONTIGUOUS && integers == 1;
  if ((combiner != MPI_COMBINER_DUP && !is_contiguous) || types != 1 || addresses != 0) {
    return false;
  }
  int count = 0;
  MPI_Aint nowhere = 0;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (PMPI_Type_get_contents(type, integers, 0, 1, &count, &nowhere, &inner) != MPI_SUCCESS) {
    return false;
  }
  const bool is_in_order = IsInOrder(inner);
  if (PMPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
      !IsPredefinedCombiner(combiner)) {
    PMPI_Type_free(&inner);
  }
  return is_in_order;
}

}  // namespace

bool LayoutOf(MPI_Datatype type, TypeLayout* layout) {
  if (type == MPI_DATATYPE_NULL) return false;
  layout->type = type;
  MPI_Aint lb = 0;
  if (PMPI_Type_size_x(type, &layout->size) != MPI_SUCCESS ||
      PMPI_Type_get_extent(type, &lb, &layout->extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent(type, &layout->true_lb, &layout->true_extent) != MPI_SUCCESS) {
    return false;
  }
  layout->is_named = IsNamed(type);
  layout->is_in_order = layout->is_named || IsInOrder(type);
  return layout->size >= 0;
}

namespace {

MPI_Aint LastOf(const TypeLayout& layout, int count) {
  return static_cast<MPI_Aint>(std::max(count, 1) - 1) * layout.extent;
}

constexpr uintptr_t kAlignment = alignof(std::max_align_t);

}  // namespace

size_t RoomFor(const TypeLayout& layout, int count) {
  const MPI_Aint span = layout.true_extent + std::abs(LastOf(layout, count));
  return static_cast<size_t>(std::max<MPI_Aint>(span, 0)) + kAlignment;
}

void* OriginIn(void* room, const TypeLayout& layout, int count) {
  const MPI_Aint lowest = layout.true_lb + std::min<MPI_Aint>(LastOf(layout, count), 0);
  const uintptr_t origin = reinterpret_cast<uintptr_t>(room) - lowest;
  return reinterpret_cast<void*>((origin + kAlignment - 1) / kAlignment * kAlignment);
}

Segments::Segments(int count, MPI_Count element_bytes, int segment_bytes) : elements_(count) {
  const MPI_Count bytes = count * element_bytes;
  MPI_Count length = count;
  if (element_bytes > 0) {
    length = std::max(segment_bytes / element_bytes, (bytes + kMostSegments * element_bytes - 1) /
                                                         (kMostSegments * element_bytes));
  }
  length_ = static_cast<int>(std::clamp<MPI_Count>(length, 1, std::max(count, 1)));
  segments_ =
      count == 0 ? 1 : static_cast<int>((static_cast<MPI_Count>(count) + length_ - 1) / length_);
}

int Segments::length(int segment) const { return std::min(length_, elements_ - first(segment)); }

}  // namespace coppice::mpi
