#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

#include "client/cli/output.h"
#include "proto/text/plain_text.h"
#include "tests/support/tier.h"

namespace coppice::shown_stream_test {
namespace {

TEST(ShownStreamTest, EscapesAllButLinesAndItsOwn) {
  std::ostringstream out;
  {
    const ShownStream shown(out);
    out << "job \x1b]0;x\x07 " << 7 << '\n' << std::string("\xE2\x80\xAE") << "\xC2" << '\x9B';
    ShownStream::Control(out, "\r\033[K");
    out << "end\xE2";
  }
  EXPECT_EQ(out.str(), "job \\u001b]0;x\\u0007 7\n\\u202e\\u009b\r\033[Kend\\xe2");
  out << "\x1b";  // the stream is as it was
  EXPECT_EQ(out.str().back(), '\x1b');
}

// Written in pieces it is the same as written at once.
TEST(ShownStreamTest, PiecesMakeNoDifference) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 5'000; ++round) {
    std::string text(random() % 16, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? 0x80 + random() % 64 : random());
    std::ostringstream out;
    {
      const ShownStream shown(out);
      for (size_t at = 0; at < text.size();) {
        const size_t size = random() % 3 + 1;
        out << text.substr(at, size);
        at += size;
      }
    }
    std::string expected = ShownText(text, TextLines::kMany);
    if (text.find("\r\n") != std::string::npos) continue;  // may be cut between the two
    ASSERT_EQ(out.str(), expected);
  }
}

TEST(ShownStreamTest, ACellIsOneLine) {
  Table table({"JOB", "NAME"});
  table.Add({"1", "m\xC3\xA9lt\n2  root  active"});
  table.Add({"3", "x\x1b[1A"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "JOB  NAME\n  1  m\xC3\xA9lt\\n2  root  active\n  3  x\\u001b[1A\n");
}

}  // namespace
}  // namespace coppice::shown_stream_test
