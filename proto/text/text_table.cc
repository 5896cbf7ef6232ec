#include "proto/text/text_table.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr size_t kMinWrapped = 20;  // columns that are left to a cell which goes on below

bool IsNumber(const std::string& cell) {
  double value = 0;
  if (cell == "-") return true;
  return absl::SimpleAtod(cell, &value);
}

// How many columns of a terminal a text of UTF-8 takes, letters that take two aside.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

bool IsForPeople() { return isatty(STDOUT_FILENO) != 0; }

std::string Wrapped(absl::string_view text, size_t indent, size_t columns) {
  const size_t room = columns > indent + kMinWrapped ? columns - indent : kMinWrapped;
  std::string lines;
  size_t used = 0;
  while (!text.empty()) {
    const size_t end = text.find_first_of(" ,");
    const bool is_last = end == absl::string_view::npos;
    const absl::string_view word = text.substr(0, is_last ? text.size() : end + 1);
    text.remove_prefix(word.size());
    if (used > 0 && used + Width(absl::StripSuffix(word, " ")) > room) {
      lines.erase(lines.find_last_not_of(' ') + 1);
      absl::StrAppend(&lines, "\n", std::string(indent, ' '));
      used = 0;
    }
    absl::StrAppend(&lines, word);
    used += Width(word);
  }
  return lines;
}

void TextTable::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = ShownText(cell);
  rows_.push_back(std::move(row));
}

std::vector<std::string> TextTable::Lines(bool is_for_people) const {
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
  size_t last_begins = 0;
  for (const size_t c : shown) last_begins += c == shown.back() ? 0 : width[c] + 2;
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (const size_t c : shown) {
      const std::string pad(width[c] - Width(row[c]), ' ');
      const bool goes_on = is_for_people && !is_wide_ && !numeric[c] && c == shown.back();
      absl::StrAppend(&line, c == shown.front() ? "" : "  ", numeric[c] ? pad : "",
                      goes_on ? Wrapped(row[c], last_begins) : row[c], numeric[c] ? "" : pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace coppice
