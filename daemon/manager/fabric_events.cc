#include "daemon/manager/fabric_events.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

constexpr size_t kMaxNodesNamed = 8;  // in the event that stands for many

// A node of either view, as events name it.
struct Node {
  bool is_switch = false;
  std::string object;      // "switch:GUID", "host:NAME"
  std::string name;        // in words
  bool is_behind = false;  // of what cannot be seen: it is not silent, but behind what is
};

// `name`: the description of a switch, the host of an adapter or empty.
Node NamedNode(bool is_switch, Guid guid, absl::string_view name) {
  const std::string number = ToString(guid);
  if (is_switch) {
    return {true, absl::StrCat("switch:", number),
            absl::StrCat("switch ", number, " \"", name, "\"")};
  }
  if (name.empty()) return {false, absl::StrCat("node:", number), absl::StrCat("adapter ", number)};
  return {false, absl::StrCat("host:", name), absl::StrCat("adapter ", number, " of host ", name)};
}

using Nodes = absl::btree_map<Guid, Node>;

Nodes NodesOf(const Fabric& fabric) {
  Nodes nodes;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    nodes.emplace(info.guid, NamedNode(true, info.guid, info.description));
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    const AdapterInfo& info = fabric.adapter(AdapterIndex(a));
    const bool has_host = info.host.value() < fabric.host_count();
    const absl::string_view host = has_host ? fabric.host_name(info.host) : absl::string_view();
    nodes.emplace(info.guid, NamedNode(false, info.guid, host));
  }
  return nodes;
}

// Nodes that are silent or hidden behind these, as far as their GUIDs are known, each once.
Nodes UnreachableOf(const Unseen& unseen) {
  Nodes nodes;
  for (const SilentNode& silent : unseen.silent) {
    if (silent.guid == Guid()) continue;
    nodes.emplace(silent.guid, NamedNode(silent.is_switch, silent.guid, silent.name));
  }
  if (unseen.hidden == nullptr) return nodes;
  for (const auto& [guid, hidden] : unseen.hidden->nodes) {
    Node node = NamedNode(hidden.is_switch, guid, hidden.name);
    node.is_behind = true;
    nodes.emplace(guid, std::move(node));
  }
  return nodes;
}

// By its ends; both views name them alike.
using LinkKey = std::tuple<Guid, uint8_t, Guid, uint8_t>;
using Links = absl::btree_map<LinkKey, std::string>;  // to its rate

Links LinksByEnds(const Fabric& fabric) {
  Links links;
  for (LinkRecord& link : LinksOf(fabric)) {
    links[{link.node_a, link.port_a, link.node_b, link.port_b}] = std::move(link.rate);
  }
  return links;
}

class Difference {
 public:
  explicit Difference(absl::Time when) : when_(when) {}

  void Compare(const FabricView* before, const FabricView& now) {
    const bool is_other = before != nullptr && before->snapshot->fabric != now.snapshot->fabric;
    CompareUnreachable(before != nullptr ? before->unseen : Unseen(), now);
    if (is_other) {
      before_ = NodesOf(*before->snapshot->fabric);
      now_ = NodesOf(*now.snapshot->fabric);
      CompareNodes();
      CompareLinks(*before->snapshot->fabric, *now.snapshot->fabric);
      CompareLids(*before->snapshot->fabric, *now.snapshot->fabric);
    }
    if (before != nullptr) {
      ComparePartitions(*before->snapshot, *now.snapshot);
      CompareManagers(*before, now);
    }
  }

  std::vector<EventRecord> Take() {
    std::vector<EventRecord> events;
    for (auto& [kind, of_kind] : by_kind_) {
      if (of_kind.size() > kMaxOfAKind) {
        events.push_back(Summary(of_kind));
      } else {
        for (EventRecord& event : of_kind) events.push_back(std::move(event));
      }
    }
    return events;
  }

 private:
  void Add(const std::string& kind, std::string object, std::string message) {
    by_kind_[kind].push_back(EventOf(kind, when_, std::move(object), std::move(message)));
  }

