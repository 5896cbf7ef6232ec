// Families as the library's own writer prints them.
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>

#include "daemon/metrics/exporter.h"

namespace coppice::family_list_test {
namespace {

std::string Text(FamilyList& list) { return prometheus::TextSerializer().Serialize(list.Take()); }

TEST(FamilyListTest, CountersAndGaugesWithTheirLabels) {
  FamilyList list;
  list.Add("a_total", "First.", 3);
  list.Add("b_bytes", "Second.", {{{{"kind", "x"}}, 1.5}, {{{"kind", "y"}}, 0}});
  list.Add("c", "Nothing is known.", {});
  EXPECT_EQ(
      "# HELP a_total First.\n# TYPE a_total counter\na_total 3\n"
      "# HELP b_bytes Second.\n# TYPE b_bytes gauge\nb_bytes{kind=\"x\"} 1.5\n"
      "b_bytes{kind=\"y\"} 0\n"
      "# HELP c Nothing is known.\n# TYPE c gauge\n",
      Text(list));
}

TEST(FamilyListTest, HistogramsAreCumulativeAndInSeconds) {
  FamilyList list;
  list.AddHistograms("d_seconds", "Third.",
                     {{{{"method", "M"}},
                       {absl::Milliseconds(1), absl::Seconds(2)},
                       {3, 0, 4},
                       absl::Milliseconds(12'500)}});
  EXPECT_EQ(
      "# HELP d_seconds Third.\n# TYPE d_seconds histogram\n"
      "d_seconds_count{method=\"M\"} 7\nd_seconds_sum{method=\"M\"} 12.5\n"
      "d_seconds_bucket{method=\"M\",le=\"0.001\"} 3\n"
      "d_seconds_bucket{method=\"M\",le=\"2\"} 3\n"
      "d_seconds_bucket{method=\"M\",le=\"+Inf\"} 7\n",
      Text(list));
}

}  // namespace
}  // namespace coppice::family_list_test
