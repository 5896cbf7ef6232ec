#include "agents/node/verbs/verbs_pair.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/node/ping_pong_samples.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;

// A transfer in pieces takes little of the memory that a user may have locked (ulimit -l).
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kMostPieces = 256;
// Pieces on their way: enough that the link is never idle between two.
constexpr uint32_t kMostSends = 16;
// Messages of kPingBytes come and go at the front of the memory, pieces of transfers behind it.
constexpr size_t kSmallBytes = 128, kSmallSent = 0, kSmallReceived = 64;
// The timeout of an unacknowledged packet is 4.096 us * 2^14, which is 67 ms, and after seven the
// peer counts as gone; one that is not ready is asked again after 0.64 ms (code 12), which never
// happens between two that keep to ping_pong.h. (InfiniBand specification 1.3, 9.7.5.2.8, 9.7.6.1)
constexpr uint8_t kTimeout = 14, kRetries = 7, kNotReadyRetries = 6, kNotReadyTimer = 12;
constexpr uint8_t kMostHops = 1;  // of one subnet
// Polls between two looks at the clock and at the peer, and how long these are only glances.
constexpr uint32_t kPollsOfALook = 256;
constexpr std::chrono::milliseconds kQuietAfter{20};

size_t PieceBytesOf(size_t transfer_bytes) {
  const size_t least = std::clamp(transfer_bytes, PingPongNumbers::kPingBytes, kPieceBytes);
  return std::max(least, (transfer_bytes + kMostPieces - 1) / kMostPieces);
}

uint32_t Random24() {
  uint32_t number = 0;
  (void)!getrandom(&number, sizeof number, 0);  // of 4 bytes it fails never
  return number & 0xffffff;
}

// What commonly stands behind a completion's error.
std::string Why(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return " (the peer's port does not answer: it is down, or on a fabric apart)";
    case IBV_WC_WR_FLUSH_ERR:
      return " (the connection is in error)";
    default:
      return "";
  }
}

}  // namespace

void VerbsPair::Unmap::operator()(void* memory) const { munmap(memory, bytes); }

VerbsPair::VerbsPair(VerbsPort port, size_t transfer_bytes)
    : port_(std::move(port)),
      piece_bytes_(PieceBytesOf(transfer_bytes)),
      most_receives_(static_cast<uint32_t>(std::max<size_t>(1, PiecesOf(transfer_bytes)))) {}

absl::StatusOr<std::unique_ptr<VerbsPair>> VerbsPair::Create(VerbsPort port,
                                                             size_t transfer_bytes) {
  std::unique_ptr<VerbsPair> pair(new VerbsPair(std::move(port), transfer_bytes));
  if (absl::Status status = pair->Allocate(); !status.ok()) return status;
  if (absl::Status status = pair->CreateQueues(); !status.ok()) return status;
  if (absl::Status status = pair->Initialise(); !status.ok()) return status;
  return pair;
}

absl::Status VerbsPair::Allocate() {
  const size_t bytes = kSmallBytes + piece_bytes_;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return port_.Failed("no memory to measure with");
  memory_ = std::unique_ptr<void, Unmap>(memory, Unmap{bytes});
  pd_.reset(ibv_alloc_pd(port_.context()));
  if (pd_ == nullptr) {
    return port_.Failed(absl::StrCat("no protection domain: ", std::strerror(errno)));
  }
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;
  region_.reset(ibv_reg_mr(pd_.get(), memory, bytes, kAccess));
  if (region_ != nullptr) return absl::OkStatus();
  const int error = errno;
  const char* const hint = error == ENOMEM ? " (ulimit -l, LimitMEMLOCK= of the unit)" : "";
  return port_.Failed(
      absl::StrCat(bytes, " bytes of memory cannot be registered: ", std::strerror(error), hint));
}

absl::Status VerbsPair::CreateQueues() {
  const uint32_t completions = kMostSends + most_receives_;
  cq_.reset(ibv_create_cq(port_.context(), static_cast<int>(completions), nullptr, nullptr, 0));
  if (cq_ == nullptr) {
    return port_.Failed(
        absl::StrCat("no completion queue of ", completions, " entries: ", std::strerror(errno)));
  }
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap.max_send_wr = kMostSends;
  attributes.cap.max_recv_wr = most_receives_;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
  qp_.reset(ibv_create_qp(pd_.get(), &attributes));
  if (qp_ == nullptr) {
    return port_.Failed(absl::StrCat("no queue pair for ", kMostSends, " sends and ",
                                     most_receives_, " receives: ", std::strerror(errno)));
  }
  offer_ = port_.place();
  offer_.queue_pair = qp_->qp_num;
  offer_.packet_number = Random24();
  return absl::OkStatus();
}

