// Switches that have the same neighbours, as the leaf switches of a pod have, folded into one class
// each: distances and routes are then found between a few classes and not between all switches.
//
//       S4   S5                  {S4 S5}          S0..S3 have the neighbours S4 and S5, and these
//      / \\ // \.                   |             have the neighbours S0..S3: two classes, and
//    S0 S1 S2 S3    (complete)   {S0 S1 S2 S3}    one row of two numbers instead of six of six
//
// Two switches u, v of one class are no neighbours, and for every other switch w
// distance(w, u) = distance(w, v): the last switch before u on a shortest path is v's neighbour,
// too. Hence distances between classes are those between their members, and it is 2 within a class.
// Knows no endpoints, ports or rates; parallel links count once and loopback cables not at all.
#ifndef COPPICE_DAEMON_FABRIC_TWIN_CLASSES_H_
#define COPPICE_DAEMON_FABRIC_TWIN_CLASSES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Immutable; thread-safe.
class TwinClasses final {
 public:
  static constexpr uint8_t kFar = 255;  // no path, or one of 255 hops or more

  // O(switches + links).
  explicit TwinClasses(const Fabric& fabric);

  // Classes are numbered from 0 by their lowest switch. A switch without neighbours is alone.
  uint32_t class_count() const { return static_cast<uint32_t>(begin_.size() - 1); }
  uint32_t class_of(SwitchIndex s) const { return class_of_[s.value()]; }

  // The classes of Fabric::switch_channels(s), one for one. Compact, because routes scan them.
  absl::Span<const uint32_t> classes_beside(SwitchIndex s) const {
    const uint32_t begin = beside_begin_[s.value()];
    return absl::MakeConstSpan(beside_).subspan(begin, beside_begin_[s.value() + 1] - begin);
  }

  // Hops from every class to `target`, [class_count]; 0 for `target` itself. O(classes + links
  // between them).
  std::vector<uint8_t> RowTo(uint32_t target) const;

 private:
  void FindClasses(const Fabric& fabric);
  void JoinClasses(const Fabric& fabric);

  std::vector<uint32_t> class_of_;      // [switch]
  std::vector<uint32_t> lowest_;        // [class] its lowest switch
  std::vector<uint32_t> beside_begin_;  // [switch + 1] into beside_
  std::vector<uint32_t> beside_;
  std::vector<uint32_t> begin_;  // [class + 1] into neighbours_
  std::vector<uint32_t> neighbours_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TWIN_CLASSES_H_
