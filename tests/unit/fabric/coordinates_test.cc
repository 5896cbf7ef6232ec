#include <gtest/gtest.h>

#include "daemon/fabric/hierarchy.h"

namespace coppice::coordinates_test {
namespace {

TEST(Coordinates, FormatAndParseAreInverse) {
  const GridPosition position{{0, 1, 2}, {4, 4, 3}, GridKind::kTorus};
  EXPECT_EQ(FormatPosition("sw", position), "sw(0,1,2;4x4x3 torus)");
  EXPECT_EQ(ParsePosition("sw(0,1,2;4x4x3 torus)"), position);
  EXPECT_EQ(ParsePosition("rack (7)(1;2 hypercube)")->kind, GridKind::kHypercube);
}

TEST(Coordinates, ContradictionsAreNoPosition) {
  for (const char* text :
       {"", "sw", "sw()", "sw(0)", "sw(0,1;4 torus)", "sw(4;4 torus)", "sw(0;0 mesh)",
        "sw(-1;4 mesh)", "sw(0;4 ring)", "sw(0;3 hypercube)", "sw(0;99999999 mesh)", "sw( ;)"}) {
    EXPECT_FALSE(ParsePosition(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace coppice::coordinates_test
