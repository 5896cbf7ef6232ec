#include "db/json_lists.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr size_t kDigits = 20;  // of the longest 64-bit number, sign included

template <class Number>
char* Put(char* out, Number number) {
  return std::to_chars(out, out + kDigits, number).ptr;
}

// Appends a list of `count` items, each of at most `most` bytes, which `write(out, i)` puts at
// `out`, returning its end.
template <class Write>
void AppendItems(std::string& text, size_t count, size_t most, const Write& write) {
  const size_t before = text.size();
  text.resize(before + count * (most + 1) + 2);
  char* out = text.data() + before;
  *out++ = '[';
  for (size_t i = 0; i < count; ++i) {
    out = write(out, i);
    *out++ = ',';
  }
  if (count > 0) --out;
  *out++ = ']';
  text.resize(static_cast<size_t>(out - text.data()));
}

constexpr unsigned char kFirstPlain = 0x20;  // control characters below are written as \u00XX

// Longest name first: "I" begins "II".
constexpr TreeType kTypes[] = {TreeType::kTypeII, TreeType::kTypeI};
constexpr TreeBuilder kBuilders[] = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                     TreeBuilder::kHierarchical, TreeBuilder::kMinimumCost,
                                     TreeBuilder::kPostal};
constexpr char kOrElse[] = "or_else";

// So that it reads back the same. JSON has no infinity.
void AppendReal(std::string& out, double value) {
  char text[32];
  if (std::isfinite(value)) {
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  } else {
    out.append("null");
  }
}

// The values of an enumeration are few: the one whose name follows, up to the quote.
template <class Value, size_t kCount>
bool ReadName(JsonReader& in, const Value (&values)[kCount], Value& value) {
  for (const Value candidate : values) {
    const std::string name(ToString(candidate));
    if (!in.rest().starts_with(name + '"')) continue;
    value = candidate;
    return in.Skip(name);
  }
  return false;
}

bool ReadAlternative(JsonReader& in, Alternative& alternative) {
  if (!in.Skip("{\"type\":\"") || !ReadName(in, kTypes, alternative.type) ||
      !in.Skip("\",\"builder\":\"") || !ReadName(in, kBuilders, alternative.builder) ||
      !in.Skip("\",\"width\":") || !in.Number(alternative.width) || !in.Skip(",\"total_us\":")) {
    return false;
  }
  if (!in.Skip("null") && !in.Number(alternative.total_us.emplace())) return false;
  return in.Skip(",\"why_not\":") && in.Text(alternative.why_not) && in.Skip("}");
}

class ObjectWriter {
 public:
  void Field(absl::string_view name, double value) {
    absl::StrAppendFormat(&out_, "%s\"%s\":%.17g", Separator(), name, value);
  }
  void Field(absl::string_view name, bool value) {
    if (value) absl::StrAppend(&out_, Separator(), "\"", name, "\":1");
  }
  void Field(absl::string_view name, const std::optional<uint32_t>& value) {
    if (value) absl::StrAppend(&out_, Separator(), "\"", name, "\":", *value);
  }
  // What has a name: enumerators and GUIDs.
  template <class Value>
  void Field(absl::string_view name, const std::optional<Value>& value) {
    if (value) absl::StrAppend(&out_, Separator(), "\"", name, "\":\"", ToString(*value), "\"");
  }
  void Field(absl::string_view, const std::optional<TradePolicy>& policy) {
    if (!policy) return;
    ForEachField(kPolicyFields,
                 [&](const auto& field) { Field(field.name, (*policy).*field.member); });
  }
  std::string Take() { return std::move(out_) + "}"; }

 private:
  absl::string_view Separator() const { return out_.size() > 1 ? "," : ""; }
  std::string out_ = "{";
};

// Whether the text was a value.
template <class Value, size_t kCount>
bool ReadNamed(const Value (&values)[kCount], absl::string_view text, std::optional<Value>& value) {
  const auto found = std::find_if(std::begin(values), std::end(values),
                                  [&](Value known) { return ToString(known) == text; });
  if (found != std::end(values)) value = *found;
  return found != std::end(values);
}

bool ReadValue(absl::string_view text, std::optional<TreeType>& value) {
  return ReadNamed(kTypes, text, value);
}

