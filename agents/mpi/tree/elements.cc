#include "agents/mpi/tree/elements.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "agents/mpi/tree/tag_pool.h"

namespace coppice::mpi {
namespace {

// No more segments than requests can be had for.
constexpr MPI_Count kMaxSegments = 512;

// Predefined types, and any number of such beside each other.
bool IsInOrder(MPI_Datatype type) {
  if (IsPredefined(type)) return true;
  if (!IsDescribed(type)) return false;
  int integers = 0, addresses = 0, types = 0, combiner = 0, count = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) {
    return false;
  }
  const bool is_contiguous = combiner == MPI_COMBINER_CONTIGUOUS && integers == 1;
  MPI_Aint nowhere = 0;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if ((combiner != MPI_COMBINER_DUP && !is_contiguous) || types != 1 || addresses != 0 ||
      PMPI_Type_get_contents(type, integers, 0, 1, &count, &nowhere, &inner) != MPI_SUCCESS) {
    return false;
  }
  const bool is_in_order = IsInOrder(inner);
  if (!IsPredefined(inner)) PMPI_Type_free(&inner);
  return is_in_order;
}

MPI_Aint LastOf(const TypeLayout& layout, int count) {
  return static_cast<MPI_Aint>(std::max(count, 1) - 1) * layout.extent;
}

constexpr uintptr_t kAlignment = alignof(std::max_align_t);

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
  layout->is_named = IsPredefined(type);
  layout->is_in_order = layout->is_named || IsInOrder(type);
  return layout->size >= 0;
}

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
    length = std::max(segment_bytes / element_bytes,
                      (bytes + kMaxSegments * element_bytes - 1) / (kMaxSegments * element_bytes));
  }
  length_ = static_cast<int>(std::clamp<MPI_Count>(length, 1, std::max(count, 1)));
  segments_ =
      count == 0 ? 1 : static_cast<int>((static_cast<MPI_Count>(count) + length_ - 1) / length_);
}

int Segments::length(int segment) const { return std::min(length_, elements_ - first(segment)); }

bool IsBuffer(const void* buffer, int count, const TypeLayout& layout) {
  if (layout.is_named && buffer != nullptr) return true;
  const MPI_Comm pool = TagPoolComm();
  return pool == MPI_COMM_NULL ||
         PMPI_Send(buffer, count, layout.type, MPI_PROC_NULL, 0, pool) == MPI_SUCCESS;
}

namespace {

// The groups of MPI 3.1, 5.9.2, and the pairs of 5.9.4.
enum Group : unsigned {
  kNone = 0,
  kCInteger = 1U << 0U,
  kFortranInteger = 1U << 1U,
  kFloatingPoint = 1U << 2U,
  kLogical = 1U << 3U,
  kComplex = 1U << 4U,
  kByte = 1U << 5U,
  kMultiLanguage = 1U << 6U,
  kPair = 1U << 7U,
};

// A chain of comparisons rather than a table: handles are addresses in Open MPI, known only after
// loading, and one name may stand for several types.
bool IsOneOf(MPI_Datatype type, std::initializer_list<MPI_Datatype> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

unsigned GroupOf(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return kNone;
  if (IsOneOf(type, {MPI_INT, MPI_LONG, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_UNSIGNED,
                     MPI_UNSIGNED_LONG, MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR,
                     MPI_UNSIGNED_CHAR, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
                     MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T})) {
    return kCInteger;
  }
  if (IsOneOf(type, {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                     MPI_REAL4, MPI_REAL8})) {
    return kFloatingPoint;
  }
  if (IsOneOf(type, {MPI_BYTE})) return kByte;
  if (IsOneOf(type, {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})) {
    return kFortranInteger;
  }
  if (IsOneOf(type, {MPI_AINT, MPI_OFFSET, MPI_COUNT})) return kMultiLanguage;
  if (IsOneOf(type, {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL})) return kLogical;
  if (IsOneOf(type, {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                     MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
                     MPI_CXX_LONG_DOUBLE_COMPLEX})) {
    return kComplex;
  }
  if (IsOneOf(type, {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                     MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER})) {
    return kPair;
  }
  return kNone;
}

// Groups that a predefined operation is defined for; kNone: none that a collective may use.
unsigned GroupsOf(MPI_Op op) {
  constexpr unsigned kInteger = kCInteger | kFortranInteger;
  if (op == MPI_MAX || op == MPI_MIN) return kInteger | kFloatingPoint | kMultiLanguage;
  if (op == MPI_SUM || op == MPI_PROD) {
    return kInteger | kFloatingPoint | kComplex | kMultiLanguage;
  }
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) return kCInteger | kLogical;
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) return kInteger | kByte | kMultiLanguage;
  if (op == MPI_MINLOC || op == MPI_MAXLOC) return kPair;
  return kNone;
}

