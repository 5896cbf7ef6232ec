// How the configuration file is read: its tables key by key, and the sections that are more than
// single keys.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_

#include <toml++/toml.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/config/config.h"
#include "daemon/manager/inventory.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// One table of a TOML file, read key by key: each value is checked for type and range, each error
// names file, line and key, and what was not read is an error at the end. Knows no configuration.
//
// Keeps its first error and then reads nothing more.
class TomlSection final {
 public:
  // `path` is what precedes the keys in messages: "" or "limits.". `table` outlives the section.
  TomlSection(const toml::table& table, std::string path, absl::string_view origin)
      : table_(table), path_(std::move(path)), origin_(origin) {}

  // Each leaves `out` as it is if the key is absent.
  void Read(absl::string_view key, std::string& out);
  void Read(absl::string_view key, bool& out);
  void Read(absl::string_view key, std::vector<std::string>& out);  // of at least one text
  // Text such as "90s", "5m", "1.5h".
  void Read(absl::string_view key, absl::Duration min, absl::Duration max, absl::Duration& out);
  // A whole number will do, too.
  void Read(absl::string_view key, double min, double max, double& out);
  // A whole number from 0 on or, with `is_percent`, "1%" to "100%".
  void ReadShare(absl::string_view key, int64_t max, int64_t& value, bool& is_percent);
  template <class Integer>
  void Read(absl::string_view key, int64_t min, int64_t max, Integer& out) {
    int64_t value = 0;
    if (ReadInteger(key, min, max, value)) out = static_cast<Integer>(value);
  }

  // Has `read` read the table of that name, if there is one, or each of an array of tables.
  using ReadSection = absl::FunctionRef<void(TomlSection&)>;
  void Within(absl::string_view key, ReadSection read);
  void ForEach(absl::string_view key, ReadSection read);
  // Marks `key` as read and returns its value; null if absent.
  const toml::node* Take(absl::string_view key);
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }

  // Makes "ORIGIN:LINE: PATH KEY: what" the section's error, unless it has one.
  void Fail(absl::string_view key, absl::string_view what);
  // Takes over the error of a part, already with its place.
  void Absorb(const absl::Status& status) { status_.Update(status); }
  // The first error; at the end of the reads, also any key that was not read.
  absl::Status Finish();
  const std::string& path() const { return path_; }
  const std::string& origin() const { return origin_; }
  // "ORIGIN:LINE: PATH KEY: ", what the messages about a key begin with.
  std::string PlaceOf(absl::string_view key) const;

 private:
  // Line of a key, or of the table.
  uint32_t LineOf(absl::string_view key) const;
  bool ReadInteger(absl::string_view key, int64_t min, int64_t max, int64_t& out);
  // Null if absent, or not of that kind, which is an error: it must be `what`.
  template <class Kind>
  auto TakeAs(absl::string_view key, absl::string_view what) -> decltype(Take(key)->as<Kind>()) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return nullptr;
    const auto* const value = node->as<Kind>();
    if (value == nullptr) Fail(key, absl::StrCat("must be ", what));
    return value;
  }
  const toml::node* Find(absl::string_view key) const;

  const toml::table& table_;
  const std::string path_, origin_;
  std::vector<std::string> known_;
  absl::Status status_;
};

// Reads the keys of `file`; names of files are relative to `directory`. Which groups there are and
// what the files hold is for others to judge.
void ReadAccessKeys(TomlSection& file, absl::string_view directory, Config& config);

// The key "profile": a built-in profile's name, a file, or the constants themselves in a table. A
// text with a "/" or ending in ".toml" is a file, relative to `directory`; another is a name. An
// error becomes the file's and names the line of the profile's key that is wrong.
void ReadProfileKey(TomlSection& file, absl::string_view directory, CostProfile& profile);

// The tables [[switches]], in their order: which switches can aggregate, and how much.
void ReadSwitchRules(TomlSection& file, std::vector<CapabilityRule>& rules);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_
