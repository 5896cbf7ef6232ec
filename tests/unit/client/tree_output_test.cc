#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/cli/output.h"
#include "coppice/v1/trees.pb.h"

namespace coppice::tree_output_test {
namespace {

//        switch aa                rank 3 -> switch aa, ranks 0-2 -> switch bb -> switch aa
//        |      |
//   switch bb  rank 3
//   |   |   |
//   0   1   2
v1::Tree TypeTwo() {
  v1::Tree tree;
  tree.set_id("41");
  tree.set_job_id("7");
  tree.set_type(v1::TREE_TYPE_II);
  tree.set_builder(v1::TREE_BUILDER_MINIMUM_COST);
  tree.set_height(2);
  tree.set_radius(2);
  tree.set_rank_count(4);
  tree.set_switch_count(2);
  tree.set_operation(v1::OPERATION_ALLREDUCE);
  tree.add_sizes()->set_bytes(8);
  tree.mutable_predicted()->set_total_us(2.5);
  tree.set_reason("because");
  tree.set_root(4);
  for (const int parent : {5, 5, 5, 4, -1, 4}) tree.mutable_nodes()->add_parents(parent);
  for (const uint32_t links : {1, 1, 1, 1, 0, 1}) tree.mutable_nodes()->add_links(links);
  for (const uint64_t guid : {0x10, 0x11, 0x12, 0x13}) tree.mutable_nodes()->add_endpoints(guid);
  tree.mutable_nodes()->add_switches(0xaa);
  tree.mutable_nodes()->add_switches(0xbb);
  tree.mutable_physical()->set_switch_count(1);
  tree.mutable_physical()->add_guids(0xaa);
  tree.mutable_physical()->add_parents(-1);
  tree.mutable_physical()->add_guids(0x13);
  tree.mutable_physical()->add_parents(0);
  v1::Alternative* other = tree.add_alternatives();
  other->set_type(v1::TREE_TYPE_I);
  other->set_builder(v1::TREE_BUILDER_KARY);
  other->set_width(4);
  other->set_total_us(3.5);
  other->set_why_not("slower");
  return tree;
}

TEST(PrintTreeNodes, DrawsFromTheRoot) {
  std::ostringstream out;
  PrintTreeNodes(out, TypeTwo(), {{0xaa, "spine 1"}, {0xbb, ""}});
  EXPECT_EQ(out.str(),
            "spine 1\n"
            "  rank 3\n"
            "  switch:00000000000000bb  (1 link)\n"
            "    ranks 0-2\n");
}

TEST(PrintTreeSummary, TellsWhoServesInSixLines) {
  v1::Tree tree = TypeTwo();
  std::ostringstream out;
  PrintTreeSummary(out, tree, {{0xaa, "spine 1"}, {0xbb, "leaf 7"}});
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
  EXPECT_NE(text.find("served by spine 1, leaf 7\n"), std::string::npos) << text;
  for (uint64_t guid = 0xc0; guid < 0xc5; ++guid) tree.mutable_nodes()->add_switches(guid);
  std::ostringstream many;
  PrintTreeSummary(many, tree, {{0xbb, "leaf 7"}});
  EXPECT_NE(many.str().find("served by switch:00000000000000aa, leaf 7, "
                            "switch:00000000000000c0, switch:00000000000000c1 and 3 more\n"),
            std::string::npos)
      << many.str();
}

TEST(PrintTreeJson, HasTheAgreedShape) {
  std::ostringstream out;
  PrintTreeJson(out, TypeTwo(), {{0x13, "n4/1"}});
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["id"], "41");
  EXPECT_EQ(json["job_id"], "7");
  EXPECT_EQ(json["type"], "TREE_TYPE_II");
  EXPECT_EQ(json["switches"], 2);
  EXPECT_EQ(json["root"], "switch:00000000000000aa");
  EXPECT_EQ(json["predicted"]["total_us"], 2.5);
  EXPECT_EQ(json["alternatives"][0]["why_not"], "slower");
  EXPECT_EQ(json["alternatives"][0]["type"], "TREE_TYPE_I");
  ASSERT_EQ(json["nodes"].size(), 6);
  EXPECT_EQ(json["nodes"][3]["id"], "rank:3");
  EXPECT_EQ(json["nodes"][3]["parent"], "switch:00000000000000aa");
  EXPECT_EQ(json["nodes"][3]["kind"], "rank");
  EXPECT_EQ(json["nodes"][3]["rank"], 3);
  EXPECT_EQ(json["nodes"][3]["endpoint"], "n4/1");
  EXPECT_EQ(json["nodes"][2]["endpoint"], "0000000000000012");
  EXPECT_TRUE(json["nodes"][4]["parent"].is_null());
  EXPECT_TRUE(json["nodes"][4]["rank"].is_null());
  ASSERT_EQ(json["physical"].size(), 2);
  EXPECT_EQ(json["physical"][1]["id"], "rank:3");
  EXPECT_EQ(json["physical"][1]["parent"], "switch:00000000000000aa");
}

TEST(Table, AlignsNumbersToTheRight) {
  Table table({"NAME", "COUNT"});
  table.Add({"a", "5"});
  table.Add({"longer", "1234"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(),
            "NAME    COUNT\n"
            "a           5\n"
            "longer   1234\n");
}

}  // namespace
}  // namespace coppice::tree_output_test
