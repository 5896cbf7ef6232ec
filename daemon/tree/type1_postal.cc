#include "daemon/tree/type1_postal.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/type1.h"

namespace coppice {
namespace {

// One postal tree over a communicator's groups, for one choice of the level that counts as near:
//
//   level near      the parts of a near-and-far schedule: their units are reached from within
//   level near + 1  one such schedule for each group
//   above           the groups' first units reach each other (leaders), one schedule a level
//
//   near = leaf switch:   [ (a b c) (d e) (f g) ] [ (h i j) (k l m) ]    two pods
//                            near    far      leaders
//
// What is below `near` is treated as alike. Levels that a NIC's degree does not suffice for are
// treated as one. Groups with equal schedules are interchangeable, and a node sends its copies in
// order of node number: so of equal groups those that are served in turn, and before others, get
// the lower ranks.
//
// [rank] parent, -1 for the root. `near` < groups.levels.size(); `degree` >= 2 and more than
// groups.most_in_unit. At least two ranks. O(P log P) times a dozen, groups alike scheduled once.
std::vector<int32_t> PostalParents(const PostalGroups& groups, size_t near, uint32_t degree);

// The schedule of groups that are alike, and of how many units or of which shapes its parts are.
struct Shape {
  std::vector<uint32_t> parts;  // sizes, or numbers of shapes; in the schedule's order
  PostalSchedule schedule;
  std::vector<uint32_t> places;  // [part] its place in a group's sorted parts, of the same kind
};

class ShapeBuilder {
 public:
  ShapeBuilder(const PostalGroups& groups, size_t near, uint32_t degree)
      : groups_(groups), near_(std::min(near, groups.levels.size() - 1)) {
    degree_ = degree - (groups.most_in_unit - 1);
    const size_t top = groups.levels.size() - 1;
    // Near and far, then leaders: each of those levels may take half of what is left.
    for (size_t level = near_ + 1; level <= top; ++level) levels_.push_back(level);
    if (levels_.empty()) levels_.push_back(top);
    uint32_t left = degree_;
    for (size_t i = levels_.size(); i-- > 1;) {
      const uint32_t parts = groups.levels[levels_[i] - 1].groups();
      leaders_degree_.push_back(std::min(parts - 1, left / 2));
      left -= leaders_degree_.back();
    }
    absl::c_reverse(leaders_degree_);
    if (left < 2) {
      levels_ = {top};
      leaders_degree_.clear();
      left = degree_;
    }
    root_degree_ = left;
    parents_.assign(groups.ranks.size(), -1);
  }

  std::vector<int32_t> Build() {
    Prepare();
    Assign(levels_.size() - 1, 0, -1);
    return std::move(parents_);
  }

 private:
  // The groups at the level below levels_[i]: the parts of its groups.
  const PostalGroups::Level& PartsAt(size_t i) const {
    const size_t below = i > 0 ? levels_[i - 1] : near_;
    return groups_.levels[below];
  }
  const PostalGroups::Level& GroupsAt(size_t i) const { return groups_.levels[levels_[i]]; }

  // Parts of a group, as positions [first, last) at the level below.
  std::pair<uint32_t, uint32_t> PartsOf(size_t i, uint32_t group) const {
    const std::vector<uint32_t>& outer = GroupsAt(i).begin;
    const std::vector<uint32_t>& inner = PartsAt(i).begin;
    const auto first = absl::c_lower_bound(inner, outer[group]);
    const auto last = std::lower_bound(first, inner.end(), outer[group + 1]);
    return {first - inner.begin(), last - inner.begin()};
  }

  // Shapes of all groups, from the bottom up.
  void Prepare() {
    lowest_.resize(levels_.size() + 1);
    sorted_.resize(levels_.size());
    shape_of_.resize(levels_.size());
    FindLowest();
    for (size_t i = 0; i < levels_.size(); ++i) {
      sorted_[i].resize(PartsAt(i).groups());
      std::map<std::vector<uint32_t>, uint32_t> known;
      for (uint32_t g = 0; g < GroupsAt(i).groups(); ++g) {
        std::vector<uint32_t> kinds = SortParts(i, g);
        const auto [it, is_new] = known.try_emplace(kinds, shapes_.size());
        if (is_new) AddShape(i, std::move(kinds));
        shape_of_[i].push_back(it->second);
      }
    }
  }

