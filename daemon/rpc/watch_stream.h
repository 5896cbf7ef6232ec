// The streams of Trees.WatchTrees: changes of the manager's feed, a few at a time.
#ifndef COPPICE_DAEMON_RPC_WATCH_STREAM_H_
#define COPPICE_DAEMON_RPC_WATCH_STREAM_H_

#include "coppice/v1/fabric.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/pulled_stream.h"
#include "daemon/rpc/conversion/trees_conversion.h"

namespace coppice {

using WatchStreams = PulledStreams<v1::TreeChange>;

// Opens a stream of `streams` that writes what `request` asks for.
grpc::ServerWriteReactor<v1::TreeChange>* OpenWatchStream(WatchStreams& streams, Manager* manager,
                                                          const v1::WatchTreesRequest& request);

// Writes over `message`. O(nodes) if `detail` is full.
void ToProto(const TreeChange& change, TreeDetail detail, v1::TreeChange& message);

// The streams of Fabric.WatchEvents: events of the manager's feed, a few at a time.

using EventStreams = PulledStreams<v1::Event>;

// Opens a stream of `streams` that writes what `request` asks for.
grpc::ServerWriteReactor<v1::Event>* OpenEventStream(EventStreams& streams, Manager* manager,
                                                     const v1::WatchEventsRequest& request);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_WATCH_STREAM_H_
