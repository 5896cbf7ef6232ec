#include "daemon/tree/batch/offers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/tree/root_choice.h"

namespace coppice {
namespace {

// Trees that may fail before a distance is given up, times the roots that are compared.
constexpr uint32_t kMaxFailures = 4;
constexpr uint32_t kTreesBetweenReports = 256;

// Fewer entries, then fewer packets on the busiest link of the tree.
bool IsLighter(const BatchTree& a, const BatchTree& b) {
  const auto key = [](const BatchTree& tree) {
    return std::make_pair(tree.serving.size(),
                          *std::max_element(tree.packets.begin(), tree.packets.end()));
  };
  return key(a) < key(b);
}

}  // namespace

bool BatchOffer::BeatenBy(const BatchOffer& other) const {
  const auto key = [](const BatchOffer& offer) {
    return std::make_tuple(offer.tree.serving.size(), offer.most_packets, offer.added_squares,
                           offer.tree.extra_hops);
  };
  return key(other) < key(*this);
}

BatchOffers::BatchOffers(const Snapshot& snapshot, const BatchState& state,
                         const BatchOptions& options)
    : snapshot_(snapshot),
      state_(state),
      options_(options),
      builder_(snapshot, state.free_entries(), state.loads()) {}

void BatchOffers::SortByPromise(std::vector<Root>& roots, size_t wanted) const {
  const absl::Span<const uint32_t> degrees = state_.degrees();
  roots.erase(std::remove_if(roots.begin(), roots.end(),
                             [&](const Root& r) { return degrees[r.index.value()] == 0; }),
              roots.end());
  const auto key = [&](const Root& r) {
    return std::make_tuple(r.hops, r.lacks_servers, state_.loads().through(r.index),
                           -state_.free_entries()[r.index.value()], r.index);
  };
  const auto middle = roots.begin() + static_cast<int64_t>(std::min(wanted, roots.size()));
  std::partial_sort(roots.begin(), middle, roots.end(),
                    [&](const Root& a, const Root& b) { return key(a) < key(b); });
}

// Packets come together at neighbours that are nearer to the members than the root is.
bool BatchOffers::LacksServers(const BatchShape& shape, SwitchIndex root,
                               absl::Span<const uint8_t> farthest) const {
  uint32_t wanted = shape.fewest - 1;
  for (const Channel& channel : snapshot_.fabric->switch_channels(root)) {
    if (wanted == 0) return false;
    const uint32_t next = channel.to.value();
    if (farthest[next] < farthest[root.value()] && state_.degrees()[next] > 0) --wanted;
  }
  return wanted > 0;
}

BatchOffer BatchOffers::Price(BatchTree tree) const {
  const LinkLoads& loads = state_.loads();
  BatchOffer offer;
  offer.most_packets = loads.most();
  for (size_t v = 1; v < tree.packets.size(); ++v) {
    const uint64_t packets = tree.packets[v];
    if (packets == 0) continue;
    const uint32_t load = loads.on(tree.physical.up[v]);
    offer.most_packets = std::max(offer.most_packets, load + tree.packets[v]);
    offer.added_squares += packets * (2 * uint64_t{load} + packets);
  }
  offer.tree = std::move(tree);
  return offer;
}

void BatchOffers::Count() {
  if (++built_ % kTreesBetweenReports == 0 && watcher_) watcher_(built_);
}

std::optional<BatchTree> BatchOffers::TreeTo(const BatchShape& shape, SwitchIndex root,
                                             uint32_t hops, absl::Span<const uint32_t> degrees) {
  std::optional<BatchTree> best;
  const bool alone = shape.ranks <= degrees[root.value()];
  const auto build = [&](Steering steering, absl::Span<const uint32_t> servers) {
    BatchTree tree;
    Count();
    if (!builder_.BuildPhysical(shape, root, steering, servers, tree)) return false;
    tree.extra_hops = hops - shape.nearest_hops;
    const bool works = builder_.ChooseServers(servers, tree);
    if (works && (!best || IsLighter(tree, *best))) best = std::move(tree);
    return builder_.had_choice();
  };
  if (!build(alone ? Steering::kSpread : Steering::kGather, degrees) || alone) return best;
  build(Steering::kFill, degrees);
  build(Steering::kVia, degrees);
  if (!best) return best;
  servers_.assign(degrees.size(), 0);
  for (const uint32_t v : best->serving) {
    const uint32_t s = best->physical.switches[v].value();
    servers_[s] = degrees[s];
  }
  build(Steering::kRefine, servers_);
  return best;
}

std::optional<uint32_t> BatchOffers::LeastAlone(const BatchShape& shape, uint32_t most_roots) {
  const TwinClasses& twins = snapshot_.routes->distances().classes();
  const absl::Span<const uint32_t> limits = state_.limits();
  std::set<std::pair<uint32_t, uint32_t>> seen;  // class, limit
  std::optional<uint32_t> least;
  for (const SwitchIndex root : shape.nearest) {
    if (limits[root.value()] == 0 || seen.size() >= most_roots) continue;
    if (!seen.emplace(twins.class_of(root), limits[root.value()]).second) continue;
    const std::optional<BatchTree> tree = TreeTo(shape, root, shape.nearest_hops, limits);
    if (!tree) continue;
    const auto entries = static_cast<uint32_t>(tree->serving.size());
    least = std::min(least.value_or(entries), entries);
    if (*least == shape.fewest) break;
  }
  return least;
}

// True if there is such a tree; keeps it if it is the best.
bool BatchOffers::Try(const BatchShape& shape, Root root, std::optional<BatchOffer>& best) {
  std::optional<BatchTree> tree = TreeTo(shape, root.index, root.hops, state_.degrees());
  if (!tree) return false;
  if (best && tree->serving.size() > best->tree.serving.size()) return true;
  BatchOffer offer = Price(*std::move(tree));
  if (!best || best->BeatenBy(offer)) best = std::move(offer);
  return true;
}

// Up to `most_roots` that work, and not too many that do not.
void BatchOffers::TryAll(const BatchShape& shape, std::vector<Root>& roots, uint32_t most_roots,
                         std::optional<BatchOffer>& best) {
  uint32_t worked = 0, failed = 0;
  for (const Root& root : roots) {
    (Try(shape, root, best) ? worked : failed) += 1;
    if (worked >= most_roots || failed >= kMaxFailures * most_roots) return;
  }
}

std::optional<BatchOffer> BatchOffers::Nearest(const BatchShape& shape, uint32_t most_roots) {
  roots_.clear();
  for (const SwitchIndex root : shape.nearest) roots_.push_back({root, shape.nearest_hops, false});
  SortByPromise(roots_, size_t{kMaxFailures} * most_roots);
  std::optional<BatchOffer> best;
  TryAll(shape, roots_, most_roots, best);
  return best;
}

std::optional<BatchOffer> BatchOffers::Farther(const BatchShape& shape, uint32_t most_roots) {
  const std::vector<uint8_t> farthest = FarthestHops(snapshot_, shape.leaves);
  std::map<uint32_t, std::vector<Root>> by_hops;
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    const uint32_t hops = farthest[s];
    if (hops == SwitchDistances::kUnreachable || hops <= shape.nearest_hops) continue;
    if (state_.degrees()[s] == 0) continue;
    by_hops[hops].push_back({SwitchIndex(s), hops, LacksServers(shape, SwitchIndex(s), farthest)});
  }
  std::optional<BatchOffer> best;
  for (auto& [hops, roots] : by_hops) {
    SortByPromise(roots, size_t{kMaxFailures} * most_roots);
    TryAll(shape, roots, most_roots, best);
    if (!best) continue;
    if (options_.reach != RootReach::kAny || best->tree.serving.size() == shape.fewest) break;
  }
  return best;
}

std::optional<BatchOffer> BatchOffers::Any(const BatchShape& shape, uint32_t most_roots) {
  std::optional<BatchOffer> best = Nearest(shape, most_roots);
  if (options_.reach == RootReach::kNearest) return best;
  if (best && options_.reach == RootReach::kToAdmit) return best;
  if (best && best->tree.serving.size() == shape.fewest) return best;
  std::optional<BatchOffer> farther = Farther(shape, most_roots);
  if (!best || (farther && best->BeatenBy(*farther))) return farther;
  return best;
}

}  // namespace coppice
