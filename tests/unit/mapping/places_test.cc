#include "daemon/mapping/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/fabric/fabric_source.h"
#include "daemon/mapping/mapping_metrics.h"

namespace coppice::places_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlaceIndex P(uint32_t p) { return PlaceIndex(p); }

TEST(Places, JoinsAnEndpointThatIsNamedTwice) {
  const auto fabric = LoadFabric("model:fat-tree(leaves=2,spines=1,hosts-per-leaf=2)").value();
  const EndpointIndex a(2), b(0);
  const auto places = Places::OfEndpoints(*fabric, {a, b, a}, 2).value();
  EXPECT_EQ(places->count(), 2u);
  EXPECT_EQ(places->slot_count(), 6u);
  EXPECT_EQ(places->capacity(P(0)), 4u);
  EXPECT_THAT(places->slots(P(0)), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(places->PresentOrder(5), ElementsAre(P(0), P(0), P(1), P(1), P(0)));
  EXPECT_EQ(places->endpoint(P(1)), b);
}

TEST(Places, RefusesWhatNobodyCanSitOn) {
  EXPECT_THAT(std::string(Places::Numbered(0, 1).status().message()), HasSubstr("no places"));
  EXPECT_THAT(std::string(Places::Numbered(3, 0).status().message()), HasSubstr("0 ranks"));
  EXPECT_THAT(std::string(Places::Numbered(1 << 20, 1 << 20).status().message()),
              HasSubstr("give fewer"));
}

TEST(Places, TakesThePlaceOfEverySlot) {
  const auto places = Places::OfSlots({0, 1, 0, 2}).value();
  EXPECT_EQ(places->count(), 3u);
  EXPECT_FALSE(places->has_endpoints());
  EXPECT_THAT(places->slots(P(0)), ElementsAre(0, 2));
  EXPECT_THAT(places->PresentOrder(3), ElementsAre(P(0), P(1), P(0)));
  EXPECT_THAT(std::string(Places::OfSlots({0, 2}).status().message()), HasSubstr("slot 1"));
  EXPECT_THAT(std::string(Places::OfSlots({}).status().message()), HasSubstr("no places"));
}

TEST(AssignSlots, LeavesWhoeverStaysWhereTheyAre) {
  const auto places = Places::Numbered(3, 2).value();
  const Mapping mapping = {P(0), P(1), P(2), P(1), P(0)};
  const std::vector<uint32_t> slots = AssignSlots(*places, mapping);
  EXPECT_THAT(slots, ElementsAre(0, 2, 4, 3, 1));
  EXPECT_TRUE(CheckSlots(*places, slots).ok());
}

TEST(CheckMapping, NamesWhatIsWrong) {
  const auto places = Places::Numbered(2, 1).value();
  EXPECT_TRUE(CheckMapping(*places, 2, {P(1), P(0)}).ok());
  EXPECT_THAT(std::string(CheckMapping(*places, 2, {P(1), P(1)}).message()), HasSubstr("place 1"));
  EXPECT_THAT(std::string(CheckMapping(*places, 2, {P(2), P(0)}).message()), HasSubstr("rank 0"));
  EXPECT_FALSE(CheckMapping(*places, 2, {P(1)}).ok());
  EXPECT_FALSE(CheckSlots(*places, {0, 0}).ok());
  EXPECT_FALSE(CheckSlots(*places, {0, 2}).ok());
}

}  // namespace
}  // namespace coppice::places_test
