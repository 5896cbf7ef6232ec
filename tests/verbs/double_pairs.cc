// libibverbs' functions: queue pairs, their states and what is posted to them.
#include <cerrno>
#include <cstring>

#include "tests/verbs/double_state.h"

namespace coppice::verbs_double {
namespace {

// What a transition wants to be told and may be told (ibv_modify_qp(3); InfiniBand specification
// 1.3, volume 1, 11.2.5.2, for reliable connections).
struct Transition {
  ibv_qp_state from, to;
  int required, optional;
};
constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
         IBV_QP_PATH_MIG_STATE},
};

constexpr uint32_t kLast24 = 0xffffff;

bool AreGoodToReceive(const PairState& pair, const Port& port, const ibv_qp_attr& a) {
  const bool is_route_good =
      !port.needs_global_route || (a.ah_attr.is_global != 0 && a.ah_attr.grh.hop_limit > 0);
  return a.ah_attr.port_num == pair.attributes.port_num && a.ah_attr.dlid >= 1 &&
         a.ah_attr.dlid < 0xc000 && is_route_good && a.path_mtu >= IBV_MTU_256 &&
         a.path_mtu <= port.mtu && a.dest_qp_num <= kLast24 && a.rq_psn <= kLast24 &&
         a.min_rnr_timer < 32;
}

bool AreGoodToSend(const ibv_qp_attr& a) {
  return a.sq_psn <= kLast24 && a.timeout < 32 && a.retry_cnt < 8 && a.rnr_retry < 8;
}

int Enter(PairState& pair, ibv_qp_state to, const ibv_qp_attr& a) {
  switch (to) {
    case IBV_QPS_INIT:
      pair.attributes = a;
      if (PortOf(pair) == nullptr) return Misuse("a pair of a port that there is not", EINVAL);
      break;
    case IBV_QPS_RTR: {
      if (!AreGoodToReceive(pair, *PortOf(pair), a)) {
        return Misuse("attributes of RTR are out of range", EINVAL);
      }
      const uint8_t port = pair.attributes.port_num;
      pair.attributes = a;
      pair.attributes.port_num = port;
      pair.next_received = a.rq_psn;
      StartReceiving(pair);
      break;
    }
    default:
      if (!AreGoodToSend(a)) return Misuse("attributes of RTS are out of range", EINVAL);
      pair.next_sent = a.sq_psn;
      StartSending(pair);
  }
  pair.state = to;
  return 0;
}

// The region that has all of it; null: none has.
RegionState* RegionOf(const PairState& pair, const ibv_sge& piece, int access) {
  for (RegionState* const region : Shared().regions) {
    const auto begin = reinterpret_cast<uintptr_t>(region->addr);
    if (region->lkey == piece.lkey && region->pd == pair.pd && piece.addr >= begin &&
        piece.addr + piece.length <= begin + region->length &&
        (region->access & access) == access) {
      return region;
    }
  }
  return nullptr;
}

Request RequestOf(uint64_t id, const ibv_sge& piece, bool is_signaled) {
  return {id, reinterpret_cast<char*>(piece.addr), piece.length, is_signaled};
}

int PostOne(PairState& pair, const ibv_send_wr& request) {
  if (pair.owner->device_state->has_vanished) return EIO;
  if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) {
    return Misuse("a send is posted before the pair is ready to send", EINVAL);
  }
  if (request.num_sge != 1 || request.opcode != IBV_WR_SEND || request.sg_list->length == 0) {
    return Misuse("a send that the double does not know", EINVAL);
  }
  if (pair.send_slots == pair.cap.max_send_wr)
    return Misuse("more sends than there is room", ENOMEM);
  ++pair.send_slots;
  const bool is_signaled = pair.signals_all || (request.send_flags & IBV_SEND_SIGNALED) != 0;
  const Request made = RequestOf(request.wr_id, *request.sg_list, is_signaled);
  if (pair.state == IBV_QPS_ERR) {
    Complete(*pair.send_queue, pair, made, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, 0);
  } else if (RegionOf(pair, *request.sg_list, 0) == nullptr) {
    Misuse("a send from memory that is not registered", 0);
    Complete(*pair.send_queue, pair, made, IBV_WC_SEND, IBV_WC_LOC_PROT_ERR, 0);
    Fail(pair);
  } else {
    pair.sends.push_back(made);
    pair.changed.notify_all();
  }
  return 0;
}

