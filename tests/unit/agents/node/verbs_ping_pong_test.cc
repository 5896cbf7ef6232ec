// Measurements between two sides over the double of a verbs device, and what becomes of them when
// it, its port or the peer fails.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "agents/node/ping_pong.h"
#include "tests/verbs/device_double.h"

namespace coppice::verbs_ping_pong_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using verbs_double::Device;
using verbs_double::Fault;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

Device DeviceOf(const std::string& name, uint16_t lid) {
  Device device;
  device.name = name;
  device.ports[0].lid = lid;
  device.ports[0].guid = lid;
  return device;
}

// What both sides say in the end.
struct Ends {
  absl::StatusOr<PingPongFigures> active;
  absl::Status passive;
};

class VerbsPingPongTest : public ::testing::Test {
 protected:
  VerbsPingPongTest() {
    char name[] = "/tmp/coppice-verbs-XXXXXX";
    folder_ = mkdtemp(name);
    SetDevices(DeviceOf("left", 3), DeviceOf("right", 4));
    active_.verbs.device = "left";
    passive_.verbs.device = "right";
    for (PingPongPlan* plan : {&active_, &passive_}) {
      plan->token = kToken;
      plan->latency_samples = 10;
      plan->bandwidth_samples = 3;
      plan->bandwidth_bytes = 200'000;
      plan->transport = PingPongTransport::kVerbs;
      plan->deadline = steady_clock::now() + std::chrono::minutes(1);
    }
    active_.is_stopped = passive_.is_stopped = &is_stopped_;
  }
  ~VerbsPingPongTest() override {
    EXPECT_EQ(verbs_double::LiveObjects(), 0u);
    EXPECT_THAT(verbs_double::TakeMisuses(), IsEmpty());
    std::filesystem::remove_all(folder_);
  }
  void SetDevices(Device left, Device right) {
    verbs_double::SetDevices(folder_, {std::move(left), std::move(right)});
  }
  Ends Measure() {
    auto listener = PingPongListener::Listen("127.0.0.1:0");
    EXPECT_TRUE(listener.ok()) << listener.status();
    Ends ends{absl::UnknownError(""), {}};
    std::thread passive([&] { ends.passive = listener->Serve(passive_); });
    ends.active = MeasureTo("127.0.0.1:" + std::to_string(listener->port()), active_);
    passive.join();
    return ends;
  }
  // With that, verbs are tried in vain: alone they fail the pair, and else it is measured over TCP,
  // which is remarked.
  void ExpectTcpInstead(const std::string& words, const std::string& passive_words = "") {
    Ends alone = Measure();
    EXPECT_EQ(alone.active.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(alone.active.status().message()), HasSubstr(words));
    EXPECT_FALSE(alone.passive.ok());
    EXPECT_THAT(std::string(alone.passive.message()), HasSubstr(passive_words));
    active_.or_tcp = true;
    Ends either = Measure();
    ASSERT_TRUE(either.active.ok()) << either.active.status();
    EXPECT_TRUE(either.passive.ok()) << either.passive;
    EXPECT_EQ(either.active->transport, PingPongTransport::kTcp);
    EXPECT_EQ(either.active->latency_us.samples, 9u);
    EXPECT_EQ(either.active->bandwidth_gbps.samples, 2u);
    EXPECT_THAT(either.active->remark, HasSubstr(words));
    active_.or_tcp = false;
  }

  std::string folder_;
  PingPongPlan active_, passive_;
  std::atomic<bool> is_stopped_{false};
};

TEST_F(VerbsPingPongTest, MeasuresOverVerbs) {
  const size_t before = verbs_double::Delivered();
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_TRUE(ends.passive.ok()) << ends.passive;
  EXPECT_EQ(ends.active->transport, PingPongTransport::kVerbs);
  EXPECT_EQ(ends.active->remark, "");
  EXPECT_EQ(ends.active->latency_us.samples, 9u);
  EXPECT_GT(ends.active->latency_us.mean, 0);
  EXPECT_EQ(ends.active->bandwidth_gbps.samples, 2u);
  EXPECT_GT(ends.active->bandwidth_gbps.mean, 0);
  // All of it, warm-ups and answers, too.
  EXPECT_EQ(verbs_double::Delivered() - before, 2 * (10u + 8u) + 2 * (3u + 1u));
}

TEST_F(VerbsPingPongTest, TransfersOfAnySizeAreWhole) {
  active_.latency_samples = 1;
  active_.bandwidth_samples = 1;
  for (const uint32_t bytes : {1u, 8u, 9u, 1u << 20, (1u << 20) + 1, (3u << 20) + 5}) {
    active_.bandwidth_bytes = bytes;
    const size_t before = verbs_double::Delivered();
    const Ends ends = Measure();
    ASSERT_TRUE(ends.active.ok()) << ends.active.status();
    const uint32_t pieces = (bytes + (1u << 20) - 1) >> 20;
    EXPECT_EQ(verbs_double::Delivered() - before, 2 * 9u + 2 * (pieces + 1u)) << bytes;
  }
  active_.bandwidth_samples = active_.bandwidth_bytes = 0;
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(ends.active->bandwidth_gbps.samples, 0u);
}

