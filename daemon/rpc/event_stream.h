// The streams of Fabric.WatchEvents: events of the manager's feed, a few at a time.
#ifndef COPPICE_DAEMON_RPC_EVENT_STREAM_H_
#define COPPICE_DAEMON_RPC_EVENT_STREAM_H_

#include "coppice/v1/fabric.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/pulled_stream.h"

namespace coppice {

using EventStreams = PulledStreams<v1::Event>;

// Opens a stream of `streams` that writes what `request` asks for.
grpc::ServerWriteReactor<v1::Event>* OpenEventStream(EventStreams& streams, Manager* manager,
                                                     const v1::WatchEventsRequest& request);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_EVENT_STREAM_H_
