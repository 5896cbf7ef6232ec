// Generated fabrics: one table of models, each with its documented arguments.
//
// A new model is a file here with one function that returns its table entry, and a line in
// model.cc. Models are functions of their arguments: no clock, no hidden random numbers; equal
// arguments give equal fabrics.
#ifndef COPPICE_DAEMON_FABRIC_MODELS_MODEL_H_
#define COPPICE_DAEMON_FABRIC_MODELS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/models/model_arguments.h"

namespace coppice {

struct Model {
  absl::string_view name;
  absl::string_view meaning;
  std::vector<ModelParameter> parameters;  // the common ones follow these
  absl::StatusOr<std::shared_ptr<const Fabric>> (*generate)(const ModelArguments&);
};

const Model& DragonflyModel();
const Model& DragonflyPlusModel();
const Model& FatTreeModel();
const Model& HypercubeModel();
const Model& HyperxModel();
const Model& MeshModel();
const Model& PercsModel();
const Model& TorusModel();
const Model& XgftModel();

// All models, by name.
absl::Span<const Model* const> Models();

// Generates "NAME(ARGUMENT=VALUE,...)"; "NAME" alone takes every default. INVALID_ARGUMENT: no such
// model (the message lists them), or an argument that is unknown, malformed or out of range (it
// names the argument, its range and the model's usage), or a fabric beyond 2^22 vertices.
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateModel(absl::string_view spec);

// "torus(dims=4x4x4,hosts=1,...): what it is" and a line for each argument.
std::string ModelUsage(const Model& model);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_MODELS_MODEL_H_