  void AddNode(absl::string_view what, const Node& node, absl::string_view message) {
    Add(absl::StrCat(node.is_switch ? "switch." : "node.", what), node.object,
        absl::StrCat(node.name, " ", message));
  }

  static EventRecord Summary(const std::vector<EventRecord>& events) {
    EventRecord summary = events.front();
    summary.object = "fabric";
    summary.message = absl::StrCat(events.size(), " of these in one sweep: ");
    for (size_t i = 0; i < kMaxNodesNamed; ++i)
      absl::StrAppend(&summary.message, events[i].object, ", ");
    absl::StrAppend(&summary.message, "...");
    return summary;
  }

  void CompareUnreachable(const Unseen& before, const FabricView& now) {
    was_unreachable_ = UnreachableOf(before);
    is_unreachable_ = UnreachableOf(now.unseen);
    for (const auto& [guid, node] : is_unreachable_) {
      if (was_unreachable_.contains(guid)) continue;
      AddNode("unreachable", node,
              node.is_behind ? "cannot be seen behind a node that does not answer"
                             : "does not answer, or not all that it is asked");
    }
    const Fabric& fabric = *now.snapshot->fabric;
    for (const auto& [guid, node] : was_unreachable_) {
      if (is_unreachable_.contains(guid)) continue;
      if (FindNode(fabric, guid)) {
        AddNode("reachable", node, node.is_behind ? "is seen again" : "answers again");
      } else {
        AddNode("gone", node,
                node.is_behind ? "was behind a node that did not answer and is not there any more"
                               : "did not answer and is not there any more");
      }
    }
  }

  void CompareNodes() {
    for (const auto& [guid, node] : before_) {
      if (now_.contains(guid) || is_unreachable_.contains(guid)) continue;
      if (!was_unreachable_.contains(guid)) AddNode("gone", node, "is not there any more");
    }
    for (const auto& [guid, node] : now_) {
      if (before_.contains(guid) || was_unreachable_.contains(guid)) continue;
      AddNode("new", node, "is there");
    }
  }

  std::string NameOf(Guid guid, uint8_t port) const {
    const auto now = now_.find(guid);
    const auto before = before_.find(guid);
    std::string name = now != now_.end()         ? now->second.name
                       : before != before_.end() ? before->second.name
                                                 : ToString(guid);
    return absl::StrCat(name, " port ", port);
  }

  void AddLink(const std::string& kind, const LinkKey& link, absl::string_view message) {
    const auto& [a, a_port, b, b_port] = link;
    Add(kind, absl::StrCat("link:", ToString(a), "/", a_port, "-", ToString(b), "/", b_port),
        absl::StrCat(NameOf(a, a_port), " to ", NameOf(b, b_port), " ", message));
  }

  void CompareLinks(const Fabric& before, const Fabric& now) {
    const Links old_links = LinksByEnds(before), new_links = LinksByEnds(now);
    for (const auto& [link, rate] : old_links) {
      const auto found = new_links.find(link);
      if (found == new_links.end()) {
        AddLink("link.down", link, "is down");
      } else if (found->second != rate) {
        AddLink("link.rate", link,
                absl::StrCat("runs at ", found->second, ", no longer at ", rate));
      }
    }
    for (const auto& [link, rate] : new_links) {
      if (!old_links.contains(link)) AddLink("link.up", link, absl::StrCat("is up, ", rate));
    }
  }

