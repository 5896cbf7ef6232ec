#include "daemon/fabric/models/model.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/forwarding_tables.h"

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

// What every model takes besides its own arguments.
std::vector<ModelParameter> AllParameters(const Model& model) {
  std::vector<ModelParameter> all = model.parameters;
  all.push_back({"speeds", "hdr", 0, 0,
                 "rate of the cables of each level from the hosts up (of grids: of each "
                 "dimension), as hdr/ndr; the last repeats",
                 ArgumentKind::kSpeeds});
  all.push_back({"lids", "0", 0, 1, "1 = assign LIDs, switches first; at most 49151 of them"});
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

constexpr uint64_t kSwitchGuid = 0x0010000000000000;
constexpr uint64_t kAdapterGuid = 0x0020000000000000;

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
    const auto parameter =
        absl::c_find_if(parameters, [&](const ModelParameter& p) { return p.name == name; });
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

absl::Span<const Model> Models() {
  static const auto& models = *new std::vector<Model>{
      DragonflyModel(), DragonflyPlusModel(), FatTreeModel(), HypercubeModel(), HyperxModel(),
      MeshModel(),      PercsModel(),         TorusModel(),   XgftModel()};
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
  for (const Model& model : Models()) {
    if (model.name != name) continue;
    const std::string where = absl::StrCat("model:", name);
    const std::string usage = absl::StrCat("; usage: ", Signature(model));
    absl::StatusOr<ModelArguments> arguments = ModelArguments::Parse(AllParameters(model), text);
    absl::StatusOr<std::shared_ptr<const Fabric>> fabric =
        arguments.ok() ? model.generate(*arguments) : arguments.status();
    if (fabric.ok()) return fabric;
    return absl::Status(fabric.status().code(),
                        absl::StrCat(where, ": ", fabric.status().message(), usage));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model \"", name.substr(0, 40), "\" does not exist: there are ",
                   absl::StrJoin(Models(), ", ", [](std::string* out, const Model& model) {
                     absl::StrAppend(out, model.name);
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

absl::Status ModelBuilder::CheckSize(double switches, double endpoints, double links) {
  if (switches + endpoints > static_cast<double>(kMaxVertices)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%.0f switches and %.0f endpoints are more than %d vertices: make it smaller", switches,
        endpoints, kMaxVertices));
  }
  if (links > static_cast<double>(kMaxLinks)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%.0f links are more than %d: make it smaller", links, kMaxLinks));
  }
  return absl::OkStatus();
}

ModelBuilder::ModelBuilder(uint64_t hosts, uint32_t rails)
    : rails_(rails), digits_(4), adapter_ports_(hosts * rails, 0) {
  for (uint64_t bound = 10000; hosts > bound; bound *= 10) ++digits_;
}

uint32_t ModelBuilder::AddSwitch(std::string description) {
  descriptions_.push_back(std::move(description));
  switch_ports_.push_back(0);
  return static_cast<uint32_t>(descriptions_.size() - 1);
}

uint32_t ModelBuilder::AddLeaf(std::string description, uint64_t hosts, ModelLink link,
                               uint64_t ports) {
  const uint32_t leaf = AddSwitch(std::move(description));
  for (uint64_t h = 0; h < hosts; ++h, ++next_host_) {
    for (uint64_t p = 0; p < ports; ++p) CableHost(next_host_, 0, leaf, link);
  }
  return leaf;
}

// Ports beyond 255 wrap here; Build refuses them by the count.
ModelBuilder::End ModelBuilder::NextPort(bool is_switch, uint32_t node) {
  uint32_t& used = is_switch ? switch_ports_[node] : adapter_ports_[node];
  ++used;
  return {is_switch, static_cast<uint8_t>(used), node};
}

void ModelBuilder::Cable(uint32_t switch_a, uint32_t switch_b, ModelLink link) {
  const End a = NextPort(true, switch_a);
  const End b = NextPort(true, switch_b);
  cables_.push_back({a, b, link});
}

void ModelBuilder::CableHost(uint64_t host, uint32_t rail, uint32_t to_switch, ModelLink link) {
  const End a = NextPort(false, static_cast<uint32_t>(host * rails_ + rail));
  const End b = NextPort(true, to_switch);
  cables_.push_back({a, b, link});
}

Guid ModelBuilder::AdapterGuid(uint32_t adapter) const {
  return Guid(kAdapterGuid + uint64_t{256} * adapter);
}

Guid ModelBuilder::GuidOf(const End& end) const {
  return end.is_switch ? Guid(kSwitchGuid + end.node) : AdapterGuid(end.node);
}

std::string ModelBuilder::AdapterName(uint32_t adapter) const {
  return absl::StrFormat("n%0*d mlx5_%d", digits_, adapter / rails_, adapter % rails_);
}

absl::StatusOr<std::shared_ptr<const Fabric>> ModelBuilder::Build(const ModelArguments& arguments) {
  const bool lids = arguments.Integer("lids") == 1;
  uint64_t next_lid = 1;
  for (const uint32_t ports : adapter_ports_) next_lid += ports;
  if (lids && next_lid + descriptions_.size() - 1 > kMaxUnicastLid) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument lids=1: ", next_lid + descriptions_.size() - 1,
                     " ports are more than the ", kMaxUnicastLid, " unicast LIDs of a subnet"));
  }
  next_lid = 1;
  const auto take_lid = [&] { return Lid(static_cast<uint16_t>(lids ? next_lid++ : 0)); };
  FabricBuilder builder;
  for (uint32_t s = 0; s < descriptions_.size(); ++s) {
    if (switch_ports_[s] > kMaxNodePorts) {
      return absl::InvalidArgumentError(
          absl::StrCat("switch ", descriptions_[s], " would need ", switch_ports_[s],
                       " ports; a switch has at most ", kMaxNodePorts));
    }
    const auto ports = static_cast<uint8_t>(std::max<uint32_t>(1, switch_ports_[s]));
    RETURN_IF_ERROR(builder.AddSwitch(
        {Guid(kSwitchGuid + s), take_lid(), ports, 0, 0, std::move(descriptions_[s])}));
  }
  for (uint32_t a = 0; a < adapter_ports_.size(); ++a) {
    RETURN_IF_ERROR(builder.AddNode({.guid = AdapterGuid(a),
                                     .adapter = AdapterKind::kChannelAdapter,
                                     .port_count = static_cast<uint8_t>(adapter_ports_[a]),
                                     .description = AdapterName(a)}));
    for (uint8_t port = 1; port <= adapter_ports_[a]; ++port) {
      RETURN_IF_ERROR(builder.SetAdapterPort(AdapterGuid(a), PortNum(port),
                                             Guid(AdapterGuid(a).value() + port), take_lid()));
    }
  }
  for (const ModelCable& cable : cables_) {
    RETURN_IF_ERROR(builder.AddLink(GuidOf(cable.a), PortNum(cable.a.port), GuidOf(cable.b),
                                    PortNum(cable.b.port), cable.link.rate,
                                    cable.link.capacity_gbps));
  }
  cables_.clear();
  return builder.Build();
}

}  // namespace coppice