  // Lowest first rank of every group, of the parts of the bottom level first.
  void FindLowest() {
    for (size_t i = 0; i <= levels_.size(); ++i) {
      const PostalGroups::Level& level = i == 0 ? PartsAt(0) : GroupsAt(i - 1);
      lowest_[i].reserve(level.groups());
      for (uint32_t g = 0; g < level.groups(); ++g) {
        uint32_t lowest = UINT32_MAX;
        for (uint32_t u = level.begin[g]; u < level.begin[g + 1]; ++u) {
          lowest = std::min(lowest, groups_.first_rank(u));
        }
        lowest_[i].push_back(lowest);
      }
    }
  }

  // What a part is: its size, or its shape.
  uint32_t KindOf(size_t i, uint32_t part) const {
    if (i > 0) return shape_of_[i - 1][part];
    return PartsAt(0).begin[part + 1] - PartsAt(0).begin[part];
  }
  double TimeOf(size_t i, uint32_t kind) const {
    return i > 0 ? shapes_[kind].schedule.time_us : kind;
  }

  // Longest first; of one kind by lowest first rank. Answers their kinds.
  std::vector<uint32_t> SortParts(size_t i, uint32_t group) {
    const auto [first, last] = PartsOf(i, group);
    const absl::Span<uint32_t> parts = absl::MakeSpan(sorted_[i]).subspan(first, last - first);
    absl::c_iota(parts, first);
    absl::c_sort(parts, [&](uint32_t a, uint32_t b) {
      const uint32_t of_a = KindOf(i, a), of_b = KindOf(i, b);
      if (of_a == of_b) return lowest_[i][a] < lowest_[i][b];
      const double us_a = TimeOf(i, of_a), us_b = TimeOf(i, of_b);
      return us_a != us_b ? us_a > us_b : of_a < of_b;
    });
    std::vector<uint32_t> kinds(parts.size());
    for (size_t p = 0; p < parts.size(); ++p) kinds[p] = KindOf(i, parts[p]);
    return kinds;
  }

  void AddShape(size_t i, std::vector<uint32_t> parts) {
    Shape shape;
    const bool one_part = parts.size() == 1;
    if (i == 0) {
      const double near_us = groups_.levels[near_].lag_us;
      const PostalCosts costs = {near_us, std::max(near_us, groups_.levels[levels_[0]].lag_us),
                                 groups_.gap_us, degree_};
      shape.schedule = ScheduleNearFar(parts, costs, root_degree_);
      shape.places = Places(parts, PartTree(shape.schedule, parts));
    } else if (one_part) {
      shape.schedule.time_us = TimeOf(i, parts[0]);
      shape.schedule.parents.assign(1, -1);
      shape.places.assign(1, 0);
    } else {
      std::vector<double> own_us;
      for (const uint32_t part : parts) own_us.push_back(TimeOf(i, part));
      const double lag_us = groups_.levels[levels_[i]].lag_us;
      shape.schedule =
          ScheduleLeaders(own_us, {lag_us, lag_us, groups_.gap_us, leaders_degree_[i - 1]});
      shape.places = Places(parts, shape.schedule.parents);
    }
    shape.parts = std::move(parts);
    shapes_.push_back(std::move(shape));
  }

  // [part] the one that its first unit is served by.
  static std::vector<int32_t> PartTree(const PostalSchedule& schedule,
                                       absl::Span<const uint32_t> sizes) {
    std::vector<uint32_t> part_of;
    part_of.reserve(schedule.parents.size());
    for (uint32_t part = 0; part < sizes.size(); ++part) {
      part_of.insert(part_of.end(), sizes[part], part);
    }
    std::vector<int32_t> tree(sizes.size(), -1);
    uint32_t first = sizes[0];  // unit of the part at hand
    for (uint32_t part = 1; part < sizes.size(); ++part) {
      tree[part] = static_cast<int32_t>(part_of[schedule.parents[first]]);
      first += sizes[part];
    }
    return tree;
  }

  // Children before their parent, in the order of parts, which is that of serving. Parts of one
  // kind stand side by side.
  static std::vector<uint32_t> Places(absl::Span<const uint32_t> kinds,
                                      const std::vector<int32_t>& tree) {
    const ChildLists children = ChildrenOf(tree);
    std::vector<uint32_t> places(tree.size()), served(tree.size(), 0), path = {0};
    std::vector<uint32_t> first(tree.size(), 0);  // [part] of its kind
    for (uint32_t part = 1; part < tree.size(); ++part) {
      first[part] = kinds[part] == kinds[part - 1] ? first[part - 1] : part;
    }
    std::vector<uint32_t> next = first;  // [first part of a kind]
    while (!path.empty()) {
      const uint32_t part = path.back();
      if (served[part] < children.of(part).size()) {
        path.push_back(children.of(part)[served[part]++]);
        continue;
      }
      places[part] = next[first[part]]++;
      path.pop_back();
    }
    return places;
  }

