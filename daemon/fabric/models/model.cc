#include "daemon/fabric/models/model.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr size_t kMaxExtents = 16;

std::vector<absl::string_view> Names(absl::Span<const ModelParameter> parameters) {
  std::vector<absl::string_view> names;
  for (const ModelParameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

absl::Status BadValue(const ModelParameter& parameter, absl::string_view text,
                      absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("argument ", parameter.name, "=", text.substr(0, 40), ": expected ", expected));
}

}  // namespace

absl::StatusOr<ModelArguments::Value> ModelArguments::ParseValue(const ModelParameter& parameter,
                                                                 absl::string_view text) {
  Value value;
  if (parameter.kind == ArgumentKind::kSpeeds) {
    for (const absl::string_view word : absl::StrSplit(text, '/')) {
      std::optional<LinkRate> rate = ParseLinkRate(word);
      if (!rate) rate = ParseLinkRate(absl::StrCat("4x", word));
      if (!rate) {
        return BadValue(parameter, text,
                        "rates such as hdr or 2xndr, separated by /: sdr, ddr, qdr, fdr10, fdr, "
                        "edr, hdr, ndr, xdr, 1x to 12x");
      }
      value.rates.push_back(*rate);
    }
    return value;
  }
  const std::string range = absl::StrCat(parameter.least, " to ", parameter.most);
  std::vector<absl::string_view> words = {text};
  if (parameter.kind == ArgumentKind::kExtents) words = absl::StrSplit(text, 'x');
  if (words.size() > kMaxExtents) {
    return BadValue(parameter, text, absl::StrCat("at most ", kMaxExtents, " numbers"));
  }
  for (const absl::string_view word : words) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < parameter.least || number > parameter.most) {
      return BadValue(parameter, text,
                      parameter.kind == ArgumentKind::kExtents
                          ? absl::StrCat("numbers from ", range, ", joined by x")
                          : absl::StrCat("a number from ", range));
    }
    value.numbers.push_back(number);
  }
  return value;
}

absl::StatusOr<ModelArguments> ModelArguments::Parse(absl::Span<const ModelParameter> parameters,
                                                     absl::string_view text) {
  ModelArguments arguments;
  for (const ModelParameter& parameter : parameters) {
    ASSIGN_OR_RETURN(arguments.values_[parameter.name], ParseValue(parameter, parameter.standard));
  }
  if (absl::StripAsciiWhitespace(text).empty()) return arguments;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const ModelParameter& p) { return p.name == name; });
    if (parameter == parameters.end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument \"", name.substr(0, 40),
                                                     "\": there are ",
                                                     absl::StrJoin(Names(parameters), ", ")));
    }
    if (arguments.Given(parameter->name)) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", name, " is given twice"));
    }
    ASSIGN_OR_RETURN(Value value, ParseValue(*parameter, absl::StripAsciiWhitespace(parts.second)));
    value.given = true;
    arguments.values_[parameter->name] = std::move(value);
  }
  return arguments;
}

LinkRate ModelArguments::Speed(uint32_t level) const {
  const std::vector<LinkRate>& rates = values_.at("speeds").rates;
  return rates[std::min<size_t>(level, rates.size() - 1)];
}

namespace {

// What every model takes besides its own arguments.
std::vector<ModelParameter> AllParameters(const Model& model) {
  std::vector<ModelParameter> all = model.parameters;
  all.push_back({"speeds", ArgumentKind::kSpeeds, "hdr", 0, 0,
                 "rate of the cables of each level from the hosts up (of grids: of each "
                 "dimension), as hdr/ndr; "
                 "the last repeats"});
  all.push_back({"lids", ArgumentKind::kInteger, "0", 0, 1,
                 "1 = assign LIDs, switches first; at most 49151 of them"});
  return all;
}

std::string Signature(const Model& model) {
  return absl::StrCat(model.name, "(",
                      absl::StrJoin(AllParameters(model), ",",
                                    [](std::string* out, const ModelParameter& parameter) {
                                      absl::StrAppend(out, parameter.name, "=", parameter.standard);
                                    }),
                      ")");
}

}  // namespace

absl::Span<const Model* const> Models() {
  static const std::array<const Model*, 9> models = {
      &DragonflyModel(), &DragonflyPlusModel(), &FatTreeModel(), &HypercubeModel(), &HyperxModel(),
      &MeshModel(),      &PercsModel(),         &TorusModel(),   &XgftModel()};
  return models;
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateModel(absl::string_view spec) {
  spec = absl::StripAsciiWhitespace(spec);
  const size_t open = spec.find('(');
  const absl::string_view name = absl::StripAsciiWhitespace(spec.substr(0, open));
  absl::string_view text;
  if (open != absl::string_view::npos) {
    if (spec.back() != ')') {
      return absl::InvalidArgumentError(
          absl::StrCat("model:", spec.substr(0, 80), ": the closing bracket is missing"));
    }
    text = spec.substr(open + 1, spec.size() - open - 2);
  }
  for (const Model* model : Models()) {
    if (model->name != name) continue;
    const std::string where = absl::StrCat("model:", name);
    const std::string usage = absl::StrCat("; usage: ", Signature(*model));
    absl::StatusOr<ModelArguments> arguments = ModelArguments::Parse(AllParameters(*model), text);
    absl::StatusOr<std::shared_ptr<const Fabric>> fabric =
        arguments.ok() ? model->generate(*arguments) : arguments.status();
    if (fabric.ok()) return fabric;
    return absl::Status(fabric.status().code(),
                        absl::StrCat(where, ": ", fabric.status().message(), usage));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model \"", name.substr(0, 40), "\" does not exist: there are ",
                   absl::StrJoin(Models(), ", ", [](std::string* out, const Model* model) {
                     absl::StrAppend(out, model->name);
                   })));
}

std::string ModelUsage(const Model& model) {
  std::string text = absl::StrCat(Signature(model), ": ", model.meaning, "\n");
  for (const ModelParameter& parameter : AllParameters(model)) {
    absl::StrAppend(&text, "  ", parameter.name, ": ", parameter.meaning);
    if (parameter.kind != ArgumentKind::kSpeeds) {
      absl::StrAppend(&text, " (", parameter.least, " to ", parameter.most, ")");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace coppice
