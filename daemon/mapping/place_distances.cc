#include "daemon/mapping/place_distances.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

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

// The hosts of all places, and a row for each leaf switch; no columns and no links yet.
ClassDistances ByLeafSwitch(const Fabric& fabric, const Places& places, ClassNumbers& leaves) {
  ClassDistances classes;
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    classes.hosts.push_back(fabric.host(e).value());
    classes.from_classes.push_back(leaves.Of(LeafKey(fabric, e), PlaceIndex(p)));
  }
  return classes;
}

absl::Status CheckPlaces(const Places& places) {
  if (places.has_endpoints()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "places without endpoints have no hops between them; give a distance matrix");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PlaceDistances>> PlaceDistances::Uniform(
    absl::Span<const uint32_t> extents, absl::Span<const double> distances) {
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
  std::shared_ptr<PlaceDistances> made(
      new PlaceDistances(std::move(levels), static_cast<uint32_t>(count)));
  made->whole_ = whole;
  made->greatest_ = greatest;
  return made;
}

absl::StatusOr<std::shared_ptr<const PlaceDistances>> PlaceDistances::Hops(
    const Places& places, const SwitchDistances& distances) {
  RETURN_IF_ERROR(CheckPlaces(places));
  const Fabric& fabric = distances.fabric();
  ClassNumbers leaves;
  ClassDistances classes = ByLeafSwitch(fabric, places, leaves);
  classes.to_classes = classes.from_classes;
  const std::vector<PlaceIndex>& seats = leaves.representatives();
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
  std::shared_ptr<PlaceDistances> made(new PlaceDistances(std::move(classes), places.count()));
  made->greatest_ = greatest;
  return made;
}

absl::StatusOr<std::shared_ptr<const PlaceDistances>> PlaceDistances::RouteLengths(
    const Places& places, const Routes& routes) {
  RETURN_IF_ERROR(CheckPlaces(places));
  const Fabric& fabric = routes.fabric();
  ClassNumbers leaves;
  ClassDistances classes = ByLeafSwitch(fabric, places, leaves);
  for (uint32_t p = 0; p < places.count(); ++p) classes.to_classes.push_back(p);
  classes.columns = places.count();
  classes.links.resize(leaves.representatives().size() * places.count());
  double greatest = 0;
  for (size_t row = 0; row < leaves.representatives().size(); ++row) {
    const EndpointIndex from = places.endpoint(leaves.representatives()[row]);
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(from);
    for (uint32_t p = 0; p < places.count(); ++p) {
      const EndpointIndex to = places.endpoint(PlaceIndex(p));
      // From the leaf switch, so that the row holds for all of its endpoints.
      const VertexIndex begin = leaf.has_value() ? fabric.Vertex(*leaf) : fabric.Vertex(from);
      ASSIGN_OR_RETURN(uint32_t length, routes.Length(begin, fabric.Vertex(to)));
      if (leaf.has_value()) ++length;
      if (length > 255) return NoPath(fabric, from, to);
      classes.links[row * places.count() + p] = static_cast<uint8_t>(length);
      greatest = std::max<double>(greatest, length);
    }
  }
  bool symmetric = true;
  for (uint32_t a = 0; a < places.count() && symmetric; ++a) {
    for (uint32_t b = 0; b < a && symmetric; ++b) symmetric = classes(a, b) == classes(b, a);
  }
  std::shared_ptr<PlaceDistances> made(new PlaceDistances(std::move(classes), places.count()));
  made->symmetric_ = symmetric;
  made->greatest_ = greatest;
  return made;
}

absl::StatusOr<std::shared_ptr<const PlaceDistances>> PlaceDistances::Matrix(
    uint32_t count, std::vector<double> values) {
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
  std::shared_ptr<PlaceDistances> made(
      new PlaceDistances(MatrixDistances{count, std::move(values)}, count));
  made->symmetric_ = symmetric;
  made->whole_ = whole;
  made->greatest_ = greatest;
  return made;
}

size_t PlaceDistances::MemoryBytes() const {
  struct Bytes {
    size_t operator()(const LevelDistances& d) const { return d.codes.size() * 8; }
    size_t operator()(const ClassDistances& d) const {
      return d.hosts.size() * 12 + d.links.size();
    }
    size_t operator()(const MatrixDistances& d) const { return d.values.size() * 8; }
  };
  return sizeof(*this) + std::visit(Bytes(), form_);
}

}  // namespace coppice
