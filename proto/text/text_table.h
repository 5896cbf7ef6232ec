// Tables for people: rows under a heading, as wide as a terminal mostly is.
#ifndef COPPICE_PROTO_TEXT_TEXT_TABLE_H_
#define COPPICE_PROTO_TEXT_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

// Whether people look at standard output: then what is shown stays within kTerminalColumns.
bool IsForPeople();
inline constexpr size_t kTerminalColumns = 80;

// `text`, which begins in column `indent`, on as many lines as it takes to stay within `columns`,
// those after the first indented. Breaks at blanks and behind commas; what has neither stays whole.
std::string Wrapped(absl::string_view text, size_t indent, size_t columns = kTerminalColumns);

// Each column as wide as its widest cell; numbers, and "-" for none, to the right. A cell is one
// line, whatever it holds (plain_text.h).
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  // Without `rest` those of its columns, unless all are wanted (-o wide).
  TextTable(std::vector<std::string> heading, std::vector<size_t> rest, bool is_wide)
      : rows_{std::move(heading)}, is_wide_(is_wide) {
    if (!is_wide) left_out_ = std::move(rest);
  }

  void Add(std::vector<std::string> row);

  // The heading first, each without its end. For people the last column's cells go on below where
  // the table would be wider than a terminal, unless all columns are wanted.
  std::vector<std::string> Lines(bool is_for_people) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> left_out_;  // columns
  bool is_wide_ = false;
};

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_TEXT_TABLE_H_
