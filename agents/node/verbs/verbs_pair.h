// One end of a reliable connection over verbs, for measuring: a queue pair, what it needs, and
// memory of its own to send from and receive into; what is in the messages does not matter.
//
//   RESET --Create--> INIT --Connect--> RTR --> RTS      (InfiniBand specification 1.3, 10.3.1)
//
// A message of a transfer's size goes in pieces, all of which the receiver has posted before the
// sender is told to begin: it is never not ready.
#ifndef COPPICE_AGENTS_NODE_VERBS_VERBS_PAIR_H_
#define COPPICE_AGENTS_NODE_VERBS_VERBS_PAIR_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/node/verbs/verbs_offer.h"
#include "agents/node/verbs/verbs_port.h"

namespace coppice {

// Belongs to one thread. All errors of the device are FAILED_PRECONDITION and name it and its port;
// after one the pair can only be destroyed.
class VerbsPair final {
 public:
  // Asked now and then while a wait polls; `is_quiet`: nothing has come for a while, so that it may
  // wait for a moment. Its error ends the wait.
  using Look = std::function<absl::Status(bool is_quiet)>;

  // `transfer_bytes`: of the longest message.
  static absl::StatusOr<std::unique_ptr<VerbsPair>> Create(VerbsPort port, size_t transfer_bytes);

  const VerbsOffer& offer() const { return offer_; }
  // From then on it can be received from; both ends have to be there before one sends.
  absl::Status Connect(const VerbsOffer& peer);

  // Gets ready for the peer's next message, of so many bytes.
  absl::Status PostMessage(size_t bytes);
  // Waits until all that was posted has come.
  absl::Status AwaitMessages(const Look& look);
  // Sends; returns when the last piece is on its way, or, after Drain, has been acknowledged.
  absl::Status Send(size_t bytes, const Look& look);
  absl::Status Drain(const Look& look);

 private:
  struct Destroy {
    void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
    void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
  };
  // Whole pages: libibverbs keeps them from processes that fork.
  struct Unmap {
    size_t bytes;
    void operator()(void* memory) const;
  };

  VerbsPair(VerbsPort port, size_t transfer_bytes);

  absl::Status Allocate();
  absl::Status CreateQueues();
  absl::Status Initialise();
  absl::Status ReadyToReceive(const VerbsOffer& peer);
  absl::Status ReadyToSend();
  absl::Status Modify(ibv_qp_attr& attributes, int mask, const char* state);
  ibv_sge Piece(size_t bytes, size_t small_offset) const;
  size_t PieceOf(size_t left) const { return left < piece_bytes_ ? left : piece_bytes_; }
  size_t PiecesOf(size_t bytes) const { return (bytes + piece_bytes_ - 1) / piece_bytes_; }
  // Takes completions until `is_done`.
  absl::Status PollUntil(const std::function<bool()>& is_done, const Look& look);
  absl::Status TakeCompletion(const ibv_wc& completion);

  VerbsPort port_;
  const size_t piece_bytes_;
  const uint32_t most_receives_;
  VerbsOffer offer_;
  std::unique_ptr<ibv_pd, Destroy> pd_;
  std::unique_ptr<ibv_cq, Destroy> cq_;
  std::unique_ptr<void, Unmap> memory_{nullptr, Unmap{0}};
  std::unique_ptr<ibv_mr, Destroy> region_;
  std::unique_ptr<ibv_qp, Destroy> qp_;  // the first to go
  size_t sends_ = 0, receives_ = 0;      // posted and not completed
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_VERBS_VERBS_PAIR_H_
