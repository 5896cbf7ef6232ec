#include "daemon/manager/request_options.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/manager/tree_record.h"

namespace coppice {
namespace {

constexpr TreeType kTypes[] = {TreeType::kTypeI, TreeType::kTypeII};
constexpr TreeBuilder kBuilders[] = {TreeBuilder::kKary, TreeBuilder::kKnomial,
                                     TreeBuilder::kHierarchical, TreeBuilder::kPostal};

class Writer {
 public:
  void Text(absl::string_view name, absl::string_view value) {
    absl::StrAppend(&out_, Separator(), "\"", name, "\":\"", value, "\"");
  }
  void Number(absl::string_view name, uint32_t value) {
    absl::StrAppend(&out_, Separator(), "\"", name, "\":", value);
  }
  void Real(absl::string_view name, double value) {
    absl::StrAppendFormat(&out_, "%s\"%s\":%.17g", Separator(), name, value);
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

std::optional<uint32_t> Number(absl::string_view text) {
  uint32_t value = 0;
  return absl::SimpleAtoi(text, &value) ? std::optional(value) : std::nullopt;
}

// The fields of a policy.
void ReadPolicy(absl::string_view name, absl::string_view value,
                std::optional<TradePolicy>& policy) {
  double real = 0;
  const std::pair<absl::string_view, double TradePolicy::*> fields[] = {
      {"latency", &TradePolicy::latency},
      {"entries", &TradePolicy::entries},
      {"link_load", &TradePolicy::link_load},
      {"max_busiest_link_us", &TradePolicy::max_busiest_link_us}};
  for (const auto& [field, member] : fields) {
    if (name != field || !absl::SimpleAtod(value, &real)) continue;
    if (!policy) policy.emplace();
    (*policy).*member = real;
  }
  if (name == "max_entries") {
    if (!policy) policy.emplace();
    policy->max_entries = Number(value);
  }
}

// One `"name":value`; no value holds a comma or a colon.
void Read(absl::string_view name, absl::string_view value, RecordedRequest& request) {
  CreateTreeArgs& args = request.args;
  uint64_t guid = 0;
  if (name == "type") args.type = Named(kTypes, value);
  if (name == "or_else") request.accepts_type1 = true;
  if (name == "builder") args.builder = Named(kBuilders, value);
  if (name == "width") args.width = Number(value);
  if (name == "nic_degree") args.nic_degree = Number(value);
  ReadPolicy(name, value, args.policy);
  if (name == "root" && absl::SimpleHexAtoi(value, &guid)) args.root_switch = Guid(guid);
}

absl::string_view Unquoted(absl::string_view text) {
  return absl::StripSuffix(absl::StripPrefix(text, "\""), "\"");
}

void Write(const CreateTreeArgs& args, Writer& out) {
  if (args.type) out.Text("type", ToString(*args.type));
  if (args.builder) out.Text("builder", ToString(*args.builder));
  if (args.width) out.Number("width", *args.width);
  if (args.nic_degree) out.Number("nic_degree", *args.nic_degree);
  if (args.root_switch) out.Text("root", ToString(*args.root_switch));
  if (args.policy) {
    out.Real("latency", args.policy->latency);
    out.Real("entries", args.policy->entries);
    out.Real("link_load", args.policy->link_load);
    if (args.policy->max_entries) out.Number("max_entries", *args.policy->max_entries);
    out.Real("max_busiest_link_us", args.policy->max_busiest_link_us);
  }
}

}  // namespace

std::string RequestOptionsJson(const CreateTreeArgs& args) {
  Writer out;
  Write(args, out);
  return out.Take();
}

std::string RequestOptionsOfTypeIIOrElseI(CreateTreeArgs args) {
  Writer out;
  args.type = TreeType::kTypeII;
  Write(args, out);
  out.Text("or_else", ToString(TreeType::kTypeI));
  return out.Take();
}

RecordedRequest RequestOf(const TreeRecord& record) {
  RecordedRequest request;
  CreateTreeArgs& args = request.args;
  args.job = record.job;
  args.ranks = record.ranks;
  args.operation = ParseOperation(record.operation).value_or(Operation::kAllreduce);
  args.sizes = ParseSizes(record.sizes);
  if (record.demands.empty()) {
    if (record.type == static_cast<uint8_t>(TreeType::kTypeII)) args.type = TreeType::kTypeII;
    request.accepts_type1 = true;
    return request;
  }
  const absl::string_view list = absl::StripSuffix(absl::StripPrefix(record.demands, "{"), "}");
  for (const absl::string_view item : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    Read(Unquoted(parts.first), Unquoted(parts.second), request);
  }
  return request;
}

}  // namespace coppice
