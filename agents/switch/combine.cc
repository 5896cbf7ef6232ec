#include "agents/switch/combine.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace coppice {
namespace {

using Op = ReductionOperation;

// A binary floating-point format of 16 bits: sign, exponent, fraction (IEEE 754-2008, 3.4).
template <int kFractionBits>
struct ShortFormat {
  static constexpr int kExponentBits = 15 - kFractionBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint16_t kSign = 0x8000;
  static constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;
  static constexpr uint16_t kQuietNan = kInfinity | 1 << (kFractionBits - 1);

  static double Value(uint16_t bits) {
    const int exponent = (bits & kInfinity) >> kFractionBits;
    const int fraction = bits & ((1 << kFractionBits) - 1);
    double size = 0;
    if ((bits & kInfinity) == kInfinity) {
      size = fraction == 0 ? std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
      size = std::ldexp(fraction, 1 - kBias - kFractionBits);
    } else {
      size = std::ldexp(fraction + (1 << kFractionBits), exponent - kBias - kFractionBits);
    }
    return (bits & kSign) != 0 ? -size : size;
  }

  // The double's fraction is cut to the format's by adding to its bits what rounds them: a carry
  // out of the fraction is the next exponent, and out of the last exponent infinity.
  static uint16_t Nearest(double value) {
    const auto wide = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>(wide >> 48 & kSign);
    const uint64_t size = wide & ~(uint64_t{1} << 63);
    if (std::isnan(value)) return kQuietNan;
    if (std::isinf(value)) return sign | kInfinity;
    const int exponent = static_cast<int>(size >> 52) - 1023 + kBias;
    if (exponent >= (1 << kExponentBits) - 1) return sign | kInfinity;
    // Below the normal numbers more of the fraction goes, and the leading 1 is written out.
    const bool is_small = exponent <= 0;
    const int shift = 52 - kFractionBits + (is_small ? 1 - exponent : 0);
    if (shift > 54) return sign;
    const uint64_t fraction = size & ((uint64_t{1} << 52) - 1);
    const uint64_t kept =
        is_small ? fraction | uint64_t{1} << 52 : fraction | static_cast<uint64_t>(exponent) << 52;
    const uint64_t half = uint64_t{1} << (shift - 1);
    const uint64_t is_odd = kept >> shift & 1;
    return sign | static_cast<uint16_t>((kept + half - 1 + is_odd) >> shift);
  }
};
using HalfFormat = ShortFormat<10>;
using Bfloat16Format = ShortFormat<7>;

// An element of a short type as operations see it.
template <class Format>
struct ShortFloat {
  uint16_t bits;
};

template <class Element, class Function>
void ForEach(std::string_view from, std::string* into, const Function& function) {
  for (size_t at = 0; at + sizeof(Element) <= from.size(); at += sizeof(Element)) {
    Element earlier, later;
    std::memcpy(&earlier, into->data() + at, sizeof earlier);
    std::memcpy(&later, from.data() + at, sizeof later);
    const Element result = function(earlier, later);
    std::memcpy(into->data() + at, &result, sizeof result);
  }
}

// A wrapping sum or product: 64 bits without a sign have all that is kept.
template <class Number>
void CombineInteger(Op operation, std::string_view from, std::string* into) {
  const auto wrapped = [](uint64_t value) { return static_cast<Number>(value); };
  const auto wide = [](Number value) { return static_cast<uint64_t>(value); };
  switch (operation) {
    case Op::kSum:
      return ForEach<Number>(from, into,
                             [&](Number a, Number b) { return wrapped(wide(a) + wide(b)); });
    case Op::kProduct:
      return ForEach<Number>(from, into,
                             [&](Number a, Number b) { return wrapped(wide(a) * wide(b)); });
    case Op::kMinimum:
      return ForEach<Number>(from, into, [](Number a, Number b) { return b < a ? b : a; });
    case Op::kMaximum:
      return ForEach<Number>(from, into, [](Number a, Number b) { return b > a ? b : a; });
    case Op::kBitwiseAnd:
      return ForEach<Number>(from, into, [](Number a, Number b) { return Number(a & b); });
    case Op::kBitwiseOr:
      return ForEach<Number>(from, into, [](Number a, Number b) { return Number(a | b); });
    case Op::kBitwiseXor:
      return ForEach<Number>(from, into, [](Number a, Number b) { return Number(a ^ b); });
    case Op::kLogicalAnd:
      return ForEach<Number>(from, into,
                             [](Number a, Number b) { return Number(a != 0 && b != 0); });
    case Op::kLogicalOr:
      return ForEach<Number>(from, into,
                             [](Number a, Number b) { return Number(a != 0 || b != 0); });
    case Op::kLogicalXor:
      return ForEach<Number>(from, into,
                             [](Number a, Number b) { return Number((a != 0) != (b != 0)); });
    case Op::kNone:
    case Op::kTake:
      return;
  }
}

template <class Number>
void CombineReal(Op operation, std::string_view from, std::string* into) {
  static_assert(std::numeric_limits<Number>::is_iec559);
  switch (operation) {
    case Op::kSum:
      return ForEach<Number>(from, into, [](Number a, Number b) { return a + b; });
    case Op::kProduct:
      return ForEach<Number>(from, into, [](Number a, Number b) { return a * b; });
    case Op::kMinimum:
      return ForEach<Number>(from, into, [](Number a, Number b) { return b < a ? b : a; });
    case Op::kMaximum:
      return ForEach<Number>(from, into, [](Number a, Number b) { return b > a ? b : a; });
    default:
      return;
  }
}

// In double and rounded back. A product of two has at most 22 bits, so it is exact there; a sum has
// been rounded to 53 bits, and to round once more to p is the same as at once if 53 >= 2p + 2
// (Figueroa, When is double rounding innocuous?, 1995).
template <class Format>
void CombineShort(Op operation, std::string_view from, std::string* into) {
  using Short = ShortFloat<Format>;
  const auto value = [](Short number) { return Format::Value(number.bits); };
  switch (operation) {
    case Op::kSum:
      return ForEach<Short>(from, into, [&](Short a, Short b) {
        return Short{Format::Nearest(value(a) + value(b))};
      });
    case Op::kProduct:
      return ForEach<Short>(from, into, [&](Short a, Short b) {
        return Short{Format::Nearest(value(a) * value(b))};
      });
    case Op::kMinimum:
      return ForEach<Short>(from, into,
                            [&](Short a, Short b) { return value(b) < value(a) ? b : a; });
    case Op::kMaximum:
      return ForEach<Short>(from, into,
                            [&](Short a, Short b) { return value(b) > value(a) ? b : a; });
    default:
      return;
  }
}

bool IsIntegerType(ElementType type) {
  return type >= ElementType::kInt8 && type <= ElementType::kUint64;
}

}  // namespace

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kNone:
      return 0;
    case ElementType::kBytes:
    case ElementType::kInt8:
    case ElementType::kUint8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kUint16:
    case ElementType::kHalf:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kFloat:
      return 4;
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kDouble:
      return 8;
  }
  return 0;
}

