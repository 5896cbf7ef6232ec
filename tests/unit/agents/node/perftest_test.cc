// Measurements between two sides that run a double of perftest's programs (tests/perftest), and
// what becomes of them when a program, a port or the peer fails.
#include "agents/node/perftest.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "agents/node/ping_pong.h"
#include "tests/support/child_process.h"
#include "tests/unit/agents/node/device_folder.h"

namespace coppice::perftest_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

// What both sides say in the end.
struct Ends {
  absl::StatusOr<PingPongFigures> active;
  absl::Status passive;
};

// A run of a program, as the double notes it.
struct ProgramNote {
  pid_t process;
  std::string program, role, device, port, bytes, iterations, key_index;
};

// PATH leads to the double alone.
class PerftestTest : public ::testing::Test {
 protected:
  PerftestTest() : old_path_(getenv("PATH")) {
    Install();
    setenv("PATH", scratch_.path().c_str(), 1);
    setenv("PERFTEST_DOUBLE_FOLDER", scratch_.path().c_str(), 1);
    SetFault("");
    left_.Put({.device = "left", .guid = "0000:0000:0000:0003"});
    right_.Put({.device = "right", .number = 2, .guid = "0000:0000:0000:0004"});
    active_.port.devices = left_.path();
    passive_.port.devices = right_.path();
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
  ~PerftestTest() override {
    setenv("PATH", old_path_.c_str(), 1);
    EXPECT_EQ(ReadWholeFile(scratch_.path() + "/misuse"), "");
    for (const ProgramNote& run : Runs()) EXPECT_NE(kill(run.process, 0), 0) << run.program;
  }
  void Install() const {
    for (const char* program : {"ib_write_lat", "ib_write_bw"}) {
      const std::string name = scratch_.path() + "/" + program;
      std::filesystem::remove(name);
      std::filesystem::create_symlink(COPPICE_PERFTEST_DOUBLE, name);
    }
  }
  // As PERFTEST_DOUBLE_FAULT reads it.
  static void SetFault(const std::string& fault) {
    setenv("PERFTEST_DOUBLE_FAULT", fault.c_str(), 1);
  }
  // So far.
  std::vector<ProgramNote> Runs() const {
    std::istringstream lines(ReadWholeFile(scratch_.path() + "/runs"));
    std::vector<ProgramNote> runs;
    for (ProgramNote run; lines >> run.process >> run.program >> run.role >> run.device >>
                          run.port >> run.bytes >> run.iterations >> run.key_index;) {
      runs.push_back(run);
    }
    return runs;
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
    EXPECT_EQ(either.active->latency_us.samples, 9u);  // none of them over verbs
    EXPECT_EQ(either.active->bandwidth_gbps.samples, 2u);
    EXPECT_THAT(either.active->remark, HasSubstr(words));
    active_.or_tcp = false;
  }

  const std::string old_path_;
  const ScratchDirectory scratch_;
  const DeviceFolder left_, right_;
  PingPongPlan active_, passive_;
  std::atomic<bool> is_stopped_{false};
};

TEST_F(PerftestTest, MeasuresOverVerbs) {
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_TRUE(ends.passive.ok()) << ends.passive;
  EXPECT_EQ(ends.active->transport, PingPongTransport::kVerbs);
  EXPECT_EQ(ends.active->remark, "");
  // What the double reports.
  EXPECT_EQ(ends.active->latency_us.mean, 1.12);
  EXPECT_EQ(ends.active->latency_us.deviation, 0.11);
  EXPECT_EQ(ends.active->latency_us.samples, 10u);
  EXPECT_EQ(ends.active->bandwidth_gbps.mean, 97.56);
  std::vector<std::string> runs;
  for (const ProgramNote& run : Runs()) {
    EXPECT_NE(kill(run.process, 0), 0);
    runs.push_back(run.program + " " + run.role + " " + run.device + " " + run.port + " " +
                   run.bytes + " " + run.iterations);
  }
  std::sort(runs.begin(), runs.end());
  EXPECT_THAT(
      runs, ElementsAre("ib_write_bw client left 1 200000 5", "ib_write_bw server right 2 200000 5",
                        "ib_write_lat client left 1 8 10", "ib_write_lat server right 2 8 10"));
}

// Each side where its own table has the key.
TEST_F(PerftestTest, PacketsAreOfThePartition) {
  left_.Put({.device = "left", .guid = "0000:0000:0000:0003", .keys = {"0xffff", "0x0005"}});
  right_.Put({.device = "right",
              .number = 2,
              .guid = "0000:0000:0000:0004",
              .keys = {"0x7fff", "0x0005", "0x0000", "0x8005"}});
  active_.port.partition = passive_.port.partition = 5;
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(ends.active->transport, PingPongTransport::kVerbs);
  EXPECT_EQ(Runs().size(), 4u);
  for (const ProgramNote& run : Runs()) EXPECT_EQ(run.key_index, run.device == "left" ? "1" : "3");
  passive_.port.partition = 6;
  ExpectTcpInstead("right port 2: the port is not in partition 0x0006");
}

// In messages that need little locked memory, and never fewer than the programs take.
TEST_F(PerftestTest, TransfersOfAnySizeAreMeasured) {
  struct {
    uint32_t samples, bytes;
    const char *message, *iterations;
  } const cases[] = {{1, 1, "1", "5"},
                     {7, 1u << 20, "1048576", "7"},
                     {7, (1u << 20) + 1, "1048576", "14"},
                     {1'000'000, 1u << 30, "1048576", "10000000"}};
  active_.latency_samples = 1;
  size_t seen = 0;
  for (const auto& one : cases) {
    active_.bandwidth_samples = one.samples;
    active_.bandwidth_bytes = one.bytes;
    const Ends ends = Measure();
    ASSERT_TRUE(ends.active.ok()) << ends.active.status();
    const std::vector<ProgramNote> runs = Runs();
    ASSERT_EQ(runs.size(), seen + 4);
    for (; seen < runs.size(); ++seen) {
      const bool is_latency = runs[seen].program == "ib_write_lat";
      EXPECT_EQ(runs[seen].bytes, is_latency ? "8" : one.message);
      EXPECT_EQ(runs[seen].iterations, is_latency ? "5" : one.iterations);
    }
  }
  active_.bandwidth_samples = active_.bandwidth_bytes = 0;
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(ends.active->bandwidth_gbps.samples, 0u);
  EXPECT_EQ(Runs().size(), seen + 2);
}

TEST_F(PerftestTest, ASideWithoutAPortMeasuresOverTcp) {
  right_.Clear();
  ExpectTcpInstead("the peer: this node has no InfiniBand port", "no InfiniBand port");
  left_.Clear();
  ExpectTcpInstead("this node has no InfiniBand port");
  right_.Put({.device = "right"});
  ExpectTcpInstead("this node has no InfiniBand port", "the peer: this node has no");
  EXPECT_THAT(Runs(), IsEmpty());
}

TEST_F(PerftestTest, WhatIsWrongBeforeTheFirstProgramIsNamed) {
  right_.Put({.device = "right", .number = 2, .state = "2: INIT"});
  ExpectTcpInstead("the peer: right port 2: the port is not active (2: INIT)", "right port 2");
  right_.Put({.device = "right", .number = 2, .prefix = "fe80:0000:0000:0001"});
  ExpectTcpInstead("different subnets, fe80000000000000 and fe80000000000001",
                   "different subnets, fe80000000000000 and fe80000000000001");
  EXPECT_THAT(Runs(), IsEmpty());
}

TEST_F(PerftestTest, WithoutTheProgramsTheirPackageIsNamed) {
  std::filesystem::remove(scratch_.path() + "/ib_write_lat");
  std::filesystem::remove(scratch_.path() + "/ib_write_bw");
  ExpectTcpInstead("ib_write_lat is not installed: apt-get install perftest");
  Install();
  std::filesystem::remove(scratch_.path() + "/ib_write_bw");
  ExpectTcpInstead("ib_write_bw is not installed: apt-get install perftest");
}

// What no shell would pass on whole.
TEST_F(PerftestTest, ArgumentsAreNoShells) {
  left_.Clear();
  left_.Put({.device = "l$(x)'ft"});
  SetFault("l$(x)'ft:*:no-device");
  ExpectTcpInstead("l$(x)'ft port 1: ib_write_lat ended with status 1");
}

// perftest's own: they refuse options that they do not know, or numbers out of their range, before
// they look for a device, which is nowhere.
TEST_F(PerftestTest, TheRealProgramsTakeTheArguments) {
  left_.Clear();
  left_.Put({.device = "nowhere_0"});
  active_.port.partition = 0x7fff;
  right_.Clear();
  right_.Put({.device = "nowhere_1"});
  active_.latency_samples = 1;
  active_.bandwidth_samples = 1'000'000;
  active_.bandwidth_bytes = 1u << 30;
  for (const char* program : {"ib_write_lat", "ib_write_bw"}) {
    Install();
    const std::string name = scratch_.path() + "/" + program;
    std::filesystem::remove(name);
    std::filesystem::create_symlink(std::string("/usr/bin/") + program, name);
    const Ends ends = Measure();
    EXPECT_EQ(ends.active.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(ends.active.status().message()),
                AllOf(HasSubstr(std::string(program) + " ended with status 1: "),
                      HasSubstr("Unable to find the Infiniband/RoCE device")));
  }
}

struct Fault {
  const char* kind;
  const char* words;
};

class FaultTest : public PerftestTest,
                  public ::testing::WithParamInterface<std::tuple<bool, const char*>> {};

TEST_P(FaultTest, OfAProgramFailsThePairInWordsOrIsGotRound) {
  const auto [is_active, program] = GetParam();
  const std::string name = program;
  const Fault faults[] = {
      {"no-device", " ended with status 1: Did not detect devices; If device exists"},
      {"no-memory",
       " ended with status 1: Couldn't allocate MR; failed to create mr; Failed to create MR "
       "(LimitMEMLOCK of coppice-agent.service, or ulimit -l)"},
      {"crash", " was ended by signal 11"},
      {"flood", " says more than 65536 bytes"},
      {"lost", " ended with status 1: Failed status 12: wr_id 0 syndrom 0x81"},
      {"garbage", " gave a report that has another heading"}};
  for (const Fault& fault : faults) {
    // A server's report is not read.
    if (!is_active && std::string(fault.kind) == "garbage") continue;
    SetFault(std::string(is_active ? "left:" : "right:") + program + ":" + fault.kind);
    const std::string words = (is_active ? "left port 1: " : "right port 2: ") + name + fault.words;
    SCOPED_TRACE(fault.kind);
    ExpectTcpInstead((is_active ? "" : "the peer: ") + words,
                     (is_active ? "the peer: " : "") + words);
  }
}

INSTANTIATE_TEST_SUITE_P(AtEverySide, FaultTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values("ib_write_lat", "ib_write_bw")));