absl::Status VerbsPair::Modify(ibv_qp_attr& attributes, int mask, const char* state) {
  const int error = ibv_modify_qp(qp_.get(), &attributes, mask);
  if (error == 0) return absl::OkStatus();
  return port_.Failed(
      absl::StrCat("the queue pair does not become ", state, ": ", std::strerror(error)));
}

absl::Status VerbsPair::Initialise() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;
  attributes.port_num = port_.number();
  attributes.qp_access_flags = 0;  // nobody reads or writes here
  return Modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "INIT");
}

absl::Status VerbsPair::Connect(const VerbsOffer& peer) {
  if (absl::Status status = ReadyToReceive(peer); !status.ok()) return status;
  return ReadyToSend();
}

// Service level 0, as of every path on a fabric without quality of service.
absl::Status VerbsPair::ReadyToReceive(const VerbsOffer& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(offer_.mtu, peer.mtu));
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = peer.packet_number;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kNotReadyTimer;
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.port_num = port_.number();
  if (port_.needs_global_route()) {
    attributes.ah_attr.is_global = 1;
    std::copy(peer.gid.begin(), peer.gid.end(), attributes.ah_attr.grh.dgid.raw);
    attributes.ah_attr.grh.hop_limit = kMostHops;
  }
  return Modify(attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "ready to receive");
}

absl::Status VerbsPair::ReadyToSend() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = offer_.packet_number;
  attributes.max_rd_atomic = 1;
  attributes.timeout = kTimeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kNotReadyRetries;
  return Modify(attributes,
                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
                    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
                "ready to send");
}

ibv_sge VerbsPair::Piece(size_t bytes, size_t small_offset) const {
  const size_t offset = bytes <= PingPongNumbers::kPingBytes ? small_offset : kSmallBytes;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uintptr_t>(memory_.get()) + offset;
  piece.length = static_cast<uint32_t>(bytes);
  piece.lkey = region_->lkey;
  return piece;
}

absl::Status VerbsPair::PostMessage(size_t bytes) {
  for (size_t left = bytes; left > 0; left -= PieceOf(left)) {
    ibv_sge piece = Piece(PieceOf(left), kSmallReceived);
    ibv_recv_wr request{}, *refused = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    if (const int error = ibv_post_recv(qp_.get(), &request, &refused); error != 0) {
      return port_.Failed(absl::StrCat("takes no receive: ", std::strerror(error)));
    }
    ++receives_;
  }
  return absl::OkStatus();
}

absl::Status VerbsPair::AwaitMessages(const Look& look) {
  return PollUntil([this] { return receives_ == 0; }, look);
}

absl::Status VerbsPair::Send(size_t bytes, const Look& look) {
  for (size_t left = bytes; left > 0; left -= PieceOf(left)) {
    absl::Status room = PollUntil([this] { return sends_ < kMostSends; }, look);
    if (!room.ok()) return room;
    ibv_sge piece = Piece(PieceOf(left), kSmallSent);
    ibv_send_wr request{}, *refused = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    if (const int error = ibv_post_send(qp_.get(), &request, &refused); error != 0) {
      return port_.Failed(absl::StrCat("takes no send: ", std::strerror(error)));
    }
    ++sends_;
  }
  return absl::OkStatus();
}

absl::Status VerbsPair::Drain(const Look& look) {
  return PollUntil([this] { return sends_ == 0; }, look);
}

absl::Status VerbsPair::TakeCompletion(const ibv_wc& completion) {
  // Of one with an error nothing else is told.
  if (completion.status != IBV_WC_SUCCESS) {
    return port_.Failed(absl::StrCat(ibv_wc_status_str(completion.status), Why(completion.status)));
  }
  --((completion.opcode & IBV_WC_RECV) != 0 ? receives_ : sends_);
  return absl::OkStatus();
}

absl::Status VerbsPair::PollUntil(const std::function<bool()>& is_done, const Look& look) {
  Clock::time_point newest = Clock::now();
  for (uint32_t polls = 1; !is_done(); ++polls) {
    ibv_wc completion{};
    const int count = ibv_poll_cq(cq_.get(), 1, &completion);
    if (count < 0) return port_.Failed("the completion queue cannot be read");
    if (count > 0) {
      if (absl::Status status = TakeCompletion(completion); !status.ok()) return status;
      newest = Clock::now();
      polls = 0;
    } else if (polls % kPollsOfALook == 0) {
      const bool is_quiet = Clock::now() - newest > kQuietAfter;
      if (absl::Status status = look(is_quiet); !status.ok()) return status;
      // A device that was taken away completes nothing.
      if (!is_quiet) continue;
      if (absl::Status status = port_.CheckActive(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
