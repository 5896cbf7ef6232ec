// Trees that were mended in haste get a second plan once there is time for it. A repair takes what
// it can get while the forwarding tables are behind the links, or without a cable that is back a
// minute later; without this the tree keeps that plan for as long as it lives.
//
//   tables settled on a fabric that was not looked at yet
//     --> each tree that is not as it was granted: what it takes now against a fresh plan
//     --> more than 5 % sooner: the fresh one is its next revision, else it stays
//
// Entries, store and watchers see what they see of a repair (repair.h), which carries it out. One
// tree after the other, so that none counts on entries that another has not left yet.
#ifndef COPPICE_DAEMON_MANAGER_REPLANNING_H_
#define COPPICE_DAEMON_MANAGER_REPLANNING_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/routes.h"
#include "daemon/manager/repair.h"
#include "daemon/manager/tables.h"

namespace coppice {

// One call at a time, from the thread that sweeps.
class Replanning {
 public:
  static constexpr double kWorthIt = 1.05;  // as soon, of the time that a tree takes now
  // A run stops after so long, so that nothing that has broken meanwhile waits; the rest is next.
  static constexpr absl::Duration kLongest = absl::Milliseconds(200);

  Replanning(const Clock* clock, Tables* tables, Repair* repair)
      : clock_(clock), tables_(tables), repair_(repair) {}

  // Returns when what is worth it is durable. Nothing to do: O(1).
  void Run();

 private:
  std::vector<RepairCase> Candidates(TreeId after, const FabricView& view) const;
  // The words for it if the tree was planned again.
  std::optional<std::string> Improve(const Repair::Round& round, RepairCase tree);
  // What the tree takes on the basis of a plan for its job; nullopt: it cannot be told.
  std::optional<double> PresentUs(const RepairCase& tree);

  const Clock* const clock_;
  Tables* const tables_;
  Repair* const repair_;
  std::shared_ptr<const Routes> looked_at_;  // the routes by which all trees were looked at
  std::shared_ptr<const Routes> looking_at_;
  TreeId last_;  // looked at by these
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_REPLANNING_H_
