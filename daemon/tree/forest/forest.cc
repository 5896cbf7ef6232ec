#include "daemon/tree/forest/forest.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/forest/routes.h"
#include "daemon/tree/forest/shapes.h"
#include "daemon/tree/forest/walk.h"
#include "daemon/tree/planner.h"

namespace coppice {
namespace {

// A forest never takes less than its busiest resource does, and mostly this much of its first
// packet's way more: candidates that would then be slower than the best one are not followed.
constexpr double kFirstPacketShare = 0.25;

// How many are followed again, and at most so much slower than the best at first.
constexpr size_t kFollowedAgain = 16;
constexpr double kMaybeBetter = 1.25;

struct Weighed {
  ForestShape shape;
  std::vector<ShapedTree> trees;
  ForestEdges edges;
  double busiest_us = 0, first_us = 0;
  std::optional<double> total_us;

  double likely_us() const { return busiest_us + first_us; }
  double least_us() const { return busiest_us + kFirstPacketShare * first_us; }
};

}  // namespace

absl::Status CheckForestRequest(const TreeRequest& request, uint32_t max_trees) {
  const auto invalid = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (max_trees == 0 || max_trees > kMaxTrees) {
    return invalid(
        absl::StrCat("a forest of at most ", max_trees, " trees; ask for 1 to ", kMaxTrees));
  }
  if (request.operation != Operation::kAllreduce) {
    return invalid(absl::StrCat("forests are planned for allreduce, not for ",
                                ToString(request.operation), "; ask for one tree"));
  }
  if (request.members.size() > kMaxForestRanks) {
    return invalid(absl::StrCat(request.members.size(),
                                " members; forests are planned for at most ", kMaxForestRanks,
                                "; ask for one tree"));
  }
  if (request.type == TreeType::kTypeII) {
    return invalid("the trees of a forest are of type I; ask for one tree of type II");
  }
  if (request.policy.has_value()) {
    return invalid("a policy chooses between single trees; ask for one tree");
  }
  return absl::OkStatus();
}

namespace {

class ForestPlanner {
 public:
  ForestPlanner(const Snapshot& snapshot, const CostProfile& profile, const TreeRequest& request,
                const MemberPlaces& places)
      : snapshot_(snapshot),
        profile_(profile),
        request_(request),
        hosts_(FindForestHosts(snapshot, places)),
        routes_(snapshot, profile, places) {}

  absl::StatusOr<ForestPlan> Plan(uint32_t max_trees) {
    RETURN_IF_ERROR(AddPlannersTree());
    if (hosts_.count() > 1) {
      for (const ForestShape& shape : ShapesToTry(hosts_, max_trees)) {
        ASSIGN_OR_RETURN(std::vector<ShapedTree> trees, BuildForest(hosts_, shape, routes_));
        if (FitsNics(trees)) RETURN_IF_ERROR(AddCandidate(shape, std::move(trees)));
      }
    }
    Follow();
    return Answer();
  }

 private:
  absl::Status AddPlannersTree() {
    TreeRequest one = request_;
    one.type = TreeType::kTypeI;
    const std::vector<SwitchCapacity> none(snapshot_.fabric->switch_count());
    ASSIGN_OR_RETURN(const TreePlan plan, PlanTree(snapshot_, profile_, none, one));
    return AddCandidate({.trees = 0}, {{.parents = plan.tree.parents, .share = 1}});
  }

  absl::Status AddCandidate(const ForestShape& shape, std::vector<ShapedTree> trees) {
    Weighed added;
    added.shape = shape;
    added.trees = std::move(trees);
    ASSIGN_OR_RETURN(added.edges, FindEdges(added.trees, routes_));
    ForEachSize([&](uint64_t bytes, double weight) {
      added.busiest_us += weight * BusiestUs(added.trees, added.edges, routes_, bytes);
    });
    added.first_us = FirstPacketUs(added.trees, added.edges, routes_);
    if (!IsKnown(added.trees)) candidates_.push_back(std::move(added));
    return absl::OkStatus();
  }

  // Whether no NIC has more children in any tree than it serves.
  bool FitsNics(const std::vector<ShapedTree>& trees) const {
    const uint32_t most = request_.nic_degree.value_or(profile_.nic_degree);
    return std::all_of(trees.begin(), trees.end(), [most](const ShapedTree& one) {
      const std::vector<uint32_t> children = ChildCounts(one.parents);
      return *std::max_element(children.begin(), children.end()) <= most;
    });
  }

