#include "daemon/config/toml_section.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

std::string_view Std(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

TomlSection::TomlSection(const toml::table& table, absl::string_view path, absl::string_view origin)
    : table_(table), path_(path), origin_(origin) {}

const toml::node* TomlSection::Find(absl::string_view key) const { return table_.get(Std(key)); }

const toml::node* TomlSection::Take(absl::string_view key) {
  known_.emplace_back(key);
  return status_.ok() ? Find(key) : nullptr;
}

void TomlSection::Read(absl::string_view key, std::string& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  const auto* const text = node->as_string();
  if (text == nullptr) return Fail(key, "must be a text in quotes");
  if (text->get().empty()) return Fail(key, "must not be empty");
  out = text->get();
}

void TomlSection::Read(absl::string_view key, bool& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  const auto* const value = node->as_boolean();
  if (value == nullptr) return Fail(key, "must be true or false");
  out = value->get();
}

void TomlSection::Read(absl::string_view key, std::vector<std::string>& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  const toml::array* const array = node->as_array();
  if (array == nullptr || array->empty() || !array->is_homogeneous<std::string>()) {
    return Fail(key, "must be a list of at least one text: [\"...\"]");
  }
  out.clear();
  for (const toml::node& item : *array) out.push_back(item.as_string()->get());
}

void TomlSection::Read(absl::string_view key, absl::Duration min, absl::Duration max,
                       absl::Duration& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  absl::Duration value;
  const auto* const text = node->as_string();
  if (text == nullptr || !absl::ParseDuration(text->get(), &value)) {
    return Fail(key, "must be a duration such as \"90s\", \"5m\" or \"1.5h\"");
  }
  if (value < min || value > max) {
    return Fail(key, absl::StrCat(absl::FormatDuration(value), " is out of range: ",
                                  absl::FormatDuration(min), " to ", absl::FormatDuration(max)));
  }
  out = value;
}

void TomlSection::Read(absl::string_view key, double min, double max, double& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  const std::optional<double> number = node->value<double>();
  if (!node->is_number() || !number) return Fail(key, "must be a number");
  if (!(*number >= min && *number <= max)) {
    return Fail(key, absl::StrCat(*number, " is out of range: ", min, " to ", max));
  }
  out = *number;
}

bool TomlSection::ReadInteger(absl::string_view key, int64_t min, int64_t max, int64_t& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return false;
  const auto* const number = node->as_integer();
  if (number == nullptr) {
    Fail(key, "must be a whole number");
    return false;
  }
  if (number->get() < min || number->get() > max) {
    Fail(key, absl::StrCat(number->get(), " is out of range: ", min, " to ", max));
    return false;
  }
  out = number->get();
  return true;
}

void TomlSection::ReadShare(absl::string_view key, int64_t max, int64_t& value, bool& is_percent) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  int64_t number = 0;
  if (const auto* const text = node->as_string(); text != nullptr) {
    absl::string_view digits = Absl(text->get());
    if (!absl::ConsumeSuffix(&digits, "%") || !absl::SimpleAtoi(digits, &number) || number < 1 ||
        number > 100) {
      return Fail(key, "must be a whole number, or a share such as \"50%\"");
    }
    is_percent = true;
  } else if (ReadInteger(key, 0, max, number)) {
    is_percent = false;
  } else {
    return;
  }
  value = number;
}

const toml::table* TomlSection::Table(absl::string_view key) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) Fail(key, absl::StrCat("must be a table: [", path_, key, "]"));
  return node->as_table();
}

const toml::array* TomlSection::ArrayOfTables(absl::string_view key) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return nullptr;
  const toml::array* const array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables()) {
    Fail(key, absl::StrCat("must be tables, each under a line [[", path_, key, "]]"));
    return nullptr;
  }
  return array;
}

uint32_t TomlSection::LineOf(absl::string_view key) const {
  for (const auto& [name, node] : table_) {
    if (Absl(name.str()) == key) return name.source().begin.line;
  }
  return table_.source().begin.line;
}

std::string TomlSection::PlaceOf(absl::string_view key) const {
  return absl::StrCat(origin_, ":", LineOf(key), ": ", path_, key, ": ");
}

void TomlSection::Fail(absl::string_view key, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(PlaceOf(key), what));
}

void TomlSection::Absorb(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

absl::Status TomlSection::Finish() {
  for (const auto& [name, node] : table_) {
    const absl::string_view key = Absl(name.str());
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::sort(known_.begin(), known_.end());
    Fail(key, absl::StrCat("no such key; there are: ", absl::StrJoin(known_, ", ")));
  }
  return status_;
}

}  // namespace coppice
