// The words of `coppice-plan map` and `coppicectl map`, which must mean the same, and what they
// mean. Both parsers' tests go through them.
#ifndef COPPICE_TESTS_SUPPORT_MAP_WORDS_H_
#define COPPICE_TESTS_SUPPORT_MAP_WORDS_H_

#include "absl/time/time.h"

namespace coppice {

struct ObjectiveWords {
  const char* text;
  double congestion, dilation, qap;
};
inline constexpr ObjectiveWords kObjectives[] = {
    {"congestion", 1, 0, 0},
    {"dilation", 0, 1, 0},
    {"qap", 0, 0, 1},
    {"congestion,dilation", 1, 1, 0},
    {"congestion=2,qap", 2, 0, 1},
    {"congestion=1,dilation=0.5", 1, 0.5, 0},
    {"qap=2e1", 0, 0, 20},
    {"congestion=0", 0, 0, 0},
    {"qap=-1", 0, 0, -1},  // refused by who knows what weights mean
};
inline constexpr const char* kNoObjectives[] = {
    "", "speed", "qap,", "congestion=", "=1", "qap=1=2", "Qap", "qap=x"};
inline constexpr const char* kNoParameters[] = {"", "rounds", "rounds=", "=5", "rounds=x", "a=1=2"};
inline constexpr const char* kNoBudgets[] = {"",    "0",    "0s",    "-1s", "1",
                                             "inf", "-inf", "9000h", "s"};

struct BudgetWords {
  const char* text;
  absl::Duration budget;
};
inline const BudgetWords kBudgets[] = {
    {"500ms", absl::Milliseconds(500)}, {"1h30m", absl::Minutes(90)}, {"8760h", absl::Hours(8760)}};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_MAP_WORDS_H_