  // Another shape has given the same trees.
  bool IsKnown(const std::vector<ShapedTree>& trees) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Weighed& one) {
      return one.trees.size() == trees.size() &&
             std::equal(trees.begin(), trees.end(), one.trees.begin(),
                        [](const ShapedTree& a, const ShapedTree& b) {
                          return a.share == b.share && a.parents == b.parents;
                        });
    });
  }

  template <class Visit>
  void ForEachSize(Visit visit) const {
    ForEachPayload(request_,
                   [&](const Payload& payload, double weight) { visit(payload.up_bytes, weight); });
  }

  // First all that may win, in part where they are long; then the best of these, as far as the
  // budget goes.
  void Follow() {
    OrderByFamily();
    double best_us = kNoCutoff;
    uint64_t left = kMaxHopsFollowed;
    for (Weighed& one : candidates_) {
      if (one.least_us() >= best_us) continue;
      if (!FollowOne(kMaxHopsOfOne, one, left)) break;
      best_us = std::min(best_us, *one.total_us);
    }
    SortByTime();
    left = kMaxHopsFollowed;
    const size_t again = std::min(kFollowedAgain, candidates_.size());
    for (size_t i = 0; i < again && candidates_[i].total_us.has_value(); ++i) {
      if (*candidates_[i].total_us > best_us * kMaybeBetter) break;
      if (!FollowOne(kMaxHopsAgain, candidates_[i], left)) break;
    }
    SortByTime();
  }

  // False, and not followed: it would take more than what is left.
  bool FollowOne(uint64_t max_hops, Weighed& one, uint64_t& left) const {
    uint64_t hops = 0;
    ForEachSize([&](uint64_t bytes, double) {
      hops += HopsToFollow(one.trees, one.edges, routes_, bytes, max_hops);
    });
    if (hops > left && left < kMaxHopsFollowed) return false;  // the first one always is
    left -= std::min(left, hops);
    double total_us = 0;
    ForEachSize([&](uint64_t bytes, double weight) {
      total_us += weight * FollowForest(one.trees, one.edges, routes_, bytes, max_hops);
    });
    one.total_us = total_us;
    return true;
  }

  // By what they likely take, families in turn: what the estimate knows not is alike within one.
  // The one tree comes first, so that its time is known.
  void OrderByFamily() {
    std::stable_sort(
        candidates_.begin(), candidates_.end(),
        [](const Weighed& a, const Weighed& b) { return a.likely_us() < b.likely_us(); });
    std::map<std::pair<InnerHosts, bool>, uint32_t> members;
    std::vector<std::pair<uint32_t, size_t>> order;  // turn, 0 for the one tree, and candidate
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const ForestShape& shape = candidates_[i].shape;
      const bool is_one_tree = shape.trees == 0;
      order.emplace_back(is_one_tree ? 0 : ++members[{shape.inner, shape.host_chain}], i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Weighed> ordered;
    for (const auto& [turn, i] : order) ordered.push_back(std::move(candidates_[i]));
    candidates_ = std::move(ordered);
  }

  void SortByTime() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Weighed& a, const Weighed& b) {
                       return a.total_us.value_or(kNoCutoff) < b.total_us.value_or(kNoCutoff);
                     });
  }

  absl::StatusOr<ForestPlan> Answer() {
    const Weighed& best = candidates_.front();
    ForestPlan plan;
    plan.shape = best.shape;
    plan.total_us = *best.total_us;
    for (const ShapedTree& shaped : best.trees) {
      ForestTree tree;
      tree.share = shaped.share;
      tree.tree.rank_count = static_cast<uint32_t>(request_.members.size());
      for (const EndpointIndex member : request_.members) {
        tree.tree.vertices.push_back(snapshot_.fabric->Vertex(member));
      }
      tree.tree.parents = shaped.parents;
      plan.trees.push_back(std::move(tree));
    }
    for (const Weighed& one : candidates_) {
      plan.candidates.push_back({one.shape, one.busiest_us, one.total_us});
    }
    plan.busiest = Busiest(best);
    plan.reason = Reason(best);
    return plan;
  }

  // By the shares alone, whole packets apart.
  BusiestLink Busiest(const Weighed& one) const {
    std::vector<double> messages(routes_.channels().size(), 0);
    std::vector<uint32_t> counts(messages.size(), 0);
    const uint32_t ranks = static_cast<uint32_t>(request_.members.size());
    for (size_t edge = 0; edge < one.edges.up.size(); ++edge) {
      if (one.trees[edge / ranks].parents[edge % ranks] == AggregationTree::kNoParent) continue;
      for (const uint32_t route : {one.edges.up[edge], one.edges.down[edge]}) {
        for (const uint32_t hop : routes_.hops(routes_.route(route))) {
          messages[hop] += one.trees[edge / ranks].share;
          ++counts[hop];
        }
      }
    }
    const double bytes = BytesOfMessages(profile_, request_).up;
    BusiestLink busiest;
    for (size_t c = 0; c < messages.size(); ++c) {
      const ForestChannel& channel = routes_.channels()[c];
      const double us = messages[c] * bytes * channel.us_per_byte;
      if (us < busiest.us || (us == busiest.us && channel.index > busiest.channel)) continue;
      busiest = {channel.index, us, counts[c]};
    }
    return busiest;
  }

  std::string Reason(const Weighed& best) const {
    std::string reason = absl::StrFormat("%.2f us for %s", *best.total_us, ToString(best.shape));
    for (const Weighed& one : candidates_) {
      if (one.trees.size() > 1 || best.trees.size() == 1 || !one.total_us.has_value()) continue;
      return absl::StrCat(reason, absl::StrFormat(", %.2f us for one tree", *one.total_us));
    }
    return reason;
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const TreeRequest& request_;
  ForestHosts hosts_;
  ForestRoutes routes_;
  std::vector<Weighed> candidates_;
};

}  // namespace

std::string ToString(const ForestShape& shape) {
  if (shape.trees == 0) return "the one tree of type I";
  std::string text = absl::StrCat(shape.trees, shape.trees == 1 ? " tree" : " trees");
  constexpr const char* kInner[] = {" with inner hosts in turn",
                                    " with an inner host a leaf switch", " through all hosts",
                                    " by halves of all hosts"};
  absl::StrAppend(&text, kInner[static_cast<size_t>(shape.inner)]);
  if (shape.inner != InnerHosts::kHalves) absl::StrAppend(&text, ", fan-out ", shape.fanout);
  if (shape.by_group) absl::StrAppend(&text, ", joined group by group");
  if (shape.host_chain) absl::StrAppend(&text, ", hosts as chains");
  return text;
}

absl::StatusOr<ForestPlan> PlanForest(const Snapshot& snapshot, const CostProfile& profile,
                                      const TreeRequest& request, uint32_t max_trees) {
  RETURN_IF_ERROR(CheckForestRequest(request, max_trees));
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, request.members));
  return ForestPlanner(snapshot, profile, request, places).Plan(max_trees);
}

}  // namespace coppice