// Nobody can ask for the minimum cost.
bool ReadValue(absl::string_view text, std::optional<TreeBuilder>& value) {
  return text != ToString(TreeBuilder::kMinimumCost) && ReadNamed(kBuilders, text, value);
}

bool ReadValue(absl::string_view text, bool& value) {
  value = text == "1";
  return true;
}

bool ReadValue(absl::string_view text, std::optional<uint32_t>& value) {
  uint32_t number = 0;
  value = absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
  return value.has_value();
}

bool ReadValue(absl::string_view text, std::optional<Guid>& value) {
  uint64_t guid = 0;
  if (!absl::SimpleHexAtoi(text, &guid)) return false;
  value = Guid(guid);
  return true;
}

bool ReadValue(absl::string_view text, double& value) {
  double real = 0;
  if (!absl::SimpleAtod(text, &real)) return false;
  value = real;
  return true;
}

template <class Value>
void ReadField(absl::string_view field, absl::string_view name, absl::string_view text,
               Value& value) {
  if (name == field) ReadValue(text, value);
}

// A policy has no name of its own: any of its fields makes it one.
void ReadField(absl::string_view, absl::string_view name, absl::string_view text,
               std::optional<TradePolicy>& policy) {
  ForEachField(kPolicyFields, [&](const auto& field) {
    if (name != field.name) return;
    TradePolicy read = policy.value_or(TradePolicy());
    if (ReadValue(text, read.*field.member)) policy = read;
  });
}

absl::string_view Unquoted(absl::string_view text) {
  return absl::StripSuffix(absl::StripPrefix(text, "\""), "\"");
}

// Calls visit(name, value) for each `"name":value` of an object; no value holds a comma or a colon.
template <class Visit>
void ForEachItem(absl::string_view text, Visit visit) {
  const absl::string_view list = absl::StripSuffix(absl::StripPrefix(text, "{"), "}");
  for (const absl::string_view item : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    visit(Unquoted(parts.first), Unquoted(parts.second));
  }
}

constexpr char kIsOptimal[] = "is_optimal";

// Leaves it as it is where the value is none of its type.
template <class Number>
void SetNumber(double value, Number& number) {
  if constexpr (std::is_integral_v<Number>) {
    if (value < std::numeric_limits<Number>::min()) return;
    if (value > std::numeric_limits<Number>::max()) return;
  }
  number = static_cast<Number>(value);
}

}  // namespace

// --- Reading ---

absl::Status JsonReader::Wrong() const {
  return absl::DataLossError(absl::StrCat("wrong character at position ", at_ - begin_,
                                          " of a list of ", end_ - begin_, " characters"));
}

bool JsonReader::QuotedGuid(Guid& guid) {
  constexpr size_t kHexDigits = 16;
  if (rest().size() < kHexDigits + 2 || at_[0] != '"' || at_[kHexDigits + 1] != '"') return false;
  uint64_t value = 0;
  const char* const past = at_ + kHexDigits + 1;
  const auto [next, error] = std::from_chars(at_ + 1, past, value, 16);
  if (error != std::errc() || next != past) return false;
  guid = Guid(value);
  at_ = past + 1;
  return true;
}

bool JsonReader::Text(std::string& text) {
  if (!Skip('"')) return false;
  for (;;) {
    const size_t plain = rest().find_first_of("\"\\");
    if (plain == std::string_view::npos) return false;
    text.append(at_, plain);
    at_ += plain;
    if (Skip('"')) return true;
    if (!Escaped(text)) return false;
  }
}

// From the backslash on.
bool JsonReader::Escaped(std::string& text) {
  const std::string_view escaped = rest().substr(0, 6);
  const char kind = escaped.size() < 2 ? 0 : escaped[1];
  if (kind == '"' || kind == '\\') {
    text += kind;
    at_ += 2;
    return true;
  }
  uint8_t code = 0;
  if (escaped.size() < 6 || escaped.substr(1, 3) != "u00") return false;
  const auto [next, error] = std::from_chars(at_ + 4, at_ + 6, code, 16);
  if (error != std::errc() || next != at_ + 6 || code >= kFirstPlain) return false;
  text += static_cast<char>(code);
  at_ += 6;
  return true;
}

