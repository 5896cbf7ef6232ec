#include "daemon/manager/tree_request.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/batch_request.h"
#include "daemon/manager/fingerprint.h"
#include "daemon/tree/trade_front.h"

namespace coppice {
namespace {

absl::Status CheckSizes(const std::vector<SizeShare>& sizes) {
  if (sizes.size() > kMaxSizes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sizes: ", sizes.size(), " are given, the limit is ", kMaxSizes));
  }
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SizeShare& share = sizes[i];
    if (share.bytes > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes[", i, "].bytes: ", share.bytes, " is over the limit of ", kMaxBytes));
    }
    if (!(share.weight >= 0 && share.weight <= kMaxWeight)) {  // also catches NaN
      return absl::InvalidArgumentError(absl::StrCat("sizes[", i, "].weight: ", share.weight,
                                                     " must be between 0 and ", kMaxWeight));
    }
    sum += share.weight;
  }
  // The smallest weights that still divide well: a mean over less means nothing.
  if (!sizes.empty() && sum < 1 / kMaxWeight) {
    return absl::InvalidArgumentError("sizes: all weights are 0; give at least one a weight");
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const CreateTreeArgs& args) {
  if (args.width && (*args.width < 2 || *args.width > kMaxWidth)) {
    return absl::InvalidArgumentError(
        absl::StrCat("width: ", *args.width, " must be between 2 and ", kMaxWidth));
  }
  if (args.nic_degree && (*args.nic_degree < 1 || *args.nic_degree > kMaxWidth)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nic_degree: ", *args.nic_degree, " must be between 1 and ", kMaxWidth));
  }
  if (args.builder == TreeBuilder::kMinimumCost) {
    return absl::InvalidArgumentError(
        "builder: minimum-cost cannot be asked for; ask for type II instead");
  }
  if (args.type == TreeType::kTypeII && args.builder) {
    return absl::InvalidArgumentError(absl::StrCat("builder: ", ToString(*args.builder),
                                                   " builds type I, but type II is asked for"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", text.size(), " bytes are over the limit of ", limit));
}

absl::Status CheckTreeRequest(const CreateTreeArgs& args) {
  RETURN_IF_ERROR(CheckLength("request_id", args.request_id, kMaxRequestIdBytes));
  if (ParseBatchTreeName(args.request_id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "request_id: ", args.request_id,
        " ends in # and a number, as only the trees of a batch are named; take a name that "
        "ends otherwise"));
  }
  RETURN_IF_ERROR(CheckSizes(args.sizes));
  if (args.policy) RETURN_IF_ERROR(CheckPolicy(*args.policy));
  return CheckShape(args);
}

uint64_t FingerprintOf(const CreateTreeArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add(uint64_t{args.ranks.size()});
  for (size_t i = 0; i + 1 < args.ranks.size(); i += 2) {
    fingerprint.Add(uint64_t{args.ranks[i]} << 32 | args.ranks[i + 1]);
  }
  if (args.ranks.size() % 2 == 1) fingerprint.Add(uint64_t{args.ranks.back()});
  fingerprint.Add(static_cast<uint64_t>(args.operation)).Add(uint64_t{args.sizes.size()});
  for (const SizeShare& share : args.sizes) fingerprint.Add(share.bytes).Add(share.weight);
  // Unset is 0; set is never 0.
  fingerprint.Add(args.type ? static_cast<uint64_t>(*args.type) + 1 : 0)
      .Add(args.builder ? static_cast<uint64_t>(*args.builder) + 1 : 0)
      .Add(args.width ? uint64_t{*args.width} + 1 : 0)
      .Add(args.nic_degree ? uint64_t{*args.nic_degree} + 1 : 0)
      .Add(uint64_t{args.root_switch.has_value()})
      .Add(args.root_switch ? args.root_switch->value() : 0);
  if (args.policy) {  // nothing without one, as fingerprints of earlier daemons
    const TradePolicy& policy = *args.policy;
    fingerprint.Add(policy.latency).Add(policy.entries).Add(policy.link_load);
    fingerprint.Add(policy.max_entries ? uint64_t{*policy.max_entries} + 1 : 0)
        .Add(policy.max_busiest_link_us);
  }
  return fingerprint.value();
}

absl::Status CheckRanks(const std::vector<uint32_t>& ranks, uint32_t job_ranks,
                        std::vector<uint64_t>& marks) {
  marks.resize((size_t{job_ranks} + 63) / 64);
  absl::Status status;
  size_t marked = 0;
  for (; marked < ranks.size(); ++marked) {
    const uint32_t rank = ranks[marked];
    if (rank >= job_ranks) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "ranks: rank ", rank, " is not in the job, which has ranks 0 to ", job_ranks - 1));
      break;
    }
    uint64_t& word = marks[rank / 64];
    const uint64_t bit = uint64_t{1} << (rank % 64);
    if ((word & bit) != 0) {
      status = absl::InvalidArgumentError(absl::StrCat("ranks: rank ", rank, " is named twice"));
      break;
    }
    word |= bit;
  }
  for (size_t i = 0; i < marked; ++i) marks[ranks[i] / 64] = 0;
  return status;
}

}  // namespace coppice
