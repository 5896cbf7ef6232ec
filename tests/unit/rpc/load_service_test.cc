// Counters, history and load over the wire: what is refused, and what messages say.
#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <random>

#include "daemon/fabric/fabric_source.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "tests/support/tier.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::load_service_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using FabricStub = v1::Fabric::Stub;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class LoadServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::ListPortCountersResponse> Counters(const std::string& guid) {
    v1::ListPortCountersRequest request;
    request.set_switch_guid(guid);
    return loopback_.Call(loopback_.fabric(), &FabricStub::ListPortCounters, request);
  }
  absl::StatusOr<v1::PortHistory> History(const std::string& guid, uint32_t port) {
    v1::GetPortHistoryRequest request;
    request.set_node_guid(guid);
    request.set_port(port);
    return loopback_.Call(loopback_.fabric(), &FabricStub::GetPortHistory, request);
  }
  std::string AnySwitch() {
    return ToString(
        loopback_.manager().fabric()->snapshot->fabric->switch_info(SwitchIndex(0)).guid);
  }
  Loopback loopback_;
};

TEST_F(LoadServiceTest, CountersOfASwitchThatWasNeverRead) {
  const auto answer = Counters(AnySwitch());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->ports_size(), 0);
}

TEST_F(LoadServiceTest, CountersNameWhatIsWrong) {
  const absl::Status unknown = Counters("00000000000000ff").status();
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("switch 00000000000000ff"));
  EXPECT_EQ(Counters("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Counters("leaf").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LoadServiceTest, HistoryNamesWhatIsWrong) {
  const auto none = History(AnySwitch(), 1);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->points_size(), 0);
  EXPECT_EQ(none->resolution(), v1::HISTORY_RESOLUTION_HOUR);  // all that there ever was
  EXPECT_EQ(History(AnySwitch(), 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(History(AnySwitch(), 255).status().code(), StatusCode::kInvalidArgument);
  const absl::Status beyond = History(AnySwitch(), 200).status();
  EXPECT_EQ(beyond.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr(AnySwitch() + "/200"));
  EXPECT_EQ(History("00000000000000ff", 1).status().code(), StatusCode::kNotFound);
}

TEST_F(LoadServiceTest, LinksSayThatTheyWereNeverRead) {
  const auto links =
      loopback_.Call(loopback_.fabric(), &FabricStub::ListLinks, v1::ListLinksRequest());
  ASSERT_TRUE(links.ok());
  for (const v1::Link& link : links->links()) {
    EXPECT_FALSE(link.has_load_time());
    EXPECT_FALSE(link.has_utilisation_ab() || link.has_utilisation_ba());
    EXPECT_FALSE(link.has_peak_ab() || link.has_peak_ba());
    EXPECT_EQ(link.promised_ab(), 0);
  }
}

TEST_F(LoadServiceTest, EventsAreFilteredByTime) {
  v1::ListEventsRequest request;
  const auto count = [&] {
    const auto events = loopback_.Call(loopback_.fabric(), &FabricStub::ListEvents, request);
    EXPECT_TRUE(events.ok()) << events.status();
    return events.ok() ? events->events_size() : -1;
  };
  const int all = count();
  EXPECT_GT(all, 0);
  request.mutable_end_time()->set_seconds(1'600'000'000);
  EXPECT_EQ(count(), 0);
  request.mutable_end_time()->set_seconds(1'800'000'000);
  request.mutable_start_time()->set_seconds(1'600'000'000);
  EXPECT_EQ(count(), all);
  request.mutable_start_time()->set_nanos(-1);
  EXPECT_EQ(loopback_.Call(loopback_.fabric(), &FabricStub::ListEvents, request).status().code(),
            StatusCode::kInvalidArgument);
}

v1::GetPortHistoryRequest Request() {
  v1::GetPortHistoryRequest request;
  request.set_node_guid("0x0002c90200400001");
  request.set_port(7);
  return request;
}

TEST(LoadConversionTest, FinestResolutionThatReachesBack) {
  v1::GetPortHistoryRequest request = Request();
  for (const auto& [ago, wanted] : std::vector<std::pair<absl::Duration, HistoryResolution>>{
           {absl::Minutes(59), HistoryResolution::kReading},
           {absl::Minutes(61), HistoryResolution::kMinute},
           {absl::Hours(25), HistoryResolution::kHour}}) {
    request.mutable_start_time()->set_seconds(absl::ToUnixSeconds(kNow - ago));
    const auto query = FromProto(request, kNow);
    ASSERT_TRUE(query.ok()) << query.status();
    EXPECT_EQ(query->resolution, wanted) << ago;
    EXPECT_EQ(query->end, kNow);
    EXPECT_EQ(query->node, Guid(0x0002c90200400001));
    EXPECT_EQ(query->port, 7);
  }
  request.set_resolution(v1::HISTORY_RESOLUTION_READING);
  EXPECT_EQ(FromProto(request, kNow)->resolution, HistoryResolution::kReading);
}

TEST(LoadConversionTest, NonsenseIsRefused) {
  v1::GetPortHistoryRequest request = Request();
  request.mutable_start_time()->set_seconds(100);
  request.mutable_end_time()->set_seconds(99);
  EXPECT_EQ(FromProto(request, kNow).status().code(), StatusCode::kInvalidArgument);
  request = Request();
  request.set_resolution(static_cast<v1::HistoryResolution>(4));
  EXPECT_EQ(FromProto(request, kNow).status().code(), StatusCode::kInvalidArgument);
  request = Request();
  request.mutable_start_time()->set_seconds(INT64_MAX);
  EXPECT_THAT(std::string(FromProto(request, kNow).status().message()), HasSubstr("start_time"));
}

// Whatever the bytes are, the query is good or refused.
TEST(LoadConversionTest, RandomRequestsAreGoodOrRefused) {
  const google::protobuf::LogSilencer silencer;  // texts that are no UTF-8
  std::mt19937_64 random(TestSeed());
  const std::string good = Request().SerializeAsString();
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes = good;
    v1::GetPortHistoryRequest with_times = Request();
    with_times.mutable_start_time()->set_seconds(static_cast<int64_t>(random()));
    with_times.mutable_end_time()->set_nanos(static_cast<int32_t>(random()));
    if (i % 2 == 0) bytes = with_times.SerializeAsString();
    for (uint64_t flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    v1::GetPortHistoryRequest request;
    if (!request.ParseFromString(bytes)) continue;
    const auto query = FromProto(request, kNow);
    if (!query.ok()) {
      EXPECT_EQ(query.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    EXPECT_LE(query->start, query->end);
    EXPECT_GE(query->port, 1);
  }
}

TEST(LoadConversionTest, CountersNameThePeer) {
  const auto fabric = *LoadFabric(kSmallFabric);
  const SwitchInfo& info = fabric->switch_info(SwitchIndex(0));
  PortCounterRecord record;
  record.node = info.guid;
  record.sent_bytes = 0xffffffffffffffff;
  record.sent_bytes_per_second = 1.5;
  record.read = kNow;
  for (record.port = 1; record.port <= info.port_count; ++record.port) {
    v1::PortCounters message;
    ToProto(*fabric, record, message);
    EXPECT_EQ(message.peer().empty(),
              fabric->channel_at(SwitchIndex(0), PortNum(record.port)) == kNoChannel);
    EXPECT_EQ(message.sent_bytes(), 0xffffffffffffffff);
    EXPECT_EQ(message.read_time().seconds(), 1'700'000'000);
  }
}

TEST(LoadConversionTest, HistoryTellsMeans) {
  v1::PortHistory message;
  ToProto(HistoryResolution::kMinute,
          {{kNow, absl::Seconds(50), 100, 200, 30, 40, 5}, {kNow, absl::ZeroDuration(), 1}},
          message);
  EXPECT_EQ(message.resolution(), v1::HISTORY_RESOLUTION_MINUTE);
  ASSERT_EQ(message.points_size(), 2);
  EXPECT_EQ(message.points(0).sent_bytes_per_second(), 2);
  EXPECT_EQ(message.points(0).received_bytes_per_second(), 4);
  EXPECT_EQ(message.points(0).peak_sent_bytes_per_second(), 30);
  EXPECT_EQ(message.points(0).errors(), 5u);
  EXPECT_EQ(message.points(1).sent_bytes_per_second(), 0);
}

TEST(LoadConversionTest, LinksTellMeasuredAndPromised) {
  LinkMeasure measure;
  measure.ab = {0.25, 0.75, kNow, kNow, 0.125};
  v1::Link link;
  ToProto(measure, link);
  EXPECT_EQ(link.utilisation_ab(), 0.25);
  EXPECT_EQ(link.peak_ab(), 0.75);
  EXPECT_EQ(link.promised_ab(), 0.125);
  EXPECT_FALSE(link.has_utilisation_ba()) << "its other end was not read";
  EXPECT_EQ(link.load_time().seconds(), 1'700'000'000);
}

}  // namespace
}  // namespace coppice::load_service_test
