// Ping-pong between two sides that keep to it, and with peers that do not.
#include "agents/node/ping_pong.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "agents/node/measurer.h"

namespace coppice::ping_pong_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr char kOther[] = "0123456789abcdef0123456789abcdee";

PingPongPlan Plan(milliseconds timeout = milliseconds(60'000)) {
  PingPongPlan plan;
  plan.token = kToken;
  plan.latency_samples = 40;
  plan.bandwidth_samples = 5;
  plan.bandwidth_bytes = 200'000;
  plan.deadline = steady_clock::now() + timeout;
  return plan;
}

std::string AddressOf(const PingPongListener& listener) {
  return "127.0.0.1:" + std::to_string(listener.port());
}

// A peer of the listener that does as it likes.
class Stranger final {
 public:
  explicit Stranger(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Stranger() { close(fd_); }

  void Say(const std::string& text) { EXPECT_GT(send(fd_, text.data(), text.size(), 0), 0); }
  // What comes next; empty: it was turned away.
  std::string Hear() {
    char bytes[64];
    const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
    return {bytes, static_cast<size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  const int fd_;
};

TEST(SpreadTest, DropsTheWorstTenth) {
  std::vector<double> samples;
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  Spread spread = SpreadOf(samples, /*low_is_bad=*/false);
  EXPECT_EQ(spread.samples, 18u);
  EXPECT_DOUBLE_EQ(spread.mean, 9.5);
  EXPECT_NEAR(spread.deviation, 5.188, 1e-3);  // of 1..18
  spread = SpreadOf(samples, /*low_is_bad=*/true);
  EXPECT_DOUBLE_EQ(spread.mean, 11.5);
  EXPECT_EQ(SpreadOf({1, 100}, false).mean, 1);
  EXPECT_EQ(SpreadOf({1, 100}, true).mean, 100);
  EXPECT_EQ(SpreadOf({5}, false).mean, 5);
  EXPECT_EQ(SpreadOf({}, false).samples, 0u);
  // A tenth of 11 is rounded up to 2.
  EXPECT_EQ(SpreadOf(std::vector<double>(11, 1), false).samples, 9u);
}

TEST(PingPongTest, MeasuresAWay) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  absl::Status served;
  std::thread passive([&] { served = listener->Serve(Plan()); });
  const auto figures = MeasureTo(AddressOf(*listener), Plan());
  passive.join();
  EXPECT_TRUE(served.ok()) << served;
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->latency_us.samples, 36u);
  EXPECT_GT(figures->latency_us.mean, 0);
  EXPECT_EQ(figures->bandwidth_gbps.samples, 4u);
  EXPECT_GT(figures->bandwidth_gbps.mean, 0);
}

TEST(PingPongTest, WithoutTransfersThereIsNoBandwidth) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  PingPongPlan plan = Plan();
  plan.bandwidth_samples = plan.bandwidth_bytes = 0;
  std::thread passive([&] { EXPECT_TRUE(listener->Serve(plan).ok()); });
  const auto figures = MeasureTo(AddressOf(*listener), plan);
  passive.join();
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->bandwidth_gbps.samples, 0u);
}

TEST(PingPongTest, AWrongTokenIsTurnedAwayAndTheRightOneStillServed) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  absl::Status served;
  std::thread passive([&] { served = listener->Serve(Plan()); });
  absl::Status refused;
  std::thread other([&] {
    PingPongPlan wrong = Plan();
    wrong.token = kOther;
    refused = MeasureTo(AddressOf(*listener), wrong).status();
  });
  // Held until then, as it may be early.
  Stranger wrong(listener->port());
  wrong.Say(std::string("coppice-ping-pong/1 ") + kOther);
  EXPECT_TRUE(MeasureTo(AddressOf(*listener), Plan()).ok());
  passive.join();
  // One that came too late to be heard waits for the next.
  EXPECT_EQ(listener->Serve(Plan(milliseconds(100))).code(), absl::StatusCode::kDeadlineExceeded);
  other.join();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_EQ(wrong.Hear(), "");
  EXPECT_TRUE(served.ok()) << served;
}

TEST(PingPongTest, StrangersThatSayNothingKeepNobodyOut) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(std::make_unique<Stranger>(listener->port()));
  Stranger rude(listener->port());
  rude.Say("GET / HTTP/1.1\r\n");
  absl::Status served;
  std::thread passive([&] { served = listener->Serve(Plan()); });
  EXPECT_EQ(rude.Hear(), "");
  EXPECT_TRUE(MeasureTo(AddressOf(*listener), Plan()).ok());
  passive.join();
  EXPECT_TRUE(served.ok()) << served;
}

