#include "agents/mpi/tree/ways.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_memory.h"

namespace coppice::mpi {
namespace {

constexpr int BitsOf(uint64_t bytes) { return static_cast<int>(std::bit_width(bytes)); }

// What is exchanged needs memory for a second one: of up to 8 MiB.
constexpr int kMaxExchangedBits = BitsOf(TreeBuffers::kMax - 1);

bool IsThere(TreeCount what, int bits, Way way, const CommunicatorTree& tree) {
  if (way == Way::kForest) return what == kCountAllreduce && !tree.forest.empty();
  if (way != Way::kExchange) return true;
  return what == kCountBarrier || (what == kCountAllreduce && bits <= kMaxExchangedBits);
}

// Whether it may be the soonest one. A chain has as many stages as ranks, which pays only for
// messages of as many segments.
bool IsWorthATry(TreeCount what, int bits, Way way, const CommunicatorTree& tree) {
  if (way == Way::kExchange || way == Way::kForest) return IsThere(what, bits, way, tree);
  if (what == kCountBarrier) return false;
  const auto ranks = static_cast<uint64_t>(tree.tags.members.size());
  if (way == Way::kChain) return bits >= BitsOf(kMiddle * ranks);
  return what == kCountBcast && bits >= BitsOf(kMiddle) && bits < BitsOf(kLong);
}

std::vector<Way> WaysOf(TreeCount what, int bits, bool has_others, const CommunicatorTree& tree) {
  std::vector<Way> ways = {Way::kTree};
  for (const Way way : {Way::kChain, Way::kBinomial, Way::kExchange, Way::kForest}) {
    if (has_others && IsWorthATry(what, bits, way, tree)) ways.push_back(way);
  }
  ways.push_back(Way::kNative);
  return ways;
}

// What earlier runs found the soonest one of these.
std::optional<Way> KnownOf(TreeCount what, int bits, bool has_others, const std::vector<Way>& ways,
                           const CommunicatorTree& tree) {
  if (has_others != (tree.carried == nullptr)) return std::nullopt;
  for (size_t i = 0; i < tree.known_count; ++i) {
    const KnownTimes& known = tree.known[i];
    if (known.operation == OperationOf(what) && known.bits == bits) {
      return Trial::SoonestOf(ways, known);
    }
  }
  return std::nullopt;
}

constexpr const char* NameOf(TreeCount what) {
#define COPPICE_NAME(NAME, ...) #NAME,
  constexpr const char* kNames[] = {COPPICE_TREE_COLLECTIVES(COPPICE_NAME)};
#undef COPPICE_NAME
  return kNames[what - kCountBarrier];
}

// "Allreduce of 64 bytes on 8 ranks goes by "
std::string GoesBy(MPI_Comm comm, TreeCount what, uint64_t bytes) {
  return std::string(NameOf(what)) + " of " + std::to_string(bytes) + " bytes on " +
         std::to_string(SizeOf(comm)) + " ranks goes by ";
}

bool SaysWhy(MPI_Comm comm) { return RankIn(comm) == 0 && Session::Get().settings().verbose; }

Trial& TrialOf(MPI_Comm comm, TreeCount what, uint64_t bytes, bool has_others,
               CommunicatorTree* tree) {
  const int bits = BitsOf(bytes);
  const auto which = std::make_tuple(what, bits, has_others);
  const auto found = tree->trials.find(which);
  if (found != tree->trials.end()) return found->second;
  std::vector<Way> ways = WaysOf(what, bits, has_others, *tree);
  const std::optional<Way> known = KnownOf(what, bits, has_others, ways, *tree);
  if (known && SaysWhy(comm)) {
    Session::Get().Say(GoesBy(comm, what, bytes) + kWayNames[static_cast<size_t>(*known)] +
                       ", as in earlier runs");
  }
  return tree->trials.try_emplace(which, std::move(ways), known).first->second;
}

void SayWhy(MPI_Comm comm, TreeCount what, uint64_t bytes, const Trial& trial) {
  if (!SaysWhy(comm)) return;
  const auto name = [](Way way) { return std::string(kWayNames[static_cast<size_t>(way)]); };
  std::string times;
  for (const Way way : trial.ways()) {
    const double us = trial.UsualTime(way).count() * 1e6;
    times +=
        (times.empty() ? "" : ", ") + name(way) + " " + std::to_string(std::lround(us)) + " us";
  }
  Session::Get().Say(GoesBy(comm, what, bytes) + name(trial.chosen()) + ": " + times);
}

Way FixedWay(TreeCount what, int bits, const CommunicatorTree& tree) {
  const auto way = static_cast<Way>(static_cast<int>(Session::Get().settings().trees_way) + 1);
  return IsThere(what, bits, way, tree) ? way : Way::kTree;
}

}  // namespace

Way WayOf(MPI_Comm comm, TreeCount what, uint64_t bytes, bool in_rank_order, CommunicatorTree* tree,
          MeasuredCall* measured) {
  const int bits = BitsOf(bytes);
  const bool has_others = tree->carried == nullptr && !in_rank_order;
  if (Session::Get().settings().IsWayFixed()) {
    return has_others ? FixedWay(what, bits, *tree) : Way::kTree;
  }
  Trial& trial = TrialOf(comm, what, bytes, has_others, tree);
  if (trial.IsDue()) {
    Trial::Measured longest = trial.measured();
    PMPI_Allreduce(MPI_IN_PLACE, &longest, Trial::kNumbers, MPI_DOUBLE, MPI_MAX, comm);
    trial.Decide(longest);
    if (!trial.IsMeasured()) SayWhy(comm, what, bytes, trial);
  }
  const Way way = trial.Next();
  if (trial.IsMeasured()) {
    // While calls go natively, nobody hears what becomes of a tree over the ranks.
    if (trial.TriesAgain()) tree->is_change_told = true;
    tree->started.Drain();  // what others have started is no part of what it takes
    if (trial.WantsBarrier()) {
      const auto before = std::chrono::steady_clock::now();
      PMPI_Barrier(comm);
      trial.Waited(std::chrono::steady_clock::now() - before);
    }
    *measured = MeasuredCall(&trial);
  }
  return way;
}

Way SettledWayOf(MPI_Comm comm, TreeCount what, uint64_t bytes, bool in_rank_order,
                 CommunicatorTree* tree) {
  const bool has_others = !in_rank_order;
  if (Session::Get().settings().IsWayFixed()) {
    return has_others ? FixedWay(what, BitsOf(bytes), *tree) : Way::kTree;
  }
  return TrialOf(comm, what, bytes, has_others, tree).chosen();
}

}  // namespace coppice::mpi
