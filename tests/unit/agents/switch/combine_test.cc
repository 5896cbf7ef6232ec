// Every operation on every type against plain C++ that is written down once more, and the two short
// types against a search in the list of all their numbers.
#include "agents/switch/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/tier.h"

namespace coppice::combine_test {
namespace {

using Op = ReductionOperation;

// What MPI says of one pair of integers (MPI 3.1, 5.9.2); sums and products wrap, as __int128 has
// room for both.
template <class T>
T Oracle(Op operation, T a, T b) {
  const auto wrap = [](__int128 value) { return static_cast<T>(value); };
  switch (operation) {
    case Op::kSum:
      return wrap(static_cast<__int128>(a) + static_cast<__int128>(b));
    case Op::kProduct: {  // by adding up shifted copies: no product of the machine
      unsigned __int128 sum = 0;
      const auto left = static_cast<unsigned __int128>(a),
                 right = static_cast<unsigned __int128>(b);
      for (int bit = 0; bit < 64; ++bit) {
        if ((right >> bit & 1) != 0) sum += left << bit;
      }
      return static_cast<T>(sum);
    }
    case Op::kMinimum:
      return std::min(a, b);
    case Op::kMaximum:
      return std::max(a, b);
    case Op::kBitwiseAnd:
      return static_cast<T>(a & b);
    case Op::kBitwiseOr:
      return static_cast<T>(a | b);
    case Op::kBitwiseXor:
      return static_cast<T>((a | b) & ~(a & b));
    case Op::kLogicalAnd:
      return a ? (b ? T{1} : T{0}) : T{0};
    case Op::kLogicalOr:
      return a ? T{1} : (b ? T{1} : T{0});
    case Op::kLogicalXor:
      return a ? (b ? T{0} : T{1}) : (b ? T{1} : T{0});
    default:
      ADD_FAILURE();
      return T{};
  }
}

// Of floating point, by hand for what a comparison does not say.
template <class T>
T RealOracle(Op operation, T a, T b) {
  switch (operation) {
    case Op::kSum:
      return a + b;
    case Op::kProduct:
      return a * b;
    case Op::kMinimum:
      return std::isnan(a) || std::isnan(b) || a <= b ? a : b;
    case Op::kMaximum:
      return std::isnan(a) || std::isnan(b) || a >= b ? a : b;
    default:
      ADD_FAILURE();
      return T{};
  }
}

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
std::vector<T> SomeNumbers(std::mt19937_64& random, size_t count) {
  const std::vector<T> special = {T{0},
                                  T{1},
                                  static_cast<T>(-1),
                                  std::numeric_limits<T>::max(),
                                  std::numeric_limits<T>::lowest(),
                                  std::numeric_limits<T>::min(),
                                  std::numeric_limits<T>::infinity(),
                                  std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> numbers;
  while (numbers.size() < count) {
    const uint64_t bits = random();
    T number;
    std::memcpy(&number, &bits, sizeof number);
    numbers.push_back(random() % 4 == 0 ? special[random() % special.size()] : number);
  }
  return numbers;
}

// Bit for bit; but which NaN a sum of two gives is the machine's.
template <class T>
void ExpectSame(T got, T wanted) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got));
      return;
    }
  }
  EXPECT_EQ(std::memcmp(&got, &wanted, sizeof got), 0) << +got << " " << +wanted;
}

template <class T, class Function>
void Compare(Op operation, ElementType type, const Function& oracle, std::mt19937_64& random) {
  ASSERT_TRUE(IsDefined(operation, type));
  ASSERT_EQ(ElementBytes(type), sizeof(T));
  for (const size_t count : {0u, 1u, 2u, 7u, 500u}) {
    const auto earlier = SomeNumbers<T>(random, count), later = SomeNumbers<T>(random, count);
    // From an odd address, as a payload in the middle of a stream.
    const std::string from = "x" + BytesOf(later);
    std::string into = BytesOf(earlier);
    Combine(operation, type, std::string_view(from).substr(1), &into);
    ASSERT_EQ(into.size(), count * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      T got;
      std::memcpy(&got, into.data() + i * sizeof(T), sizeof got);
      ExpectSame(got, oracle(operation, earlier[i], later[i]));
    }
  }
}