// --- Writing ---

void AppendText(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < kFirstPlain) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void AppendNumbers(const std::vector<Number>& numbers, std::string& text) {
  AppendItems(text, numbers.size(), kDigits,
              [&](char* out, size_t i) { return Put(out, numbers[i]); });
}
template void AppendNumbers(const std::vector<int64_t>& numbers, std::string& text);
template void AppendNumbers(const std::vector<uint64_t>& numbers, std::string& text);
template void AppendNumbers(const std::vector<uint32_t>& numbers, std::string& text);

void AppendGuids(absl::Span<const Guid> guids, std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  AppendItems(text, guids.size(), 18, [&](char* out, size_t i) {
    *out++ = '"';
    for (int shift = 60; shift >= 0; shift -= 4) *out++ = kHex[(guids[i].value() >> shift) & 15];
    *out++ = '"';
    return out;
  });
}

void AppendTreeNodes(const TreeRecord& tree, std::string& text) {
  AppendItems(text, tree.parents.size(), 4 * 11 + 5, [&](char* out, size_t node) {
    *out++ = '[';
    out = Put(out, node < tree.ranks.size() ? int64_t{tree.ranks[node]} : int64_t{-1});
    *out++ = ',';
    out = Put(out, tree.parents[node]);
    *out++ = ',';
    out = Put(out, tree.edge_links_up[node]);
    *out++ = ',';
    out = Put(out, tree.edge_links_down[node]);
    *out++ = ']';
    return out;
  });
}

void AppendForest(absl::Span<const ForestTreeRecord> forest, std::string& text) {
  text.push_back('[');
  for (const ForestTreeRecord& tree : forest) {
    text.append(text.back() == '[' ? "[" : ",[");
    AppendReal(text, tree.share);
    text.push_back(',');
    AppendItems(text, tree.parents.size(), kDigits,
                [&](char* out, size_t i) { return Put(out, tree.parents[i]); });
    text.push_back(']');
  }
  text.push_back(']');
}

absl::StatusOr<std::vector<ForestTreeRecord>> ParseForest(std::string_view text) {
  std::vector<ForestTreeRecord> forest;
  RETURN_IF_ERROR(JsonReader(text).List([&](JsonReader& in) {
    ForestTreeRecord& tree = forest.emplace_back();
    if (!in.Skip('[') || !in.Number(tree.share) || !in.Skip(",[")) return false;
    do {
      if (!in.Number(tree.parents.emplace_back())) return false;
    } while (in.Skip(','));
    return in.Skip("]]");
  }));
  return forest;
}

template <class Number>
absl::StatusOr<std::vector<Number>> ParseNumbers(std::string_view text) {
  std::vector<Number> numbers;
  numbers.reserve(text.size() / 6);
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.Number(numbers.emplace_back()); }));
  return numbers;
}
template absl::StatusOr<std::vector<int64_t>> ParseNumbers(std::string_view text);
template absl::StatusOr<std::vector<uint64_t>> ParseNumbers(std::string_view text);
template absl::StatusOr<std::vector<uint32_t>> ParseNumbers(std::string_view text);

absl::StatusOr<std::vector<Guid>> ParseGuids(std::string_view text) {
  std::vector<Guid> guids;
  guids.reserve(text.size() / 19);
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.QuotedGuid(guids.emplace_back()); }));
  return guids;
}

absl::Status ParseTreeNodes(std::string_view text, TreeRecord& tree) {
  tree.ranks.clear();
  tree.parents.clear();
  tree.edge_links_up.clear();
  tree.edge_links_down.clear();
  return JsonReader(text).List([&](JsonReader& in) {
    int64_t rank = 0;
    int32_t parent = 0;
    uint32_t up = 0, down = 0;
    if (!(in.Skip('[') && in.Number(rank) && in.Skip(',') && in.Number(parent) && in.Skip(',') &&
          in.Number(up) && in.Skip(',') && in.Number(down) && in.Skip(']'))) {
      return false;
    }
    if (rank < -1 || rank > UINT32_MAX) return false;
    if (rank >= 0) {
      if (tree.ranks.size() != tree.parents.size()) return false;
      tree.ranks.push_back(static_cast<uint32_t>(rank));
    }
    tree.parents.push_back(parent);
    tree.edge_links_up.push_back(up);
    tree.edge_links_down.push_back(down);
    return true;
  });
}

