#include "daemon/manager/promised_load.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/btree_map.h"
#include "daemon/manager/tree_record.h"
#include "daemon/tree/even_routes.h"

namespace coppice {
namespace {

constexpr double kOwnShare = 0.1;  // of a job's own promises, to itself
// Less is not worth a copy: w(0.01) of 4 KiB at 200 Gbit/s is 0.8 ns.
constexpr double kSlightShare = 0.01;

// Takes out the edges that have lost an end: the node becomes a root.
void DropLostEdges(AggregationTree& tree) {
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    int32_t& parent = tree.parents[node];
    if (parent == AggregationTree::kNoParent) continue;
    if (tree.vertices[node] == kGoneVertex || tree.vertices[parent] == kGoneVertex) {
      parent = AggregationTree::kNoParent;
    }
  }
}

// What all trees of a forest put on one channel.
struct ForestUse {
  double bytes = 0;
  uint32_t messages = 0;
};

MessageBytes BytesOf(const CostProfile& profile, const TreeRecord& record) {
  return BytesOfMessages(profile, record.spec);
}

// Each tree with its share of the bytes. `placed` is the first of them.
TreePromise PromiseOfForest(const Snapshot& snapshot, const CostProfile& profile, double duty,
                            AggregationTree placed, const TreeRecord& record,
                            LinkUseCounter& counter) {
  const MessageBytes bytes = BytesOf(profile, record);
  absl::btree_map<ChannelIndex, ForestUse> all;
  std::vector<ChannelUse> uses;
  for (const ForestTreeRecord& one : record.forest) {
    AggregationTree tree = placed;
    tree.parents = one.parents;
    DropLostEdges(tree);
    counter.Begin(snapshot);
    counter.AddTree(tree, nullptr).IgnoreError();  // what is routed
    counter.Take(uses);
    for (const ChannelUse& use : uses) {
      ForestUse& sum = all[use.channel];
      sum.bytes += one.share * (use.up * bytes.up + use.down * bytes.down);
      sum.messages += use.up + use.down;
    }
  }
  TreePromise promise{.fabric_version = snapshot.fabric->version(), .channels = {}, .busiest = {}};
  for (const auto& [channel, sum] : all) {
    const ChannelUse once = {channel, 1, 0};
    const MessageBytes of_all = {.up = sum.bytes, .down = 0};
    for (const ChannelPromise& part :
         PromiseOf(snapshot, profile, duty, of_all, record.total_us, {&once, 1})) {
      promise.channels.push_back(part);
    }
    BusiestLink link = FindBusiestLink(snapshot, profile, of_all, {&once, 1});
    link.packets = sum.messages;
    if (link.us > promise.busiest.us) promise.busiest = link;
  }
  return promise;
}

}  // namespace

std::vector<ChannelPromise> PromiseOf(const Snapshot& snapshot, const CostProfile& profile,
                                      double duty, const MessageBytes& bytes, double total_us,
                                      absl::Span<const ChannelUse> uses) {
  std::vector<ChannelPromise> promise;
  if (duty <= 0 || total_us <= 0) return promise;
  promise.reserve(uses.size());
  for (const ChannelUse& use : uses) {
    const double gbps = KnownCapacity(snapshot, profile, use.channel);
    if (gbps <= 0) continue;
    const double sent_gbps = (use.up * bytes.up + use.down * bytes.down) * 8e-3 / total_us;
    const double parts = std::ceil(duty * sent_gbps / gbps * kWholeChannel);
    if (parts < 1) continue;
    const double most = std::numeric_limits<uint32_t>::max();
    promise.push_back({use.channel, static_cast<uint32_t>(std::min(parts, most))});
  }
  return promise;
}

void PromisedLoad::Rebase(const Snapshot& snapshot) {
  measured_ = current_ = snapshot.load;
  const size_t channels = snapshot.fabric->channel_count();
  parts_.assign(channels, 0);
  accounts_.clear();
  promised_ = 0;
  stale_.clear();
  is_stale_.assign(channels / LinkLoad::kPageChannels + 1, false);
  promised_in_.assign(is_stale_.size(), 0);
}

void PromisedLoad::SetMeasured(std::shared_ptr<const LinkLoad> measured) {
  measured_ = current_ = std::move(measured);
  // Pages without promises are those of the measured load; only the others are made again.
  for (uint32_t page = 0; page < promised_in_.size(); ++page) {
    if (promised_in_[page] != 0) MarkStale(page);
  }
}

void PromisedLoad::Move(ChannelIndex channel, uint64_t difference) {
  uint64_t& parts = parts_[channel.value()];
  const uint32_t page = channel.value() / LinkLoad::kPageChannels;
  const int before = parts != 0 ? 1 : 0;
  parts += difference;
  const int after = parts != 0 ? 1 : 0;
  promised_ += static_cast<size_t>(after - before);
  promised_in_[page] += static_cast<uint32_t>(after - before);
  MarkStale(page);
}

// The first share from `at` on whose channel is not below `channel`. Looks ahead in steps that
// double, as the next channel of a promise is mostly near. O(log shares between them).
PromisedLoad::Shares::iterator PromisedLoad::FindShare(Shares::iterator at, Shares::iterator end,
                                                       ChannelIndex channel) {
  std::ptrdiff_t step = 1;
  auto last = at;  // all before `at` are below; up to `last` is looked at
  while (last != end && last->channel < channel) {
    at = std::next(last);
    last = end - at > step ? at + step : end;
    step *= 2;
  }
  return std::lower_bound(at, last, channel,
                          [](const Share& share, ChannelIndex c) { return share.channel < c; });
}

