// The double of a verbs device itself: it notices what a caller does wrong, or the tests over it
// would prove nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "tests/verbs/device_double.h"

namespace coppice::verbs_double_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verbs_double::TakeMisuses;

constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kToReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kToSend = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
                        IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;

// A pair that can be joined to itself or to another of the same port.
struct End {
  ibv_cq* queue;
  ibv_qp* pair;
};

class VerbsDoubleTest : public ::testing::Test {
 protected:
  VerbsDoubleTest() {
    char name[] = "/tmp/coppice-double-XXXXXX";
    folder_ = mkdtemp(name);
    verbs_double::SetDevices(folder_, {verbs_double::Device()});
    ibv_fork_init();
    ibv_device** const list = ibv_get_device_list(nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    domain_ = ibv_alloc_pd(context_);
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;
    region_ = ibv_reg_mr(domain_, memory_, sizeof memory_, kAccess);
  }
  ~VerbsDoubleTest() override {
    EXPECT_EQ(ibv_dereg_mr(region_), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    EXPECT_EQ(verbs_double::LiveObjects(), 0u);
    EXPECT_THAT(TakeMisuses(), IsEmpty());
    std::filesystem::remove_all(folder_);
  }

  End Create(uint32_t requests = 2, int completions = 8) {
    ibv_cq* const queue = ibv_create_cq(context_, completions, nullptr, nullptr, 0);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    attributes.cap = {requests, requests, 1, 1, 0};
    return {queue, ibv_create_qp(domain_, &attributes)};
  }
  static void Destroy(const End& end) {
    EXPECT_EQ(ibv_destroy_qp(end.pair), 0);
    EXPECT_EQ(ibv_destroy_cq(end.queue), 0);
  }
  static int Modify(const End& end, ibv_qp_state state, int mask, uint32_t peer = 0) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    attributes.port_num = attributes.ah_attr.port_num = 1;
    attributes.path_mtu = IBV_MTU_4096;
    attributes.dest_qp_num = peer;
    attributes.ah_attr.dlid = 1;
    return ibv_modify_qp(end.pair, &attributes, mask);
  }
  static void Join(const End& a, const End& b) {
    for (const auto& [end, peer] : {std::pair(a, b), std::pair(b, a)}) {
      EXPECT_EQ(Modify(end, IBV_QPS_INIT, kToInit), 0);
      EXPECT_EQ(Modify(end, IBV_QPS_RTR, kToReceive, peer.pair->qp_num), 0);
      EXPECT_EQ(Modify(end, IBV_QPS_RTS, kToSend), 0);
    }
  }
  ibv_sge Piece(uint32_t bytes) {
    return {reinterpret_cast<uintptr_t>(memory_), bytes, region_->lkey};
  }
  // From the other half of the memory.
  int Send(const End& end, ibv_sge piece) {
    piece.addr += sizeof memory_ / 2;
    ibv_send_wr request{}, *refused = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    return ibv_post_send(end.pair, &request, &refused);
  }
  int Receive(const End& end, ibv_sge piece) {
    ibv_recv_wr request{}, *refused = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    return ibv_post_recv(end.pair, &request, &refused);
  }
  static ibv_wc_status Await(const End& end) {
    ibv_wc completion{};
    while (ibv_poll_cq(end.queue, 1, &completion) == 0) {
    }
    return completion.status;
  }

  std::string folder_;
  char memory_[64] = {};
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
};

TEST_F(VerbsDoubleTest, CarriesAMessage) {
  const End a = Create(), b = Create();
  Join(a, b);
  EXPECT_EQ(Receive(b, Piece(8)), 0);
  EXPECT_EQ(Send(a, Piece(8)), 0);
  EXPECT_EQ(Await(a), IBV_WC_SUCCESS);
  EXPECT_EQ(Await(b), IBV_WC_SUCCESS);
  Destroy(a);
  Destroy(b);
}

TEST_F(VerbsDoubleTest, HoldsTheOrderOfStatesAndTheirAttributes) {
  const End a = Create();
  EXPECT_EQ(Receive(a, Piece(8)), EINVAL);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("RESET")));
  EXPECT_EQ(Modify(a, IBV_QPS_RTR, kToReceive), EINVAL);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("no such transition")));
  for (const int wrong : {kToInit & ~IBV_QP_PORT, kToInit | IBV_QP_AV}) {
    EXPECT_EQ(Modify(a, IBV_QPS_INIT, wrong), EINVAL);
    EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("attributes of a transition")));
  }
  EXPECT_EQ(Modify(a, IBV_QPS_INIT, kToInit), 0);
  EXPECT_EQ(Send(a, Piece(8)), EINVAL);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("ready to send")));
  EXPECT_EQ(Modify(a, IBV_QPS_RTR, kToReceive & ~IBV_QP_MIN_RNR_TIMER), EINVAL);
  EXPECT_EQ(Modify(a, IBV_QPS_RTR, kToReceive, 1 << 24), EINVAL);
  EXPECT_EQ(TakeMisuses().size(), 2u);
  EXPECT_EQ(Modify(a, IBV_QPS_RTR, kToReceive), 0);
  EXPECT_EQ(Modify(a, IBV_QPS_RTS, kToSend & ~IBV_QP_TIMEOUT), EINVAL);
  EXPECT_EQ(TakeMisuses().size(), 1u);
  Destroy(a);
}

