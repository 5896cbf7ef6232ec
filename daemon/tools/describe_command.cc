// coppice-plan fabric describe: what a fabric is made of, and the same fabric in other formats.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/group_tree.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"
#include "daemon/tools/command.h"
#include "proto/text/command_line.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

struct FabricOptions {
  std::string spec, out, ibsim, slurm;
  bool json = false;
};

// Links of one kind: "host" (an endpoint at one end) or "switch", with one rate and capacity.
struct LinkClass {
  bool between_switches = false;
  LinkRate rate;
  float capacity_gbps = 0;

  friend bool operator<(const LinkClass& x, const LinkClass& y) {
    return std::tuple(x.between_switches, x.rate.lanes, x.rate.speed, x.capacity_gbps) <
           std::tuple(y.between_switches, y.rate.lanes, y.rate.speed, y.capacity_gbps);
  }
};

struct FabricSummary {
  std::map<LinkClass, uint32_t> links;
  std::map<uint32_t, uint32_t> switches_by_degree;  // cabled ports -> switches
};

FabricSummary Summarise(const Fabric& fabric) {
  FabricSummary summary;
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    const bool between_switches = fabric.IsSwitch(link.a) && fabric.IsSwitch(link.b);
    ++summary.links[{between_switches, link.rate, link.capacity_gbps}];
  }
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    ++summary.switches_by_degree[static_cast<uint32_t>(fabric.channels(VertexIndex(s)).size())];
  }
  return summary;
}

nlohmann::json ToJson(const std::string& source, const Fabric& fabric, const Hierarchy& hierarchy,
                      const FabricSummary& summary) {
  nlohmann::json json = {{"source", source},
                         {"shape", hierarchy.shape},
                         {"switch_count", fabric.switch_count()},
                         {"endpoint_count", fabric.endpoint_count()},
                         {"host_count", fabric.host_count()},
                         {"link_count", fabric.link_count()},
                         {"component_count", fabric.component_count()}};
  json["levels"] = nlohmann::json::array();
  for (const Hierarchy::Level& level : hierarchy.levels) {
    json["levels"].push_back({{"name", level.name}, {"group_count", level.group_count}});
  }
  json["link_classes"] = nlohmann::json::array();
  for (const auto& [kind, count] : summary.links) {
    json["link_classes"].push_back({{"between", kind.between_switches ? "switches" : "hosts"},
                                    {"rate", ToString(kind.rate)},
                                    {"capacity_gbps", kind.capacity_gbps},
                                    {"count", count}});
  }
  json["switch_degrees"] = nlohmann::json::array();
  for (const auto& [degree, count] : summary.switches_by_degree) {
    json["switch_degrees"].push_back({{"degree", degree}, {"count", count}});
  }
  return json;
}

std::string ToTable(const std::string& source, const Fabric& fabric, const Hierarchy& hierarchy,
                    const FabricSummary& summary) {
  std::string text;
  absl::StrAppendFormat(&text, "%-12s %s\n%-12s %s\n", "fabric", source, "shape", hierarchy.shape);
  absl::StrAppendFormat(&text, "%-12s %u\n%-12s %u\n%-12s %u\n%-12s %u\n%-12s %u\n", "switches",
                        fabric.switch_count(), "endpoints", fabric.endpoint_count(), "hosts",
                        fabric.host_count(), "links", fabric.link_count(), "subnets",
                        fabric.component_count());
  absl::StrAppendFormat(&text, "\n%-16s %10s\n", "LEVEL", "GROUPS");
  for (const Hierarchy::Level& level : hierarchy.levels) {
    absl::StrAppendFormat(&text, "%-16s %10u\n", level.name, level.group_count);
  }
  absl::StrAppendFormat(&text, "\n%-16s %-10s %14s %10s\n", "LINKS", "RATE", "CAPACITY", "COUNT");
  for (const auto& [kind, count] : summary.links) {
    const std::string capacity =
        kind.capacity_gbps > 0 ? absl::StrFormat("%.6g Gb/s", kind.capacity_gbps) : "?";
    absl::StrAppendFormat(&text, "%-16s %-10s %14s %10u\n",
                          kind.between_switches ? "switch - switch" : "host - switch",
                          ToString(kind.rate), capacity, count);
  }
  absl::StrAppendFormat(&text, "\n%-16s %10s\n", "SWITCH DEGREE", "SWITCHES");
  for (const auto& [degree, count] : summary.switches_by_degree) {
    absl::StrAppendFormat(&text, "%-16u %10u\n", degree, count);
  }
  return text;
}

std::string Dump(const nlohmann::json& json) {
  return absl::StrCat(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

absl::Status RunFabric(const FabricOptions& options) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Fabric> fabric, LoadFabric(options.spec));
  if (!options.out.empty()) {
    RETURN_IF_ERROR(WriteTextFile(options.out, WriteIbnetdiscover(*fabric)));
  }
  if (!options.ibsim.empty()) {
    RETURN_IF_ERROR(WriteTextFile(options.ibsim, WriteIbsimNet(*fabric)));
  }
  const std::shared_ptr<const Hierarchy> hierarchy = DeriveHierarchy(*fabric);
  if (!options.slurm.empty()) {
    RETURN_IF_ERROR(WriteTextFile(
        options.slurm, WriteSlurmTopology(MakeGroupTree(*fabric, *hierarchy), hierarchy->shape)));
  }
  const FabricSummary summary = Summarise(*fabric);
  if (!options.json) return PrintText(ToTable(options.spec, *fabric, *hierarchy, summary));
  return PrintText(Dump(ToJson(options.spec, *fabric, *hierarchy, summary)));
}

std::string ModelHelp() {
  std::string text = "Models (--fabric \"model:NAME(ARGUMENT=VALUE,...)\"):\n";
  for (const Model& model : Models()) absl::StrAppend(&text, ModelUsage(model));
  return text;
}

}  // namespace

void RegisterDescribeCommand(CLI::App& fabric, PlanCommand& chosen) {
  CLI::App* const command = fabric.add_subcommand(
      "describe", "Its counts, levels, degrees and capacities; other formats");
  const auto options = std::make_shared<FabricOptions>();
  AddText(*command, "--fabric", options->spec, "file:PATH or model:NAME(ARGUMENT=VALUE,...)")
      ->required();
  AddText(*command, "--out", options->out, "Write the fabric as ibnetdiscover prints it");
  AddText(*command, "--ibsim", options->ibsim, "Write the fabric as a net file for ibsim");
  AddText(*command, "--slurm-topology", options->slurm,
          "Write the fabric as Slurm's topology.conf, for topology/tree");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(ModelHelp());
  fabric.footer(ModelHelp());
  command->callback([options, &chosen] {
    chosen.json = options->json;
    chosen.run = [options] { return RunFabric(*options); };
  });
}

}  // namespace coppice