void PromisedLoad::MarkStale(uint32_t page) {
  if (is_stale_[page]) return;
  is_stale_[page] = true;
  stale_.push_back(page);
}

// So that the account has a share of every channel of the promise.
void PromisedLoad::MakeRoom(Account& account, absl::Span<const ChannelPromise> promise) {
  std::vector<Share> all;
  all.reserve(account.shares.size() + promise.size());
  auto at = account.shares.begin();
  for (const ChannelPromise& p : promise) {
    const auto from = std::exchange(at, FindShare(at, account.shares.end(), p.channel));
    all.insert(all.end(), from, at);
    if (at == account.shares.end() || at->channel != p.channel) all.push_back({p.channel});
  }
  all.insert(all.end(), at, account.shares.end());
  account.shares = std::move(all);
}

// `promise` is by channel. `change` makes another number of a share's parts and a promise's.
template <class Change>
void PromisedLoad::Book(JobId job, absl::Span<const ChannelPromise> promise, double duty,
                        Change change) {
  Account& account = accounts_[job];
  const auto most = static_cast<uint64_t>(std::ceil(duty * kWholeChannel));
  auto at = account.shares.begin();
  for (const ChannelPromise& p : promise) {
    at = FindShare(at, account.shares.end(), p.channel);
    if (at == account.shares.end() || at->channel != p.channel) {  // once, if at all
      MakeRoom(account, promise);
      at = FindShare(account.shares.begin(), account.shares.end(), p.channel);
    }
    at->parts = change(at->parts, uint64_t{p.parts});
    const uint64_t counted = std::min(at->parts, most);
    if (counted != at->counted) Move(p.channel, counted - at->counted);
    at->counted = counted;
    account.greatest = std::max(account.greatest, counted);
  }
}

void PromisedLoad::Add(JobId job, absl::Span<const ChannelPromise> promise, double duty) {
  Book(job, promise, duty, std::plus<>());
  ++accounts_[job].trees;
}

void PromisedLoad::Remove(JobId job, absl::Span<const ChannelPromise> promise, double duty) {
  Book(job, promise, duty, std::minus<>());
  if (--accounts_[job].trees == 0) accounts_.erase(job);
}

std::shared_ptr<const LinkLoad> PromisedLoad::Current() {
  if (stale_.empty()) return current_;
  const auto fill = [this](size_t first, absl::Span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double promised = static_cast<double>(parts_[first + i]) / kWholeChannel;
      const double measured = measured_->empty() ? 0 : (*measured_)[first + i];
      values[i] = static_cast<float>(std::min(measured + promised, 1.0));
    }
  };
  current_ = promised_ == 0
                 ? measured_
                 : std::make_shared<const LinkLoad>(current_->With(parts_.size(), stale_, fill));
  // From here on current_ may be measured_ itself, which is right in every page.
  for (const uint32_t page : stale_) is_stale_[page] = false;
  stale_.clear();
  return current_;
}

std::shared_ptr<const LinkLoad> PromisedLoad::CurrentFor(JobId job) {
  std::shared_ptr<const LinkLoad> all = Current();
  const auto found = accounts_.find(job);
  if (found == accounts_.end() ||
      static_cast<double>(found->second.greatest) < kSlightShare * kWholeChannel) {
    return all;
  }
  const std::vector<Share>& shares = found->second.shares;
  std::vector<uint32_t> pages;
  for (const Share& share : shares) {
    const uint32_t page = share.channel.value() / LinkLoad::kPageChannels;
    if (share.counted != 0 && (pages.empty() || pages.back() != page)) pages.push_back(page);
  }
  auto at = shares.begin();
  const auto fill = [&](size_t first, absl::Span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      double promised = static_cast<double>(parts_[first + i]);
      while (at != shares.end() && at->channel.value() < first + i) ++at;
      if (at != shares.end() && at->channel.value() == first + i) {
        promised -= (1 - kOwnShare) * static_cast<double>(at->counted);
      }
      const double measured = measured_->empty() ? 0 : (*measured_)[first + i];
      values[i] = static_cast<float>(std::min(measured + promised / kWholeChannel, 1.0));
    }
  };
  return std::make_shared<const LinkLoad>(all->With(parts_.size(), pages, fill));
}

TreePromise PromiseOfPlan(const Snapshot& snapshot, const CostProfile& profile, double duty,
                          const TreeRecord& record, absl::Span<const ChannelUse> uses) {
  const MessageBytes bytes = BytesOf(profile, record);
  return {snapshot.fabric->version(),
          PromiseOf(snapshot, profile, duty, bytes, record.total_us, uses),
          FindBusiestLink(snapshot, profile, bytes, uses)};
}

TreePromise PromiseOfRecord(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                            const CostProfile& profile, double duty, const JobRecord& job,
                            const TreeRecord& record, LinkUseCounter& counter) {
  const Fabric& fabric = *snapshot.fabric;
  AggregationTree tree = PlaceTree(fabric, job, record);
  if (!record.forest.empty()) {
    return PromiseOfForest(snapshot, profile, duty, std::move(tree), record, counter);
  }
  DropLostEdges(tree);
  const bool has_physical = tree.type == TreeType::kTypeII && !record.physical.empty() &&
                            snapshot.routes->kind() == RouteKind::kShortestPath;
  const PhysicalTree physical =
      has_physical ? PlacePhysical(fabric, link_ids, record) : PhysicalTree();
  std::vector<ChannelUse> uses;
  counter.Begin(snapshot);
  counter.AddTree(tree, has_physical ? &physical : nullptr).IgnoreError();  // what is routed
  counter.Take(uses);
  return PromiseOfPlan(snapshot, profile, duty, record, uses);
}

}  // namespace coppice
