// Which links are told as down: those that were up, until they are again or their ports are used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/manager/fabric_events.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::down_links_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

absl::Time At(int second) { return absl::FromUnixSeconds(second); }

// "NAME/PORT-NAME/PORT since SECOND".
std::vector<std::string> Told(const DownLinks& links) {
  std::vector<std::string> told;
  for (const DownLink& link : links.All()) {
    told.push_back(absl::StrCat(link.ends[0].name, "/", link.ends[0].port, "-", link.ends[1].name,
                                "/", link.ends[1].port, " since ",
                                absl::ToUnixSeconds(link.since)));
  }
  return told;
}

TEST(DownLinks, ACableThatIsCutUntilItIsBack) {
  const auto whole = SmallFabric(), cut = SmallFabric({.missing_cables = {{1, 0}}});
  DownLinks links;
  links.Compare(*whole, *cut, At(5));
  EXPECT_THAT(Told(links), ElementsAre("leaf1/1-spine0/2 since 5"));
  EXPECT_TRUE(links.All().front().ends[0].is_switch);
  EXPECT_EQ(links.All().front().rate, "4xHDR");
  links.Compare(*cut, *whole, At(6));
  EXPECT_THAT(Told(links), IsEmpty());
}

TEST(DownLinks, OneStaysWhileOthersComeAndGo) {
  const auto whole = SmallFabric(), cut = SmallFabric({.missing_cables = {{1, 0}}});
  const auto both = SmallFabric({.missing_cables = {{1, 0}, {0, 1}}});
  DownLinks links;
  links.Compare(*whole, *cut, At(1));
  links.Compare(*cut, *both, At(2));
  EXPECT_THAT(Told(links), ElementsAre("leaf0/2-spine1/1 since 2", "leaf1/1-spine0/2 since 1"));
  links.Compare(*both, *cut, At(3));
  EXPECT_THAT(Told(links), ElementsAre("leaf1/1-spine0/2 since 1"));
}

TEST(DownLinks, AllOfASwitchThatIsGone) {
  const auto whole = SmallFabric(), rest = SmallFabric({.missing_spines = {0}});
  DownLinks links;
  links.Compare(*whole, *rest, At(1));
  EXPECT_THAT(links.All(), SizeIs(4));  // one a leaf
}

TEST(DownLinks, APortWithAnotherCableIsNotMissed) {
  const auto cables = [](uint32_t spine) {
    FabricBuilder builder;
    for (const Guid guid : {LeafGuid(0), SpineGuid(0), SpineGuid(1)}) {
      SwitchInfo info;
      info.guid = guid;
      info.port_count = 4;
      EXPECT_TRUE(builder.AddSwitch(info).ok());
    }
    EXPECT_TRUE(builder
                    .AddLink(LeafGuid(0), PortNum(1), SpineGuid(spine), PortNum(1),
                             LinkRate{4, LaneSpeed::kHdr})
                    .ok());
    return *builder.Build();
  };
  const auto before = cables(0), after = cables(1);
  DownLinks links;
  links.Compare(*before, *after, At(1));
  EXPECT_THAT(Told(links), IsEmpty());
}

}  // namespace
}  // namespace coppice::down_links_test
