// QAP instances and distance matrices: which matrix is which, and what is refused.
#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/mapping/mapping_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/mapping/reader_files.h"
#include "tests/unit/mapping/reader_properties.h"

namespace coppice::matrix_readers_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

double D(const PlaceDistances& d, uint32_t a, uint32_t b) {
  return d(PlaceIndex(a), PlaceIndex(b));
}

TEST(Qaplib, DistancesComeFirst) {
  const QapInstance two = ReadQaplib("2\n\n0 3\n 4 1\n7 5\n6\n0", "q").value();
  EXPECT_EQ(D(*two.distances, 0, 1), 3);
  EXPECT_EQ(D(*two.distances, 1, 0), 4);
  EXPECT_EQ(D(*two.distances, 1, 1), 1);
  EXPECT_FALSE(two.distances->symmetric());
  ASSERT_EQ(two.flows->exchanges(0).size(), 1u);
  EXPECT_EQ(two.flows->exchanges(0)[0].out_bytes, 5);
  EXPECT_EQ(two.flows->exchanges(0)[0].in_bytes, 6);
  EXPECT_EQ(two.flows->self_bytes(0), 7);
  // In the given order 7*0 + 5*3 + 6*4 + 0*1; swapped 7*1 + 5*4 + 6*3 + 0*0.
  EXPECT_EQ(QapCost(*two.flows, *two.distances, {PlaceIndex(0), PlaceIndex(1)}), 39);
  EXPECT_EQ(QapCost(*two.flows, *two.distances, {PlaceIndex(1), PlaceIndex(0)}), 45);
}

TEST(Qaplib, NamesWhatIsWrong) {
  const struct {
    const char *text, *message;
  } kCases[] = {
      {"", "is empty; give the size first, 1 to 16384"},
      {" \n\n", "is empty; give the size first, 1 to 16384"},
      {"x", "line 1: begins with \"x\""},
      {"\n-2 1", "line 2: begins with \"-2\""},
      {"0", "begins with \"0\""},
      {"16385", "begins with \"16385\""},
      {"2 0 1\n1 0 0 2", "q: ends before the flow in row 2, column 1 of 2 by 2"},
      {"2 0 1", "ends before the distance in row 2, column 1"},
      {"2\n0 -1\n1 0 0 1 1 0", "line 2: distance in row 1, column 2: \"-1\" is negative"},
      {"2\n0 1\n1 0\n0 nan\n1 0", "line 4: flow in row 1, column 2: \"nan\" is no number that"},
      {"2\n0 1\n1 0\n0 inf\n1 0", "\"inf\" is infinite"},
      {"2\n0 1\n1 0\n0 1e309\n1 0", "\"1e309\" is more than a double holds"},
      {"2\n0 1\n1 0\n0 1\n1 0\n5", "line 6: \"5\" comes after the two matrices of 2 by 2"},
      {"2\n0 1\n1 0\n0 1e308\n1e308 0\n", "q: the pattern's weights add up to more"},
  };
  for (const auto& [text, message] : kCases) {
    const absl::Status status = ReadQaplib(text, "q").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith("q"));
  }
}

struct Solution {
  double cost = 0;
  Mapping mapping;
};

Solution KnownSolution(absl::string_view path) {
  std::istringstream text(DataText(path));
  uint32_t n = 0, one = 0;
  Solution solution;
  text >> n >> solution.cost;
  while (text >> one) solution.mapping.emplace_back(one - 1);
  EXPECT_EQ(solution.mapping.size(), n) << path;
  return solution;
}

Mapping Inverse(const Mapping& mapping) {
  Mapping inverse(mapping.size());
  for (uint32_t i = 0; i < mapping.size(); ++i) inverse[mapping[i].value()] = PlaceIndex(i);
  return inverse;
}

double Cost(absl::string_view instance, const Mapping& mapping) {
  const auto read = ReadQaplib(DataText(instance), instance);
  EXPECT_TRUE(read.ok()) << read.status();
  return QapCost(*read->flows, *read->distances, mapping);
}