// More pieces than sends or receives that a pair has room for at once.
TEST_F(VerbsPingPongTest, AGreatTransferIsCutIntoAsManyPiecesAsThereIsRoomFor) {
  active_.latency_samples = active_.bandwidth_samples = 1;
  active_.bandwidth_bytes = 300u << 20;
  const size_t before = verbs_double::Delivered();
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(verbs_double::Delivered() - before, 2 * 9u + 2 * (256 + 1u));
}

TEST_F(VerbsPingPongTest, APortThatWantsGlobalRoutesGetsThem) {
  Device left = DeviceOf("left", 3), right = DeviceOf("right", 4);
  left.ports[0].needs_global_route = right.ports[0].needs_global_route = true;
  left.ports[0].mtu = IBV_MTU_2048;  // the other's is 4096
  SetDevices(left, right);
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_TRUE(ends.passive.ok()) << ends.passive;
}

TEST_F(VerbsPingPongTest, ASideWithoutADeviceMeasuresOverTcp) {
  verbs_double::SetDevices(folder_, {DeviceOf("left", 3)});
  ExpectTcpInstead("the peer: this node has no InfiniBand port of a verbs device right", "right");
  verbs_double::SetDevices(folder_, {DeviceOf("right", 4)});
  ExpectTcpInstead("this node has no InfiniBand port of a verbs device left", "device left");
  verbs_double::SetDevices(folder_, {});
  ExpectTcpInstead("device left");
}

TEST_F(VerbsPingPongTest, WhatIsWrongBeforeTheFirstSampleIsNamed) {
  Device left = DeviceOf("left", 3), right = DeviceOf("right", 4);
  right.ports[0].state = IBV_PORT_INIT;
  SetDevices(left, right);
  ExpectTcpInstead("the peer: right port 1: the port is not active", "right port 1");
  right.ports[0].state = IBV_PORT_ACTIVE;
  right.ports[0].subnet_prefix += 1;
  SetDevices(left, right);
  ExpectTcpInstead("different subnets, fe80000000000000 and fe80000000000001", "subnets");
  right = DeviceOf("right", 4);
  right.most_locked = 100'000;
  SetDevices(left, right);
  ExpectTcpInstead("the peer: right port 1: 200128 bytes of memory cannot be registered",
                   "LimitMEMLOCK");
  right = DeviceOf("right", 4);
  right.most_requests = 8;
  SetDevices(left, right);
  ExpectTcpInstead("the peer: right port 1: no queue pair for 16 sends");
}

// Same prefix, other cables: that is found out only by sending.
TEST_F(VerbsPingPongTest, AFabricApartIsNotReached) {
  Device right = DeviceOf("right", 4);
  right.fabric = "two";
  SetDevices(DeviceOf("left", 3), right);
  ExpectTcpInstead(
      "left port 1: transport retry counter exceeded (the peer's port does not answer");
}

class FaultTest : public VerbsPingPongTest,
                  public ::testing::WithParamInterface<std::tuple<bool, uint32_t>> {
 protected:
  // Devices of which one fails after some of its messages.
  void SetFault(Fault fault) {
    const auto [is_active, after] = GetParam();
    Device left = DeviceOf("left", 3), right = DeviceOf("right", 4);
    Device& faulty = is_active ? left : right;
    faulty.fault = fault;
    faulty.fault_after = after;
    SetDevices(left, right);
  }
};

TEST_P(FaultTest, OfADeviceFailsThePairInWordsOrIsGotRound) {
  for (const Fault fault : {Fault::kVanish, Fault::kPortDown, Fault::kLose, Fault::kError}) {
    SetFault(fault);
    const Ends alone = Measure();
    EXPECT_EQ(alone.active.status().code(), absl::StatusCode::kFailedPrecondition)
        << alone.active.status();
    EXPECT_FALSE(alone.passive.ok());
    // Whichever side notices first says so, each of its own port.
    const std::string words(alone.active.status().message());
    EXPECT_THAT(words, AnyOf(HasSubstr("left port 1: "), HasSubstr("the peer: right port 1: ")));
    SetFault(fault);
    active_.or_tcp = true;
    const Ends either = Measure();
    active_.or_tcp = false;
    ASSERT_TRUE(either.active.ok()) << either.active.status();
    EXPECT_TRUE(either.passive.ok()) << either.passive;
    EXPECT_EQ(either.active->transport, PingPongTransport::kTcp);
    EXPECT_EQ(either.active->latency_us.samples, 9u);  // none of them over verbs
    EXPECT_THAT(either.active->remark, HasSubstr("port 1: "));
  }
}

// At the first message, among the pings, and among the transfers.
INSTANTIATE_TEST_SUITE_P(AtEverySide, FaultTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(1u, 2u, 21u, 37u, 42u)));

// A peer over the socket that says what the test wants.
class Peer final {
 public:
  explicit Peer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Peer() { close(fd_); }

