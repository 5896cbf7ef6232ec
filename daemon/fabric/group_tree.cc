// Built from the leaves up: hosts choose leaf switches, leaf switches and then their groups choose
// the group around them, and a group with one child gives its place to the child.
#include "daemon/fabric/group_tree.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr size_t kMaxLetters = 200;

// One that stands for a host, none if it has routers only.
std::optional<EndpointIndex> ChooseEndpoint(const Fabric& fabric, HostIndex host,
                                            const std::vector<uint32_t>& component_size) {
  std::optional<EndpointIndex> chosen;
  const auto size = [&](EndpointIndex e) {
    return component_size[fabric.component(fabric.Vertex(e))];
  };
  for (const EndpointIndex e : fabric.endpoints_of_host(host)) {
    if (fabric.adapter(e).kind != AdapterKind::kChannelAdapter) continue;
    if (!chosen || size(e) > size(*chosen)) chosen = e;
  }
  return chosen;
}

class TreeBuilder {
 public:
  TreeBuilder(const Fabric& fabric, const Hierarchy& hierarchy)
      : fabric_(fabric), hierarchy_(hierarchy) {}

  GroupTree Build() {
    PlaceHosts();
    std::vector<uint32_t> tops = MakeLeaves();  // what still has no parent
    for (size_t level = 2; level < hierarchy_.levels.size(); ++level) {
      tops = Gather(std::move(tops), level, level + 1 == hierarchy_.levels.size());
    }
    tree_.roots = std::move(tops);
    return std::move(tree_);
  }

 private:
  // Hosts of each leaf switch, and an endpoint that stands for it.
  void PlaceHosts() {
    std::vector<uint32_t> component_size(fabric_.component_count(), 0);
    for (uint32_t e = 0; e < fabric_.endpoint_count(); ++e) {
      ++component_size[fabric_.component(fabric_.Vertex(EndpointIndex(e)))];
    }
    for (uint32_t h = 0; h < fabric_.host_count(); ++h) {
      const std::string name(fabric_.host_name(HostIndex(h)));
      const auto endpoint = ChooseEndpoint(fabric_, HostIndex(h), component_size);
      if (!endpoint) continue;
      if (!IsPlainName(name)) {
        tree_.left_out.push_back(name);
        continue;
      }
      ++tree_.host_count;
      taken_.insert(name);
      const uint32_t leaf = hierarchy_.levels[1].group[endpoint->value()];
      const auto [entry, is_new] = leaves_.try_emplace(leaf, Leaf{*endpoint, {}});
      entry->second.endpoint = std::min(entry->second.endpoint, *endpoint);
      entry->second.hosts.push_back(name);
    }
    for (const auto& [leaf, content] : leaves_) {
      if (const auto s = fabric_.attached_switch(content.endpoint)) {
        ++described_[fabric_.switch_info(*s).description];
      }
    }
  }

  // As described if that is plain and its alone.
  std::string LeafName(EndpointIndex endpoint) const {
    const auto s = fabric_.attached_switch(endpoint);
    if (!s) return absl::StrCat("direct", fabric_.component(fabric_.Vertex(endpoint)));
    const SwitchInfo& info = fabric_.switch_info(*s);
    const bool is_alone =
        described_.at(info.description) == 1 && !taken_.contains(info.description);
    if (is_alone && IsPlainName(info.description)) return info.description;
    return absl::StrCat("s", ToString(info.guid));
  }