// best-known.tsv says of each instance whether its permutation takes facilities to locations (its
// B.Ap: flows as they are, distances permuted) or locations to facilities (A.Bp).
TEST(Qaplib, CostsOfKnownSolutionsComeOutRight) {
  std::istringstream table(DataText("qap/best-known.tsv"));
  std::string name, n, cost, check;
  std::getline(table, name);
  int instances = 0;
  while (table >> name >> n >> cost >> check) {
    const Solution solution = KnownSolution(absl::StrCat("qap/", name, ".sln"));
    const std::string instance = absl::StrCat("qap/", name, ".dat");
    const Mapping mapping = check == "B.Ap" ? solution.mapping : Inverse(solution.mapping);
    EXPECT_EQ(absl::StrCat(static_cast<int64_t>(Cost(instance, mapping))), cost) << name;
    ++instances;
  }
  EXPECT_EQ(instances, 6);
}

// As large as the largest of Taillard's nested instances: levels of three, integers of three
// digits.
TEST(Qaplib, CostsOfLargeInstancesComeOutRight) {
  std::mt19937_64 rng(729);
  for (const uint32_t n : {45u, 125u, 343u, 729u}) {
    std::vector<int> distances(n * n), flows(n * n);
    std::string text = absl::StrCat(n, "\n");
    for (std::vector<int>* matrix : {&distances, &flows}) {
      for (int& entry : *matrix)
        absl::StrAppend(&text, " ", entry = static_cast<int>(rng() % 1000));
      text += "\n\n";
    }
    Mapping mapping;
    for (uint32_t i = 0; i < n; ++i) mapping.emplace_back(i);
    std::shuffle(mapping.begin(), mapping.end(), rng);
    double cost = 0;
    for (uint32_t a = 0; a < n; ++a) {
      for (uint32_t b = 0; b < n; ++b) {
        cost += flows[a * n + b] * distances[mapping[a].value() * n + mapping[b].value()];
      }
    }
    const auto read = ReadQaplib(text, "large");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(QapCost(*read->flows, *read->distances, mapping), cost) << n;
  }
}

TEST(DistanceMatrix, MayBeAsymmetric) {
  const auto d = ReadDistanceMatrix("# us\n0 3.7 4.1\n3.6 0 1\n4.2 1 0\n", "d").value();
  EXPECT_EQ(d->count(), 3u);
  EXPECT_FALSE(d->symmetric());
  EXPECT_FALSE(d->whole());
  EXPECT_EQ(D(*d, 0, 2), 4.1);
  EXPECT_EQ(D(*d, 2, 0), 4.2);
}

TEST(DistanceMatrix, NamesHolesAndWhatElseIsWrong) {
  const struct {
    const char *text, *message;
  } kCases[] = {
      {"", "d: is empty; give a square matrix of distances"},
      {"2\n0 1\n1 nan\n", "line 3: row 2, column 2: distance \"nan\""},
      {"2\n0 1\n1 -\n", "line 3: row 2, column 2: distance \"-\" is no number"},
      {"2\n0 1\n1,\n", "line 3: row 2, column 2: distance \"\" is no number"},
      {"2\n,1\n1,0\n", "line 2: row 1, column 1: distance \"\" is no number"},
      {"2\n0 1\n1\n", "row 2, column 2: the distance is missing"},
      {"2\n0 -1\n1 0\n", "row 1, column 2: distance \"-1\" is negative"},
      {"2\n0 1\n", "not square"},
      {"20000\n0 1\n", "20000 rows; give 1 to 16384"},
  };
  for (const auto& [text, message] : kCases) {
    const absl::Status status = ReadDistanceMatrix(text, "d").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(std::string(status.message()), StartsWith("d"));
  }
}

TEST(MatrixReaders, SurviveMutatedFiles) {
  std::mt19937_64 rng(TestSeed());
  const int rounds = FullTier() ? 200'000 : 20'000;
  for (int round = 0; round < rounds; ++round) {
    const std::string qap = Mutated(rng, "3\n\n0 1 2\n1 0 3.5\n2 3 0\n\n0 5 0\n6 1 1e3\n0 7 9\n");
    ASSERT_EQ(QaplibViolation(qap), "") << absl::CEscape(qap);
    const std::string matrix = Mutated(rng, "# d\n3\n0 1, 2\n1 0 3.5\n2,3,0\n");
    ASSERT_EQ(DistanceMatrixViolation(matrix), "") << absl::CEscape(matrix);
  }
}

}  // namespace
}  // namespace coppice::matrix_readers_test
