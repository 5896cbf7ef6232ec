#include "daemon/fabric/fabric_source.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/ibnetdiscover.h"
#include "daemon/fabric/ibsim_net.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

enum class Format : uint8_t { kIbnetdiscover, kIbnetdiscoverPorts, kIbsimNet };

// The first line that says something decides: a row of the -p report, or a node's header, whose
// name is S-, H- or R- and a GUID in ibnetdiscover's text and anything in ibsim's.
Format Recognise(TopologyLines& lines) {
  absl::string_view line;
  while (lines.Next(&line)) {
    if (IsChatter(line)) continue;
    for (const absl::string_view type : {"CA ", "SW ", "RT "}) {
      if (absl::StartsWith(line, type)) return Format::kIbnetdiscoverPorts;
    }
    for (const absl::string_view word : {"Hca", "module", "include", "do ", "width", "speed"}) {
      if (absl::StartsWith(line, word)) return Format::kIbsimNet;
    }
    LineCursor cursor(line);
    absl::string_view skipped, name;
    if (line.front() == '[' || !cursor.Until('"', &skipped) || !cursor.Until('"', &name)) continue;
    return GuidOfNodeName(name) ? Format::kIbnetdiscover : Format::kIbsimNet;
  }
  return Format::kIbnetdiscover;
}

absl::StatusOr<std::shared_ptr<const Fabric>> ReadTopology(TopologyLines& lines) {
  const Format format = Recognise(lines);
  RETURN_IF_ERROR(lines.status());
  lines.Rewind();
  switch (format) {
    case Format::kIbnetdiscoverPorts:
      return ReadIbnetdiscoverPorts(lines);
    case Format::kIbsimNet:
      return ReadIbsimNet(lines);
    case Format::kIbnetdiscover:
      break;
  }
  return ReadIbnetdiscover(lines);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabricText(absl::string_view text,
                                                             absl::string_view origin) {
  TopologyLines lines(text, origin);
  return ReadTopology(lines);
}

absl::Status CheckFabricSpec(absl::string_view spec) {
  if (absl::StartsWith(spec, "model:")) return absl::OkStatus();
  if (absl::StartsWith(spec, "file:") && spec.size() > 5) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "fabric \"", spec.substr(0, 80), "\": expected file:PATH or model:NAME(ARGUMENT=VALUE,...)"));
}

absl::StatusOr<std::shared_ptr<const Fabric>> LoadFabric(absl::string_view spec) {
  RETURN_IF_ERROR(CheckFabricSpec(spec));
  if (absl::ConsumePrefix(&spec, "model:")) return GenerateModel(spec);
  ASSIGN_OR_RETURN(TopologyFile file,
                   TopologyFile::Open(std::string(absl::StripPrefix(spec, "file:"))));
  TopologyLines lines(file);
  return ReadTopology(lines);
}

}  // namespace coppice
