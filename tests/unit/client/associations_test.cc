// Of files that sacctmgr wrote, and of texts that differ from them in one thing.
#include "client/cli/associations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/text/text_file.h"

namespace coppice::associations_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Printed(const std::string& name) {
  const auto text = ReadTextFile(absl::StrCat(COPPICE_SOURCE_DIR, "/tests/data/slurm/", name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// "physics<science", and "ada@physics*" where that is the default.
std::vector<std::string> Read(const std::string& text, const std::string& cluster = "") {
  const auto request = ParseAssociations(text, "file", cluster);
  if (!request.ok()) return {std::string(request.status().message())};
  std::vector<std::string> shown;
  for (const v1::Account& account : request->accounts()) {
    EXPECT_EQ(account.tenant(), "");
    shown.push_back(absl::StrCat(account.name(), "<", account.parent()));
  }
  for (const v1::AccountUser& user : request->users()) {
    shown.push_back(absl::StrCat(user.user(), "@", user.account(), user.is_default() ? "*" : ""));
  }
  return shown;
}

TEST(Associations, AreReadAsSacctmgrPrintsThem) {
  const auto copse =
      ElementsAre("atlas<physics", "chemistry<root", "physics<science", "root<", "science<root",
                  "daemon@chemistry*", "nobody@atlas*", "nobody@chemistry", "root@root*");
  EXPECT_THAT(Read(Printed("associations.txt")), copse);
  EXPECT_THAT(Read(Printed("associations.txt"), "copse"), copse);
  EXPECT_THAT(Read(Printed("associations-tree.txt")), copse) << "-p, indented, other columns";
  EXPECT_THAT(Read(Printed("associations-two-clusters.txt"), "copse"), copse);
  EXPECT_THAT(
      Read(Printed("associations-two-clusters.txt"), "birch"),
      ElementsAre("bio<root", "chem2<root", "root<", "bin@bio*", "nobody@chem2*", "root@root*"));
}

TEST(Associations, OfSeveralClustersOneIsChosen) {
  const std::string both = Printed("associations-two-clusters.txt");
  EXPECT_THAT(Read(both),
              ElementsAre("file: accounts of several clusters; choose one by --cluster: "
                          "birch, copse"));
  const auto none = ParseAssociations(both, "file", "oak");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(none.status().message(),
            "file: no account of cluster oak is in it, but of birch, copse");
  // Whose default account this is, sacctmgr does not tell.
  const std::string unclear =
      both.substr(0, both.find("Cluster|User")) + "User|Def Acct\nnobody|atlas\n";
  EXPECT_THAT(Read(unclear, "copse"),
              ElementsAre(HasSubstr("file:19: which cluster's default account of nobody it is")));
}

TEST(Associations, DefaultsAreThoseThatAreToldOrTheOnlyOnes) {
  const std::string two = "Cluster|Account|User|ParentName\nc|a||\nc|b||\nc|a|x|\nc|b|x|\nc|b|y|\n";
  EXPECT_THAT(Read(two), ElementsAre("a<", "b<", "x@a", "x@b", "y@b*"));
  EXPECT_THAT(Read(two + "User|DefaultAccount\nx|b\ny|\nz|a\n"),
              ElementsAre("a<", "b<", "x@a", "x@b*", "y@b*"));
  EXPECT_THAT(Read("Def Acct|User|Cluster\nb|x|c\na|x|d\n" + two),
              ElementsAre("a<", "b<", "x@a", "x@b*", "y@b*"));
}

TEST(Associations, WhatIsNoneIsToldWithItsLine) {
  const std::string heading = "Cluster|Account|User|Par Name\n";
  const std::string good = heading + "c|a||\nc|b||a\nc|b|x|\n";
  EXPECT_THAT(Read(good), ElementsAre("a<", "b<a", "x@b*"));
  for (const auto& [text, told] : std::vector<std::pair<std::string, std::string>>{
           {"c|a||\n", "file:1: no heading"},
           {"User|Admin\nx|None\n", "file:1: no heading"},
           {"Cluster|Account|User\nc|a|\n", "file:1: no column ParentName; print it with sacctmgr"},
           {"Account|User|ParentName\na||\n", "file:1: no column Cluster"},
           {heading + "Cluster|Def Acct\nc|a\n", "file:2: no column User"},
           {good + "c|a|x\n", "file:5: 3 columns, and 4 in the heading"},
           {good + "c|d|e||a\n", "file:5: 5 columns"},
           {good + "c|||a\n", "file:5: neither an account nor a user"},
           {good + "c|d||e\n", "file:5: account d is within e, which is no account of cluster c"},
           {good + "c|d|x|\n", "file:5: user x is in d, which is no account of cluster c"},
           {good + "c|b||\n", "file:5: account b is within , and in line 3 within a"},
           {good + "Cluster|User|Def Acct\nc|z|a\n", "file:6: user z has the default account a"},
           {good + "User|Def Acct\nx|a\n", "file:6: user x has the default account a, and no row"},
           {good + "c|a|x|\nUser|Def Acct\nx|a\nx|b\n",
            "file:8: user x has the default account b, and above a"},
           {good + "c|a|\x1b|\n", "file:5: holds the control character U+001B"},
           {good + "c|a|\xff|\n", "file:5: "}}) {
    const auto refused = ParseAssociations(text, "file", "");
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(told));
  }
}

TEST(Associations, NothingIsNoAnswer) {
  for (const char* text : {"", "\n", "Cluster|Account|User|ParentName\n", "User|Def Acct\nx|a\n"}) {
    const auto none = ParseAssociations(text, "file", "");
    EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound) << text;
    EXPECT_THAT(std::string(none.status().message()), HasSubstr("file: no account is in it"));
  }
}

// What sacctmgr was kept from printing to its end. Both tables name the users: the second tells
// that the first lacks some.
TEST(Associations, WhatWasCutIsRefused) {
  const std::string whole = Printed("associations.txt");
  const size_t users = whole.find("Cluster|User|Def Acct");
  ASSERT_NE(users, std::string::npos);
  for (size_t end = 1; end < users; ++end) {
    const auto cut = ParseAssociations(whole.substr(0, end), "file", "");
    if (whole[end - 1] != '\n') {
      EXPECT_THAT(std::string(cut.status().message()), HasSubstr("its last line has no end"))
          << end;
    } else {
      EXPECT_NE(ParseAssociations(whole.substr(0, end) + whole.substr(users), "file", "").ok(),
                // but the last row, which is there twice
                end + strlen("copse|atlas|nobody|\n") < users)
          << end;
    }
  }
}

}  // namespace
}  // namespace coppice::associations_test