class HangTest : public PerftestTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Each with a measurement that has begun to hang.
  template <class Act>
  Ends MeasureWhile(const Act& act) {
    std::thread other([&] {
      EXPECT_TRUE(WaitUntil([&] { return Runs().size() >= 4; }, absl::Seconds(30)));
      act();
    });
    const Ends ends = Measure();
    other.join();
    return ends;
  }
};

TEST_P(HangTest, IsEndedByADeadlineAndByAStop) {
  SetFault(GetParam());
  active_.deadline = steady_clock::now() + milliseconds(1500);
  Ends ends = Measure();
  EXPECT_EQ(ends.active.status().code(), absl::StatusCode::kDeadlineExceeded)
      << ends.active.status();
  EXPECT_THAT(std::string(ends.active.status().message()),
              HasSubstr("left port 1: ib_write_lat did not end in time"));
  // Of the active side alone: the passive one notices that it has left.
  EXPECT_EQ(ends.passive.code(), absl::StatusCode::kUnavailable) << ends.passive;
  active_.deadline = steady_clock::now() + std::chrono::minutes(1);
  passive_.is_stopped = nullptr;
  ends = MeasureWhile([&] { is_stopped_ = true; });
  EXPECT_EQ(ends.active.status().code(), absl::StatusCode::kCancelled) << ends.active.status();
  EXPECT_EQ(ends.passive.code(), absl::StatusCode::kUnavailable) << ends.passive;
}

