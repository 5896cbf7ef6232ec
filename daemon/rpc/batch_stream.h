// The stream of one BatchCreateTrees: progress while the batch is planned, of which only the newest
// waits for a slow reader, then the trees one by one, then the summary.
//
//   planning thread --Tell--> newest progress --+
//   store's thread  --Answer--> batch ----------+--> one write at a time --> Finish
//
// Several threads hold it: whoever plans, the store's callback, gRPC. It lives until the last of
// them lets go; gRPC's share is given back in OnDone, and from then on the others' calls do
// nothing.
#ifndef COPPICE_DAEMON_RPC_BATCH_STREAM_H_
#define COPPICE_DAEMON_RPC_BATCH_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/method_statistics.h"
#include "daemon/rpc/trees_conversion.h"

namespace coppice {

// Thread-safe.
class BatchStream final : public grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate> {
 public:
  // `object` is what errors are about; `method` counts the streams. Must be ended or answered.
  static std::shared_ptr<BatchStream> Open(std::string object, MethodStatistics::Method* method);

  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status);
  // Neither blocks.
  void Tell(BatchWatch::Phase phase, uint32_t done, uint32_t communicators);
  void Answer(absl::StatusOr<std::shared_ptr<const BatchView>> batch, TreeDetail detail);

  // The client has gone.
  bool is_cancelled() const { return is_cancelled_; }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  BatchStream(std::string object, MethodStatistics::Method* method)
      : object_(std::move(object)), method_(method) {}
  // Writes what is next, if nothing is being written; false: everything has been written.
  bool WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string object_;
  MethodStatistics::Method* const method_;
  std::shared_ptr<BatchStream> self_;  // gRPC's share
  std::atomic<bool> is_cancelled_{false};

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::BatchProgress> progress_ ABSL_GUARDED_BY(mutex_);  // not written yet
  std::shared_ptr<const BatchView> batch_ ABSL_GUARDED_BY(mutex_);     // null until it is answered
  TreeDetail detail_ ABSL_GUARDED_BY(mutex_) = TreeDetail::kFull;
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;                 // trees; one more: and the summary
  v1::BatchCreateTreesUpdate update_ ABSL_GUARDED_BY(mutex_);  // gRPC's while writing_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_BATCH_STREAM_H_