TEST_F(VerbsDoubleTest, HoldsQueuesToTheirRoom) {
  const End a = Create(/*requests=*/1), b = Create(/*requests=*/1);
  Join(a, b);
  EXPECT_EQ(Receive(b, Piece(8)), 0);
  EXPECT_EQ(Receive(b, Piece(8)), ENOMEM);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("more receives")));
  EXPECT_EQ(Send(a, Piece(8)), 0);
  EXPECT_EQ(Await(b), IBV_WC_SUCCESS);
  EXPECT_EQ(Send(a, Piece(8)), ENOMEM);  // the first has not been polled
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("more sends")));
  EXPECT_EQ(Await(a), IBV_WC_SUCCESS);
  Destroy(a);
  Destroy(b);
}

TEST_F(VerbsDoubleTest, HoldsMessagesToWhatWaitsForThem) {
  End a = Create(), b = Create();
  Join(a, b);
  EXPECT_EQ(Send(a, Piece(8)), 0);
  EXPECT_EQ(Await(a), IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("before a receive was posted")));
  Destroy(a);
  Destroy(b);
  a = Create(), b = Create();
  Join(a, b);
  EXPECT_EQ(Receive(b, Piece(7)), 0);
  EXPECT_EQ(Send(a, Piece(8)), 0);
  EXPECT_EQ(Await(a), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(Await(b), IBV_WC_LOC_LEN_ERR);
  EXPECT_THAT(TakeMisuses(), ElementsAre(HasSubstr("longer than")));
  Destroy(a);
  Destroy(b);
}

TEST_F(VerbsDoubleTest, KnowsWhichMemoryIsRegistered) {
  const End a = Create(), b = Create();
  Join(a, b);
  ibv_sge beyond = Piece(8);
  beyond.addr += sizeof memory_ - 4;
  EXPECT_EQ(Send(a, beyond), 0);
  EXPECT_EQ(Await(a), IBV_WC_LOC_PROT_ERR);
  ibv_sge other = Piece(8);
  ++other.lkey;
  EXPECT_EQ(Receive(b, other), 0);
  EXPECT_EQ(Await(b), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(TakeMisuses().size(), 2u);
  Destroy(a);
  Destroy(b);
}

TEST_F(VerbsDoubleTest, HoldsTheOrderOfDestruction) {
  const End a = Create();
  EXPECT_EQ(ibv_destroy_cq(a.queue), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(domain_), EBUSY);
  EXPECT_EQ(ibv_close_device(context_), EBUSY);
  EXPECT_EQ(TakeMisuses().size(), 3u);
  Destroy(a);
}

}  // namespace
}  // namespace coppice::verbs_double_test
