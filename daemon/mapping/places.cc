#include "daemon/mapping/places.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Status CheckSlots(uint64_t places, uint64_t slots_each) {
  if (places == 0) return absl::InvalidArgumentError("no places to map to; name at least one host");
  if (slots_each == 0) return absl::InvalidArgumentError("0 ranks per host; give 1 or more");
  if (places > Places::kMaxSlots || slots_each > Places::kMaxSlots / places) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d hosts of %d ranks each are more than %d ranks in all; give fewer",
                        places, slots_each, Places::kMaxSlots));
  }
  return absl::OkStatus();
}

// A class for every distinct key, by first appearance.
class ClassNumbers {
 public:
  uint32_t Of(uint32_t key, PlaceIndex place) {
    const auto [found, is_new] =
        numbers_.try_emplace(key, static_cast<uint32_t>(representatives_.size()));
    if (is_new) representatives_.push_back(place);
    return found->second;
  }
  const std::vector<PlaceIndex>& representatives() const { return representatives_; }

 private:
  absl::flat_hash_map<uint32_t, uint32_t> numbers_;
  std::vector<PlaceIndex> representatives_;
};

absl::Status NoPath(const Fabric& fabric, EndpointIndex a, EndpointIndex b) {
  return absl::FailedPreconditionError(
      absl::StrFormat("no path from %s to %s; map over hosts of one subnetwork",
                      Describe(fabric, fabric.Vertex(a)), Describe(fabric, fabric.Vertex(b))));
}

// What stands for an endpoint's leaf switch; an endpoint without one stands for itself.
uint32_t LeafKey(const Fabric& fabric, EndpointIndex e) {
  const std::optional<SwitchIndex> leaf = fabric.attached_switch(e);
  return leaf.has_value() ? fabric.Vertex(*leaf).value() : fabric.Vertex(e).value();
}

// The bundles of all places, and a row for each leaf switch; no columns and no links yet.
ClassDistances ByLeafSwitch(const Fabric& fabric, const Places& places, ClassNumbers& leaves) {
  ClassDistances classes;
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    classes.bundles.push_back(fabric.bundle(e).value());
    classes.from_classes.push_back(leaves.Of(LeafKey(fabric, e), PlaceIndex(p)));
  }
  return classes;
}

absl::Status CheckPlaces(const Places& places) {
  if (places.has_endpoints()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "places without endpoints have no hops between them; give a distance matrix");
}

absl::Status CheckTable(size_t rows, size_t columns) {
  if (rows * columns <= PlaceDistances::kMaxTableBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the distances of %d leaf switches to %d places or switches take %d MiB, of which there are "
      "%d: map over fewer hosts, or over hosts of fewer leaf switches",
      rows, columns, rows * columns >> 20, PlaceDistances::kMaxTableBytes >> 20));
}

// Links from switches to one place after another: the routes to a place form a tree, whose switches
// are asked once.
class RouteTree {
 public:
  explicit RouteTree(const Routes& routes)
      : routes_(routes),
        fabric_(routes.fabric()),
        links_(fabric_.switch_count(), 0),
        place_of_(fabric_.switch_count(), 0xffffffff) {}

  // Links from `leaf` to the endpoint `to` of place `p`. Errors as Routes::Length.
  absl::StatusOr<uint32_t> Length(SwitchIndex leaf, EndpointIndex to, uint32_t p) {
    const VertexIndex end = fabric_.Vertex(to);
    walked_.clear();
    VertexIndex here = fabric_.Vertex(leaf);
    while (here != end && place_of_[here.value()] != p) {
      walked_.push_back(fabric_.AsSwitch(here));
      const ChannelIndex c = routes_.NextChannel(walked_.back(), end);
      if (c != kNoChannel) here = fabric_.channel_to(c);
      if (c == kNoChannel || (here != end && !fabric_.IsSwitch(here)) ||
          walked_.size() > fabric_.switch_count()) {
        return routes_.Length(fabric_.Vertex(leaf), end);
      }
    }
    uint32_t links = here == end ? 0 : links_[here.value()];
    for (; !walked_.empty(); walked_.pop_back()) {
      place_of_[walked_.back().value()] = p;
      links_[walked_.back().value()] = ++links;
    }
    return links;
  }

