// The measures of a placement survive their record.
#include <type_traits>
#include <variant>

#include "daemon/manager/placement/placement_view.h"
#include "gtest/gtest.h"

namespace coppice::measures_json_test {
namespace {

TEST(MeasuresJson, IsReadAsWritten) {
  PlacementMeasures measures;
  measures.leaf_switches = 3;
  measures.least_leaf_switches = 2;
  measures.pods = 1;
  measures.total_distance = 1e15 + 0.5;
  measures.mean_distance = 0.1;
  measures.shared_links = 4'000'000'000u - 1;
  measures.mean_load = 0.25;
  measures.most_load = 1;
  measures.switches_without_entries = 7;
  measures.fragmentation = -2;
  measures.max_congestion = 3.5;
  measures.cost = 1.0 / 3;
  const std::string json = MeasuresJson(measures, true);
  const RecordedMeasures read = ParseMeasures(json);
  EXPECT_TRUE(read.is_optimal);
  EXPECT_EQ(MeasuresJson(read.measures, false), MeasuresJson(measures, false));
  EXPECT_EQ(read.measures.fragmentation, -2);
  EXPECT_EQ(read.measures.total_distance, measures.total_distance);
  EXPECT_NE(json, MeasuresJson(measures, false));
}

TEST(MeasuresJson, HasEveryMeasure) {
  PlacementMeasures measures;
  double value = 1;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    std::visit(
        [&](auto member) {
          using Field = std::remove_reference_t<decltype(measures.*member)>;
          measures.*member = static_cast<Field>(value++);
        },
        measure.member);
  });
  const PlacementMeasures read = ParseMeasures(MeasuresJson(measures, false)).measures;
  value = 1;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    EXPECT_EQ(measure.Of(read), value++) << measure.name;
  });
}

TEST(MeasuresJson, ReadsWhatItFindsInOtherText) {
  for (const char* text : {"", "{", "{\"pods\":}", "{\"pods\":x}", "{\"pods\":1e300}",
                           "{\"cost\":nan}", "{\"cost\":"}) {
    EXPECT_EQ(MeasuresJson(ParseMeasures(text).measures, false), MeasuresJson({}, false)) << text;
  }
  EXPECT_EQ(ParseMeasures("{\"pods\":2}").measures.pods, 2u);
}

}  // namespace
}  // namespace coppice::measures_json_test
