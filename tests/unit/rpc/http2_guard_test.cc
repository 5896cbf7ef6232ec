#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "daemon/rpc/listen/guarded_reads.h"
#include "tests/unit/rpc/http2_frames.h"

namespace coppice::http2_guard_test {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

std::string Frame(Http2FrameType type, uint8_t flags, size_t length) {
  return Http2Frame(type, flags, 1, std::string(length, '\x5a'));
}

std::string Repeated(const std::string& frame, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += frame;
  return all;
}

// What a guard says of `bytes` after a preface, given it whole and byte by byte.
std::string Judge(const std::string& bytes) {
  Http2Guard whole, bit_by_bit;
  const std::string all = kHttp2Preface + bytes;
  const std::string said(whole.Take(all, kStart));
  std::string said_of_bits;
  for (const char byte : all) said_of_bits = std::string(bit_by_bit.Take({&byte, 1}, kStart));
  EXPECT_EQ(said, said_of_bits);
  return said;
}

TEST(Http2GuardTest, LetsOrdinaryCallsPass) {
  std::string calls;
  for (int i = 0; i < 5'000; ++i) {
    calls += Frame(kHeadersFrame, kEndHeadersFlag, 300) + Frame(kDataFrame, 1, 40) +
             Frame(kDataFrame, 1, i % 100 == 0 ? 16'384 : 1);
  }
  EXPECT_EQ(Judge(calls), "");
}

TEST(Http2GuardTest, BoundsOneBlockOfHeaders) {
  const size_t half = Http2Guard::kMaxHeaderBlock / 2;
  const std::string begun = Frame(kHeadersFrame, 0, half);
  EXPECT_EQ(Judge(Repeated(begun + Frame(kContinuationFrame, kEndHeadersFlag, half), 10)), "");
  EXPECT_NE(Judge(begun + Frame(kContinuationFrame, kEndHeadersFlag, half + 1)), "");
  EXPECT_NE(Judge(begun + Frame(kContinuationFrame, 0, half) + Frame(kContinuationFrame, 0, 1)),
            "");
  EXPECT_NE(Judge(Frame(kHeadersFrame, kEndHeadersFlag, Http2Guard::kMaxHeaderBlock + 1)), "");
}

TEST(Http2GuardTest, BoundsEmptyFramesOfOneBlock) {
  const std::string begun = Frame(kHeadersFrame, 0, 1);
  const int left = Http2Guard::kMaxHeaderFrames - 1;
  EXPECT_EQ(Judge(begun + Repeated(Frame(kContinuationFrame, 0, 0), left)), "");
  EXPECT_NE(Judge(begun + Repeated(Frame(kContinuationFrame, 0, 0), left + 1)), "");
}

TEST(Http2GuardTest, BoundsHowOftenStreamsAreReset) {
  const std::string reset = Frame(kResetStreamFrame, 0, 4);
  EXPECT_EQ(Judge(Repeated(reset, 1'000)), "");
  EXPECT_NE(Judge(Repeated(reset, 1'001)), "");
  Http2Guard guard;
  guard.Take(kHttp2Preface, kStart);
  for (int second = 0; second < 60; ++second) {
    ASSERT_EQ(guard.Take(Repeated(reset, 200), kStart + absl::Seconds(second)), "") << second;
  }
}

TEST(Http2GuardTest, BoundsSettingsAndPings) {
  EXPECT_EQ(Judge(Repeated(Frame(kSettingsFrame, 0, 6), 200)), "");
  EXPECT_NE(Judge(Repeated(Frame(kSettingsFrame, 0, 6), 201)), "");
  EXPECT_EQ(Judge(Repeated(Frame(kPingFrame, 0, 8), 2'000)), "");
  EXPECT_NE(Judge(Repeated(Frame(kPingFrame, 0, 8), 2'001)), "");
}

// Bytes of a message that says it is so long.
std::string Message(uint8_t length, size_t sent) {
  return std::string({0, 0, 0, 0, static_cast<char>(length)}) + std::string(sent, 'x');
}

TEST(Http2GuardTest, CountsWhatHasComeOfMessagesThatHaveNotComeWhole) {
  for (const size_t step : {1, 3, 1000}) {
    Http2Guard guard;
    const auto take = [&](std::string bytes) {
      for (size_t i = 0; i < bytes.size(); i += step) {
        EXPECT_EQ(guard.Take(bytes.substr(i, step), kStart), "");
      }
      return guard.half_sent();
    };
    take(kHttp2Preface);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 1, Message(10, 10))), 0);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 1, Message(10, 4))), 9);
    EXPECT_EQ(
        take(Http2Frame(kDataFrame, 0, 3, Message(10, 10) + Message(0, 0) + std::string(1, 0))),
        9 + 1);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 3, std::string("\0\0\0\x02y", 5))), 9 + 6);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 1, std::string(6, 'x'))), 6);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 5, Message(200, 100))), 6 + 105);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 0, 7, Message(200, 100))), 6 + 210);
    EXPECT_EQ(take(Http2Frame(kResetStreamFrame, 0, 5, std::string(4, 0))), 6 + 105);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 1, 7, "")), 6);
    EXPECT_EQ(take(Http2Frame(kDataFrame, 1, 3, "y")), 0);
  }
}

TEST(Http2GuardTest, SaysTheSameForEver) {
  Http2Guard guard;
  const std::string said(
      guard.Take(kHttp2Preface + Frame(kHeadersFrame, kEndHeadersFlag, 1 << 20), kStart));
  ASSERT_NE(said, "");
  EXPECT_EQ(guard.Take(Frame(kDataFrame, 0, 1), kStart + absl::Hours(1)), said);
}

// A clock that is set back gives nothing and takes nothing.
TEST(Http2GuardTest, TakesAnyTime) {
  Http2Guard guard;
  guard.Take(kHttp2Preface, kStart);
  const std::string reset = Frame(kResetStreamFrame, 0, 4);
  EXPECT_EQ(guard.Take(Repeated(reset, 1'000), kStart), "");
  EXPECT_NE(guard.Take(reset, kStart - absl::Hours(1)), "");
}

}  // namespace
}  // namespace coppice::http2_guard_test