 private:
  const Routes& routes_;
  const Fabric& fabric_;
  std::vector<uint32_t> links_;     // [switch] to the place place_of_
  std::vector<uint32_t> place_of_;  // [switch]
  std::vector<SwitchIndex> walked_;
};

// Whether a column for each leaf switch says what a column for each place does.
bool EqualWithinLeaves(const ClassDistances& d, const std::vector<PlaceIndex>& seats) {
  const size_t places = d.bundles.size();
  for (size_t row = 0; row < seats.size(); ++row) {
    const uint8_t* const links = &d.links[row * places];
    for (size_t p = 0; p < places; ++p) {
      if (links[p] != links[seats[d.from_classes[p]].value()]) return false;
    }
  }
  return true;
}

// Keeps the columns of the seats alone. Whether the rest is symmetric.
bool KeepLeafColumns(ClassDistances& d, const std::vector<PlaceIndex>& seats) {
  const size_t places = d.bundles.size(), leaves = seats.size();
  for (size_t row = 0; row < leaves; ++row) {
    for (size_t column = 0; column < leaves; ++column) {
      d.links[row * leaves + column] = d.links[row * places + seats[column].value()];
    }
  }
  d.links.resize(leaves * leaves);
  d.links.shrink_to_fit();
  d.to_classes = d.from_classes;
  d.columns = static_cast<uint32_t>(leaves);
  for (size_t a = 0; a < leaves; ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (d.links[a * leaves + b] != d.links[b * leaves + a]) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Places>> Places::OfEndpoints(
    const Fabric& fabric, absl::Span<const EndpointIndex> slot_endpoints,
    uint32_t ranks_per_endpoint) {
  RETURN_IF_ERROR(CheckSlots(slot_endpoints.size(), ranks_per_endpoint));
  std::shared_ptr<Places> made(new Places);
  absl::flat_hash_map<EndpointIndex, PlaceIndex> place_of;
  for (const EndpointIndex e : slot_endpoints) {
    if (e.value() >= fabric.endpoint_count()) {
      return absl::InvalidArgumentError(absl::StrFormat("endpoint %d is not one of the fabric's %d",
                                                        e.value(), fabric.endpoint_count()));
    }
    const auto [place, is_new] =
        place_of.try_emplace(e, PlaceIndex(static_cast<uint32_t>(made->endpoints_.size())));
    if (is_new) made->endpoints_.push_back(e);
    made->place_of_slot_.insert(made->place_of_slot_.end(), ranks_per_endpoint, place->second);
  }
  made->IndexSlots(static_cast<uint32_t>(made->endpoints_.size()));
  return made;
}

absl::StatusOr<std::shared_ptr<const Places>> Places::Numbered(uint32_t count, uint32_t capacity) {
  RETURN_IF_ERROR(CheckSlots(count, capacity));
  std::shared_ptr<Places> made(new Places);
  for (uint32_t p = 0; p < count; ++p) {
    made->place_of_slot_.insert(made->place_of_slot_.end(), capacity, PlaceIndex(p));
  }
  made->IndexSlots(count);
  return made;
}

absl::StatusOr<std::shared_ptr<const Places>> Places::OfSlots(
    absl::Span<const uint32_t> place_of_slot) {
  RETURN_IF_ERROR(CheckSlots(place_of_slot.size(), 1));
  std::shared_ptr<Places> made(new Places);
  uint32_t count = 0;
  for (const uint32_t place : place_of_slot) {
    if (place > count) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "slot %d is on place %d, but the slots before it name only %d; number places by their "
          "first slot",
          made->place_of_slot_.size(), place, count));
    }
    if (place == count) ++count;
    made->place_of_slot_.emplace_back(place);
  }
  made->IndexSlots(count);
  return made;
}

