#include "daemon/tree/tree_spec.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/limits.h"
#include "proto/text/names.h"

namespace coppice {
absl::string_view ToString(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

std::optional<Operation> ParseOperation(absl::string_view name) {
  return EnumNamed<Operation>(kOperationNames, name);
}

Payload PayloadOf(Operation operation, uint64_t bytes, bool mpi_root_is_tree_root) {
  const uint64_t forwarded = mpi_root_is_tree_root ? 0 : bytes;
  switch (operation) {
    case Operation::kBarrier:
      return {};
    case Operation::kBcast:
      return {.up_bytes = forwarded, .down_bytes = bytes, .reduced_bytes = 0};
    case Operation::kReduce:
      return {.up_bytes = bytes, .down_bytes = forwarded, .reduced_bytes = bytes};
    case Operation::kAllreduce:
      return {.up_bytes = bytes, .down_bytes = bytes, .reduced_bytes = bytes};
  }
  return {};
}

absl::string_view ToString(TreeType type) { return type == TreeType::kTypeI ? "I" : "II"; }

absl::string_view ToString(TreeBuilder builder) {
  return kBuilderNames[static_cast<size_t>(builder)];
}

absl::Status CheckMix(const CollectiveMix& mix) {
  const std::vector<SizeShare>& sizes = mix.sizes;
  if (sizes.size() > kMaxSizes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sizes: ", sizes.size(), " are given, the limit is ", kMaxSizes));
  }
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const SizeShare& share = sizes[i];
    if (share.bytes > kMaxByteSize) {
      return absl::InvalidArgumentError(absl::StrCat("sizes[", i, "].bytes: ", share.bytes,
                                                     " is over the limit of ", kMaxByteSize));
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

absl::Status CheckPolicy(const TradePolicy& policy) {
  for (const auto& [field, weight] :
       {std::pair("latency", policy.latency), std::pair("entries", policy.entries),
        std::pair("link load", policy.link_load),
        std::pair("most us of the busiest link", policy.max_busiest_link_us)}) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("policy: ", field, " ", weight, " must be 0 or more, and finite"));
  }
  if (policy.latency > 0 || policy.entries > 0 || policy.link_load > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "policy: the weights latency, entries and link load are all 0; give one above 0");
}

namespace {

template <class Field, class Value>
absl::Status CheckField(const Field&, const std::optional<Value>&) {
  return absl::OkStatus();
}

template <class Field>
absl::Status CheckField(const Field&, bool) {
  return absl::OkStatus();
}

template <class Field>
absl::Status CheckField(const Field& field, const std::optional<uint32_t>& value) {
  if (!value || (*value >= field.least && *value <= field.most)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field.name, ": ", *value, " must be between ",
                                                 field.least, " and ", field.most));
}

template <class Field>
absl::Status CheckField(const Field&, const std::optional<TradePolicy>& policy) {
  return policy ? CheckPolicy(*policy) : absl::OkStatus();
}

}  // namespace

absl::Status CheckSpec(const TreeSpec& spec) {
  RETURN_IF_ERROR(CheckMix(spec));
  absl::Status status;
  ForEachField(kTreeFields,
               [&](const auto& field) { status.Update(CheckField(field, spec.*field.member)); });
  RETURN_IF_ERROR(status);
  if (spec.builder == TreeBuilder::kMinimumCost) {
    return absl::InvalidArgumentError(
        "builder: minimum-cost cannot be asked for; ask for type II instead");
  }
  if (spec.type == TreeType::kTypeII && spec.builder) {
    return absl::InvalidArgumentError(absl::StrCat("builder: ", ToString(*spec.builder),
                                                   " builds type I, but type II is asked for"));
  }
  return absl::OkStatus();
}

namespace {

// One word: unset is 0, set never is. Enumerators and numbers.
template <class Value>
void AddValue(const std::optional<Value>& value, Fingerprint& fingerprint) {
  fingerprint.Add(value ? static_cast<uint64_t>(*value) + 1 : 0);
}

void AddValue(bool value, Fingerprint& fingerprint) { fingerprint.Add(uint64_t{value}); }

void AddValue(double value, Fingerprint& fingerprint) { fingerprint.Add(value); }

void AddValue(const std::optional<Guid>& guid, Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{guid.has_value()}).Add(guid ? guid->value() : 0);
}

void AddValue(const std::optional<TradePolicy>& policy, Fingerprint& fingerprint) {
  ForEachField(kPolicyFields,
               [&](const auto& field) { AddValue((*policy).*field.member, fingerprint); });
}

}  // namespace

void AddTo(Fingerprint& fingerprint, const CollectiveMix& mix) {
  fingerprint.Add(static_cast<uint64_t>(mix.operation)).Add(uint64_t{mix.sizes.size()});
  for (const SizeShare& share : mix.sizes) fingerprint.Add(share.bytes).Add(share.weight);
}

void AddTo(Fingerprint& fingerprint, const TreeSpec& spec) {
  AddTo(fingerprint, static_cast<const CollectiveMix&>(spec));
  ForEachField(kTreeFields, [&](const auto& field) {
    const auto& value = spec.*field.member;
    if (field.fingerprinted != Fingerprinted::kAlways && !value) return;
    if (field.fingerprinted == Fingerprinted::kNamed) fingerprint.Add(field.name);
    AddValue(value, fingerprint);
  });
}

}  // namespace coppice
