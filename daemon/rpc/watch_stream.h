// The streams of Trees.WatchTrees: one reactor per stream, the set of those that are open, so that
// a shutdown can end them, and the thread that sets sleeping ones going again.
//
//   Pump: next change --StartWrite--> OnWriteDone --Pump--> ... --no change yet--> asleep
//                                                                   ^               |
//                                     thread of WatchStreams: Pump -+---- wake <----+
//
// At most one write is under way, and a few changes wait behind it, so a client that reads slowly
// costs memory for these only; the manager tells it when it has fallen too far behind.
#ifndef COPPICE_DAEMON_RPC_WATCH_STREAM_H_
#define COPPICE_DAEMON_RPC_WATCH_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/trees_conversion.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

class WatchStream;

// Thread-safe; outlives every stream that it opened.
class WatchStreams final {
 public:
  explicit WatchStreams(Manager* manager) : manager_(manager), pump_(1) {}

  // A stream of what becomes of trees. It deletes itself when its call is done.
  WatchStream* Open(const v1::WatchTreesRequest& request);

  // Ends all with UNAVAILABLE, and later ones at once.
  void Close();

 private:
  friend class WatchStream;
  void Remove(uint64_t id);
  // Quick; from any thread. The stream may be gone by then.
  void Wake(uint64_t id);

  Manager* const manager_;
  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  std::mutex mutex_;
  // Guarded by mutex_.
  bool closed_ = false;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<uint64_t, WatchStream*> open_;
  WorkerPool pump_;  // last: its thread uses the above
};

class WatchStream final : public grpc::ServerWriteReactor<v1::TreeChange> {
 public:
  WatchStream(WatchStreams* streams, uint64_t id, TreeDetail detail, std::string object)
      : streams_(streams), id_(id), detail_(detail), object_(std::move(object)) {}

  void Begin(std::unique_ptr<TreeWatch> watch);
  // Writes the next change unless one is being written or there is none.
  void Pump();
  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Fetches changes if none wait. OK with none waiting: asleep, or over.
  absl::Status Fetch();
  void EndLocked(const absl::Status& status);

  WatchStreams* const streams_;
  const uint64_t id_;
  const TreeDetail detail_;
  const std::string object_;  // for errors
  v1::TreeChange message_;    // being written

  std::mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<TreeWatch> watch_;
  std::deque<TreeChange> waiting_;
  bool is_writing_ = false;
  bool ended_ = false;
};

// Writes over `message`. O(nodes) if `detail` is full.
void ToProto(const TreeChange& change, TreeDetail detail, v1::TreeChange& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_WATCH_STREAM_H_