void AppendTexts(const std::vector<std::string>& texts, std::string& text) {
  text += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) text += ',';
    AppendText(texts[i], text);
  }
  text += ']';
}

absl::StatusOr<std::vector<std::string>> ParseTexts(std::string_view text) {
  std::vector<std::string> texts;
  RETURN_IF_ERROR(
      JsonReader(text).List([&](JsonReader& in) { return in.Text(texts.emplace_back()); }));
  return texts;
}

std::string SizesText(absl::Span<const SizeShare> sizes) {
  std::string out = "[";
  for (const SizeShare& share : sizes) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "[", share.bytes, ",");
    AppendReal(out, share.weight);
    out.push_back(']');
  }
  out.push_back(']');
  return out;
}

std::string AlternativesText(absl::Span<const Alternative> alternatives) {
  std::string out = "[";
  for (const Alternative& alternative : alternatives) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "{\"type\":\"", ToString(alternative.type),
                    "\",\"builder\":\"", ToString(alternative.builder),
                    "\",\"width\":", alternative.width, ",\"total_us\":");
    AppendReal(out, alternative.total_us.value_or(std::numeric_limits<double>::infinity()));
    out.append(",\"why_not\":");
    AppendText(alternative.why_not, out);
    out.push_back('}');
  }
  out.push_back(']');
  return out;
}

absl::StatusOr<std::vector<SizeShare>> ParseSizes(std::string_view text) {
  std::vector<SizeShare> sizes;
  RETURN_IF_ERROR(JsonReader(text).List([&](JsonReader& in) {
    SizeShare& share = sizes.emplace_back();
    return in.Skip('[') && in.Number(share.bytes) && in.Skip(',') && in.Number(share.weight) &&
           in.Skip(']');
  }));
  return sizes;
}

absl::StatusOr<std::vector<Alternative>> ParseAlternatives(std::string_view text) {
  std::vector<Alternative> alternatives;
  RETURN_IF_ERROR(JsonReader(text).List(
      [&](JsonReader& in) { return ReadAlternative(in, alternatives.emplace_back()); }));
  return alternatives;
}

// --- What the request said ---

std::string SpecText(const TreeRecord& tree) {
  if (tree.lacks_spec) return "";
  ObjectWriter out;
  ForEachField(kTreeFields,
               [&](const auto& field) { out.Field(field.name, tree.spec.*field.member); });
  if (tree.accepts_type1) out.Field(kOrElse, std::optional(TreeType::kTypeI));
  return out.Take();
}

void ParseSpec(absl::string_view text, TreeRecord& tree) {
  tree.lacks_spec = text.empty();
  if (tree.lacks_spec) {
    if (tree.type == static_cast<uint8_t>(TreeType::kTypeII)) tree.spec.type = TreeType::kTypeII;
    tree.accepts_type1 = true;
    return;
  }
  ForEachItem(text, [&](absl::string_view name, absl::string_view value) {
    if (name == kOrElse) tree.accepts_type1 = true;
    ForEachField(kTreeFields, [&](const auto& field) {
      ReadField(field.name, name, value, tree.spec.*field.member);
    });
  });
}

// --- What a placement measures ---

std::string MeasuresText(const PlacementRecord& placement) {
  ObjectWriter out;
  ForEachMeasure([&](const PlacementMeasure& measure) {
    out.Field(measure.name, measure.Of(placement.measures));
  });
  out.Field(kIsOptimal, std::optional<uint32_t>(placement.is_optimal ? 1 : 0));
  return out.Take();
}

void ParseMeasures(absl::string_view text, PlacementRecord& placement) {
  ForEachItem(text, [&](absl::string_view name, absl::string_view value) {
    double number = 0;
    if (!absl::SimpleAtod(value, &number) || !std::isfinite(number)) return;
    if (name == kIsOptimal) placement.is_optimal = number == 1;
    ForEachMeasure([&](const PlacementMeasure& measure) {
      if (name != measure.name) return;
      std::visit([&](auto member) { SetNumber(number, placement.measures.*member); },
                 measure.member);
    });
  });
}

}  // namespace coppice
