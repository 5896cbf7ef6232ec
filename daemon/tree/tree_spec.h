// What a request says of its tree, as a value that rpc fills, the planner reads and the store
// keeps, and one table of its fields. The check, the fingerprint and the record go through that
// table: a new field is a member and a line there, filled by rpc and read by whom it is for.
//
// Knows no fabric: a switch is named by its GUID.
#ifndef COPPICE_DAEMON_TREE_TREE_SPEC_H_
#define COPPICE_DAEMON_TREE_TREE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/base/fingerprint.h"
#include "daemon/base/strong_id.h"
#include "proto/text/limits.h"

namespace coppice {

// What a communicator asks its tree to do: the operation, its sizes, and the bytes that each moves.

enum class Operation : uint8_t { kBarrier, kBcast, kReduce, kAllreduce };

absl::string_view ToString(Operation operation);  // "barrier", "bcast", "reduce", "allreduce"
std::optional<Operation> ParseOperation(absl::string_view name);

// Bytes of one collective (Chen 2024, table 1): on every edge towards the root, on every edge away
// from it, and how many of those going up are reduced rather than only moved.
struct Payload {
  uint64_t up_bytes = 0;       // S' upwards
  uint64_t down_bytes = 0;     // S' downwards
  uint64_t reduced_bytes = 0;  // S*
};

// `bytes` is the size that the MPI call states. If `mpi_root_is_tree_root` is false, Bcast also
// sends its data up from the MPI root, unreduced, and Reduce forwards its result down to it.
Payload PayloadOf(Operation operation, uint64_t bytes, bool mpi_root_is_tree_root = true);

// One size of a mix; weights are relative.
struct SizeShare {
  uint64_t bytes = 0;
  double weight = 1;
  friend bool operator==(const SizeShare&, const SizeShare&) = default;
};

// What a communicator runs.
struct CollectiveMix {
  Operation operation = Operation::kAllreduce;
  std::vector<SizeShare> sizes;  // empty: 8 B
  friend bool operator==(const CollectiveMix&, const CollectiveMix&) = default;
};

// visit(payload, weight) for each size; the weights, equal where all are 0, are scaled to a sum
// of 1.
template <class Visit>
void ForEachPayload(const CollectiveMix& mix, Visit visit) {
  double total = 0;
  for (const SizeShare& share : mix.sizes) total += share.weight;
  for (const SizeShare& share : mix.sizes) {
    visit(PayloadOf(mix.operation, share.bytes),
          total > 0 ? share.weight / total : 1.0 / static_cast<double>(mix.sizes.size()));
  }
}

enum class TreeType : uint8_t { kTypeI = 1, kTypeII = 2 };
enum class TreeBuilder : uint8_t { kKary, kKnomial, kHierarchical, kMinimumCost, kPostal };

absl::string_view ToString(TreeType type);  // "I", "II"
// "kary", "knomial", "hierarchical", "minimum-cost", "postal".
absl::string_view ToString(TreeBuilder builder);

// What to give up for what: of the trees that none beats in time, entries and busiest link, and
// that are within the limits, the one with the least weighted sum (trade.h).
struct TradePolicy {
  double latency = 0, entries = 0, link_load = 0;  // weights
  std::optional<uint32_t> max_entries = std::nullopt;
  double max_busiest_link_us = 0;  // 0: no limit
  friend bool operator==(const TradePolicy&, const TradePolicy&) = default;
};

struct TreeSpec : CollectiveMix {
  std::optional<TreeType> type;        // nullopt: auto
  std::optional<TreeBuilder> builder;  // nullopt: auto; type I only
  std::optional<uint32_t> width;       // wanted k, type I
  std::optional<uint32_t> nic_degree;  // nullopt: the profile's
  std::optional<Guid> root_switch;     // wanted root, type II
  std::optional<TradePolicy> policy;   // nullopt: the faster type, type II by minimum cost
  bool carried = false;                // type II: over switches that speak, and chosen if measured
  // A forest (forest/forest.h) of at most so many trees, where that is sooner; nullopt: one tree.
  std::optional<uint32_t> max_trees;
  bool list_tradeoffs = false;  // of advice only: in no fingerprint, in no record
  friend bool operator==(const TreeSpec&, const TreeSpec&) = default;
};

inline constexpr uint32_t kMaxWidth = kDefaultJobRanks;
inline constexpr uint32_t kMaxTrees = 64;  // of a forest

// --- The table of fields ---

// How a field enters the fingerprint. Fingerprints are stored and compared with those of retries
// after an upgrade, so what is there stays, and what is new must say nothing where it is not set.
enum class Fingerprinted : uint8_t {
  kAlways,  // unset as 0: fields of the first release
  kIfSet,   // the policy, which came later
  kNamed,   // if it is set, after its name: every other field that came later
};

template <class Member>
struct TreeField {
  absl::string_view name;  // in a record, and in errors
  Member TreeSpec::*member;
  Fingerprinted fingerprinted;
  uint32_t least = 0, most = UINT32_MAX;  // of a number
};
// clang 14 does not find the members of an aggregate by itself.
template <class Member>
TreeField(const char*, Member TreeSpec::*, Fingerprinted) -> TreeField<Member>;
template <class Member>
TreeField(const char*, Member TreeSpec::*, Fingerprinted, uint32_t, uint32_t) -> TreeField<Member>;

// In the order of fingerprints and records; new ones come last. Beside these a spec has its mix,
// which has columns of its own.
inline constexpr std::tuple kTreeFields{
    TreeField{"type", &TreeSpec::type, Fingerprinted::kAlways},
    TreeField{"builder", &TreeSpec::builder, Fingerprinted::kAlways},
    TreeField{"width", &TreeSpec::width, Fingerprinted::kAlways, 2, kMaxWidth},
    TreeField{"nic_degree", &TreeSpec::nic_degree, Fingerprinted::kAlways, 1, kMaxWidth},
    TreeField{"root", &TreeSpec::root_switch, Fingerprinted::kAlways},
    TreeField{"policy", &TreeSpec::policy, Fingerprinted::kIfSet},
    TreeField{"carried", &TreeSpec::carried, Fingerprinted::kNamed},
    TreeField{"max_trees", &TreeSpec::max_trees, Fingerprinted::kNamed, 2, kMaxTrees}};

template <class Member>
struct PolicyField {
  absl::string_view name;
  Member TradePolicy::*member;
};
template <class Member>
PolicyField(const char*, Member TradePolicy::*) -> PolicyField<Member>;
inline constexpr std::tuple kPolicyFields{
    PolicyField{"latency", &TradePolicy::latency}, PolicyField{"entries", &TradePolicy::entries},
    PolicyField{"link_load", &TradePolicy::link_load},
    PolicyField{"max_entries", &TradePolicy::max_entries},
    PolicyField{"max_busiest_link_us", &TradePolicy::max_busiest_link_us}};

// visit(field) for each of them.
template <class... Fields, class Visit>
void ForEachField(const std::tuple<Fields...>& table, Visit visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, table);
}

// --- What goes through it; the records' text: db/json_lists.h ---

inline constexpr size_t kMaxSizes = 64;     // of a mix
inline constexpr double kMaxWeight = 1e12;  // leaves sums and products far from infinity

// INVALID_ARGUMENT names the field and its limit: too many sizes, bytes or weights out of range.
absl::Status CheckMix(const CollectiveMix& mix);
// INVALID_ARGUMENT names a weight that is negative or not finite, the limit that is, or says that
// all weights are 0.
absl::Status CheckPolicy(const TradePolicy& policy);
// The same, and a number beyond its bounds, a policy that is none (CheckPolicy), a builder that
// does not go with the type.
absl::Status CheckSpec(const TreeSpec& spec);

void AddTo(Fingerprint& fingerprint, const CollectiveMix& mix);
void AddTo(Fingerprint& fingerprint, const TreeSpec& spec);  // its mix first

// --- What a record keeps beside what was asked for ---

// Why one candidate was not taken.
struct Alternative {
  TreeType type = TreeType::kTypeI;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  std::optional<double> total_us;  // nullopt: not built; why_not says why, or its least time
  std::string why_not;
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_SPEC_H_
