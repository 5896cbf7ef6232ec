// coppice-plan table: the static table from (operation, size class) to tree type and width that the
// daemon would print (Chen 2024, table 3), in the JSON of coppice.v1.TypeTable.
//
// It asks the closed forms, which know the number of members but no fabric: a fabric only says how
// many members all of its endpoints are.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/closed_form.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

struct TableOptions {
  std::string fabric, profile = "hdr";
  std::optional<uint32_t> members;
  bool json = false;
};

// As protobuf writes JSON: enumerators by name, 64-bit numbers as text.
Json ToJson(const std::string& profile, uint32_t members, const std::vector<TypeChoice>& table) {
  Json json = {{"profile", profile}, {"members", members}, {"rows", Json::array()}};
  for (const TypeChoice& choice : table) {
    const std::string operation(ToString(choice.operation));
    json["rows"].push_back(
        {{"operation", absl::StrCat("OPERATION_", absl::AsciiStrToUpper(operation))},
         {"min_bytes", absl::StrCat(choice.min_bytes)},
         {"max_bytes", absl::StrCat(choice.max_bytes)},
         {"type", absl::StrCat("TREE_TYPE_", ToString(choice.type))},
         {"width", choice.widths.best},
         {"min_width", choice.widths.min},
         {"max_width", choice.widths.max},
         {"type_i_us", choice.type_i_us},
         {"type_ii_us", choice.type_ii_us}});
  }
  return json;
}

std::string ToText(const std::string& profile, uint32_t members,
                   const std::vector<TypeChoice>& table) {
  std::string text = absl::StrCat("profile ", profile, ", ", members, " members\n");
  absl::StrAppendFormat(&text, "%-10s %8s %8s  %-4s %6s  %-8s %10s %10s\n", "OPERATION", "FROM B",
                        "TO B", "TYPE", "WIDTH", "WIDTHS", "I US", "II US");
  for (const TypeChoice& choice : table) {
    const std::string widths = absl::StrCat(choice.widths.min, "..", choice.widths.max);
    absl::StrAppendFormat(&text, "%-10s %8u %8u  %-4s %6u  %-8s %10.2f %10.2f\n",
                          ToString(choice.operation), choice.min_bytes, choice.max_bytes,
                          ToString(choice.type), choice.widths.best, widths, choice.type_i_us,
                          choice.type_ii_us);
  }
  return text;
}

absl::StatusOr<uint32_t> MemberCount(const TableOptions& options) {
  if (options.members) return *options.members;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Fabric> fabric, LoadFabric(options.fabric));
  return fabric->endpoint_count();
}

absl::Status RunTable(const TableOptions& options) {
  ASSIGN_OR_RETURN(const CostProfile profile, LoadProfile(options.profile));
  ASSIGN_OR_RETURN(const uint32_t members, MemberCount(options));
  ASSIGN_OR_RETURN(const std::vector<TypeChoice> table, StaticTypeTable(profile, members));
  if (!options.json) return PrintText(ToText(profile.name, members, table));
  const Json json = ToJson(profile.name, members, table);
  return PrintText(absl::StrCat(json.dump(1, ' ', false, Json::error_handler_t::replace), "\n"));
}

}  // namespace

void RegisterTableCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("table", "The static table: operation and size -> tree type and width");
  const auto options = std::make_shared<TableOptions>();
  AddCount(*command, "--members", options->members,
           "size of the communicator; default all endpoints of the fabric");
  AddText(*command, "--fabric", options->fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)");
  AddProfileOption(*command, options->profile);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &chosen] {
    if (!options->members && options->fabric.empty()) {
      throw CLI::RequiredError("--members or --fabric");
    }
    chosen.run = [options] { return RunTable(*options); };
  });
}

}  // namespace coppice
