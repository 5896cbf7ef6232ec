// How the command line shows things: aligned tables for people, JSON for programs, errors on
// stderr.
#ifndef COPPICE_CLIENT_CLI_OUTPUT_H_
#define COPPICE_CLIENT_CLI_OUTPUT_H_

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Rows under a heading, each column as wide as its widest cell; numbers, and "-" for none, to the
// right. The heading is bold if standard output is a terminal. A cell is one line, whatever it
// holds.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  // Without `rest` those of its columns, unless all are wanted (Session::is_wide).
  Table(std::vector<std::string> heading, std::vector<size_t> rest, bool is_wide)
      : rows_{std::move(heading)} {
    if (!is_wide) left_out_ = std::move(rest);
  }
  void Add(std::vector<std::string> row);
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> left_out_;  // columns
};

// One JSON document; field names are the proto's, unset fields appear with their defaults.
void PrintJson(std::ostream& out, const google::protobuf::Message& message);

// The same on a single line.
void PrintJsonLine(std::ostream& out, const google::protobuf::Message& message);

// What coppicectl ends with, so that scripts need not read its words. README.md of client/ and the
// man page tell them.
inline constexpr int kFailed = 1;       // for another reason; `status`: something is wrong
inline constexpr int kWrongUsage = 2;   // also of a value that only the daemon can judge
inline constexpr int kNotFound = 3;     // what was named is not there
inline constexpr int kNotAllowed = 4;   // to this caller
inline constexpr int kUnreachable = 5;  // no daemon, or no answer in time
inline constexpr int kRefused = 6;      // not now: entries, nodes or a quota are used up, say

// "error: MESSAGE" with the code's name on stderr; returns the exit status of that code.
int Fail(const absl::Status& status);

// "1 link", "2 links", "0 switches".
std::string Counted(uint64_t count, absl::string_view noun, absl::string_view plural = "s");

// 1234.5 -> "1234.50"; used for microseconds and Gb/s alike.
std::string Fixed(double value, int digits = 2);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_OUTPUT_H_
