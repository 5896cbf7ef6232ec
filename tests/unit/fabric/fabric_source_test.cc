// SPECs of fabrics, and the offline subnet behind them.
#include "daemon/fabric/fabric_source.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/topology_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::fabric_source_test {
namespace {

using ::testing::HasSubstr;

// A file of its own for each test, gone with it.
class ScratchFile {
 public:
  ScratchFile() : path_(absl::StrCat(::testing::TempDir(), "/coppice_fabric_XXXXXX")) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    close(fd);
  }
  ~ScratchFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

TEST(FabricSourceTest, NamesWhatIsWrong) {
  EXPECT_EQ(LoadFabric("net.txt").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(LoadFabric("net.txt").status().message()), HasSubstr("file:PATH"));
  const absl::Status missing = LoadFabric("file:/nowhere/net.txt").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nowhere/net.txt"));
  const absl::Status folder = LoadFabric("file:/").status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.message()), HasSubstr("not a regular file"));
}

TEST(FabricSourceTest, RefusesAFileOverTheLimit) {
  const ScratchFile file;
  ASSERT_EQ(truncate(file.path().c_str(), static_cast<off_t>(kMaxFabricFileBytes) + 1), 0);
  const absl::Status status = LoadFabric("file:" + file.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit"));
}

TEST(OfflineSubnetPortTest, EverySweepReadsTheFileAfresh) {
  const ScratchFile file;
  file.Write(WriteIbnetdiscover(**LoadFabric("model:fat-tree(leaves=2,spines=1)")));
  const auto port = OfflineSubnetPort::Create("file:" + file.path());
  ASSERT_TRUE(port.ok());
  EXPECT_EQ((*port)->Describe(), "file:" + file.path());
  auto sweep = (*port)->Sweep({});
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->fabric->switch_count(), 3);
  EXPECT_EQ(sweep->tables, nullptr);
  file.Write(WriteIbnetdiscover(**LoadFabric("model:fat-tree(leaves=3,spines=1)")));
  sweep = (*port)->Sweep({});
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->fabric->switch_count(), 4);
  file.Write("");
  EXPECT_EQ((*port)->Sweep({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OfflineSubnetPort::Create("umad").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::fabric_source_test
