#include "daemon/tree/calibration/model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/closed_form.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
namespace {

constexpr std::array<absl::string_view, kConstantCount> kNames = {"init_us",
                                                                  "link_us",
                                                                  "nic.forward_us",
                                                                  "nic.forward_us_per_byte",
                                                                  "nic.match_us",
                                                                  "nic.reduce_us_per_byte",
                                                                  "nic.send_us",
                                                                  "switch.forward_us",
                                                                  "switch.forward_us_per_byte",
                                                                  "switch.match_us",
                                                                  "switch.reduce_us_per_byte",
                                                                  "switch.send_us"};

constexpr absl::string_view kNode[] = {"nic", "switch"};

ConstantSet AllOfNode(size_t first) { return ConstantSet(0b11111) << first; }

// The constants of one name; none if there is no such name.
ConstantSet Named(absl::string_view name) {
  if (name == kNode[0]) return AllOfNode(kNicConstants);
  if (name == kNode[1]) return AllOfNode(kSwitchConstants);
  ConstantSet set;
  for (size_t c = 0; c < kConstantCount; ++c) set[c] = kNames[c] == name;
  return set;
}

absl::Status NoSuchConstant(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot fix \"", absl::CHexEscape(name.substr(0, 128)), "\": the constants are ",
                   absl::StrJoin(kNames, ", "), ", nic, switch"));
}

}  // namespace

absl::string_view ConstantName(size_t constant) { return kNames[constant]; }

double& ConstantIn(CostProfile& profile, size_t constant) {
  if (constant == kInitConstant) return profile.init_us;
  if (constant == kLinkConstant) return profile.link_us;
  NodeCost& node = constant < kSwitchConstants ? profile.nic : profile.switch_;
  const size_t first = constant < kSwitchConstants ? kNicConstants : kSwitchConstants;
  return node.*kNodeFields[constant - first].member;
}

double ConstantIn(const CostProfile& profile, size_t constant) {
  return ConstantIn(const_cast<CostProfile&>(profile), constant);
}

absl::StatusOr<ConstantSet> ConstantsNamed(absl::Span<const std::string> names) {
  ConstantSet set;
  for (const std::string& name : names) {
    const ConstantSet named = Named(name);
    if (named.none()) return NoSuchConstant(name);
    set |= named;
  }
  return set;
}

std::string NamesOf(const ConstantSet& constants) {
  std::vector<absl::string_view> names;
  for (size_t c = 0; c < kConstantCount; ++c) {
    const bool is_first = c == kNicConstants || c == kSwitchConstants;
    if (is_first && (constants & AllOfNode(c)) == AllOfNode(c)) {
      names.push_back(kNode[c == kSwitchConstants]);
      c += kNodeFields.size() - 1;
    } else if (constants[c]) {
      names.push_back(kNames[c]);
    }
  }
  return absl::StrJoin(names, ", ");
}

absl::Status FixConstant(absl::string_view text, CalibrationOptions& options) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const ConstantSet named = Named(parts[0]);
  double* value = nullptr;
  if (parts[0] == "mean_route_links") value = &options.base.mean_route_links;
  if (parts[0] == "port_gbps") value = &options.base.port_gbps;
  if (named.none() && value == nullptr) return NoSuchConstant(parts[0]);
  if (parts.size() == 2) {
    double number = 0;
    if (!absl::SimpleAtod(parts[1], &number) || !std::isfinite(number) || number < 0) {
      return absl::InvalidArgumentError(absl::StrCat("cannot fix ", parts[0], " at \"",
                                                     absl::CHexEscape(parts[1].substr(0, 128)),
                                                     "\": give a number, 0 or more"));
    }
    if (value != nullptr) *value = number;
    for (size_t c = 0; c < kConstantCount; ++c) {
      if (named[c]) ConstantIn(options.base, c) = number;
    }
  }
  if (value == nullptr) options.fixed.emplace_back(parts[0]);
  return absl::OkStatus();
}

double PredictUs(const CostProfile& profile, const LatencySample& sample) {
  const LevelCost level = BothWays(profile, sample.type, PayloadOf(sample.operation, sample.bytes));
  return profile.init_us + LevelsUs(level, sample.members, sample.width);
}

PortBounds PortBoundsOf(const CostProfile& profile, const LatencySample& sample) {
  const NodeCost& node = sample.type == TreeType::kTypeI ? profile.nic : profile.switch_;
  const Pipeline pipeline = PipelineOf(profile, PayloadOf(sample.operation, sample.bytes));
  const Payload& packet = pipeline.packet;
  const double match = node.MatchUs(packet.reduced_bytes);
  const double up_us = WireUs(profile, packet.up_bytes, profile.port_gbps);
  const double down_us = WireUs(profile, packet.down_bytes, profile.port_gbps);
  return {.up = up_us > match,
          .down = down_us > node.send_us,
          .down_is_slower = pipeline.streams && !pipeline.is_one_packet() &&
                            std::max(down_us, node.send_us) > std::max(up_us, match)};
}

double LinearForm::Us(const CostProfile& profile) const {
  double us = known_us;
  for (size_t c = 0; c < kConstantCount; ++c) us += slope[c] * ConstantIn(profile, c);
  return us;
}

// b k of a level up and of one down are taken `up` and `down` times: for the first packet at every
// level, for those after it at one node.
LinearForm LinearFormOf(const CostProfile& profile, const LatencySample& sample,
                        PortBounds bounds) {
  const bool is_type_i = sample.type == TreeType::kTypeI;
  const size_t node = is_type_i ? kNicConstants : kSwitchConstants;
  const Pipeline pipeline = PipelineOf(profile, PayloadOf(sample.operation, sample.bytes));
  const Payload& packet = pipeline.packet;
  const double levels = std::log(sample.members) / std::log(sample.width);
  double up = levels, down = levels;
  if (!pipeline.streams || !bounds.down_is_slower) up += static_cast<double>(pipeline.more_up);
  if (!pipeline.streams || bounds.down_is_slower) down += static_cast<double>(pipeline.more_down);
  up *= sample.width;
  down *= sample.width;
  LinearForm form;
  if (!profile.forward_includes_serialisation) {
    form.known_us = levels * (SerialisationUs(packet.up_bytes, profile.port_gbps) +
                              SerialisationUs(packet.down_bytes, profile.port_gbps));
  }
  form.slope[kInitConstant] = 1;
  form.slope[kLinkConstant] = 2 * levels * (is_type_i ? profile.mean_route_links : 1);
  form.slope[node + kForward] = 2 * levels;
  form.slope[node + kForwardPerByte] =
      levels * (static_cast<double>(packet.up_bytes) + static_cast<double>(packet.down_bytes));
  if (bounds.up) {
    form.known_us += up * WireUs(profile, packet.up_bytes, profile.port_gbps);
  } else {
    form.slope[node + kMatch] = up;
    form.slope[node + kReducePerByte] = up * static_cast<double>(packet.reduced_bytes);
  }
  if (bounds.down) {
    form.known_us += down * WireUs(profile, packet.down_bytes, profile.port_gbps);
  } else {
    form.slope[node + kSend] = down;
  }
  return form;
}

}  // namespace coppice
