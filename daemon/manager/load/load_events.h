// The events about counters, in words. Knows nothing of when they are told.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_LOAD_EVENTS_H_
#define COPPICE_DAEMON_MANAGER_LOAD_LOAD_EVENTS_H_

#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/load/error_watch.h"
#include "db/store.h"

namespace coppice {

// `link.errors`: errors rise on the link, or no more.
EventRecord ErrorsEvent(const Fabric& fabric, LinkIndex link, const ErrorWatch::Told& told,
                        absl::Time wall);

// `port.counters`: a count of data stands at its end at the switch port that `channel` leaves.
EventRecord StoppedEvent(const Fabric& fabric, ChannelIndex channel, absl::Time wall);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_LOAD_EVENTS_H_
