#include "daemon/manager/record_json.h"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

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

// Microseconds to six significant digits, which is beyond what any profile knows.
void AppendMicroseconds(std::string& out, double value) {
  if (std::isfinite(value)) {
    absl::StrAppend(&out, value);
  } else {
    out.append("null");
  }
}

// Takes a text apart from left to right; every method is false at the first mistake.
class Reader {
 public:
  explicit Reader(absl::string_view text) : rest_(text) {}

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
  template <class Value>
  bool Name(std::initializer_list<Value> values, Value& value) {
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
std::vector<Item> ParseList(absl::string_view json, Read read) {
  Reader in(json);
  std::vector<Item> items;
  if (!in.Skip("[")) return {};
  if (in.Skip("]")) return {};
  do {
    if (!read(in, items.emplace_back())) return {};
  } while (in.Skip(","));
  if (!in.Skip("]") || !in.at_end()) return {};
  return items;
}

bool ReadAlternative(Reader& in, Alternative& alternative) {
  if (!in.Skip("{\"type\":\"") ||
      !in.Name({TreeType::kTypeII, TreeType::kTypeI}, alternative.type) ||
      !in.Skip("\",\"builder\":\"") ||
      !in.Name({TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical,
                TreeBuilder::kMinimumCost, TreeBuilder::kPostal},
               alternative.builder) ||
      !in.Skip("\",\"width\":") || !in.Number(alternative.width) || !in.Skip(",\"total_us\":")) {
    return false;
  }
  if (!in.Skip("null") && !in.Number(alternative.total_us.emplace())) return false;
  return in.Skip(",\"why_not\":") && in.String(alternative.why_not) && in.Skip("}");
}

}  // namespace

std::string SizesJson(absl::Span<const SizeShare> sizes) {
  std::string out = "[";
  for (const SizeShare& share : sizes) {
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "[", share.bytes, ",");
    AppendJsonNumber(out, share.weight);
    out.push_back(']');
  }
  out.push_back(']');
  return out;
}

std::string AlternativesJson(absl::Span<const Alternative> alternatives) {
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

std::vector<SizeShare> ParseSizes(absl::string_view json) {
  return ParseList<SizeShare>(json, [](Reader& in, SizeShare& share) {
    return in.Skip("[") && in.Number(share.bytes) && in.Skip(",") && in.Number(share.weight) &&
           in.Skip("]");
  });
}

std::vector<Alternative> ParseAlternatives(absl::string_view json) {
  return ParseList<Alternative>(json, ReadAlternative);
}

}  // namespace coppice
