#include "daemon/config/profile_key.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

std::string LineOf(absl::string_view key, const toml::node& value) {
  std::ostringstream line;
  toml::table one;
  one.insert(std::string_view(key.data(), key.size()), value);
  line << toml::default_formatter(one) << "\n";
  return line.str();
}

// The table as text that ParseProfile reads, each key checked by itself at its own line first, so
// that an error names the line of this file.
absl::StatusOr<CostProfile> FromTable(const toml::table& table, absl::string_view origin) {
  std::string whole;
  for (const auto& [key, value] : table) {
    const std::string line = LineOf(absl::string_view(key.str().data(), key.str().size()), value);
    const std::string padding(key.source().begin.line - 1, '\n');
    const auto alone = ParseProfile(absl::StrCat(padding, line), origin);
    if (!alone.ok()) return alone.status();
    absl::StrAppend(&whole, line);
  }
  return ParseProfile(whole, absl::StrCat(origin, ": profile"));
}

absl::StatusOr<CostProfile> FromFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("profile file ", path, " cannot be opened"));
  std::ostringstream text;
  text << file.rdbuf();
  return ParseProfile(text.str(), path);
}

}  // namespace

void ReadProfileKey(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    CostProfile& profile) {
  const toml::node* const node = file.Take("profile");
  if (node == nullptr) return;
  absl::StatusOr<CostProfile> read;
  if (const toml::table* table = node->as_table()) {
    read = FromTable(*table, origin);
    if (!read.ok()) return file.Absorb(read.status());
  } else if (const auto* text = node->as_string()) {
    const std::string& name = text->get();
    const bool is_file = absl::StrContains(name, "/") || absl::EndsWith(name, ".toml");
    const std::string path =
        absl::StartsWith(name, "/") ? name : absl::StrCat(directory, "/", name);
    read = is_file ? FromFile(path) : BuiltInProfile(name);
    if (!read.ok()) return file.Fail("profile", read.status().message());
  } else {
    return file.Fail("profile", "must be a name or a file in quotes, or a table [profile]");
  }
  profile = *std::move(read);
}

}  // namespace coppice
