// Frames: any cut of a stream gives the same messages; lengths are not believed.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "client/library/messages.h"
#include "tests/support/tier.h"

namespace coppice::frame_test {
namespace {

std::vector<std::string> ReadAll(FrameReader& reader) {
  std::vector<std::string> messages;
  while (const auto message = reader.Next()) messages.emplace_back(*message);
  return messages;
}

TEST(FrameTest, AnyCutGivesTheSameMessages) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> messages(random() % 6);
    std::string stream;
    for (std::string& message : messages) {
      message.assign(random() % 300, static_cast<char>(random()));
      AppendFrame(message, stream);
    }
    FrameReader reader;
    std::vector<std::string> read;
    for (size_t next = 0; next < stream.size();) {
      const size_t part = std::min<size_t>(1 + random() % 40, stream.size() - next);
      reader.Append(std::string_view(stream).substr(next, part));
      next += part;
      for (std::string& message : ReadAll(reader)) read.push_back(std::move(message));
    }
    EXPECT_EQ(read, messages);
    EXPECT_EQ(reader.buffered(), 0u);
    EXPECT_FALSE(reader.is_broken());
  }
}

TEST(FrameTest, AnEmptyMessageIsOne) {
  FrameReader reader;
  reader.Append(std::string(4, '\0'));
  EXPECT_EQ(ReadAll(reader), std::vector<std::string>{""});
}

TEST(FrameTest, ALengthOverTheMaximumBreaksTheStreamForGood) {
  FrameReader reader(10);
  std::string stream;
  AppendFrame("0123456789", stream);
  AppendFrame("0123456789a", stream);
  AppendFrame("good", stream);
  reader.Append(stream);
  EXPECT_EQ(ReadAll(reader), std::vector<std::string>{"0123456789"});
  EXPECT_TRUE(reader.is_broken());
  reader.Append(stream);
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(FrameTest, AClaimedLengthTakesNoMemory) {
  FrameReader reader;
  reader.Append(std::string("\0\0\0\x04", 4));  // 64 MiB
  reader.Append("x");
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_FALSE(reader.is_broken());
  EXPECT_EQ(reader.buffered(), 5u);
}

}  // namespace
}  // namespace coppice::frame_test
