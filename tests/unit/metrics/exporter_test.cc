// Where the exporter listens, and what it says if it cannot.
#include "daemon/metrics/exporter.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

namespace coppice::exporter_test {
namespace {

using testing::HasSubstr;

// What GET PATH answers, head and body.
std::string Get(const std::string& address, const std::string& path) {
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(0, connect(file, reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(static_cast<ssize_t>(request.size()), write(file, request.data(), request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(file, buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  close(file);
  return answer;
}

TEST(MetricsExporterTest, OnlyAddressesInNumbers) {
  for (const char* good : {"127.0.0.1:9709", "0.0.0.0:1", "[::1]:9709", "127.0.0.1:0"}) {
    EXPECT_TRUE(CheckMetricsAddress(good).ok()) << good;
  }
  for (const char* bad : {"", ":9709", "localhost:9709", "127.0.0.1", "127.0.0.1:", "::1:9709",
                          "127.0.0.1:65536", "127.0.0.1:x", "127.0.0.1:-1", "[::1:9709",
                          "unix:/run/x", "127.0.0.1:9709,1.2.3.4:5", "127.0.0.1:9709s"}) {
    const absl::Status status = CheckMetricsAddress(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad));
  }
}

TEST(MetricsExporterTest, AsksAtEveryScrapeAndNoMoreAfterwards) {
  std::atomic<int> asked = 0;
  auto exporter = MetricsExporter::Start("127.0.0.1:0", [&] {
    DaemonNumbers numbers;
    numbers.version = "9.9";
    ++asked;
    return numbers;
  });
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  EXPECT_EQ(0, asked);
  for (int i = 1; i <= 3; ++i) {
    const std::string answer = Get((*exporter)->address(), "/metrics");
    EXPECT_THAT(answer, HasSubstr("200 OK"));
    EXPECT_THAT(answer, HasSubstr("\ncoppice_build_info{version=\"9.9\"} 1"));
    EXPECT_EQ(i, asked);
  }
  EXPECT_THAT(Get((*exporter)->address(), "/"), HasSubstr("404"));
  exporter->reset();
  EXPECT_EQ(3, asked);
}

TEST(MetricsExporterTest, PortThatIsTakenIsNamed) {
  const auto first = MetricsExporter::Start("127.0.0.1:0", [] { return DaemonNumbers(); });
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsExporter::Start((*first)->address(), [] { return DaemonNumbers(); });
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
  EXPECT_TRUE(absl::IsUnavailable(
      MetricsExporter::Start("192.0.2.1:1", [] { return DaemonNumbers(); }).status()));
}

SwitchView Carrying(uint64_t guid, std::map<std::string, uint64_t> refusals) {
  SwitchView view;
  view.hello.guid = Guid(guid);
  view.report = {.entries_used = 3,
                 .collectives = 40,
                 .segments_up = 5,
                 .segments_down = 6,
                 .bytes_up = 700,
                 .bytes_down = 800,
                 .refusals = std::move(refusals),
                 .broken = {}};
  return view;
}

TEST(FamiliesOfTest, SwitchesAreToldOfOneByOne) {
  DaemonNumbers numbers;
  numbers.switches = {Carrying(0x2a, {{"no such child", 2}, {"stale revision", 1}}),
                      Carrying(0x2b, {})};
  const std::string text = prometheus::TextSerializer().Serialize(FamiliesOf(numbers));
  const std::string its = "{switch=\"000000000000002a\"";
  for (const std::string& line :
       {"coppice_switch_entries_used" + its + "} 3",
        "coppice_switch_collectives_total" + its + "} 40",
        "coppice_switch_segments_total" + its + ",direction=\"up\"} 5",
        "coppice_switch_segments_total" + its + ",direction=\"down\"} 6",
        "coppice_switch_bytes_total" + its + ",direction=\"up\"} 700",
        "coppice_switch_bytes_total" + its + ",direction=\"down\"} 800",
        "coppice_switch_refused_messages_total" + its + ",reason=\"no such child\"} 2",
        "coppice_switch_refused_messages_total" + its + ",reason=\"stale revision\"} 1"}) {
    EXPECT_THAT(text, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_THAT(text, HasSubstr("\ncoppice_switch_bytes_total{switch=\"000000000000002b\""));
}

// However many a switch makes up, and its own "other" among them: all are counted, few by name.
TEST(FamiliesOfTest, ReasonsOfRefusalsAreBounded) {
  std::map<std::string, uint64_t> refusals = {{"other", 1}};
  for (int i = 0; i < 60; ++i) refusals["reason " + std::to_string(i)] = 1;
  DaemonNumbers numbers;
  numbers.switches = {Carrying(1, refusals)};
  size_t series = 0;
  double refused = 0;
  for (const prometheus::MetricFamily& family : FamiliesOf(numbers)) {
    if (family.name != "coppice_switch_refused_messages_total") continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      ++series;
      refused += metric.counter.value;
    }
  }
  EXPECT_EQ(17u, series);
  EXPECT_EQ(61, refused);
}

}  // namespace
}  // namespace coppice::exporter_test