  // Hangs a group below the rank `parent`; answers the rank that stands for the group.
  uint32_t Assign(size_t i, uint32_t group, int32_t parent) {
    const Shape& shape = shapes_[shape_of_[i][group]];
    const uint32_t* const parts = &sorted_[i][PartsOf(i, group).first];
    if (i == 0) return AssignUnits(shape, parts, parent);
    std::vector<uint32_t> leader(shape.parts.size());
    for (size_t part = 0; part < leader.size(); ++part) {  // parents before children
      const int32_t from = shape.schedule.parents[part];
      leader[part] = Assign(i - 1, parts[shape.places[part]],
                            from < 0 ? parent : static_cast<int32_t>(leader[from]));
    }
    return leader[0];
  }

  // `parts`: those of the group, sorted.
  uint32_t AssignUnits(const Shape& shape, const uint32_t* parts, int32_t parent) {
    rank_of_.clear();
    for (const uint32_t place : shape.places) AddRanks(parts[place]);
    for (size_t u = 0; u < rank_of_.size(); ++u) {
      const int32_t from = shape.schedule.parents[u];
      parents_[rank_of_[u]] = from < 0 ? parent : static_cast<int32_t>(rank_of_[from]);
    }
    return rank_of_[0];
  }

  // First ranks of a bottom part's units, least wait first, then lowest.
  void AddRanks(uint32_t part) {
    const uint32_t begin = PartsAt(0).begin[part], end = PartsAt(0).begin[part + 1];
    const size_t first = rank_of_.size();
    if (groups_.wait_us.empty()) {
      for (uint32_t u = begin; u < end; ++u) rank_of_.push_back(groups_.first_rank(u));
      std::sort(rank_of_.begin() + static_cast<std::ptrdiff_t>(first), rank_of_.end());
      return;
    }
    waits_.clear();
    for (uint32_t u = begin; u < end; ++u) {
      waits_.emplace_back(groups_.wait_us[u], groups_.first_rank(u));
    }
    absl::c_sort(waits_);
    for (const auto& unit : waits_) rank_of_.push_back(unit.second);
  }

