// Which of two mappings is the better one, and which of two that the objective does not tell apart.
//
//     score              by the objective
//       equal: smooth    what is nearly as full as the fullest channel
//         equal: hop_bytes
//
// On networks of full bisection the fullest channel is a rank's own port in nearly every order: of
// these one may move twice the bytes between switches that another does. Simulated programs
// (tests/smpi) take as long as their fullest channels do, hence the smooth congestion before the
// hop-bytes.
#ifndef COPPICE_DAEMON_MAPPING_MAPPING_STANDING_H_
#define COPPICE_DAEMON_MAPPING_MAPPING_STANDING_H_

#include <limits>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct MappingStanding {
  double score = std::numeric_limits<double>::infinity();  // infinite: there is none
  // Where congestion is in the objective, else 0.
  double smooth = 0;     // the smooth congestion (mapping_metrics.h)
  double hop_bytes = 0;  // sum of bytes * links

  // Scores that differ by the rounding of sums alone are equal, and so is smooth congestion within
  // a thousandth: who compares one after the other keeps the least of equals beside the best.
  bool IsBetterThan(const MappingStanding& other) const;
  bool HasScoreOf(const MappingStanding& other) const;
  bool HasLessSmooth(const MappingStanding& other) const;
  bool HasFewerHopBytes(const MappingStanding& other) const;

  friend bool operator==(const MappingStanding&, const MappingStanding&) = default;
};

// `present` are the measures of the present order.
MappingStanding StandingOf(const Objective& objective, const MappingMeasures& measures,
                           const MappingMeasures& present);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_MAPPING_STANDING_H_
