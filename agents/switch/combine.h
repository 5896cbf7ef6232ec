// How a switch combines what two children sent, element by element: every operation on every type
// that MPI defines it for (MPI 3.1, 5.9.2), and on half and bfloat16.
//
// The same bits for the same operands in the same order, on any machine: sums and products of half
// and bfloat16 are rounded once, to nearest, ties to even. Integers wrap. A minimum or a maximum
// keeps the earlier operand unless the later one is less or greater, so of 0 and -0 the earlier
// one, and a NaN that is there stays. What is logical gives 1 or 0.
#ifndef COPPICE_AGENTS_SWITCH_COMBINE_H_
#define COPPICE_AGENTS_SWITCH_COMBINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agents/links/frame.h"

namespace coppice {

// 1 of kBytes, 0 of kNone.
size_t ElementBytes(ElementType type);

// kTake on all types; arithmetic on all numbers; bitwise and logical operations on integers.
bool IsDefined(ReductionOperation operation, ElementType type);

// into = into (operation) from. Of a defined operation other than kTake, on equally many whole
// elements, which may lie anywhere. O(bytes).
void Combine(ReductionOperation operation, ElementType type, std::string_view from,
             std::string* into);

// The numbers of the two short types, for who reads or writes them.
double ValueOfHalf(uint16_t bits);
double ValueOfBfloat16(uint16_t bits);
// Rounded once. A NaN becomes the quiet one without a sign.
uint16_t NearestHalf(double value);
uint16_t NearestBfloat16(double value);

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_COMBINE_H_
