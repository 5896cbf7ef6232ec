// What users see: aligned tables for people, JSON for programs, errors on stderr, and streams
// without characters that a terminal would obey.
#ifndef COPPICE_CLIENT_CLI_OUTPUT_H_
#define COPPICE_CLIENT_CLI_OUTPUT_H_

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <streambuf>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/text/exit_status.h"
#include "proto/text/text_table.h"

namespace google::protobuf {
class Duration;
class Message;
}  // namespace google::protobuf

namespace coppice {
namespace v1 {
class FabricSummary;
class ListDistancesResponse;
class Tree;
}  // namespace v1

// The heading is bold if standard output is a terminal.
class Table : public TextTable {
 public:
  using TextTable::TextTable;
  void Print(std::ostream& out) const;
};

// A cell of a table: numbers in decimal.
inline std::string Cell(std::string text) { return text; }
template <class Number>
requires std::is_arithmetic_v<Number> std::string Cell(Number number) {
  return absl::StrCat(number);
}
template <class... Values>
std::vector<std::string> CellsOf(const Values&... values) {
  return {Cell(values)...};
}

// As it is shown: for people within a terminal's columns (Wrapped), else on its line.
std::string Folded(absl::string_view text, size_t indent);

// A text that says what `name` is: "reason     ...". For people it goes on below.
void PrintField(std::ostream& out, absl::string_view name, absl::string_view text);

// JSON as protobuf has it: field names are the proto's, 64-bit numbers are texts.
// What may be unset and is, as what nobody knows yet, is null, as an id is that is not known; other
// fields appear with their defaults.
nlohmann::ordered_json JsonOf(const google::protobuf::Message& message);
// As a document, and on a single line.
void PrintJson(std::ostream& out, const google::protobuf::Message& message);
void PrintJsonLine(std::ostream& out, const google::protobuf::Message& message);

// "error: MESSAGE" with the code's name on stderr; returns the exit status of that code.
int Fail(const absl::Status& status);
// From here on Fail writes {"error": {"code": NAME, "message": TEXT}} on a line, for programs.
void FailInJson();

// What the line of the routes ends with: how the subnet manager is, where there may be one.
std::string ManagerText(const v1::FabricSummary& fabric);

// "1 link", "2 links", "0 switches".
std::string Counted(uint64_t count, absl::string_view noun, absl::string_view plural = "s");

// Measured distances as the matrix that map --distance reads, here and in coppice-plan: one row and
// column for each of `members`, in the order in which they are first named: the time of a byte,
// 1/bandwidth, and with `message_bytes` above 0 latency/message_bytes beside it; in units of the
// least between two hosts, 0 within a host. FAILED_PRECONDITION, naming two hosts: `distances` do
// not have the pair; INVALID_ARGUMENT: no members. (distance_commands.cc)
absl::StatusOr<std::string> DistanceMatrixText(const std::vector<std::string>& members,
                                               const v1::ListDistancesResponse& distances,
                                               double message_bytes);

double Seconds(const google::protobuf::Duration& duration);

// 1234.5 -> "1234.50"; used for microseconds and Gb/s alike.
std::string Fixed(double value, int digits = 2);

// What coppicectl writes on standard output and standard error, with every text in it as it may be
// shown: names come from other users, from agents and from nodes of the fabric, and some of them
// from before the daemon refused what steers a terminal.

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

// Renews the line of standard error that says how far a call is, if that is a terminal; "" wipes
// it.
void ShowProgress(absl::string_view line);

// --- A tree as text and as JSON (tree_output.cc): id, job_id, type, builder, width, ..., nodes
// with ids rank:R and switch:GUID; enumerators by name, as everywhere in JSON. ---

// Node GUID -> description. A switch that is not in it is shown by its GUID.
using SwitchNames = absl::flat_hash_map<uint64_t, std::string>;
// Port GUID -> "host/port". An endpoint that is not in it is shown by its GUID.
using EndpointNames = absl::flat_hash_map<uint64_t, std::string>;

void PrintTreeJson(std::ostream& out, const v1::Tree& tree, const EndpointNames& names);

// "-": it has none.
std::string WidthText(uint32_t width);

// Type, size, predicted times, the switches that serve and the reason: six lines at most.
void PrintTreeSummary(std::ostream& out, const v1::Tree& tree, const SwitchNames& names);
// The tree drawn from its root, one node a line, runs of leaf ranks joined: "ranks 0-15".
void PrintTreeNodes(std::ostream& out, const v1::Tree& tree, const SwitchNames& names);
// Nothing, if the answer lists none.
void PrintTradeoffs(std::ostream& out, const v1::Tree& tree);
void PrintAlternatives(std::ostream& out, const v1::Tree& tree);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_OUTPUT_H_