  const PostalGroups& groups_;
  const size_t near_;
  uint32_t degree_ = 0;                          // beside the others of the unit
  uint32_t root_degree_ = 0;                     // of a group's first unit, within the bottom level
  std::vector<size_t> levels_;                   // that are scheduled, bottom up
  std::vector<uint32_t> leaders_degree_;         // [position in levels_ - 1]
  std::vector<std::vector<uint32_t>> lowest_;    // [position in levels_ + 1][group], parts first
  std::vector<std::vector<uint32_t>> sorted_;    // [position in levels_] parts, group after group
  std::vector<std::vector<uint32_t>> shape_of_;  // [position in levels_][group]
  std::vector<Shape> shapes_;
  std::vector<uint32_t> rank_of_;                   // [unit of the schedule] of the group at hand
  std::vector<std::pair<double, uint32_t>> waits_;  // and ranks, of the part at hand
  std::vector<int32_t> parents_;                    // [rank]
};

std::vector<int32_t> PostalParents(const PostalGroups& groups, size_t near, uint32_t degree) {
  std::vector<int32_t> parents(groups.ranks.size(), -1);
  if (groups.unit_count() > 1) parents = ShapeBuilder(groups, near, degree).Build();
  for (uint32_t u = 0; u < groups.unit_count(); ++u) {
    const auto first = static_cast<int32_t>(groups.first_rank(u));
    for (uint32_t i = groups.unit_begin[u] + 1; i < groups.unit_begin[u + 1]; ++i) {
      parents[groups.ranks[i]] = first;
    }
  }
  return parents;
}

constexpr double kClearlyBetter = 1 - 1e-9;

// Most children tried where messages are pipelined: then the busiest rank's children count once
// per packet, and a deeper tree of few children may be faster.
constexpr uint32_t kPipelinedDegrees[] = {2, 3, 4, 6, 8, 12, 16, 24};

// In ascending order; `degree` last.
std::vector<uint32_t> DegreesToTry(const CostProfile& profile, const TreeRequest& request,
                                   uint32_t degree) {
  const bool is_pipelined =
      profile.mtu_bytes > 0 && absl::c_any_of(request.sizes, [&](const SizeShare& share) {
        return share.bytes > profile.mtu_bytes;
      });
  std::vector<uint32_t> degrees;
  for (const uint32_t few : kPipelinedDegrees) {
    if (is_pipelined && few < std::min<size_t>(degree, request.members.size() - 1)) {
      degrees.push_back(few);
    }
  }
  degrees.push_back(degree);
  return degrees;
}

// Appends what is not there yet, in the place of `bare`'s parents; `best` is the place of the
// fastest.
void TryLevels(const PostalGroups& groups, uint32_t degree, TimeOfParents time_of,
               const AggregationTree& bare, std::vector<PostalTree>& trees, size_t& best) {
  const size_t levels = std::max<size_t>(groups.levels.size(), 1);
  for (size_t near = 0; near < levels; ++near) {
    AggregationTree tree = bare;
    tree.parents = PostalParents(groups, near, degree);
    const bool is_small = tree.rank_count <= kMaxRanksSearchedFully;
    const bool is_new = absl::c_none_of(
        trees, [&](const PostalTree& other) { return other.tree.parents == tree.parents; });
    if (!is_new && !is_small) continue;  // a small one is improved with more children than before
    double us = time_of(tree.parents, trees.empty() || is_small ? kNoCutoff : trees[best].us);
    if (is_small) us = ImprovePostal(groups, degree, time_of, us, tree.parents);
    trees.push_back({std::move(tree), us});
    if (us < trees[best].us * kClearlyBetter) best = trees.size() - 1;
  }
}

}  // namespace

absl::StatusOr<std::vector<PostalTree>> PostalTrees(const Snapshot& snapshot,
                                                    const CostProfile& profile,
                                                    const TreeRequest& request, uint32_t nic_degree,
                                                    TimeOfParents time_of) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(*snapshot.fabric, request.members, TreeBuilder::kPostal,
                                       request.width.value_or(2)));
  if (tree.rank_count <= 2) {
    if (tree.rank_count == 2) tree.parents[1] = 0;
    tree.width = 2;
    RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
    const double us = time_of(tree.parents, kNoCutoff);
    return std::vector<PostalTree>{{std::move(tree), us}};
  }
  if (nic_degree < 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a postal tree of ", tree.rank_count, " ranks needs NICs that serve 2 ",
                     "children, theirs serve ", nic_degree, "; ask for a NIC degree of 2 or more"));
  }
  const uint32_t degree = std::min(nic_degree, request.width.value_or(nic_degree));
  PostalGroups groups;
  std::vector<PostalTree> trees;
  size_t best = 0;
  for (const uint32_t most : DegreesToTry(profile, request, degree)) {
    groups = FindPostalGroups(snapshot, profile, request, most);
    TryLevels(groups, most, time_of, tree, trees, best);
  }
  if (tree.rank_count > kMaxRanksSearchedFully) {
    trees[best].us =
        ImprovePostal(groups, degree, time_of, trees[best].us, trees[best].tree.parents);
  }
  const auto first = trees.begin() + static_cast<std::ptrdiff_t>(best);
  std::rotate(trees.begin(), first, first + 1);
  for (PostalTree& found : trees) {
    const std::vector<uint32_t> children = ChildCounts(found.tree.parents);
    found.tree.width = std::max(2U, *absl::c_max_element(children));
  }
  return trees;
}

PostalJudge::PostalJudge(const Snapshot& snapshot, const CostProfile& profile,
                         const TreeRequest& request, AggregationTree tree, Type1Bound* bound)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      bound_(bound != nullptr && bound->is_exact() ? bound : nullptr),
      tree_(std::move(tree)) {
  if (bound_ != nullptr || tree_.rank_count > kMaxRanksSearched) return;
  pairs_.resize(size_t{tree_.rank_count} * tree_.rank_count);
}

double PostalJudge::Of(absl::Span<const int32_t> parents, double cutoff_us) {
  if (bound_ != nullptr) return bound_->Of(parents, cutoff_us);
  tree_.parents.assign(parents.begin(), parents.end());
  if (!FindEdges().ok()) return kNoCutoff;
  return EvaluateMix(profile_, tree_, edges_, request_).total_us;
}

absl::Status PostalJudge::FindEdges() {
  if (pairs_.empty()) return EdgeCosts(snapshot_, profile_, tree_, path_, edges_);
  edges_.resize(tree_.rank_count);
  for (uint32_t rank = 0; rank < tree_.rank_count; ++rank) {
    const int32_t parent = tree_.parents[rank];
    if (parent == AggregationTree::kNoParent) continue;
    std::optional<EdgeCost>& pair =
        pairs_[size_t{rank} * tree_.rank_count + static_cast<size_t>(parent)];
    if (!pair) {
      EdgeCost edge;
      RETURN_IF_ERROR(
          WalkEdge(snapshot_, profile_, tree_.vertices[rank], tree_.vertices[parent], path_, edge));
      pair = edge;
    }
    edges_[rank] = *pair;
  }
  return absl::OkStatus();
}

}  // namespace coppice