bool IsPredefinedOp(MPI_Op op) {
  const MPI_Op all[] = {MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD, MPI_LAND,
                        MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR, MPI_BXOR,
                        MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  return std::find(std::begin(all), std::end(all), op) != std::end(all);
}

}  // namespace

Reduction ReductionOf(MPI_Op op, MPI_Datatype type) {
  if (op == MPI_OP_NULL || type == MPI_DATATYPE_NULL) return Reduction::kNotOurs;
  if (IsPredefinedOp(op)) {
    return (GroupsOf(op) & GroupOf(type)) != 0 ? Reduction::kAnyOrder : Reduction::kNotOurs;
  }
  int commutes = 0;
  if (PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS) return Reduction::kNotOurs;
  return commutes != 0 ? Reduction::kAnyOrder : Reduction::kRankOrder;
}

ReductionOperation SwitchOperationOf(MPI_Op op) {
  const std::pair<MPI_Op, ReductionOperation> known[] = {
      {MPI_SUM, ReductionOperation::kSum},         {MPI_PROD, ReductionOperation::kProduct},
      {MPI_MIN, ReductionOperation::kMinimum},     {MPI_MAX, ReductionOperation::kMaximum},
      {MPI_BAND, ReductionOperation::kBitwiseAnd}, {MPI_BOR, ReductionOperation::kBitwiseOr},
      {MPI_BXOR, ReductionOperation::kBitwiseXor}, {MPI_LAND, ReductionOperation::kLogicalAnd},
      {MPI_LOR, ReductionOperation::kLogicalOr},   {MPI_LXOR, ReductionOperation::kLogicalXor}};
  const auto found = std::find_if(std::begin(known), std::end(known),
                                  [op](const auto& one) { return one.first == op; });
  return found != std::end(known) ? found->second : ReductionOperation::kNone;
}

namespace {

// By the MPI library's own operation, as the standard is not followed everywhere: Debian's MPICH
// 4.0.2 takes the largest of unsigned integers as if they were signed, Open MPI 4.1.4 that of
// MPI_UNSIGNED_LONG.
bool IsComparedAsUnsigned(MPI_Datatype type) {
  const uint64_t all_ones = UINT64_MAX;
  uint64_t one = 0;
  std::memset(&one, 1, sizeof(one));
  return PMPI_Reduce_local(&all_ones, &one, 1, type, MPI_MAX) == MPI_SUCCESS &&
         (one & 0xffU) == 0xffU;
}

}  // namespace

// MPI_LOGICAL is left out: what .TRUE. is, is the compiler's.
ElementType SwitchElementOf(MPI_Op op, const TypeLayout& layout) {
  constexpr ElementType kSigned[] = {ElementType::kInt8, ElementType::kInt16, ElementType::kInt32,
                                     ElementType::kInt64};
  constexpr ElementType kUnsigned[] = {ElementType::kUint8, ElementType::kUint16,
                                       ElementType::kUint32, ElementType::kUint64};
  if (!layout.IsDense() || layout.size > 8 ||
      !std::has_single_bit(static_cast<unsigned>(layout.size))) {
    return ElementType::kNone;
  }
  const unsigned group = GroupOf(layout.type);
  if (group == kFloatingPoint) {
    return layout.size == 8   ? ElementType::kDouble
           : layout.size == 4 ? ElementType::kFloat
                              : ElementType::kNone;
  }
  const bool is_integer = (group & (kCInteger | kFortranInteger | kMultiLanguage | kByte)) != 0 ||
                          IsOneOf(layout.type, {MPI_C_BOOL, MPI_CXX_BOOL});
  if (!is_integer) return ElementType::kNone;
  // Only order depends on the sign.
  const bool is_signed = (op == MPI_MAX || op == MPI_MIN) && !IsComparedAsUnsigned(layout.type);
  const auto size = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(layout.size)));
  return is_signed ? kSigned[size] : kUnsigned[size];
}

}  // namespace coppice::mpi
