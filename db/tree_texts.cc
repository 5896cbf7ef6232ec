#include "db/tree_texts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"

namespace coppice {
namespace {

// Longest name first: "I" begins "II".
constexpr TreeType kTypes[] = {TreeType::kTypeII, TreeType::kTypeI};
constexpr TreeBuilder kBuilders[] = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                     TreeBuilder::kHierarchical, TreeBuilder::kMinimumCost,
                                     TreeBuilder::kPostal};
constexpr char kOrElse[] = "or_else";

// Whole numbers as such; others so that they read back the same. JSON has no infinity.
void AppendJsonNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
  } else if (value == std::floor(value) && std::abs(value) < 1e15) {
    absl::StrAppend(&out, static_cast<int64_t>(value));
  } else {
    absl::StrAppendFormat(&out, "%.17g", value);
  }
}

// So that it reads back the same.
void AppendMicroseconds(std::string& out, double value) {
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

}  // namespace

std::string SizesText(absl::Span<const SizeShare> sizes) {
  std::string out = "[";
  for (const SizeShare& share : sizes) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "[", share.bytes, ",");
    AppendJsonNumber(out, share.weight);
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
    if (alternative.total_us) {
      AppendMicroseconds(out, *alternative.total_us);
    } else {
      out.append("null");
    }
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

namespace {

class SpecWriter {
 public:
  void Field(absl::string_view name, double value) {
    absl::StrAppendFormat(&out_, "%s\"%s\":%.17g", Separator(), name, value);
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

template <class Value, size_t kCount>
std::optional<Value> Named(const Value (&values)[kCount], absl::string_view name) {
  const auto found = std::find_if(std::begin(values), std::end(values),
                                  [&](Value value) { return ToString(value) == name; });
  return found == std::end(values) ? std::nullopt : std::optional(*found);
}

// Whether the text was a value.
bool ReadValue(absl::string_view text, std::optional<TreeType>& value) {
  value = Named(kTypes, text);
  return value.has_value();
}

bool ReadValue(absl::string_view text, std::optional<TreeBuilder>& value) {
  value = Named(kBuilders, text);
  if (value == TreeBuilder::kMinimumCost) value.reset();  // nobody can ask for it
  return value.has_value();
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

}  // namespace

std::string SpecText(const TreeRecord& tree) {
  if (tree.lacks_spec) return "";
  SpecWriter out;
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
  // One `"name":value` after the other; no value holds a comma or a colon.
  const absl::string_view list = absl::StripSuffix(absl::StripPrefix(text, "{"), "}");
  for (const absl::string_view item : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    const absl::string_view name = Unquoted(parts.first), value = Unquoted(parts.second);
    if (name == kOrElse) tree.accepts_type1 = true;
    ForEachField(kTreeFields, [&](const auto& field) {
      ReadField(field.name, name, value, tree.spec.*field.member);
    });
  }
}

}  // namespace coppice