  // The name itself, or as little longer as makes it new.
  std::string NewName(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  std::vector<uint32_t> MakeLeaves() {
    std::vector<uint32_t> all;
    for (auto& [leaf, content] : leaves_) {
      SortNodeNames(content.hosts);
      all.push_back(Add({NewName(LeafName(content.endpoint)), std::move(content.hosts), {}},
                        content.endpoint));
    }
    return all;
  }

  uint32_t Add(GroupTree::Node node, EndpointIndex inside) {
    tree_.nodes.push_back(std::move(node));
    inside_.push_back(inside);
    return static_cast<uint32_t>(tree_.nodes.size() - 1);
  }

  // Those that are in one group of `level` get a parent; who is alone in it stays as it is.
  std::vector<uint32_t> Gather(std::vector<uint32_t> tops, size_t level, bool is_component) {
    const Hierarchy::Level& groups = hierarchy_.levels[level];
    std::map<uint32_t, std::vector<uint32_t>> members;
    for (const uint32_t top : tops) members[groups.group[inside_[top].value()]].push_back(top);
    // Words like "group 2" are "group2-0", "group2-1", ...
    std::string word = absl::StrReplaceAll(groups.name, {{" ", ""}});
    if (is_component) word = "root";
    if (!word.empty() && absl::ascii_isdigit(static_cast<unsigned char>(word.back()))) word += "-";
    std::vector<uint32_t> next;
    for (auto& [group, children] : members) {
      if (is_component) children = GatherByDistance(std::move(children));
      next.push_back(children.size() == 1 ? children.front() : Join(std::move(children), word));
    }
    return next;
  }

  uint32_t Join(std::vector<uint32_t> children, const std::string& word) {
    absl::c_sort(children);
    const EndpointIndex inside = inside_[children.front()];
    return Add({NewName(absl::StrCat(word, counts_[word]++)), {}, std::move(children)}, inside);
  }

  // Leaf switches of one component that no group holds come together by distance; others stay.
  std::vector<uint32_t> GatherByDistance(std::vector<uint32_t> children) {
    std::vector<SwitchIndex> switches;
    absl::flat_hash_map<uint32_t, uint32_t> node_of;  // switch -> node
    for (const uint32_t child : children) {
      const auto s = fabric_.attached_switch(inside_[child]);
      if (!s || !tree_.nodes[child].children.empty()) return children;
      switches.push_back(*s);
      node_of[s->value()] = child;
    }
    const std::vector<LeafCluster> clusters = ClusterLeaves(fabric_, std::move(switches));
    std::vector<std::vector<uint32_t>> inside(clusters.size());  // nodes of each part, joined
    for (size_t i = 0; i < clusters.size(); ++i) {
      for (const SwitchIndex s : clusters[i].leaves) inside[i].push_back(node_of[s.value()]);
      for (const uint32_t part : clusters[i].parts) {
        inside[i].push_back(inside[part].size() == 1 ? inside[part].front()
                                                     : Join(std::move(inside[part]), "cluster"));
      }
    }
    return inside.back();
  }

  struct Leaf {
    EndpointIndex endpoint;
    std::vector<std::string> hosts;
  };

  const Fabric& fabric_;
  const Hierarchy& hierarchy_;
  std::map<uint32_t, Leaf> leaves_;  // by group of level 1
  absl::flat_hash_map<std::string, uint32_t> described_;
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, uint32_t> counts_;  // names given from each word
  std::vector<EndpointIndex> inside_;                  // [node] an endpoint below it
  GroupTree tree_;
};

constexpr size_t kMaxTogether = 4;
constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();

class Clustering {
 public:
  explicit Clustering(const Fabric& fabric)
      : fabric_(fabric), distance_(fabric.switch_count(), kUnseen) {}

  // Position of the part that holds all of `leaves`.
  uint32_t Part(std::vector<SwitchIndex> leaves) {
    LeafCluster cluster;
    const size_t cut = leaves.size() > kMaxTogether ? Cut(leaves) : 0;
    if (cut == 0) {
      absl::c_sort(leaves);
      cluster.leaves = std::move(leaves);
    } else {
      const auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(cut);
      cluster.parts.push_back(Part({leaves.begin(), middle}));
      cluster.parts.push_back(Part({middle, leaves.end()}));
    }
    clusters_.push_back(std::move(cluster));
    return static_cast<uint32_t>(clusters_.size() - 1);
  }

  std::vector<LeafCluster> Take() { return std::move(clusters_); }

