#include "client/cli/output.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/shown_stream.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

bool IsNumber(const std::string& cell) {
  double value = 0;
  if (cell == "-") return true;
  return absl::SimpleAtod(cell, &value);
}

std::string JsonText(const google::protobuf::Message& message, bool on_lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = on_lines;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails for a Timestamp or Duration out of range only, which no server of ours sends.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) text = "{}\n";
  return text;
}

// How many columns of a terminal a text of UTF-8 takes, letters that take two aside.
size_t Width(const std::string& cell) {
  return static_cast<size_t>(std::count_if(cell.begin(), cell.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = ShownText(cell);
  rows_.push_back(std::move(row));
}

void Table::Print(std::ostream& out) const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> shown;
  for (size_t c = 0; c < columns; ++c) {
    if (std::find(left_out_.begin(), left_out_.end(), c) == left_out_.end()) shown.push_back(c);
  }
  std::vector<size_t> width(columns, 0);
  std::vector<bool> numeric(columns, rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      width[c] = std::max(width[c], Width(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && !IsNumber(rows_[r][c])) numeric[c] = false;
    }
  }
  const bool bold = isatty(STDOUT_FILENO) != 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (const size_t c : shown) {
      const std::string pad(width[c] - Width(rows_[r][c]), ' ');
      absl::StrAppend(&line, c == 0 ? "" : "  ", numeric[c] ? pad : "", rows_[r][c],
                      numeric[c] ? "" : pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (r == 0 && bold) ShownStream::Control(out, "\033[1m");
    out << line;
    if (r == 0 && bold) ShownStream::Control(out, "\033[0m");
    out << "\n";
  }
}

void PrintJson(std::ostream& out, const google::protobuf::Message& message) {
  out << JsonText(message, /*on_lines=*/true);
}

void PrintJsonLine(std::ostream& out, const google::protobuf::Message& message) {
  out << JsonText(message, /*on_lines=*/false) << "\n";
}

int Fail(const absl::Status& status) {
  std::cerr << "error: " << status.message() << " [" << absl::StatusCodeToString(status.code())
            << "]\n";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kWrongUsage;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kNotAllowed;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kUnreachable;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return kRefused;
    default:
      return kFailed;
  }
}

std::string Counted(uint64_t count, absl::string_view noun, absl::string_view plural) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : plural);
}

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

}  // namespace coppice
