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

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Arguments of a model, as its table documents them: parsed and checked in one place, so that a
// generator only ever sees values in range.

enum class ArgumentKind : uint8_t {
  kInteger,  // 16
  kExtents,  // 4x4x2: one number a dimension or level
  kSpeeds,   // hdr/ndr or 4xhdr/2xndr: one rate a level, from the hosts up; the last one repeats
};

struct ModelParameter {
  absl::string_view name;
  ArgumentKind kind = ArgumentKind::kInteger;
  absl::string_view standard;    // the value if it is not given
  uint64_t least = 0, most = 0;  // of integers and of each extent
  absl::string_view meaning;
};

class ModelArguments {
 public:
  // Parses "name=value,name=value"; blanks around words are skipped. INVALID_ARGUMENT: unknown or
  // repeated name, malformed value, value out of range.
  static absl::StatusOr<ModelArguments> Parse(absl::Span<const ModelParameter> parameters,
                                              absl::string_view text);

  // The name must be one of the table's, of the kind asked for.
  bool Given(absl::string_view name) const { return values_.at(name).given; }
  uint64_t Integer(absl::string_view name) const { return values_.at(name).numbers.front(); }
  const std::vector<uint64_t>& Extents(absl::string_view name) const {
    return values_.at(name).numbers;
  }
  // Rate of the cables of `level`: 0 joins hosts to switches.
  LinkRate Speed(uint32_t level) const;

 private:
  struct Value {
    bool given = false;
    std::vector<uint64_t> numbers;
    std::vector<LinkRate> rates;
  };
  static absl::StatusOr<Value> ParseValue(const ModelParameter& parameter, absl::string_view text);

  absl::flat_hash_map<absl::string_view, Value> values_;  // keys from the table
};

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
