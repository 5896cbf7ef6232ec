// Frames: what is written is read again whatever the cuts of the stream, and what is none is
// refused before its payload is kept.
#include "agents/links/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/support/tier.h"

namespace coppice::frame_test {
namespace {

FrameHeader SomeHeader(std::mt19937_64& random) {
  FrameHeader header;
  header.kind = static_cast<FrameKind>(1 + random() % kLastFrameKind);
  header.operation = static_cast<ReductionOperation>(random() % (kLastOperation + 1));
  header.type = static_cast<ElementType>(random() % (kLastElementType + 1));
  header.wants_result = random() % 2 != 0;
  header.group = {random(), static_cast<uint32_t>(random())};
  header.child = static_cast<uint32_t>(random());
  header.sequence = random();
  header.segment = static_cast<uint32_t>(random());
  header.length = static_cast<uint32_t>(random() % 300);
  return header;
}

std::string BytesOf(const FrameHeader& header) {
  const auto bytes = EncodeHeader(header);
  return std::string(bytes.data(), bytes.size());
}

struct Parsed {
  std::vector<std::pair<FrameHeader, std::string>> frames;
  bool is_malformed = false;
};

Parsed Parse(std::string_view stream, uint32_t max_payload, std::mt19937_64& random) {
  FrameParser parser(max_payload);
  Parsed parsed;
  while (!stream.empty() && !parsed.is_malformed) {
    const std::span<char> room = parser.Room();
    EXPECT_FALSE(room.empty());
    if (room.empty()) break;
    const size_t part =
        std::min({room.size(), stream.size(), static_cast<size_t>(1 + random() % 100)});
    std::memcpy(room.data(), stream.data(), part);
    parser.Filled(part);
    stream.remove_prefix(part);
    FrameHeader header;
    std::string_view payload;
    for (auto state = parser.Next(&header, &payload); state != FrameParser::State::kNeedsMore;
         state = parser.Next(&header, &payload)) {
      parsed.is_malformed = state == FrameParser::State::kMalformed;
      if (parsed.is_malformed) break;
      parsed.frames.emplace_back(header, payload);
    }
  }
  EXPECT_LE(parser.capacity(), kHeaderBytes + max_payload + 64);
  return parsed;
}

TEST(Frame, IsReadAsItWasWrittenWhateverTheCuts) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::string stream;
    std::vector<std::pair<FrameHeader, std::string>> written;
    for (uint64_t count = random() % 6; count > 0; --count) {
      const FrameHeader header = SomeHeader(random);
      std::string payload(header.length, '\0');
      for (char& byte : payload) byte = static_cast<char>(random());
      stream += BytesOf(header) + payload;
      written.emplace_back(header, payload);
    }
    const Parsed parsed = Parse(stream, 300, random);
    EXPECT_FALSE(parsed.is_malformed);
    EXPECT_EQ(parsed.frames, written);
  }
}

TEST(Frame, HasTheLayoutThatTheContractStates) {
  FrameHeader header;
  header.kind = FrameKind::kContribution;
  header.operation = ReductionOperation::kMaximum;
  header.wants_result = true;
  header.type = ElementType::kHalf;
  header.group = {0x0102030405060708, 0x090a0b0c};
  header.child = 0x0d0e0f10;
  header.sequence = 0x1112131415161718;
  header.segment = 0x191a1b1c;
  header.length = 0x1d1e;
  const std::string bytes = BytesOf(header);
  const std::string wanted(
      "CPSW\x01\x04\x44\x0c\x08\x07\x06\x05\x04\x03\x02\x01\x0c\x0b\x0a\x09\x10\x0f\x0e\x0d"
      "\x18\x17\x16\x15\x14\x13\x12\x11\x1c\x1b\x1a\x19\x1e\x1d\x00\x00",
      kHeaderBytes);
  EXPECT_EQ(bytes, wanted);
}

TEST(Frame, RefusesEveryByteThatMeansNothing) {
  FrameHeader header;
  header.kind = FrameKind::kHello;
  const std::string good = BytesOf(header);
  FrameHeader read;
  ASSERT_TRUE(DecodeHeader(good, &read));
  for (const auto& [place, values] :
       std::vector<std::pair<size_t, std::vector<int>>>{{0, {0, 'c', 'X'}},
                                                        {1, {0}},
                                                        {2, {0}},
                                                        {3, {'w'}},
                                                        {4, {0, 2, 255}},
                                                        {5, {0, 8, 255}},
                                                        {6, {12, 0x3f, 0x80, 0xff}},
                                                        {7, {14, 255}}}) {
    for (const int value : values) {
      std::string bad = good;
      bad[place] = static_cast<char>(value);
      EXPECT_FALSE(DecodeHeader(bad, &read)) << place << " " << value;
    }
  }
  header.length = kMaxPayloadBytes;
  EXPECT_TRUE(DecodeHeader(BytesOf(header), &read));
  header.length = kMaxPayloadBytes + 1;
  EXPECT_FALSE(DecodeHeader(BytesOf(header), &read));
}

TEST(Frame, LongerThanIsAllowedIsRefusedByItsHeader) {
  std::mt19937_64 random(TestSeed());
  FrameHeader header;
  header.length = kKeyBytes + 1;
  EXPECT_TRUE(Parse(BytesOf(header), kKeyBytes, random).is_malformed);
  EXPECT_FALSE(Parse(BytesOf(header), kKeyBytes + 1, random).is_malformed);
}

TEST(Frame, RefusalsHaveNamesOfTheirOwnAndCome) {
  std::vector<std::string_view> names;
  for (uint32_t number = 1; number <= kLastRefusal; ++number) {
    const auto refusal = static_cast<Refusal>(number);
    names.push_back(RefusalName(refusal));
    EXPECT_EQ(ParseRefusal(RefusalPayload(refusal, "why")), refusal);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_EQ(ParseRefusal("abc"), Refusal::kMalformed);
  EXPECT_EQ(ParseRefusal(std::string(4, '\0')), Refusal::kMalformed);
  EXPECT_EQ(ParseRefusal("\xff\xff\xff\xff"), Refusal::kMalformed);
  EXPECT_EQ(RefusalName(static_cast<Refusal>(4'000)), "unknown reason");
  EXPECT_EQ(RefusalPayload(Refusal::kTwice, std::string(500, 'x')).size(), 4 + kMaxRefusalText);
}

}  // namespace
}  // namespace coppice::frame_test