  void CompareLids(const Fabric& before, const Fabric& now) {
    size_t moved = 0;
    std::string first;
    const auto compare = [&](Lid old_lid, Lid new_lid, Guid guid) {
      if (old_lid == new_lid || old_lid.value() == 0) return;
      if (++moved > kMaxNodesNamed) return;
      absl::StrAppend(&first, moved > 1 ? ", " : "", ToString(guid), " from ", old_lid.value(),
                      " to ", new_lid.value());
    };
    for (uint32_t s = 0; s < before.switch_count(); ++s) {
      const SwitchInfo& info = before.switch_info(SwitchIndex(s));
      const auto found = now.FindSwitch(info.guid);
      if (found) compare(info.lid, now.switch_info(*found).lid, info.guid);
    }
    for (uint32_t e = 0; e < before.endpoint_count(); ++e) {
      const EndpointInfo& info = before.endpoint(EndpointIndex(e));
      const auto found = now.FindEndpoint(info.port_guid);
      if (found) compare(info.lid, now.endpoint(*found).lid, info.port_guid);
    }
    if (moved == 0) return;
    Add("lids.changed", "fabric",
        absl::StrCat(moved, moved == 1 ? " port has" : " ports have", " another LID: ", first,
                     moved > kMaxNodesNamed ? ", ..." : ""));
  }

  // Of ports that were there and are, and whose tables are known: who has come or gone is told, and
  // tables with it. One event a partition: a tenant may be given all hosts at once.
  void ComparePartitions(const Snapshot& before, const Snapshot& now) {
    if (before.partitions == now.partitions) return;
    const Fabric& fabric = *now.fabric;
    std::map<PartitionNum, Names> changed;
    for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
      const EndpointIndex endpoint(e);
      const Guid port = fabric.endpoint(endpoint).port_guid;
      if (!before.fabric->FindEndpoint(port)) continue;
      ComparePort(*before.partitions, *now.partitions, port, EndpointName(fabric, endpoint),
                  changed);
    }
    Names looking;
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
      if (!before.fabric->FindSwitch(info.guid)) continue;
      const std::string name = NamedNode(true, info.guid, info.description).name;
      ComparePort(*before.partitions, *now.partitions, info.guid, name, changed);
      for (uint32_t number = 1; number <= info.port_count; ++number) {
        const PortNum port(static_cast<uint8_t>(number));
        const Partitions::Enforcement* const then = before.partitions->EnforcedAt(info.guid, port);
        const Partitions::Enforcement* const at = now.partitions->EnforcedAt(info.guid, port);
        const bool is_same = then != nullptr && at != nullptr ? *then == *at : then == at;
        if (!is_same) looking.Add(absl::StrCat(name, " port ", number));
      }
    }
    for (const auto& [partition, names] : changed) {
      Add("partitions.changed", absl::StrCat("partition:", ToString(partition)),
          names.Words("port has another membership", "ports have another membership"));
    }
    if (looking.count == 0) return;
    Add("partitions.changed", "fabric",
        looking.Words("port of switches lets other partitions pass",
                      "ports of switches let other partitions pass"));
  }

  // The first of many.
  struct Names {
    size_t count = 0;
    std::string first;
    void Add(const std::string& name) {
      if (++count <= kMaxNodesNamed) absl::StrAppend(&first, count > 1 ? ", " : "", name);
    }
    std::string Words(absl::string_view one, absl::string_view many) const {
      return absl::StrCat(count, " ", count == 1 ? one : many, ": ", first,
                          count > kMaxNodesNamed ? ", ..." : "");
    }
  };

  static void ComparePort(const Partitions& before, const Partitions& now, Guid port,
                          const std::string& name, std::map<PartitionNum, Names>& changed) {
    if (!before.IsKnown(port) || !now.IsKnown(port)) return;
    const absl::Span<const uint16_t> then = before.TableOf(port), table = now.TableOf(port);
    if (then == table) return;
    std::set<PartitionNum> numbers;
    for (const absl::Span<const uint16_t> keys : {then, table}) {
      for (const uint16_t key : keys) {
        if (const auto partition = PartitionOf(key)) numbers.insert(*partition);
      }
    }
    for (const PartitionNum partition : numbers) {
      const Membership was = before.Of(port, partition), is = now.Of(port, partition);
      if (was == is) continue;
      changed[partition].Add(absl::StrCat(name, " from ", ToString(was), " to ", ToString(is)));
    }
  }

  void CompareManagers(const FabricView& before, const FabricView& now) {
    const auto lid = [](const FabricView& view) { return view.subnet_manager_lid.value(); };
    if (before.has_subnet_manager && !now.has_subnet_manager) {
      Add("sm.lost", "fabric", "no subnet manager assigns LIDs; start one");
    } else if (!before.has_subnet_manager && now.has_subnet_manager) {
      Add("sm.found", "fabric", absl::StrCat("a subnet manager is at LID ", lid(now)));
    } else if (lid(before) != lid(now) && lid(before) != 0) {
      Add("sm.changed", "fabric",
          absl::StrCat("the subnet manager is at LID ", lid(now), ", no longer at ", lid(before)));
    } else if (!before.is_subnet_manager_silent && now.is_subnet_manager_silent) {
      Add("sm.lost", "fabric",
          absl::StrCat("the subnet manager at LID ", lid(now), " does not answer; start one"));
    } else if (before.is_subnet_manager_silent && !now.is_subnet_manager_silent) {
      Add("sm.found", "fabric", absl::StrCat("a subnet manager answers at LID ", lid(now)));
    }
  }

  const absl::Time when_;
  Nodes before_, now_, was_unreachable_, is_unreachable_;
  std::map<std::string, std::vector<EventRecord>> by_kind_;
};