bool IsDefined(Op operation, ElementType type) {
  if (operation == Op::kNone || type == ElementType::kNone) return false;
  if (operation == Op::kTake) return true;
  if (type == ElementType::kBytes) return false;
  return operation <= Op::kMaximum || IsIntegerType(type);
}

void Combine(Op operation, ElementType type, std::string_view from, std::string* into) {
  switch (type) {
    case ElementType::kInt8:
      return CombineInteger<int8_t>(operation, from, into);
    case ElementType::kInt16:
      return CombineInteger<int16_t>(operation, from, into);
    case ElementType::kInt32:
      return CombineInteger<int32_t>(operation, from, into);
    case ElementType::kInt64:
      return CombineInteger<int64_t>(operation, from, into);
    case ElementType::kUint8:
      return CombineInteger<uint8_t>(operation, from, into);
    case ElementType::kUint16:
      return CombineInteger<uint16_t>(operation, from, into);
    case ElementType::kUint32:
      return CombineInteger<uint32_t>(operation, from, into);
    case ElementType::kUint64:
      return CombineInteger<uint64_t>(operation, from, into);
    case ElementType::kFloat:
      return CombineReal<float>(operation, from, into);
    case ElementType::kDouble:
      return CombineReal<double>(operation, from, into);
    case ElementType::kHalf:
      return CombineShort<HalfFormat>(operation, from, into);
    case ElementType::kBfloat16:
      return CombineShort<Bfloat16Format>(operation, from, into);
    case ElementType::kNone:
    case ElementType::kBytes:
      return;
  }
}

double ValueOfHalf(uint16_t bits) { return HalfFormat::Value(bits); }
double ValueOfBfloat16(uint16_t bits) { return Bfloat16Format::Value(bits); }
uint16_t NearestHalf(double value) { return HalfFormat::Nearest(value); }
uint16_t NearestBfloat16(double value) { return Bfloat16Format::Nearest(value); }

}  // namespace coppice