// A server that nobody reaches, and programs that poll for what never comes.
INSTANTIATE_TEST_SUITE_P(OfEverySide, HangTest,
                         ::testing::Values("right:*:deaf", "left:*:deaf", "left:*:hang",
                                           "right:*:hang"));

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

// A word as it goes over the socket.
std::string Word(char kind, const std::string& text = "") {
  return std::string{kind, static_cast<char>(text.size() >> 8), static_cast<char>(text.size())} +
         text;
}

class PassiveTest : public PerftestTest {
 protected:
  PassiveTest() : listener_(*PingPongListener::Listen("127.0.0.1:0")) {}
  // A peer that has introduced itself, and been answered.
  std::unique_ptr<Peer> Begin() {
    auto peer = std::make_unique<Peer>(listener_.port());
    peer->Say(std::string("coppice-ping-pong/3 ") + kToken + std::string(kNumbers, 12));
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
  // Until its server runs.
  void Connect(Peer& peer) {
    const size_t before = Runs().size();
    peer.Say(Word('O', "fe80000000000000"));
    EXPECT_EQ(peer.Hear(19), Word('O', "fe80000000000000"));
    EXPECT_TRUE(WaitUntil([&] { return Runs().size() > before; }, absl::Seconds(30)));
  }

  PingPongListener listener_;
};

TEST_F(PassiveTest, APeerThatDiesIsNoticedAtOnce) {
  const absl::Status served = ServeWhile([&](Peer& peer) { Connect(peer); });
  EXPECT_EQ(served.code(), absl::StatusCode::kUnavailable) << served;
}

TEST_F(PassiveTest, WordsOutOfOrderEndIt) {
  for (const std::string& word :
       {Word('X'), Word('D', "abc"), Word('E'), Word('T'), Word('O', "abc"),
        Word('O', std::string(16, 'x')), Word('N', std::string(513, 'x'))}) {
    const absl::Status served = ServeWhile([&](Peer& peer) {
      peer.Say(word);
      peer.Hear(64);  // until it breaks off
    });
    EXPECT_TRUE(absl::IsInvalidArgument(served) || absl::IsUnavailable(served)) << served;
  }
  // And those while a program runs.
  for (const std::string& word : {Word('O', "fe80000000000000"), Word('T'), Word('X')}) {
    const absl::Status served = ServeWhile([&](Peer& peer) {
      Connect(peer);
      peer.Say(word);
      while (!peer.Hear(64).empty()) {
      }
    });
    EXPECT_TRUE(absl::IsInvalidArgument(served) || absl::IsUnavailable(served)) << served;
  }
}

TEST_F(PassiveTest, WhatThePeerSaysIsMadeFitForPeople) {
  const absl::Status served = ServeWhile([](Peer& peer) { peer.Say(Word('N', "no\033[m")); });
  EXPECT_EQ(served.message(), "the peer: no?[m");
}

// Its server hears what the peer's client says, byte for byte, also before it listens.
TEST_F(PassiveTest, CarriesWhatTheProgramsSay) {
  const std::string said = std::string("ib_write_lat 6.06 8 5").append(43, ' ');
  const std::string done = std::string("done").append(60, ' ');
  const absl::Status served = ServeWhile([&](Peer& peer) {
    peer.Say(Word('O', "fe80000000000000") + Word('D', said));
    EXPECT_EQ(peer.Hear(19), Word('O', "fe80000000000000"));
    EXPECT_EQ(peer.Hear(67), Word('D', said));
    peer.Say(Word('D', done));
    EXPECT_EQ(peer.Hear(67), Word('D', done));
    EXPECT_EQ(peer.Hear(3), Word('E'));
    peer.Say(Word('E'));
    EXPECT_EQ(peer.Hear(1), "");  // it has all
  });
  EXPECT_TRUE(served.ok()) << served;
}

// Agents with a ping-pong of their own over verbs: their daemon asks no agent of this release for
// it.
TEST_F(PassiveTest, TheSecondProtocolIsTurnedAway) {
  passive_.deadline = steady_clock::now() + milliseconds(500);
  std::thread passive([&] { (void)listener_.Serve(passive_); });
  Peer peer(listener_.port());
  peer.Say(std::string("coppice-ping-pong/2 ") + kToken);
  EXPECT_EQ(peer.Hear(1), "");
  passive.join();
}

// An agent or a daemon that knows no verbs says the first greeting, and is served as ever.
TEST_F(PassiveTest, TheFirstProtocolIsServedOverTcp) {
  active_.transport = PingPongTransport::kTcp;
  const Ends ends = Measure();
  ASSERT_TRUE(ends.active.ok()) << ends.active.status();
  EXPECT_EQ(ends.active->transport, PingPongTransport::kTcp);
  EXPECT_EQ(ends.active->remark, "");
  EXPECT_THAT(Runs(), IsEmpty());
}

}  // namespace
}  // namespace coppice::perftest_test
