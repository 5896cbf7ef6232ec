// Lists as compact JSON text: an administrator's sqlite3 shell reads them with json_each, and the
// store writes a tree of 40,960 members in one row rather than in 40,960.
//
// Numbers are exact for all 64 bits, signed or not, and texts may hold any byte. The readers take
// only what the writers make, at any release; DATA_LOSS names the position of the first wrong
// character.
#ifndef COPPICE_DB_JSON_LISTS_H_
#define COPPICE_DB_JSON_LISTS_H_

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/placement/placement_terms.h"
#include "daemon/tree/tree_spec.h"
#include "db/store.h"

namespace coppice {

// Takes a text apart from left to right; every method but List is false at a mistake, and stays
// where it is.
class JsonReader final {
 public:
  explicit JsonReader(std::string_view text)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  bool Skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool Skip(std::string_view expected) {
    if (rest().substr(0, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  // JSON has no infinity.
  template <class Value>
  bool Number(Value& value) {
    const auto [next, error] = std::from_chars(at_, end_, value);
    if (error != std::errc()) return false;
    if constexpr (std::is_floating_point_v<Value>) {
      if (!std::isfinite(value)) return false;
    }
    at_ = next;
    return true;
  }
  // Of sixteen digits.
  bool QuotedGuid(Guid& guid);
  // What AppendText wrote, appended to `text`.
  bool Text(std::string& text);
  // "[]", or "[" item ("," item)* "]", and then the end; `read(*this)` is false at a mistake.
  template <class Read>
  absl::Status List(Read read) {
    if (!Skip('[')) return Wrong();
    if (!Skip(']')) {
      do {
        if (!read(*this)) return Wrong();
      } while (Skip(','));
      if (!Skip(']')) return Wrong();
    }
    return at_ == end_ ? absl::OkStatus() : Wrong();
  }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

 private:
  bool Escaped(std::string& text);
  absl::Status Wrong() const;

  const char* begin_;
  const char* at_;
  const char* end_;
};

// "a \"b\"", in quotes, appended to `out`.
void AppendText(std::string_view text, std::string& out);

// "[1,2,3]", appended to `text`: int64_t, uint64_t or uint32_t.
template <class Number>
void AppendNumbers(const std::vector<Number>& numbers, std::string& text);
// ["0002c9030010a001",...]
void AppendGuids(absl::Span<const Guid> guids, std::string& text);
// One [rank,parent,links up,links down] per node; the rank of a switch is -1.
void AppendTreeNodes(const TreeRecord& tree, std::string& text);
// [[0.5,[-1,0,0]],[0.5,[1,-1,1]]]: share and parents of each tree.
void AppendForest(absl::Span<const ForestTreeRecord> forest, std::string& text);
// ["n1","a \"b\""]
void AppendTexts(const std::vector<std::string>& texts, std::string& text);

// The inverses.
template <class Number>
absl::StatusOr<std::vector<Number>> ParseNumbers(std::string_view text);
absl::StatusOr<std::vector<Guid>> ParseGuids(std::string_view text);
// Fills ranks, parents and edge_links_*. DATA_LOSS also if a rank follows a switch.
absl::Status ParseTreeNodes(std::string_view text, TreeRecord& tree);
absl::StatusOr<std::vector<ForestTreeRecord>> ParseForest(std::string_view text);
absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text);

// --- What a tree's row keeps: message sizes, what else was considered, and what the request said
// beyond operation and sizes; and a placement's: its measures. The last two are read field by
// field, so that a field that this release does not know is left out. ---

// [[8,1],[1048576,0.5]], bytes and weight.
std::string SizesText(absl::Span<const SizeShare> sizes);
absl::StatusOr<std::vector<SizeShare>> ParseSizes(std::string_view text);

// [{"type":"I","builder":"kary","width":4,"total_us":9.5,"why_not":"..."},...]; total_us is null
// where the tree could not be built.
std::string AlternativesText(absl::Span<const Alternative> alternatives);
absl::StatusOr<std::vector<Alternative>> ParseAlternatives(std::string_view text);

// {"type":"II","width":4,"root":"0002c9020040b0e0"}: of kTreeFields those that were asked for, and
// the fields of a policy; "or_else":"I" last if type I will do. "{}": nothing was asked for. Empty:
// the record lacks it.
std::string SpecText(const TreeRecord& tree);
// The inverse: fills spec (but its mix), accepts_type1 and lacks_spec. What no record says is taken
// to be what the tree is, which must be known: type II, or I if none fits.
void ParseSpec(absl::string_view text, TreeRecord& tree);

// {"leaf_switches":2,...,"cost":4.5,"is_optimal":1}, in the order of ForEachMeasure.
std::string MeasuresText(const PlacementRecord& placement);
// The inverse: fills measures and is_optimal. What is no number, or none of the measure's, is left
// at 0.
void ParseMeasures(absl::string_view text, PlacementRecord& placement);

}  // namespace coppice

#endif  // COPPICE_DB_JSON_LISTS_H_
