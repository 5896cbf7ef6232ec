#include "db/tree_texts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

// Longest name first: "I" begins "II".
constexpr TreeType kTypes[] = {TreeType::kTypeII, TreeType::kTypeI};
constexpr TreeBuilder kBuilders[] = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                     TreeBuilder::kHierarchical, TreeBuilder::kMinimumCost,
                                     TreeBuilder::kPostal};
constexpr char kOrElse[] = "or_else";

void AppendJsonString(std::string& out, absl::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

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

// Takes a text apart from left to right; every method is false at the first mistake.
class TextReader {
 public:
  explicit TextReader(absl::string_view text) : rest_(text) {}

  bool Skip(absl::string_view expected) { return absl::ConsumePrefix(&rest_, expected); }
  bool at_end() const { return rest_.empty(); }

  template <class Value>
  bool Number(Value& value) {
    const auto [next, error] = std::from_chars(rest_.begin(), rest_.end(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(next - rest_.begin()));
    return true;
  }

  // The values of an enumeration are few: the one whose name follows.
  template <class Value, size_t kCount>
  bool Name(const Value (&values)[kCount], Value& value) {
    for (const Value candidate : values) {
      const absl::string_view name = ToString(candidate);
      if (!absl::StartsWith(rest_, name) || rest_.substr(name.size(), 1) != "\"") continue;
      rest_.remove_prefix(name.size());
      value = candidate;
      return true;
    }
    return false;
  }

  // What AppendJsonString wrote.
  bool String(std::string& text) {
    if (!Skip("\"")) return false;
    for (;;) {
      const size_t plain = rest_.find_first_of("\"\\");
      if (plain == absl::string_view::npos) return false;
      text.append(rest_.data(), plain);
      rest_.remove_prefix(plain);
      if (Skip("\"")) return true;
      rest_.remove_prefix(1);
      if (!Escaped(text)) return false;
    }
  }

 private:
  bool Escaped(std::string& text) {
    if (rest_.empty()) return false;
    const char kind = rest_.front();
    rest_.remove_prefix(1);
    if (kind == '"' || kind == '\\') {
      text.push_back(kind);
      return true;
    }
    uint8_t code = 0;
    if (kind != 'u' || !Skip("00") || rest_.size() < 2) return false;
    const auto [next, error] = std::from_chars(rest_.begin(), rest_.begin() + 2, code, 16);
    if (error != std::errc() || next != rest_.begin() + 2) return false;
    text.push_back(static_cast<char>(code));
    rest_.remove_prefix(2);
    return true;
  }

  absl::string_view rest_;
};

// "[]", or items between commas, and then the end; otherwise an empty list.
template <class Item, class Read>
std::vector<Item> ParseItems(absl::string_view text, Read read) {
  TextReader in(text);
  std::vector<Item> items;
  if (!in.Skip("[")) return {};
  if (in.Skip("]")) return {};
  do {
    if (!read(in, items.emplace_back())) return {};
  } while (in.Skip(","));
  if (!in.Skip("]") || !in.at_end()) return {};
  return items;
}

bool ReadAlternative(TextReader& in, Alternative& alternative) {
  if (!in.Skip("{\"type\":\"") || !in.Name(kTypes, alternative.type) ||
      !in.Skip("\",\"builder\":\"") || !in.Name(kBuilders, alternative.builder) ||
      !in.Skip("\",\"width\":") || !in.Number(alternative.width) || !in.Skip(",\"total_us\":")) {
    return false;
  }
  if (!in.Skip("null") && !in.Number(alternative.total_us.emplace())) return false;
  return in.Skip(",\"why_not\":") && in.String(alternative.why_not) && in.Skip("}");
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
    AppendJsonString(out, alternative.why_not);
    out.push_back('}');
  }
  out.push_back(']');
  return out;
}

std::vector<SizeShare> ParseSizes(absl::string_view text) {
  return ParseItems<SizeShare>(text, [](TextReader& in, SizeShare& share) {
    return in.Skip("[") && in.Number(share.bytes) && in.Skip(",") && in.Number(share.weight) &&
           in.Skip("]");
  });
}

std::vector<Alternative> ParseAlternatives(absl::string_view text) {
  return ParseItems<Alternative>(text, ReadAlternative);
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
