// What a tree's request demanded beyond operation and sizes, kept with the tree so that it can be
// planned anew as it was asked for, also by a later run of the daemon.
#ifndef COPPICE_DAEMON_MANAGER_REQUEST_OPTIONS_H_
#define COPPICE_DAEMON_MANAGER_REQUEST_OPTIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/manager/manager.h"

namespace coppice {

// {"type":"II","width":4,"nic_degree":8,"root":"0002c9020040b0e0"}, of what was demanded, and the
// fields of a policy; "{}" if nothing was.
std::string RequestOptionsJson(const CreateTreeArgs& args);
// Of one that wants type II, but takes type I if none fits.
std::string RequestOptionsOfTypeIIOrElseI(CreateTreeArgs args);

// A record's request; without job and request_id. `accepts_type1`: type II is wanted, but type I
// will do. A record of a daemon that kept no demands is taken to want what it is, likewise. Text
// that somebody edited by hand demands nothing.
struct RecordedRequest {
  CreateTreeArgs args;
  bool accepts_type1 = false;
};
RecordedRequest RequestOf(const TreeRecord& record);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_REQUEST_OPTIONS_H_
