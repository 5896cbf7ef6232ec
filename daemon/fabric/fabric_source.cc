#include "daemon/fabric/fabric_source.h"

#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

// The reader of a text. Its first line that says something decides: a row of the -p report, or a
// node's header, whose name is S-, H- or R- and a GUID in ibnetdiscover's text and anything in
// ibsim's.
auto ReaderOf(TopologyLines& lines) {
  absl::string_view line;
  while (lines.Next(&line)) {
    if (IsChatter(line)) continue;
    for (const absl::string_view type : {"CA ", "SW ", "RT "}) {
      if (absl::StartsWith(line, type)) return &ReadIbnetdiscoverPorts;
    }
    for (const absl::string_view word : {"Hca", "module", "include", "do ", "width", "speed"}) {
      if (absl::StartsWith(line, word)) return &ReadIbsimNet;
    }
    LineCursor cursor(line);
    absl::string_view skipped, name;
    if (line.front() == '[' || !cursor.Until('"', &skipped) || !cursor.Until('"', &name)) continue;
    return GuidOfNodeName(name) ? &ReadIbnetdiscover : &ReadIbsimNet;
  }
  return &ReadIbnetdiscover;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabric(std::istream& text,
                                                         absl::string_view origin) {
  TopologyLines lines(text, origin);
  const auto reader = ReaderOf(lines);
  RETURN_IF_ERROR(lines.status());
  lines.Rewind();
  return reader(lines);
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
  const std::string path(absl::StripPrefix(spec, "file:"));
  std::vector<char> buffer(size_t{1} << 18);
  ASSIGN_OR_RETURN(std::ifstream file, OpenFabricFile(path, absl::MakeSpan(buffer)));
  return ReadFabric(file, path);
}

absl::StatusOr<std::unique_ptr<OfflineSubnetPort>> OfflineSubnetPort::Create(
    absl::string_view spec) {
  RETURN_IF_ERROR(CheckFabricSpec(spec));
  return std::unique_ptr<OfflineSubnetPort>(new OfflineSubnetPort(spec));
}

absl::StatusOr<SweepResult> OfflineSubnetPort::Sweep(const SweepOptions&) {
  const absl::Duration start = SystemClock().Monotonic();
  SweepResult result;
  // Before the file is read: what is written meanwhile is seen by the next look.
  absl::StatusOr<Stamp> stamp = ReadStamp();
  ASSIGN_OR_RETURN(result.fabric, LoadFabric(spec_));
  if (stamp.ok()) swept_ = *stamp;
  result.elapsed = SystemClock().Monotonic() - start;
  return result;
}

absl::StatusOr<OfflineSubnetPort::Stamp> OfflineSubnetPort::ReadStamp() const {
  absl::string_view path = spec_;
  if (!absl::ConsumePrefix(&path, "file:")) return Stamp();
  const std::filesystem::path file{std::string(path)};
  Stamp stamp;
  std::error_code error;
  stamp.modified = std::filesystem::last_write_time(file, error);
  if (!error) stamp.bytes = std::filesystem::file_size(file, error);
  if (!error) return stamp;
  return absl::NotFoundError(absl::StrCat(spec_, ": ", error.message(), "; put the file back"));
}

absl::StatusOr<LightSweepResult> OfflineSubnetPort::LightSweep() {
  if (!swept_) return absl::FailedPreconditionError(absl::StrCat(spec_, " was not swept yet"));
  ASSIGN_OR_RETURN(const Stamp stamp, ReadStamp());
  LightSweepResult result;
  result.has_changed = stamp != *swept_;
  if (result.has_changed) result.what = absl::StrCat(spec_, " was written anew");
  return result;
}

absl::StatusOr<CounterSweep> OfflineSubnetPort::ReadCounters() {
  return absl::UnimplementedError(absl::StrCat(spec_, " has no counters: it is no live subnet"));
}

}  // namespace coppice
