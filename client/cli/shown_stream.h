// What coppicectl writes on standard output and standard error, with every text in it as it may be
// shown: names come from other users, from agents and from nodes of the fabric, and some of them
// from before the daemon refused what steers a terminal.
#ifndef COPPICE_CLIENT_CLI_SHOWN_STREAM_H_
#define COPPICE_CLIENT_CLI_SHOWN_STREAM_H_

#include <ostream>
#include <streambuf>
#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// From construction to destruction `out` escapes what is not plain (proto/text/plain_text.h); lines
// stay lines. Not thread-safe, as `out` is not.
class ShownStream final : public std::streambuf {
 public:
  explicit ShownStream(std::ostream& out) : out_(out), target_(out.rdbuf(this)) {}
  ~ShownStream() override;
  ShownStream(const ShownStream&) = delete;
  ShownStream& operator=(const ShownStream&) = delete;

  // Writes a sequence of our own to a terminal, past the escaping of `out` if it has one.
  static void Control(std::ostream& out, absl::string_view sequence);

 protected:
  int overflow(int c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  // Writes what is complete of begun_ and `text`; false: the target takes no more.
  bool Write(absl::string_view text);

  std::ostream& out_;
  std::streambuf* const target_;
  std::string begun_;  // of a character whose end has not come yet
};

// To the beginning of the terminal's line, which is wiped.
inline constexpr char kWipeLine[] = "\r\033[K";

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_SHOWN_STREAM_H_
