// Measured latencies from CSV text. Every error names origin, line and column: a table of
// measurements is long, and is written by scripts that nobody watches.
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/calibration/calibration.h"
#include "proto/text/names.h"

namespace coppice {
namespace {

constexpr size_t kMaxTextBytes = size_t{16} << 20;
constexpr size_t kMaxSamples = 20'000;
constexpr size_t kMaxFields = 256;  // of a line; more is not a table of measurements
constexpr size_t kMaxQuoted = 64;   // characters of a text that an error repeats
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
constexpr uint32_t kMaxMembers = uint32_t{1} << 24;
constexpr double kMaxUs = 1e9;  // a quarter of an hour is no collective

enum Column : size_t { kOperation, kBytes, kMembersColumn, kType, kWidth, kMicroseconds };
constexpr size_t kColumnCount = 6;
constexpr std::array<absl::string_view, kColumnCount> kColumns = {
    "operation", "bytes", "members", "type", "width", "microseconds"};

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)),
                      text.size() > kMaxQuoted ? "...\"" : "\"");
}

absl::Status Error(Column column, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", kColumns[column], ": ", what));
}

std::optional<Column> ColumnNamed(absl::string_view field) {
  std::string name = absl::AsciiStrToLower(field);
  if (name == "tree type" || name == "tree_type") name = "type";
  if (name == "us") name = "microseconds";
  for (size_t c = 0; c < kColumnCount; ++c) {
    if (kColumns[c] == name) return static_cast<Column>(c);
  }
  return std::nullopt;
}

// One field up to the next comma, which is consumed. `rest` is not at its end.
absl::StatusOr<std::string> NextField(absl::string_view& rest) {
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (!absl::ConsumePrefix(&rest, "\"")) {
    const absl::string_view field = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), field.size()));
    return std::string(absl::StripTrailingAsciiWhitespace(field));
  }
  std::string field;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"' && !absl::ConsumePrefix(&rest, "\"")) {
      rest = absl::StripLeadingAsciiWhitespace(rest);
      if (rest.empty() || rest.front() == ',') {
        return std::string(absl::StripAsciiWhitespace(field));
      }
      return absl::InvalidArgumentError("text after a closing quote; put a comma between fields");
    }
    field.push_back(c);
  }
  return absl::InvalidArgumentError("a quote is never closed; close it on the same line");
}

absl::StatusOr<std::vector<std::string>> SplitFields(absl::string_view line) {
  std::vector<std::string> fields;
  bool more = true;
  while (more) {
    ASSIGN_OR_RETURN(std::string field, NextField(line));
    fields.push_back(std::move(field));
    if (fields.size() > kMaxFields) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxFields, " fields; give a table of measurements"));
    }
    more = absl::ConsumePrefix(&line, ",");
  }
  return fields;
}

// Where the columns stand.
struct Header {
  size_t field_count = 0;
  std::array<size_t, kColumnCount> position{};
};

absl::StatusOr<Header> ReadHeader(const std::vector<std::string>& fields) {
  constexpr size_t kAbsent = SIZE_MAX;
  Header header;
  header.field_count = fields.size();
  header.position.fill(kAbsent);
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::optional<Column> column = ColumnNamed(fields[i]);
    if (!column) continue;
    if (header.position[*column] != kAbsent) {
      return Error(*column, "stands twice in the header; keep one");
    }
    header.position[*column] = i;
  }
  std::vector<absl::string_view> missing;
  for (size_t c = 0; c < kColumnCount; ++c) {
    if (header.position[c] == kAbsent) missing.push_back(kColumns[c]);
  }
  if (missing.empty()) return header;
  return absl::InvalidArgumentError(absl::StrCat(
      "the header ", Quoted(absl::StrJoin(fields, ",")), " has no column ",
      absl::StrJoin(missing, ", "), "; name all of ", absl::StrJoin(kColumns, ","), " there"));
}

// Decimal digits only: SimpleAtoi also takes blanks and signs.
template <class Number>
absl::Status ReadCount(Column column, const std::string& field, Number& number) {
  const bool is_digits = !field.empty() && field.find_first_not_of("0123456789") == field.npos;
  if (is_digits && absl::SimpleAtoi(field, &number)) return absl::OkStatus();
  return Error(column, absl::StrCat(Quoted(field), " is not a whole number, 0 or more"));
}