bool IsLoss(absl::string_view kind) {
  return absl::EndsWith(kind, ".down") || absl::EndsWith(kind, ".gone") ||
         absl::EndsWith(kind, ".unreachable") || absl::EndsWith(kind, ".disconnected");
}

bool IsChange(absl::string_view kind) {
  return IsLoss(kind) || absl::EndsWith(kind, ".up") || absl::EndsWith(kind, ".new") ||
         absl::EndsWith(kind, ".reachable") || absl::EndsWith(kind, ".connected");
}

absl::string_view FamilyOf(absl::string_view kind) { return kind.substr(0, kind.find('.')); }

using PortKey = std::pair<Guid, uint8_t>;

PortKey KeyOf(const DownLink::End& end) { return {end.node, end.port}; }

absl::flat_hash_set<PortKey> CabledPorts(const Fabric& fabric) {
  absl::flat_hash_set<PortKey> ports;
  ports.reserve(2 * fabric.link_count());
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& info = fabric.link(LinkIndex(l));
    ports.emplace(NodeGuid(fabric, info.a), info.a_port.value());
    ports.emplace(NodeGuid(fabric, info.b), info.b_port.value());
  }
  return ports;
}

DownLink::End EndOf(const Fabric& fabric, VertexIndex node, PortNum port) {
  return {NodeGuid(fabric, node), port.value(), NodeName(fabric, node), fabric.IsSwitch(node)};
}

}  // namespace

std::vector<EventRecord> FabricEvents(const FabricView* before, const FabricView& now,
                                      absl::Time when) {
  Difference difference(when);
  difference.Compare(before, now);
  return difference.Take();
}

std::vector<EventRecord> FlapFilter::Pass(std::vector<EventRecord> events, absl::Duration now) {
  std::vector<EventRecord> told;
  absl::flat_hash_set<std::string> seen;  // a host's adapters share an object
  for (EventRecord& event : events) {
    if (!IsChange(event.kind) || event.object == "fabric") {
      told.push_back(std::move(event));
      continue;
    }
    Object& object = objects_[event.object];
    object.last = now;
    object.last_kind = event.kind;
    const bool is_first = seen.insert(event.object).second;
    if (object.flaps) {
      if (is_first) ++object.count;
      continue;
    }
    if (!is_first) {
      told.push_back(std::move(event));
      continue;
    }
    object.changes.push_back(now);
    object.changes.erase(std::remove_if(object.changes.begin(), object.changes.end(),
                                        [&](absl::Duration at) { return now - at > kWithin; }),
                         object.changes.end());
    if (object.changes.size() >= kFlaps) {
      object.flaps = true;
      object.count = object.changes.size();
      object.changes.clear();
      event.message = absl::StrCat(event.message, "; ", object.count, " changes within ",
                                   absl::FormatDuration(kWithin),
                                   ": further ones are only counted until it is steady");
      event.kind = absl::StrCat(FamilyOf(event.kind), ".flapping");
      event.severity = std::string(EventKindOf(event.kind).severity);
    }
    told.push_back(std::move(event));
  }
  return told;
}

