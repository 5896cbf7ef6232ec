// Where the elements of a message lie: extents of a datatype as MPI counts them, room for elements
// whatever their bounds (negative ones too), and a message cut into segments.
#ifndef COPPICE_AGENTS_MPI_TREE_ELEMENTS_H_
#define COPPICE_AGENTS_MPI_TREE_ELEMENTS_H_

#include <mpi.h>

#include <cstddef>

#include "agents/links/frame.h"

namespace coppice::mpi {

struct TypeLayout {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Count size = 0;        // bytes that are sent
  MPI_Aint extent = 0;       // from one element to the next
  MPI_Aint true_lb = 0;      // of the bytes in use, from an element's origin
  MPI_Aint true_extent = 0;  // of the bytes in use
  bool is_named = false;     // predefined: MPI has it committed
  bool is_in_order = false;  // sent in the order in which it lies in memory, as far as is known

  // No gaps: bytes of neighbouring elements touch.
  bool IsDense() const { return true_lb == 0 && true_extent == size && extent == size; }
  // No gaps, and sent in the order in which it lies in memory.
  bool IsPlainBytes() const { return is_in_order && IsDense(); }
};

// False: MPI cannot say, or it is MPI_DATATYPE_NULL.
bool LayoutOf(MPI_Datatype type, TypeLayout* layout);

inline void* ElementAt(void* origin, const TypeLayout& layout, int index) {
  return static_cast<char*>(origin) + static_cast<MPI_Aint>(index) * layout.extent;
}
inline const void* ElementAt(const void* origin, const TypeLayout& layout, int index) {
  return static_cast<const char*>(origin) + static_cast<MPI_Aint>(index) * layout.extent;
}

// Bytes of memory that hold `count` elements, wherever in it they begin.
size_t RoomFor(const TypeLayout& layout, int count);
// What MPI calls the address of a buffer of `count` elements that lie in `room`: aligned as `room`,
// which is as malloc's.
void* OriginIn(void* room, const TypeLayout& layout, int count);

// `count` elements in segments of equal length, the last one perhaps shorter. A message without
// elements is one empty segment.
class Segments final {
 public:
  // The same on all ranks that agree on `segment_bytes` and on the number of bytes, count *
  // element_bytes. A segment has no more than `segment_bytes`, or one element, unless the message
  // has more than 512 times as many.
  Segments(int count, MPI_Count element_bytes, int segment_bytes);

  int count() const { return segments_; }
  int first(int segment) const { return segment * length_; }
  int length(int segment) const;
  int longest() const { return length_; }

 private:
  int elements_;
  int length_;
  int segments_;
};

// Whether the MPI library takes `count` elements there: it is asked by a message to nobody, whose
// arguments it looks at all the same, and only about types of the program's own, and buffers at
// address 0 (which MPI_BOTTOM is). The communicator of trees returns errors; without one there are
// no trees.
bool IsBuffer(const void* buffer, int count, const TypeLayout& layout);

// Which reductions can be carried out along a tree: predefined operations on the types that MPI
// defines them for (MPI 3.1, 5.9.2 and 5.9.4), user operations on any type. Everything else is left
// to the MPI library, which knows what to say about it, or what it allows beyond the standard.

enum class Reduction {
  kNotOurs,
  kAnyOrder,   // commutative
  kRankOrder,  // a user operation that is not
};

// The same on all ranks that give the same arguments.
Reduction ReductionOf(MPI_Op op, MPI_Datatype type);

// What switches call it, for a reduction that is ours; kNone: none of theirs.
ReductionOperation SwitchOperationOf(MPI_Op op);
ElementType SwitchElementOf(MPI_Op op, const TypeLayout& layout);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_ELEMENTS_H_