 private:
  // Distances of `leaves` from `start`, in their order.
  std::vector<uint32_t> DistancesFrom(SwitchIndex start, const std::vector<SwitchIndex>& leaves) {
    queue_.assign(1, start.value());
    distance_[start.value()] = 0;
    std::vector<bool> wanted(fabric_.switch_count());
    for (const SwitchIndex leaf : leaves) wanted[leaf.value()] = true;
    size_t missing = leaves.size();
    for (size_t head = 0; head < queue_.size(); ++head) {
      missing -= wanted[queue_[head]] ? 1 : 0;
      if (missing == 0) break;
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(queue_[head]))) {
        if (distance_[channel.to.value()] != kUnseen) continue;
        distance_[channel.to.value()] = distance_[queue_[head]] + 1;
        queue_.push_back(channel.to.value());
      }
    }
    std::vector<uint32_t> result;
    for (const SwitchIndex leaf : leaves) result.push_back(distance_[leaf.value()]);
    for (const uint32_t s : queue_) distance_[s] = kUnseen;
    return result;
  }

  static size_t Farthest(const std::vector<uint32_t>& distance) {
    return static_cast<size_t>(absl::c_max_element(distance) - distance.begin());
  }

  // Orders `leaves` from one end to the other and says how many belong to the first; 0: they are
  // equally far from the ends.
  size_t Cut(std::vector<SwitchIndex>& leaves) {
    absl::c_sort(leaves);
    const size_t a = Farthest(DistancesFrom(leaves.front(), leaves));
    const std::vector<uint32_t> from_a = DistancesFrom(leaves[a], leaves);
    const std::vector<uint32_t> from_b = DistancesFrom(leaves[Farthest(from_a)], leaves);
    std::vector<std::pair<int64_t, SwitchIndex>> order;
    for (size_t i = 0; i < leaves.size(); ++i) {
      order.emplace_back(int64_t{from_a[i]} - int64_t{from_b[i]}, leaves[i]);
    }
    absl::c_sort(order);
    // The ends themselves differ always.
    if (order[1].first == order[order.size() - 2].first) return 0;
    const size_t third = order.size() / 3;
    size_t cut = order.size() / 2;
    for (size_t i = std::max<size_t>(third, 1); i <= order.size() - third - 1; ++i) {
      const auto step = [&](size_t at) { return order[at].first - order[at - 1].first; };
      const auto off_centre = [&](size_t at) {
        return at > order.size() / 2 ? at - order.size() / 2 : order.size() / 2 - at;
      };
      if (step(i) > step(cut) || (step(i) == step(cut) && off_centre(i) < off_centre(cut))) cut = i;
    }
    for (size_t i = 0; i < order.size(); ++i) leaves[i] = order[i].second;
    return cut;
  }

  const Fabric& fabric_;
  std::vector<uint32_t> distance_;  // [switch]; all unseen between searches
  std::vector<uint32_t> queue_;
  std::vector<LeafCluster> clusters_;
};

}  // namespace

bool IsPlainName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxLetters || name.front() == '-') return false;
  for (const absl::string_view word : {"all", "default"}) {
    if (absl::EqualsIgnoreCase(name, word)) return false;
  }
  return absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

GroupTree MakeGroupTree(const Fabric& fabric, const Hierarchy& hierarchy) {
  return TreeBuilder(fabric, hierarchy).Build();
}

std::vector<LeafCluster> ClusterLeaves(const Fabric& fabric, std::vector<SwitchIndex> leaves) {
  Clustering clustering(fabric);
  clustering.Part(std::move(leaves));
  return clustering.Take();
}

std::string WriteSlurmTopology(const GroupTree& tree, absl::string_view shape) {
  std::string text =
      absl::StrCat("# Switches of the fabric for Slurm's topology/tree, as Coppice sees it.\n# ",
                   shape, ": ", tree.host_count, " hosts, ", tree.nodes.size(), " switches, ",
                   tree.roots.size(), tree.roots.size() == 1 ? " root\n" : " roots\n");
  for (const std::string& host : tree.left_out) {
    absl::StrAppend(&text, "# Left out, no name for Slurm: \"", absl::CHexEscape(host), "\"\n");
  }
  for (const GroupTree::Node& node : tree.nodes) {
    absl::StrAppend(&text, "SwitchName=", node.name);
    if (node.children.empty()) {
      absl::StrAppend(&text, " Nodes=", FormatNodeList(node.hosts), "\n");
      continue;
    }
    std::vector<std::string> children;
    for (const uint32_t child : node.children) children.push_back(tree.nodes[child].name);
    SortNodeNames(children);
    absl::StrAppend(&text, " Switches=", FormatNodeList(children), "\n");
  }
  return text;
}

}  // namespace coppice