absl::Status ReadOperation(const std::string& field, Operation& operation) {
  const std::optional<Operation> known = ParseOperation(absl::AsciiStrToLower(field));
  if (!known) {
    return Error(kOperation,
                 absl::StrCat(Quoted(field), " is none of ", absl::StrJoin(kOperationNames, ", ")));
  }
  operation = *known;
  return absl::OkStatus();
}

absl::Status ReadType(const std::string& field, TreeType& type) {
  const bool is_one = field == "1" || absl::EqualsIgnoreCase(field, "I");
  if (!is_one && field != "2" && !absl::EqualsIgnoreCase(field, "II")) {
    return Error(kType, absl::StrCat(Quoted(field), " is neither I nor II"));
  }
  type = is_one ? TreeType::kTypeI : TreeType::kTypeII;
  return absl::OkStatus();
}

absl::StatusOr<LatencySample> ReadSample(const Header& header,
                                         const std::vector<std::string>& fields) {
  if (fields.size() != header.field_count) {
    return absl::InvalidArgumentError(absl::StrCat(fields.size(), " fields where the header has ",
                                                   header.field_count, "; write one for each"));
  }
  const auto field = [&](Column column) -> const std::string& {
    return fields[header.position[column]];
  };
  LatencySample sample;
  RETURN_IF_ERROR(ReadOperation(field(kOperation), sample.operation));
  RETURN_IF_ERROR(ReadCount(kBytes, field(kBytes), sample.bytes));
  RETURN_IF_ERROR(ReadCount(kMembersColumn, field(kMembersColumn), sample.members));
  RETURN_IF_ERROR(ReadType(field(kType), sample.type));
  RETURN_IF_ERROR(ReadCount(kWidth, field(kWidth), sample.width));
  if (!absl::SimpleAtod(field(kMicroseconds), &sample.us)) {
    return Error(kMicroseconds, absl::StrCat(Quoted(field(kMicroseconds)), " is not a number"));
  }
  RETURN_IF_ERROR(CheckLatencySample(sample));
  return sample;
}

// `header` is what there is before the first sample.
absl::Status ReadLine(absl::string_view line, uint32_t number, std::optional<Header>& header,
                      std::vector<LatencySample>& samples) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty() || line.front() == '#') return absl::OkStatus();
  for (const char c : line) {
    if (c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("a control character; is it the text file that you meant?");
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> fields, SplitFields(line));
  if (!header) {
    ASSIGN_OR_RETURN(header, ReadHeader(fields));
    return absl::OkStatus();
  }
  if (samples.size() == kMaxSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxSamples, " samples; give medians of many runs"));
  }
  ASSIGN_OR_RETURN(samples.emplace_back(), ReadSample(*header, fields));
  samples.back().line = number;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLatencySample(const LatencySample& sample) {
  if (sample.bytes > kMaxBytes) {
    return Error(kBytes, absl::StrCat(sample.bytes, " is more than ", kMaxBytes));
  }
  if (sample.operation == Operation::kBarrier && sample.bytes != 0) {
    return Error(kBytes, absl::StrCat(sample.bytes, ", but a barrier moves none; write 0"));
  }
  if (sample.members < 2 || sample.members > kMaxMembers) {
    return Error(kMembersColumn,
                 absl::StrCat(sample.members, " is not between 2 and ", kMaxMembers));
  }
  if (sample.width < 2 || sample.width > sample.members) {
    return Error(kWidth, absl::StrCat(sample.width, " is not between 2 and the ", sample.members,
                                      " members; write the width of the measured tree"));
  }
  if (!(sample.us > 0 && sample.us <= kMaxUs)) {
    return Error(kMicroseconds, absl::StrCat(sample.us, " is not above 0 and at most ", kMaxUs));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LatencySample>> ParseLatencySamples(absl::string_view text,
                                                               absl::string_view origin) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": larger than ", kMaxTextBytes,
                                                   " bytes; is it the file that you meant?"));
  }
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  std::optional<Header> header;
  std::vector<LatencySample> samples;
  uint32_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::Status status = ReadLine(line, ++number, header, samples);
    if (!status.ok()) return Annotate(status, absl::StrCat(origin, ", line ", number));
  }
  if (!samples.empty()) return samples;
  return absl::InvalidArgumentError(absl::StrCat(origin, ": no samples; write the header ",
                                                 absl::StrJoin(kColumns, ","),
                                                 " and one measurement on each line"));
}

}  // namespace coppice
