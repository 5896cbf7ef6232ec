// The use cases of calibration: the cost profile with which trees are planned, as the configuration
// gives it or as a calibration has put it in force.
//
//   configured --Calibrate with apply, durable--> calibrated --Reset, durable--> configured
//                                                   |    ^
//                                                   +----+ Calibrate with apply: fitted against it
//
// The profile in force is Tables::profile and changes in the store's callbacks, so that it is
// always the one of some earlier state of the store. Plans under way keep theirs.
#ifndef COPPICE_DAEMON_MANAGER_PROFILES_H_
#define COPPICE_DAEMON_MANAGER_PROFILES_H_

#include <memory>
#include <string>

#include "daemon/manager/fabric_view.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/tables.h"

namespace coppice {

// Thread-safe. Methods as Manager's.
class Profiles : private UseCase {
 public:
  using Profile = std::shared_ptr<const CostProfile>;

  // Puts the configured profile in force.
  explicit Profiles(const UseCase& with);

  // Puts in force what an earlier run left; empty: nothing. Text that is no profile any more is
  // told, as a log line and an event, and left in the store for whoever wants to mend it.
  void Restore(const std::string& toml);

  // Another configured profile: in force at once, unless a calibrated one is.
  void Configure(const CostProfile& profile);

  void Calibrate(const CalibrateArgs& args, Callback<std::shared_ptr<const CalibrationView>> done);
  void Reset(Callback<Profile> done);

 private:
  void PutInForce(Profile profile);

  Profile configured_;  // guarded by tables_->mu
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PROFILES_H_