TEST(PingPongTest, ASilentPeerCostsNoMoreThanTheDeadline) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  // Nobody serves: the connection waits in the queue.
  const auto figures = MeasureTo(AddressOf(*listener), Plan(milliseconds(50)));
  EXPECT_EQ(figures.status().code(), absl::StatusCode::kDeadlineExceeded) << figures.status();
  auto other = PingPongListener::Listen("127.0.0.1:0");
  EXPECT_EQ(other->Serve(Plan(milliseconds(50))).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(PingPongTest, APeerThatBreaksOffIsSaid) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  absl::Status served;
  std::thread passive([&] { served = listener->Serve(Plan()); });
  {
    Stranger active(listener->port());
    active.Say(std::string("coppice-ping-pong/1 ") + kToken);
    EXPECT_EQ(active.Hear(), "K");
    active.Say(std::string("\x05\0\0\0\0\0\0\0\0\0\0\0", 12));
    active.Say("12345678");
    EXPECT_EQ(active.Hear(), "12345678");
  }
  passive.join();
  EXPECT_EQ(served.code(), absl::StatusCode::kUnavailable) << served;
}

TEST(PingPongTest, NumbersWithoutSenseAreRefused) {
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  absl::Status served;
  std::thread passive([&] { served = listener->Serve(Plan()); });
  Stranger active(listener->port());
  active.Say(std::string("coppice-ping-pong/1 ") + kToken);
  active.Say(std::string(12, '\xff'));
  passive.join();
  EXPECT_EQ(served.code(), absl::StatusCode::kInvalidArgument) << served;
  PingPongPlan bad = Plan();
  bad.latency_samples = 0;
  EXPECT_EQ(MeasureTo(AddressOf(*listener), bad).status().code(),
            absl::StatusCode::kInvalidArgument);
  bad = Plan();
  bad.token = "short";
  EXPECT_EQ(MeasureTo(AddressOf(*listener), bad).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PingPongTest, AddressesThatAreNoneAreNamed) {
  for (const char* address : {"", "nowhere", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"}) {
    EXPECT_EQ(MeasureTo(address, Plan()).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(PingPongListener::Listen(address).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  uint16_t port = 0;
  {
    auto listener = PingPongListener::Listen("127.0.0.1:0");
    port = listener->port();
    EXPECT_EQ(PingPongListener::Listen(AddressOf(*listener)).status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(MeasureTo("127.0.0.1:" + std::to_string(port), Plan()).status().code(),
            absl::StatusCode::kUnavailable);
}

class Results final {
 public:
  void Take(const v1::PingPongResult& result) {
    const std::lock_guard<std::mutex> lock(mu_);
    all_.push_back(result);
    changed_.notify_all();
  }
  std::vector<v1::PingPongResult> Await(size_t count) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return all_.size() >= count; });
    return all_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<v1::PingPongResult> all_;
};

v1::PingPongTask Task(uint64_t id, bool active, const std::string& address, int64_t timeout_ms) {
  v1::PingPongTask task;
  task.set_id(id);
  task.set_token(kToken);
  task.set_active(active);
  task.set_peer("n2");
  task.set_peer_address(address);
  task.set_latency_samples(10);
  task.set_bandwidth_samples(2);
  task.set_bandwidth_bytes(1000);
  task.mutable_timeout()->set_seconds(timeout_ms / 1000);
  task.mutable_timeout()->set_nanos(static_cast<int32_t>(timeout_ms % 1000) * 1'000'000);
  return task;
}

TEST(MeasurerTest, TwoAgentsMeasureTheWayBetweenThem) {
  Results of_passive, of_active;
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  const std::string address = AddressOf(*listener);
  Measurer passive(*std::move(listener), PortChoice(),
                   [&](const auto& result) { of_passive.Take(result); });
  Measurer active(std::nullopt, PortChoice(), [&](const auto& result) { of_active.Take(result); });
  for (uint64_t id = 1; id <= 3; ++id) {
    active.Take(Task(id, true, address, 30'000));
    passive.Take(Task(id, false, "", 30'000));
    ASSERT_EQ(of_active.Await(id).size(), id);
  }
  const auto results = of_active.Await(3);
  for (uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(results[id - 1].id(), id);
    EXPECT_EQ(results[id - 1].error(), "");
    EXPECT_GT(results[id - 1].latency_us(), 0);
    EXPECT_GT(results[id - 1].bandwidth_gbps(), 0);
    EXPECT_EQ(results[id - 1].samples(), 9u);
  }
  // Failures are told by both; a passive side without a listener fails at once.
  passive.Take(Task(4, false, "", 50));
  active.Take(Task(5, false, "", 50));
  EXPECT_THAT(of_passive.Await(1).back().error(), HasSubstr("n2"));
  EXPECT_THAT(of_active.Await(4)[3].error(), HasSubstr("measure_listen"));
  active.Take(Task(6, true, "nowhere", 50));
  EXPECT_THAT(of_active.Await(5)[4].error(), HasSubstr("nowhere"));
}

v1::PingPongTask WithToken(v1::PingPongTask task, const std::string& token) {
  task.set_token(token);
  return task;
}

// The active side of the first pair is gone without a word; that of the second one comes before the
// passive side knows of it.
TEST(MeasurerTest, AFailedPairDoesNotHoldUpTheNext) {
  Results of_passive, of_active;
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  const std::string address = AddressOf(*listener);
  Measurer passive(*std::move(listener), PortChoice(),
                   [&](const auto& result) { of_passive.Take(result); });
  Measurer active(std::nullopt, PortChoice(), [&](const auto& result) { of_active.Take(result); });
  for (uint64_t id = 1; id <= 9; id += 2) {
    passive.Take(Task(id, false, "", 600'000));
    active.Take(WithToken(Task(id + 1, true, address, 600'000), kOther));
    passive.Take(WithToken(Task(id + 1, false, "", 600'000), kOther));
    const auto results = of_active.Await(id / 2 + 1);
    ASSERT_EQ(results.size(), id / 2 + 1);
    EXPECT_EQ(results.back().error(), "");
  }
  for (const auto& result : of_passive.Await(5)) EXPECT_THAT(result.error(), HasSubstr("newer"));
}

// Of what would go on for minutes, and of what has not begun.
TEST(MeasurerTest, ATaskThatIsTakenBackIsBrokenOff) {
  Results of_passive, of_active;
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  const std::string address = AddressOf(*listener);
  Measurer passive(*std::move(listener), PortChoice(),
                   [&](const auto& result) { of_passive.Take(result); });
  Measurer active(std::nullopt, PortChoice(), [&](const auto& result) { of_active.Take(result); });
  v1::PingPongTask task = Task(7, true, address, 600'000);
  task.set_bandwidth_samples(10'000);
  task.set_bandwidth_bytes(256 << 20);
  active.Take(task, 3);
  task.set_active(false);
  passive.Take(task, 3);
  active.Stop(6, 3);  // another
  active.Stop(7, 2);
  active.Stop(7, 3);
  passive.Stop(7, 3);
  ASSERT_EQ(of_active.Await(1).size(), 1u);
  EXPECT_EQ(of_active.Await(1)[0].id(), 7u);
  EXPECT_NE(of_active.Await(1)[0].error(), "");
  // And the next is measured.
  passive.Take(WithToken(Task(8, false, "", 30'000), kOther), 3);
  active.Take(WithToken(Task(8, true, address, 30'000), kOther), 3);
  ASSERT_EQ(of_active.Await(2).size(), 2u);
  EXPECT_EQ(of_active.Await(2)[1].error(), "");
}

TEST(MeasurerTest, AnOlderTaskIsDroppedUnlessItsStreamIsNewer) {
  Results results;
  auto listener = PingPongListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  auto measurer = std::make_unique<Measurer>(*std::move(listener), PortChoice(),
                                             [&](const auto& result) { results.Take(result); });
  measurer->Take(Task(7, false, "", 60'000), 1);
  measurer->Take(Task(6, false, "", 60'000), 1);
  ASSERT_EQ(results.Await(1).size(), 1u);
  EXPECT_EQ(results.Await(1)[0].id(), 6u);
  measurer->Take(Task(1, false, "", 60'000), 2);  // of the daemon's next start
  ASSERT_EQ(results.Await(2).size(), 2u);
  EXPECT_EQ(results.Await(2)[1].id(), 7u);
  measurer.reset();  // breaks off what is under way, and says nothing
  EXPECT_EQ(results.Await(2).size(), 2u);
}

}  // namespace
}  // namespace coppice::ping_pong_test
