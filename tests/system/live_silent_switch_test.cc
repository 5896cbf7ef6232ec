// A switch that answers nothing at all from before the first discovery: the discovery ends all the
// same, names the switch by the far ends of its cables (its GUID nobody tells), and reads the rest
// as the reference tools read it when everybody answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/system/live_subnet.h"
#include "tests/system/reference_text.h"

namespace coppice::live_silent_switch_test {
namespace {

using NodeAndPort = std::pair<uint64_t, int>;

class LiveSilentSwitch : public LiveSubnet {
 protected:
  // Lets the reference tools read the subnet, then the switch drop every packet that asks it.
  void Silence(const std::string& description) {
    const absl::StatusOr<std::string> graph = subnet_->Run({"ibnetdiscover"});
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = DescribeIbnetdiscover(*graph);
    const absl::StatusOr<std::string> tables = subnet_->Run({"dump_lfts"}, absl::Minutes(5));
    ASSERT_TRUE(tables.ok()) << tables.status();
    tables_ = DescribeDumpLfts(*tables);
    silent_ = NameOf(description);
    ASSERT_FALSE(silent_.empty()) << "ibnetdiscover knows no " << description;
    ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", description, "\" 100")));
  }

  void Console(const std::string& command) {
    const absl::StatusOr<std::string> said = subnet_->Console(command);
    ASSERT_TRUE(said.ok()) << said.status();
  }

  // `S 200003` from the line `S 200003 ports 36 "S3" lid 9`.
  std::string NameOf(const std::string& description) const {
    for (const std::string& line : graph_) {
      const size_t end = line.find(" ports ");
      if (end != std::string::npos &&
          absl::StrContains(line, absl::StrCat("\"", description, "\"")))
        return line.substr(0, end);
    }
    return "";
  }

  // Nodes and ports at the other ends of the silent switch's cables, as the reference saw them;
  // all, or those of switches.
  std::set<NodeAndPort> FarEnds(bool switches_only) const {
    std::set<NodeAndPort> ends;
    for (const std::string& line : graph_) {
      char kind = 0;
      unsigned long long guid = 0;
      int port = 0;
      const std::string cable = absl::StrCat(silent_, "[");
      if (!absl::StartsWith(line, cable)) continue;
      const std::string far = line.substr(line.find("] ") + 2);
      if (std::sscanf(far.c_str(), "%c %llx[%d]", &kind, &guid, &port) != 3) continue;
      if (kind == 'S' || !switches_only) ends.insert({guid, port});
    }
    return ends;
  }

  // The reference's lines without the silent switch, and without the hosts that have no other way.
  Lines Rest(const Lines& lines) const {
    std::vector<std::string> gone = {silent_};
    const std::set<NodeAndPort> switches = FarEnds(/*switches_only=*/true);
    for (const NodeAndPort& end : FarEnds(/*switches_only=*/false)) {
      if (switches.count(end) == 0) gone.push_back(absl::StrFormat("H %x", end.first));
    }
    Lines rest;
    for (const std::string& line : lines) {
      const bool about_gone = std::any_of(gone.begin(), gone.end(), [&](const std::string& name) {
        return absl::StrContains(line + " ", name + " ") || absl::StrContains(line, name + "[");
      });
      if (!about_gone) rest.push_back(line);
    }
    return rest;
  }

  // The first discovery of this process.
  void ExpectTheRestAndTheNameless() {
    const absl::StatusOr<SweepResult> result = port_->Sweep({});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->has_subnet_manager);
    EXPECT_EQ(Difference(Rest(graph_), DescribeFabric(*result->fabric)), "");
    ASSERT_NE(result->tables, nullptr);
    EXPECT_EQ(Difference(Rest(tables_), DescribeTables(*result->fabric, *result->tables)), "");
    std::set<NodeAndPort> named;
    for (const UnansweredNode& node : result->unanswered) {
      EXPECT_EQ(node.what, "NodeInfo");
      named.insert({node.neighbour.value(), node.neighbour_port.value()});
    }
    EXPECT_EQ(named, FarEnds(/*switches_only=*/true));
    EXPECT_EQ(result->unanswered.size(), named.size());
  }

  void ExpectEverythingOnceItSpeaks(const std::string& description) {
    ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"", description, "\" 0")));
    const SweepResult after = SweepOrFail();
    ASSERT_NE(after.fabric, nullptr);
    EXPECT_EQ(Difference(graph_, DescribeFabric(*after.fabric)), "");
    EXPECT_EQ(Difference(tables_, DescribeTables(*after.fabric, *after.tables)), "");
  }

  Lines graph_, tables_;  // what the reference tools said of the whole subnet
  std::string silent_;    // `S 200003`
};

TEST_F(LiveSilentSwitch, ASpineIsNamedByItsLeavesAndTheRestIsRead) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  ASSERT_NO_FATAL_FAILURE(Silence("S3"));
  ASSERT_EQ(FarEnds(/*switches_only=*/true).size(), 32u);
  ASSERT_NO_FATAL_FAILURE(ExpectTheRestAndTheNameless());
  ExpectEverythingOnceItSpeaks("S3");
}

TEST_F(LiveSilentSwitch, ALeafTakesItsHostsWithIt) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  ASSERT_NO_FATAL_FAILURE(Silence("L7"));
  ASSERT_EQ(FarEnds(/*switches_only=*/true).size(), 16u);
  ASSERT_EQ(FarEnds(/*switches_only=*/false).size(), 32u);
  ASSERT_NO_FATAL_FAILURE(ExpectTheRestAndTheNameless());
  ExpectEverythingOnceItSpeaks("L7");
}

}  // namespace
}  // namespace coppice::live_silent_switch_test
