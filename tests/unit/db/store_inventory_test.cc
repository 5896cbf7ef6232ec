// Inventories: nodes, ports and links are remembered, links keep their ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/db/store_records.h"

namespace coppice::store_inventory_test {
namespace {

using absl::StatusCode;

class StoreInventoryTest : public StoreTest {};

//  node 1 (port 1) ---- (port 1) node 2 (port 2) ---- (port 1) node 3
PutInventory Line(uint64_t version) {
  PutInventory put{version, At(static_cast<int64_t>(version)), {}, {}, {}};
  for (uint64_t n = 1; n <= 3; ++n) {
    put.nodes.push_back({Switch(n), NodeKind::kSwitch, "S", "", 1, 2, 36});
    put.ports.push_back({Switch(n), 0, Switch(n), static_cast<uint16_t>(n)});
  }
  put.links.push_back({Switch(1), 1, Switch(2), 1, "4xQDR", 32});
  put.links.push_back({Switch(2), 2, Switch(3), 1, "4xFDR", 54.5});
  return put;
}

LinkRecord Reversed(const LinkRecord& link) {
  return {link.node_b, link.port_b, link.node_a, link.port_a, link.rate, link.capacity_gbps};
}

TEST_F(StoreInventoryTest, LinksKeepTheirIds) {
  Store& store = *store_;
  const std::vector<LinkRecord> links = Line(1).links;
  ASSERT_APPLIED(store.Apply(Line(1)));
  const std::vector<int64_t> ids = *store.LinkIds(links);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  PutInventory later = Line(2);
  std::reverse(later.links.begin(), later.links.end());
  later.links.pop_back();  // one link went away
  later.links[0] = Reversed(later.links[0]);
  ASSERT_APPLIED(store.Apply(later));
  EXPECT_EQ(*store.LinkIds(links), ids);
  EXPECT_THAT(*store.LinkIds({Reversed(links[1]), links[0], links[1]}),
              testing::ElementsAre(ids[1], ids[0], ids[1]));
  EXPECT_EQ(Load().last_fabric_version, 2u);
}

TEST_F(StoreInventoryTest, LastLinksAreThoseOfTheNewestInventoryThatNamedAny) {
  EXPECT_THAT(*store_->LastLinks(), testing::IsEmpty());
  ASSERT_APPLIED(store_->Apply(Line(1)));
  EXPECT_THAT(*store_->LastLinks(), testing::UnorderedElementsAreArray(Line(1).links));
  PutInventory later = Line(2);
  later.links.pop_back();  // one link went away
  later.links[0] = Reversed(later.links[0]);
  ASSERT_APPLIED(store_->Apply(later));
  EXPECT_THAT(*store_->LastLinks(), testing::ElementsAre(Line(1).links[0]));
  ASSERT_APPLIED(store_->Apply(PutInventory{3, At(3), {}, {}, {}}));  // a light sweep's
  EXPECT_THAT(*store_->LastLinks(), testing::ElementsAre(Line(1).links[0]));
}

TEST_F(StoreInventoryTest, VersionNeverFalls) {
  ASSERT_APPLIED(store_->Apply(Line(5)));
  ASSERT_APPLIED(store_->Apply(Line(4)));
  EXPECT_EQ(Load().last_fabric_version, 5u);
}

TEST_F(StoreInventoryTest, UnknownLinkIsNamed) {
  ASSERT_APPLIED(store_->Apply(Line(1)));
  LinkRecord unknown = Line(1).links[0];
  unknown.port_b = 9;
  EXPECT_STATUS(store_->LinkIds({Line(1).links[0], unknown}).status(), StatusCode::kNotFound,
                "link 0002c90200400001/1 - 0002c90200400002/9");
}

TEST_F(StoreInventoryTest, RefusalsWriteNothing) {
  Store& store = *store_;
  PutInventory put = Line(1);
  put.links.push_back({Switch(3), 2, Switch(4), 1, "4xQDR", 32});
  EXPECT_STATUS(store.Apply(put), StatusCode::kInvalidArgument, "node 0002c90200400004");
  put = Line(1);
  put.ports.push_back({Switch(9), 1, Switch(9), 1});
  EXPECT_STATUS(store.Apply(put), StatusCode::kInvalidArgument,
                "port 1 names node 0002c90200400009");
  put = Line(1);
  put.nodes[0].kind = static_cast<NodeKind>(9);
  EXPECT_STATUS(store.Apply(put), StatusCode::kInvalidArgument, "node 0002c90200400001");
  put = Line(1);
  put.links[0].capacity_gbps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_STATUS(store.Apply(put), StatusCode::kInvalidArgument, "link 0002c90200400001/1");
  EXPECT_EQ(store.LinkIds(Line(1).links).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Load().last_fabric_version, 0u);
}

TEST_F(StoreInventoryTest, LaterInventoryMayNameEarlierNodes) {
  ASSERT_APPLIED(store_->Apply(Line(1)));
  PutInventory put{2, At(2), {}, {}, {{Switch(1), 7, Switch(3), 7, "4xEDR", 100}}};
  ASSERT_APPLIED(store_->Apply(put));
  EXPECT_TRUE(store_->LinkIds(put.links).ok());
}

}  // namespace
}  // namespace coppice::store_inventory_test