int PostOne(PairState& pair, const ibv_recv_wr& request) {
  if (pair.owner->device_state->has_vanished) return EIO;
  if (pair.state == IBV_QPS_RESET) return Misuse("a receive is posted to a pair in RESET", EINVAL);
  if (request.num_sge != 1) return Misuse("a receive that the double does not know", EINVAL);
  if (pair.receive_slots == pair.cap.max_recv_wr) {
    return Misuse("more receives than there is room", ENOMEM);
  }
  ++pair.receive_slots;
  const Request made = RequestOf(request.wr_id, *request.sg_list, true);
  if (pair.state == IBV_QPS_ERR) {
    Complete(*pair.receive_queue, pair, made, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
  } else if (RegionOf(pair, *request.sg_list, IBV_ACCESS_LOCAL_WRITE) == nullptr) {
    Misuse("a receive into memory that is not registered for it", 0);
    Complete(*pair.receive_queue, pair, made, IBV_WC_RECV, IBV_WC_LOC_PROT_ERR, 0);
    Fail(pair);
  } else {
    pair.receives.push_back(made);
  }
  return 0;
}

template <class Wanted>
int PostAll(ibv_qp* qp, Wanted* request, Wanted** refused) {
  const std::lock_guard lock(Shared().mutex);
  for (; request != nullptr; request = request->next) {
    const int error = PostOne(*static_cast<PairState*>(qp), *request);
    if (error == 0) continue;
    *refused = request;
    return error;
  }
  return 0;
}

}  // namespace

int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  return PostAll(qp, request, refused);
}

int PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
  return PostAll(qp, request, refused);
}

}  // namespace coppice::verbs_double

extern "C" {

using namespace coppice::verbs_double;  // NOLINT: what is defined here is of the C library

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  auto* const owner = static_cast<ContextState*>(verbs_get_ctx(pd->context));
  const Device& device = owner->device_state->is;
  const bool is_good = wanted->qp_type == IBV_QPT_RC && wanted->send_cq != nullptr &&
                       wanted->recv_cq != nullptr && wanted->cap.max_send_sge == 1 &&
                       wanted->cap.max_recv_sge == 1 && wanted->cap.max_inline_data == 0 &&
                       wanted->cap.max_send_wr <= device.most_requests &&
                       wanted->cap.max_recv_wr <= device.most_requests;
  if (!is_good || owner->device_state->has_vanished) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const pair = new PairState();
  pair->context = pd->context;
  pair->pd = pd;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->qp_num = ++state.last_number;
  pair->state = IBV_QPS_RESET;
  pair->qp_type = wanted->qp_type;
  pair->owner = owner;
  pair->domain = static_cast<DomainState*>(pd);
  pair->send_queue = static_cast<QueueState*>(wanted->send_cq);
  pair->receive_queue = static_cast<QueueState*>(wanted->recv_cq);
  pair->cap = wanted->cap;
  pair->signals_all = wanted->sq_sig_all != 0;
  ++pair->domain->users;
  ++pair->send_queue->users;
  ++pair->receive_queue->users;
  state.pairs.insert(pair);
  state.pair_of[pair->qp_num] = pair;
  ++owner->objects;
  ++state.objects;
  return pair;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  const std::lock_guard lock(Shared().mutex);
  auto& pair = *static_cast<PairState*>(qp);
  if (pair.owner->device_state->has_vanished) return EIO;
  for (const Transition& transition : kTransitions) {
    if (transition.from != pair.state || transition.to != attributes->qp_state) continue;
    const bool is_whole = (mask & transition.required) == transition.required;
    const bool is_allowed = (mask & ~(transition.required | transition.optional)) == 0;
    if (!is_whole || !is_allowed) return Misuse("attributes of a transition are wrong", EINVAL);
    return Enter(pair, transition.to, *attributes);
  }
  return Misuse("there is no such transition", EINVAL);
}

int ibv_destroy_qp(ibv_qp* qp) {
  auto* const pair = static_cast<PairState*>(qp);
  StopWire(*pair);
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  --pair->domain->users;
  --pair->send_queue->users;
  --pair->receive_queue->users;
  state.pairs.erase(pair);
  state.pair_of.erase(pair->qp_num);
  --pair->owner->objects;
  --state.objects;
  delete pair;
  return 0;
}

}  // extern "C"
