#include "daemon/fabric/models/model.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"

namespace coppice {
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