constexpr Op kArithmetic[] = {Op::kSum, Op::kProduct, Op::kMinimum, Op::kMaximum};
constexpr Op kOfIntegers[] = {Op::kSum,        Op::kProduct,   Op::kMinimum,    Op::kMaximum,
                              Op::kBitwiseAnd, Op::kBitwiseOr, Op::kBitwiseXor, Op::kLogicalAnd,
                              Op::kLogicalOr,  Op::kLogicalXor};

template <class T>
void CompareIntegers(ElementType type) {
  std::mt19937_64 random(TestSeed());
  for (const Op operation : kOfIntegers) Compare<T>(operation, type, Oracle<T>, random);
}

TEST(Combine, IntegersAreAsMpiSays) {
  CompareIntegers<int8_t>(ElementType::kInt8);
  CompareIntegers<int16_t>(ElementType::kInt16);
  CompareIntegers<int32_t>(ElementType::kInt32);
  CompareIntegers<int64_t>(ElementType::kInt64);
  CompareIntegers<uint8_t>(ElementType::kUint8);
  CompareIntegers<uint16_t>(ElementType::kUint16);
  CompareIntegers<uint32_t>(ElementType::kUint32);
  CompareIntegers<uint64_t>(ElementType::kUint64);
}

TEST(Combine, RealsAreAsMpiSays) {
  std::mt19937_64 random(TestSeed());
  for (const Op operation : kArithmetic) {
    Compare<float>(operation, ElementType::kFloat, RealOracle<float>, random);
    Compare<double>(operation, ElementType::kDouble, RealOracle<double>, random);
  }
}

TEST(Combine, OfTwoZerosAndOfNanTheEarlierStays) {
  for (const Op operation : {Op::kMinimum, Op::kMaximum}) {
    for (const auto& [earlier, later] :
         {std::pair(0.0, -0.0), std::pair(-0.0, 0.0), std::pair(std::nan(""), 1.0)}) {
      std::string into = BytesOf<double>({earlier});
      const std::string before = into;
      Combine(operation, ElementType::kDouble, BytesOf<double>({later}), &into);
      EXPECT_EQ(into, before);
    }
  }
}

// A short format as its definition has it (IEEE 754-2008, 3.4): no ldexp, no shifting of doubles.
struct ShortOracle {
  int fraction_bits;
  double Value(uint16_t bits) const {
    const int exponent_bits = 15 - fraction_bits;
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double part = static_cast<double>(fraction) / (1 << fraction_bits);
    double value = exponent == 0 ? part * std::pow(2.0, 1 - bias)
                                 : (1 + part) * std::pow(2.0, exponent - bias);
    if (exponent == (1 << exponent_bits) - 1) value = fraction == 0 ? HUGE_VAL : std::nan("");
    return (bits & 0x8000) != 0 ? -value : value;
  }
  // By search in the list of all numbers without a sign, which grow with their bits. Infinity
  // stands where the next number would.
  uint16_t Nearest(double value) const {
    if (std::isnan(value)) return 0;
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::abs(value);
    const auto infinity = static_cast<uint16_t>(0x7fff >> fraction_bits << fraction_bits);
    const auto place = [&](uint16_t bits) {
      return bits == infinity ? 2 * Value(static_cast<uint16_t>(bits - (1 << fraction_bits)))
                              : Value(bits);
    };
    if (std::isinf(size)) return sign | infinity;
    uint16_t below = 0, above = infinity;
    while (above - below > 1) {
      const auto middle = static_cast<uint16_t>((below + above) / 2);
      (place(middle) <= size ? below : above) = middle;
    }
    const double to_below = size - place(below), to_above = place(above) - size;
    if (to_below != to_above) return sign | (to_below < to_above ? below : above);
    return sign | (below % 2 == 0 ? below : above);
  }
};

struct ShortCase {
  ElementType type;
  ShortOracle oracle;
  double (*value)(uint16_t);
  uint16_t (*nearest)(double);
};
const ShortCase kShortCases[] = {
    {ElementType::kHalf, {10}, ValueOfHalf, NearestHalf},
    {ElementType::kBfloat16, {7}, ValueOfBfloat16, NearestBfloat16},
};

bool IsNanOf(const ShortCase& kind, uint16_t bits) { return std::isnan(kind.oracle.Value(bits)); }