void Places::IndexSlots(uint32_t place_count) {
  slots_begin_.assign(place_count + 1, 0);
  for (const PlaceIndex p : place_of_slot_) ++slots_begin_[p.value() + 1];
  for (uint32_t p = 0; p < place_count; ++p) slots_begin_[p + 1] += slots_begin_[p];
  slots_.resize(place_of_slot_.size());
  std::vector<uint32_t> next(slots_begin_.begin(), slots_begin_.end() - 1);
  for (uint32_t s = 0; s < place_of_slot_.size(); ++s)
    slots_[next[place_of_slot_[s].value()]++] = s;
}

Mapping Places::PresentOrder(uint32_t rank_count) const {
  return Mapping(place_of_slot_.begin(), place_of_slot_.begin() + rank_count);
}

std::vector<uint32_t> AssignSlots(const Places& places, const Mapping& mapping) {
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> slot_of(mapping.size(), kNone);
  std::vector<bool> taken(places.slot_count(), false);
  for (uint32_t rank = 0; rank < mapping.size(); ++rank) {
    if (places.place_of_slot(rank) != mapping[rank]) continue;
    slot_of[rank] = rank;
    taken[rank] = true;
  }
  std::vector<uint32_t> next(places.count(), 0);  // [place] the first of its slots to look at
  for (uint32_t rank = 0; rank < mapping.size(); ++rank) {
    if (slot_of[rank] != kNone) continue;
    const absl::Span<const uint32_t> slots = places.slots(mapping[rank]);
    uint32_t& i = next[mapping[rank].value()];
    while (taken[slots[i]]) ++i;
    slot_of[rank] = slots[i++];
  }
  return slot_of;
}

absl::StatusOr<DistancesPointer> PlaceDistances::Uniform(absl::Span<const uint32_t> extents,
                                                         absl::Span<const double> distances) {
  if (extents.empty() || extents.size() != distances.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a hierarchy of %d levels with %d distances; give one distance a level",
                        extents.size(), distances.size()));
  }
  LevelDistances levels;
  uint64_t count = 1;
  bool whole = true;
  double greatest = 0;
  std::vector<int> shifts;  // [level] the lowest bit of its field
  int width = 0;
  for (size_t level = 0; level < extents.size(); ++level) {
    if (extents[level] == 0 || extents[level] > Places::kMaxSlots ||
        (count *= extents[level]) > Places::kMaxSlots) {
      return absl::InvalidArgumentError(
          absl::StrFormat("level %d of the hierarchy has extent %d; give 1 or more, and at most %d "
                          "places in all",
                          level + 1, extents[level], Places::kMaxSlots));
    }
    const double distance = distances[level];
    if (!std::isfinite(distance) || distance < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("level %d of the hierarchy has distance %g; give a number from 0 up",
                          level + 1, distance));
    }
    shifts.push_back(width);
    const int bits = std::bit_width(extents[level] - 1);
    for (int b = 1; b <= bits; ++b) levels.by_width[width + b] = distance;
    width += bits;
    whole = whole && distance == std::floor(distance);
    if (extents[level] > 1) greatest = std::max(greatest, distance);
  }
  levels.codes.resize(count);
  for (uint64_t place = 0; place < count; ++place) {
    uint64_t rest = place;
    for (size_t level = 0; level < extents.size(); ++level) {
      levels.codes[place] |= rest % extents[level] << shifts[level];
      rest /= extents[level];
    }
  }
  return DistancesPointer(
      new PlaceDistances(std::move(levels), static_cast<uint32_t>(count), true, whole, greatest));
}

