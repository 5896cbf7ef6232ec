// The random numbers of every search: fast, seeded, and equal on every machine and compiler, which
// the standard library's distributions are not.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_RANDOM_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_RANDOM_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace coppice {

// xoshiro256** by Blackman and Vigna (2018), its state filled by splitmix64 as they advise.
// Satisfies UniformRandomBitGenerator.
class Xoshiro final {
 public:
  using result_type = uint64_t;
  explicit Xoshiro(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  uint64_t operator()() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // 0..bound-1, bound >= 1, by multiplication (Lemire 2019, without the rejection: for bounds below
  // 2^32 the bias is below 2^-32).
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>((((*this)() >> 32) * bound) >> 32);
  }
  // 0 <= x < 1, 53 bits.
  double Unit() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_[4];
};

// Orders of the numbers 0..count-1: as they are, by a key, shuffled.

inline std::vector<uint32_t> Numbers(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// From the least key(number); of equal ones the lower number first.
template <class Key>
std::vector<uint32_t> NumbersBy(size_t count, const Key& key) {
  std::vector<uint32_t> numbers = Numbers(count);
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return numbers;
}

// By counting: those of one key together, where every key is below `count`.
inline std::vector<uint32_t> NumbersByKey(absl::Span<const uint32_t> keys, uint32_t count) {
  std::vector<uint32_t> next(count + 1, 0);
  for (const uint32_t key : keys) ++next[key + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<uint32_t> numbers(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) numbers[next[keys[i]]++] = i;
  return numbers;
}

template <class T>
void Shuffle(std::vector<T>& values, Xoshiro& random) {
  for (auto i = static_cast<uint32_t>(values.size()); i > 1; --i) {
    std::swap(values[i - 1], values[random.Below(i)]);
  }
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_RANDOM_H_