TEST(Combine, EveryShortNumberHasItsValueAndComesBack) {
  for (const ShortCase& kind : kShortCases) {
    for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
      const auto number = static_cast<uint16_t>(bits);
      const double value = kind.oracle.Value(number);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(kind.value(number)));
        EXPECT_TRUE(IsNanOf(kind, kind.nearest(value)));
        continue;
      }
      ASSERT_EQ(kind.value(number), value) << bits;
      ASSERT_EQ(kind.nearest(value), number);
    }
  }
}

TEST(Combine, BetweenTwoShortNumbersTheNearestIsTakenAndOfTwoTheEven) {
  for (const ShortCase& kind : kShortCases) {
    for (uint32_t bits = 0; bits < 0x8000; ++bits) {
      const double a = kind.oracle.Value(static_cast<uint16_t>(bits));
      const double b = kind.oracle.Value(static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const double middle = a + (b - a) / 2;  // exact: one bit more
      for (const double value : {middle, std::nextafter(middle, a), std::nextafter(middle, b)}) {
        ASSERT_EQ(kind.nearest(value), kind.oracle.Nearest(value)) << bits;
        ASSERT_EQ(kind.nearest(-value), kind.oracle.Nearest(-value)) << bits;
      }
    }
    const double most = kind.oracle.Value(static_cast<uint16_t>(
        (0x7fff >> kind.oracle.fraction_bits << kind.oracle.fraction_bits) - 1));
    for (const double value :
         {most * 1.0001, most * 1.002, most * 2, most * most, 1e300, 5e-324, 1e-50}) {
      EXPECT_EQ(kind.nearest(value), kind.oracle.Nearest(value)) << value;
    }
  }
}

// Products of both, and sums of halfs, are exact in double, so the search sees what is to be
// rounded.
TEST(Combine, ShortNumbersAreRoundedOnce) {
  std::mt19937_64 random(TestSeed());
  const int pairs = FullTier() ? 2'000'000 : 200'000;
  for (const ShortCase& kind : kShortCases) {
    for (const Op operation : kArithmetic) {
      std::vector<uint16_t> earlier, later;
      for (int i = 0; i < pairs / 4; ++i) {
        const auto a = static_cast<uint16_t>(random());
        // Often of about the same size, where a sum has to be rounded.
        const auto near = static_cast<uint16_t>(a + random() % 4096);
        earlier.push_back(a);
        later.push_back(random() % 2 == 0 ? near : static_cast<uint16_t>(random()));
      }
      std::string into = BytesOf(earlier);
      Combine(operation, kind.type, BytesOf(later), &into);
      for (size_t i = 0; i < earlier.size(); ++i) {
        uint16_t got;
        std::memcpy(&got, into.data() + 2 * i, 2);
        const double a = kind.oracle.Value(earlier[i]), b = kind.oracle.Value(later[i]);
        if (operation == Op::kMinimum || operation == Op::kMaximum) {
          const bool is_later = operation == Op::kMinimum ? b < a : b > a;
          ASSERT_EQ(got, is_later ? later[i] : earlier[i]);
          continue;
        }
        const double exact = operation == Op::kSum ? a + b : a * b;
        if (std::isnan(exact)) {
          ASSERT_TRUE(IsNanOf(kind, got));
          continue;
        }
        ASSERT_EQ(got, kind.oracle.Nearest(exact)) << a << " " << b;
      }
    }
  }
}

TEST(Combine, IsDefinedWhereMpiHasIt) {
  for (int op = 0; op <= kLastOperation; ++op) {
    for (int type = 0; type <= kLastElementType; ++type) {
      const auto operation = static_cast<Op>(op);
      const auto element = static_cast<ElementType>(type);
      const bool is_integer = element >= ElementType::kInt8 && element <= ElementType::kUint64;
      const bool is_number = is_integer || element >= ElementType::kFloat;
      const bool is_arithmetic = op >= 1 && op <= 4;
      const bool wanted = operation == Op::kTake
                              ? element != ElementType::kNone
                              : op != 0 && (is_arithmetic ? is_number : is_integer);
      EXPECT_EQ(IsDefined(operation, element), wanted) << op << " " << type;
    }
  }
}

}  // namespace
}  // namespace coppice::combine_test