std::vector<EventRecord> FlapFilter::End(absl::Time when, absl::Duration now) {
  std::vector<EventRecord> told;
  for (auto it = objects_.begin(); it != objects_.end();) {
    const Object& object = it->second;
    if (now - object.last <= kWithin) {
      ++it;
      continue;
    }
    if (object.flaps) {
      told.push_back(
          EventOf(absl::StrCat(FamilyOf(object.last_kind), ".steady"), when, it->first,
                  absl::StrCat("no change for ", absl::FormatDuration(kWithin), ", after ",
                               object.count, " of them; the last was ", object.last_kind)));
      if (IsLoss(object.last_kind)) told.back().severity = "warning";
    }
    it = objects_.erase(it);
  }
  return told;
}

void CableDamper::Move(End& end, State state, absl::Duration now) {
  if (end.state == state) return;
  end.state = state;
  end.moves.push_back(now);
  if (end.moves.size() > FlapFilter::kFlaps) end.moves.erase(end.moves.begin());
}

bool CableDamper::IsWorthASweep(absl::Span<const LinkChange> changes, absl::Duration now) {
  std::set<std::pair<Guid, PortNum>> seen;
  bool is_worth = false;
  for (const LinkChange& change : changes) {
    const std::pair<Guid, PortNum> place(change.node, change.port);
    seen.insert(place);
    End& end = ends_[place];
    Move(end, change.is_up ? State::kUp : State::kDown, now);
    const bool flaps =
        end.moves.size() >= FlapFilter::kFlaps && now - end.moves.front() <= FlapFilter::kWithin;
    if (!flaps || now - end.moves.back() >= kRest) is_worth = true;
  }
  for (auto it = ends_.begin(); it != ends_.end();) {
    if (!seen.contains(it->first)) Move(it->second, State::kAsRead, now);
    const bool is_past = now - it->second.moves.back() > FlapFilter::kWithin;
    it = is_past && it->second.state == State::kAsRead ? ends_.erase(it) : std::next(it);
  }
  return is_worth;
}

void CableDamper::ReadAll() {
  for (auto& [place, end] : ends_) end.state = State::kAsRead;
}

void DownLinks::Compare(const Fabric& before, const Fabric& now, absl::Time when) {
  const absl::flat_hash_set<PortKey> cabled = CabledPorts(now);
  std::vector<DownLink> lost;
  for (uint32_t l = 0; l < before.link_count(); ++l) {
    const LinkInfo& info = before.link(LinkIndex(l));
    const PortKey a = {NodeGuid(before, info.a), info.a_port.value()};
    const PortKey b = {NodeGuid(before, info.b), info.b_port.value()};
    if (cabled.contains(a) || cabled.contains(b)) continue;
    DownLink link{{EndOf(before, info.a, info.a_port), EndOf(before, info.b, info.b_port)},
                  ToString(info.rate),
                  when};
    if (b < a) std::swap(link.ends[0], link.ends[1]);
    lost.push_back(std::move(link));
  }
  std::lock_guard lock(mu_);
  std::erase_if(links_, [&](const DownLink& link) {
    return cabled.contains(KeyOf(link.ends[0])) || cabled.contains(KeyOf(link.ends[1]));
  });
  const size_t room = kMax - std::min(kMax, links_.size());
  lost.resize(std::min(lost.size(), room));
  links_.insert(links_.end(), std::make_move_iterator(lost.begin()),
                std::make_move_iterator(lost.end()));
  std::sort(links_.begin(), links_.end(), [](const DownLink& a, const DownLink& b) {
    return std::tuple(KeyOf(a.ends[0]), KeyOf(a.ends[1])) <
           std::tuple(KeyOf(b.ends[0]), KeyOf(b.ends[1]));
  });
}

std::vector<DownLink> DownLinks::All() const {
  std::lock_guard lock(mu_);
  return links_;
}

}  // namespace coppice
