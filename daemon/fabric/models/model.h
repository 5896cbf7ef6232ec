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
#include "absl/status/status.h"
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
  absl::string_view standard;    // the value if it is not given
  uint64_t least = 0, most = 0;  // of integers and of each extent
  absl::string_view meaning;
  ArgumentKind kind = ArgumentKind::kInteger;
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

Model DragonflyModel();
Model DragonflyPlusModel();
Model FatTreeModel();
Model HypercubeModel();
Model HyperxModel();
Model MeshModel();
Model PercsModel();
Model TorusModel();
Model XgftModel();

// All models, by name.
absl::Span<const Model> Models();

// Generates "NAME(ARGUMENT=VALUE,...)"; "NAME" alone takes every default. INVALID_ARGUMENT: no such
// model (the message lists them), or an argument that is unknown, malformed or out of range (it
// names the argument, its range and the model's usage), or a fabric beyond 2^22 vertices.
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateModel(absl::string_view spec);

// "torus(dims=4x4x4,hosts=1,...): what it is" and a line for each argument.
std::string ModelUsage(const Model& model);

// What generators build with: switches and hosts by number, cables on the next free ports. Chooses
// GUIDs and names, and refuses sizes that no switch or machine could hold.
struct ModelLink {
  LinkRate rate;
  float capacity_gbps = 0;  // 0 = from the rate
};

// Not thread-safe. Switch s has the GUID 0x0010000000000000 + s; the adapter of host h in rail r
// has 0x0020000000000000 + 256 * (h * rails + r), and its ports that plus their number, which is
// how ibsim numbers them. Ports are numbered from 1 in the order of the cables.
class ModelBuilder {
 public:
  static constexpr uint64_t kMaxVertices = uint64_t{1} << 22;
  static constexpr uint64_t kMaxLinks = uint64_t{1} << 24;

  // INVALID_ARGUMENT: more than these. Sizes come as floating point so that they cannot wrap.
  static absl::Status CheckSize(double switches, double endpoints, double links);

  // Hosts will be n0000, n0001, ...: as many digits as `hosts` needs, at least four; their adapters
  // are "n0000 mlx5_0", one for each rail.
  explicit ModelBuilder(uint64_t hosts, uint32_t rails = 1);

  // The number that the next switch gets.
  uint32_t switch_count() const { return static_cast<uint32_t>(descriptions_.size()); }
  // Short, and without quotes: ibsim's consoles and SIM_HOST name the switch by it.
  uint32_t AddSwitch(std::string description);
  // With the next `hosts` hosts, each on `ports` of its ports.
  uint32_t AddLeaf(std::string description, uint64_t hosts, ModelLink link, uint64_t ports = 1);
  void Cable(uint32_t switch_a, uint32_t switch_b, ModelLink link);
  // Joins the next port of the host's adapter in `rail` to the switch.
  void CableHost(uint64_t host, uint32_t rail, uint32_t to_switch, ModelLink link);

  // INVALID_ARGUMENT: a switch with more than 254 ports, or more LIDs asked for than there are. The
  // builder is empty afterwards.
  absl::StatusOr<std::shared_ptr<const Fabric>> Build(const ModelArguments& arguments);

 private:
  struct End {
    bool is_switch;
    uint8_t port;
    uint32_t node;
  };
  struct ModelCable {
    End a, b;
    ModelLink link;
  };
  Guid AdapterGuid(uint32_t adapter) const;
  Guid GuidOf(const End& end) const;
  std::string AdapterName(uint32_t adapter) const;
  End NextPort(bool is_switch, uint32_t node);

  uint32_t rails_;
  int digits_;
  uint64_t next_host_ = 0;                 // of AddLeaf
  std::vector<std::string> descriptions_;  // [switch]
  std::vector<uint32_t> switch_ports_;     // [switch] used
  std::vector<uint32_t> adapter_ports_;    // [host * rails + rail] used
  std::vector<ModelCable> cables_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_MODELS_MODEL_H_