absl::StatusOr<DistancesPointer> PlaceDistances::Hops(const Places& places,
                                                      const SwitchDistances& distances) {
  RETURN_IF_ERROR(CheckPlaces(places));
  const Fabric& fabric = distances.fabric();
  ClassNumbers leaves;
  ClassDistances classes = ByLeafSwitch(fabric, places, leaves);
  classes.to_classes = classes.from_classes;
  const std::vector<PlaceIndex>& seats = leaves.representatives();
  RETURN_IF_ERROR(CheckTable(seats.size(), seats.size()));
  classes.columns = static_cast<uint32_t>(seats.size());
  classes.links.resize(seats.size() * seats.size());
  double greatest = 0;
  for (uint32_t a = 0; a < seats.size(); ++a) {
    const EndpointIndex from = places.endpoint(seats[a]);
    const std::optional<SwitchIndex> from_leaf = fabric.attached_switch(from);
    for (uint32_t b = 0; b < seats.size(); ++b) {
      const EndpointIndex to = places.endpoint(seats[b]);
      const std::optional<SwitchIndex> to_leaf = fabric.attached_switch(to);
      // Two hosts of one leaf switch are two links apart.
      std::optional<uint32_t> hops;
      if (from_leaf.has_value() && to_leaf.has_value()) {
        const uint8_t between = distances.Between(*from_leaf, *to_leaf);
        if (between != SwitchDistances::kUnreachable) hops = between + 2;
      } else {
        hops = a == b ? 0 : distances.Hops(fabric.Vertex(from), fabric.Vertex(to));
      }
      if (!hops.has_value() || *hops > 255) return NoPath(fabric, from, to);
      classes.links[a * seats.size() + b] = static_cast<uint8_t>(*hops);
      if (a != b || places.count() > 1) greatest = std::max<double>(greatest, *hops);
    }
  }
  return DistancesPointer(
      new PlaceDistances(std::move(classes), places.count(), true, true, greatest));
}

absl::StatusOr<DistancesPointer> PlaceDistances::RouteLengths(const Places& places,
                                                              const Routes& routes) {
  RETURN_IF_ERROR(CheckPlaces(places));
  const Fabric& fabric = routes.fabric();
  ClassNumbers leaves;
  ClassDistances classes = ByLeafSwitch(fabric, places, leaves);
  for (uint32_t p = 0; p < places.count(); ++p) classes.to_classes.push_back(p);
  classes.columns = places.count();
  const std::vector<PlaceIndex>& seats = leaves.representatives();
  RETURN_IF_ERROR(CheckTable(seats.size(), places.count()));
  classes.links.resize(seats.size() * places.count());
  double greatest = 0;
  RouteTree tree(routes);
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex to = places.endpoint(PlaceIndex(p));
    for (size_t row = 0; row < seats.size(); ++row) {
      const EndpointIndex from = places.endpoint(seats[row]);
      const std::optional<SwitchIndex> leaf = fabric.attached_switch(from);
      uint32_t length = 0;
      // From the leaf switch, so that the row holds for all of its endpoints.
      if (leaf.has_value()) {
        ASSIGN_OR_RETURN(length, tree.Length(*leaf, to, p));
        ++length;
      } else {
        ASSIGN_OR_RETURN(length, routes.Length(fabric.Vertex(from), fabric.Vertex(to)));
      }
      if (length > 255) return NoPath(fabric, from, to);
      classes.links[row * places.count() + p] = static_cast<uint8_t>(length);
      greatest = std::max<double>(greatest, length);
    }
  }
  // Were D symmetric, all places of a leaf switch were equally far from another leaf switch.
  const bool by_leaves = EqualWithinLeaves(classes, seats);
  const bool symmetric = by_leaves && KeepLeafColumns(classes, seats);
  return DistancesPointer(
      new PlaceDistances(std::move(classes), places.count(), symmetric, true, greatest));
}

absl::StatusOr<DistancesPointer> PlaceDistances::Matrix(uint32_t count,
                                                        std::vector<double> values) {
  if (count == 0 || count > kMaxMatrixPlaces || values.size() != size_t{count} * count) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a distance matrix of %d places with %d values; give places squared values for 1 to %d "
        "places",
        count, values.size(), kMaxMatrixPlaces));
  }
  bool whole = true, symmetric = true;
  double greatest = 0;
  for (uint32_t a = 0; a < count; ++a) {
    for (uint32_t b = 0; b < count; ++b) {
      const double distance = values[size_t{a} * count + b];
      if (!std::isfinite(distance) || distance < 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the distance in row %d, column %d is %g; give a number from 0 up",
                            a + 1, b + 1, distance));
      }
      whole = whole && distance == std::floor(distance);
      symmetric = symmetric && distance == values[size_t{b} * count + a];
      greatest = std::max(greatest, distance);
    }
  }
  return DistancesPointer(new PlaceDistances(MatrixDistances{count, std::move(values)}, count,
                                             symmetric, whole, greatest));
}

}  // namespace coppice