  void Say(const std::string& text) {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  std::string Hear(size_t bytes) {
    std::string text(bytes, '\0');
    text.resize(static_cast<size_t>(
        std::max<ssize_t>(0, recv(fd_, text.data(), text.size(), MSG_WAITALL))));
    return text;
  }

 private:
  const int fd_;
};

constexpr char kNumbers[] = "\x05\0\0\0\0\0\0\0\0\0\0";  // five pings, and its own end

class PassiveTest : public VerbsPingPongTest {
 protected:
  PassiveTest() : listener_(*PingPongListener::Listen("127.0.0.1:0")) {}
  // A peer that has introduced itself, and been answered.
  std::unique_ptr<Peer> Begin() {
    auto peer = std::make_unique<Peer>(listener_.port());
    peer->Say(std::string("coppice-ping-pong/2 ") + kToken + std::string(kNumbers, 12));
    return peer;
  }
  // What the passive side says when the peer has gone through `act`.
  template <class Act>
  absl::Status ServeWhile(const Act& act) {
    absl::Status served;
    std::thread passive([&] { served = listener_.Serve(passive_); });
    {
      const std::unique_ptr<Peer> peer = Begin();
      EXPECT_EQ(peer->Hear(1), "K");
      act(*peer);
    }
    passive.join();
    return served;
  }
  static void Connect(Peer& peer) {
    peer.Say(Offer());
    EXPECT_EQ(peer.Hear(29).substr(0, 2), "O\033");
    peer.Say(std::string("R\0", 2));
    EXPECT_EQ(peer.Hear(2), std::string("R\0", 2));
  }
  // The offer of a port that nobody listens at.
  static std::string Offer() {
    std::string offer = "O\033\376\200";
    offer += std::string(14, '\0') + std::string("\0\x09\0\0\0\x77\0\0\0\x01\x05", 11);
    return offer;
  }

  PingPongListener listener_;
};

TEST_F(PassiveTest, APeerThatDiesWhileItIsPolledForIsNoticedAtOnce) {
  const absl::Status served = ServeWhile([](Peer& peer) { Connect(peer); });
  EXPECT_EQ(served.code(), absl::StatusCode::kUnavailable) << served;
}

TEST_F(PassiveTest, WordsOutOfOrderEndIt) {
  for (const std::string& word :
       {std::string("X\0", 2), std::string("R\0", 2), std::string("E\0", 2),
        std::string("O\003abc"), Offer().replace(18, 1, "\xff")}) {
    const absl::Status served = ServeWhile([&](Peer& peer) {
      peer.Say(word);
      peer.Hear(64);  // until it breaks off
    });
    EXPECT_TRUE(absl::IsInvalidArgument(served) || absl::IsUnavailable(served)) << served;
  }
}

TEST_F(PassiveTest, WhatThePeerSaysIsMadeFitForPeople) {
  const absl::Status served = ServeWhile([](Peer& peer) { peer.Say("N\005no\033[m"); });
  EXPECT_EQ(served.message(), "the peer: no?[m");
}

TEST_F(PassiveTest, WhatBecomesOfItsPortIsSaid) {
  const std::pair<Fault, const char*> faults[] = {
      {Fault::kVanish, "right port 1: the device has gone"},
      {Fault::kPortDown, "right port 1: the port is not active (down)"},
      {Fault::kError, "right port 1: Work Request Flushed Error (the connection is in error)"}};
  for (const auto& [fault, words] : faults) {
    SetDevices(DeviceOf("left", 3), DeviceOf("right", 4));
    std::string heard;
    const absl::Status served = ServeWhile([&, kind = fault](Peer& peer) {
      Connect(peer);
      verbs_double::Break("right", kind);
      heard = peer.Hear(1);
      peer.Hear(static_cast<unsigned char>(peer.Hear(1)[0]));
    });
    EXPECT_EQ(heard, "N");
    EXPECT_EQ(served.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(std::string(served.message()), words);
  }
}

TEST_F(PassiveTest, AStopAndADeadlineEndThePolling) {
  absl::Status served = ServeWhile([&](Peer& peer) {
    Connect(peer);
    is_stopped_ = true;
    peer.Hear(64);
  });
  EXPECT_EQ(served.code(), absl::StatusCode::kCancelled) << served;
  is_stopped_ = false;
  passive_.deadline = steady_clock::now() + milliseconds(300);
  served = ServeWhile([&](Peer& peer) {
    Connect(peer);
    peer.Hear(64);
  });
  EXPECT_EQ(served.code(), absl::StatusCode::kDeadlineExceeded) << served;
}

// An agent before verbs says the first greeting, and is served as ever.
TEST_F(PassiveTest, TheFirstProtocolIsServedOverTcp) {
  active_.transport = PingPongTransport::kTcp;
  const size_t before = verbs_double::Delivered();
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(ends.active->transport, PingPongTransport::kTcp);
  EXPECT_EQ(ends.active->remark, "");
  EXPECT_EQ(verbs_double::Delivered(), before);
}

}  // namespace
}  // namespace coppice::verbs_ping_pong_test
