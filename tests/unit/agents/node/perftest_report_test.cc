// Reports as perftest prints them, and texts that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "agents/node/perftest.h"

namespace coppice::perftest_report_test {
namespace {

using ::testing::HasSubstr;

// The format strings of perftest 4.5+0.17 (Debian 12), with tabs and trailing blanks as there; the
// lines about the processor's frequency stand where ib_write_lat prints them.
constexpr char kLatency[] =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write Latency Test\n"
    " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
    " Number of qps   : 1\t\tTransport type : IB\n"
    " Connection type : RC\t\tUsing SRQ      : OFF\n"
    " PCIe relax order: OFF\n"
    " ibv_wr* API     : ON\n"
    " TX depth        : 1\n"
    " Mtu             : 4096[B]\n"
    " Link type       : IB\n"
    " Max inline data : 220[B]\n"
    " rdma_cm QPs\t : OFF\n"
    " Data ex. method : Ethernet\n"
    "---------------------------------------------------------------------------------------\n"
    " local address: LID 0x01 QPN 0x0119 PSN 0x18f3b3 RKey 0x1fff00 VAddr 0x00560b8d1bd008\n"
    " remote address: LID 0x02 QPN 0x0119 PSN 0x5ad5e1 RKey 0x1fff00 VAddr 0x0055d14ac7a008\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
    "Conflicting CPU frequency values detected: 1200.000000 != 2600.000000. CPU Frequency is not "
    "max.\n"
    " 8       1000          1.06           7.83         1.12     \t       1.13     \t0.11\t\t1.31 "
    "\t\t7.83   \n"
    "---------------------------------------------------------------------------------------\n";

constexpr char kBandwidth[] =
    " WARNING: BW peak won't be measured in this run.\n"
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
    " CQ Moderation   : 1\n"
    " local address: LID 0x01 QPN 0x011a PSN 0x8abf5e RKey 0x1fff00 VAddr 0x007f9d36566000\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 1048576    10               0.00               97.56  \t\t   0.011631\n"
    "---------------------------------------------------------------------------------------\n";

std::string Latency(const char* pattern, const char* instead) {
  return std::regex_replace(std::string(kLatency), std::regex(pattern), instead);
}

TEST(PerftestReportTest, OfLatency) {
  const auto spread = ParseLatencyReport(kLatency, 8);
  ASSERT_TRUE(spread.ok()) << spread.status();
  EXPECT_EQ(spread->mean, 1.12);  // typical
  EXPECT_EQ(spread->deviation, 0.11);
  EXPECT_EQ(spread->samples, 1000u);
}

TEST(PerftestReportTest, OfBandwidth) {
  const auto spread = ParseBandwidthReport(kBandwidth, 1 << 20);
  ASSERT_TRUE(spread.ok()) << spread.status();
  EXPECT_EQ(spread->mean, 97.56);  // average
  EXPECT_EQ(spread->deviation, 0);
  EXPECT_EQ(spread->samples, 10u);
}

TEST(PerftestReportTest, WhatIsNoneIsSaid) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no row"},
      {kBandwidth, "heading"},
      {Latency("t_typical.usec.", "t_typical[cycles]"), "heading"},
      {Latency(" 8  ", " 16 "), "8 bytes"},
      {Latency(" 8  ", " 8x "), "8 bytes"},
      {Latency(" 8  ", " -8 "), "no row"},
      {Latency("1000 ", "0    "), "iterations"},
      {Latency("1000 ", "1e3  "), "iterations"},
      {Latency("1000 ", "99999999999 "), "iterations"},
      {Latency("1\\.12", "0.00"), "figure"},
      {Latency("1\\.12", "nan"), "figure"},
      {Latency("1\\.12", "-1.1"), "figure"},
      {Latency("1\\.12", "1e999"), "figure"},
      {Latency("1\\.12", "1,12"), "figure"},
      {Latency("1\\.12", "0x1p3"), "figure"},
      {Latency("1\\.12", "99999999999"), "figure"},
      {Latency("0\\.11", "inf"), "figure"},
      {Latency("\t0\\.11[^-]*", "\n"), "cut off"},
      {Latency(" 8  [^-]*", " 8 1000\n"), "cut off"},
      {std::string(kLatency) + " 8 1000 1.06 7.83 1.12 1.13 0.11 1.31 7.83\n", "second row"},
      {std::string(kLatency) + kLatency, "heading"},
      {std::string(kLatency).substr(std::string(kLatency).find("Conflicting")), "no row"},
  };
  for (const auto& [text, words] : cases) {
    const auto spread = ParseLatencyReport(text, 8);
    EXPECT_EQ(spread.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(spread.status().message()), HasSubstr(words)) << text;
  }
  EXPECT_FALSE(ParseBandwidthReport(kLatency, 8).ok());
  EXPECT_FALSE(ParseBandwidthReport(kBandwidth, 8).ok());
  // In MiB/s, as without --report_gbits.
  EXPECT_FALSE(
      ParseBandwidthReport(
          std::regex_replace(std::string(kBandwidth), std::regex("Gb/sec"), "MB/sec"), 1 << 20)
          .ok());
}

TEST(PerftestReportTest, LastWordsAreThoseOfAProgramThatFailed) {
  EXPECT_EQ(LastWords(" Did not detect devices \n If device exists, check if driver is up\n"
                      " Unable to find the Infiniband/RoCE device\n"),
            "Did not detect devices; If device exists, check if driver is up; "
            "Unable to find the Infiniband/RoCE device");
  EXPECT_EQ(LastWords("a\nb\nc\nd\n-----\n 8 100 \n\n"), "b; c; d");
  EXPECT_EQ(LastWords("no\033[31m\xff"), "no [31m ");
  EXPECT_EQ(LastWords(""), "");
  EXPECT_EQ(LastWords(std::string(1000, 'x')).size(), 200u);
}

}  // namespace
}  // namespace coppice::perftest_report_test
