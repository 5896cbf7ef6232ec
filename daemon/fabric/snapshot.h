// Everything that a planner needs to know of the fabric at one instant, shared and immutable.
#ifndef COPPICE_DAEMON_FABRIC_SNAPSHOT_H_
#define COPPICE_DAEMON_FABRIC_SNAPSHOT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/partitions.h"
#include "daemon/fabric/routes.h"

namespace coppice {

// How busy each channel is, as one immutable value. Channels lie in pages that values share, so
// that the next value, which differs in a few channels, costs these pages and one pointer for each
// other. Knows no fabric, and not where load comes from.
class LinkLoad final {
 public:
  static constexpr size_t kPageChannels = 128;

  LinkLoad() = default;  // no load anywhere
  // [channel] utilisation, 0..1.
  explicit LinkLoad(absl::Span<const float> utilisation);

  // The same with these pages (distinct, of a load of `channels` channels) filled anew: `fill` gets
  // a page's first channel and room for kPageChannels, or for those that are left. An empty load
  // counts as one without load. O(channels / kPageChannels + channels of the pages).
  LinkLoad With(size_t channels, absl::Span<const uint32_t> pages,
                absl::FunctionRef<void(size_t first, absl::Span<float> values)> fill) const;

  // Nothing is known of any channel: no load.
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }  // channels; 0 if empty
  float operator[](size_t channel) const {
    const Page* const page = pages_[channel / kPageChannels].get();
    return page == nullptr ? 0 : page->values[channel % kPageChannels];
  }
  // Of all channels; 0 without load.
  float greatest() const { return greatest_; }

 private:
  struct Page {
    std::array<float, kPageChannels> values;
    float greatest;
  };

  std::vector<std::shared_ptr<const Page>> pages_;  // null: no load in it
  size_t size_ = 0;
  float greatest_ = 0;
};

struct Snapshot {
  std::shared_ptr<const Fabric> fabric;  // none of the five is ever null
  std::shared_ptr<const Routes> routes;
  std::shared_ptr<const Hierarchy> hierarchy;
  std::shared_ptr<const LinkLoad> load;  // [channel_count], or empty
  std::shared_ptr<const Partitions> partitions = Partitions::Unknown();

  float utilisation(ChannelIndex c) const { return load->empty() ? 0.0F : (*load)[c.value()]; }
};

// Derives the hierarchy and takes the routes from `tables`, or shortest paths if it is null.
// INVALID_ARGUMENT: tables of another fabric.
absl::StatusOr<std::shared_ptr<const Snapshot>> MakeSnapshot(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables);

// A fabric without some of its links. All switches, also those that are left without a link: their
// indices stay, and with them the rows of forwarding tables. Adapters that keep no link go. What
// stays keeps its order, so the links of the result are those of `fabric` without the others.
// `is_lost` is [link]. The version is 0. O(n log n).
absl::StatusOr<std::shared_ptr<const Fabric>> WithoutLinks(const Fabric& fabric,
                                                           const std::vector<bool>& is_lost);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SNAPSHOT_H_
