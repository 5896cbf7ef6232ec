// Members as threads, each with a tree of its own making, over real switches: results against an
// oracle, and with a switch, a link between switches or a member's link ended at a random instant,
// every collective ended by all members the same way, with the right result.
#include "agents/mpi/tree/switch_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>

#include <array>
#include <asio/connect.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/ip/address.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/switch/combine.h"
#include "agents/switch/switch_server.h"
#include "tests/support/tier.h"

namespace coppice::mpi::switch_tree_test {
namespace {

using Op = ReductionOperation;
using How = Carried::How;
constexpr uint32_t kSegmentBytes = 256, kWindow = 3;
// Long beyond all that is asserted: whoever hangs is found by it.
constexpr std::chrono::seconds kDeadline{20};

// An io_context with its thread. What belongs to it is made, used and ended there.
class Loop {
 public:
  Loop() : thread_([this] { io_.run(); }) {}
  ~Loop() {
    work_.reset();
    io_.stop();
    thread_.join();
  }
  void Do(const std::function<void()>& what) {
    std::promise<void> done;
    asio::post(io_, [&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }
  asio::io_context& io() { return io_; }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::thread thread_;
};

// A wire to somewhere on loopback that can be cut: bytes go through it both ways.
class Wire {
 public:
  Wire(Loop& loop, uint16_t to) : loop_(loop), to_(to) {
    loop_.Do([this] {
      acceptor_.emplace(loop_.io(), asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
      port_ = acceptor_->local_endpoint().port();
      Accept();
    });
  }
  ~Wire() {
    loop_.Do([this] {
      CutNow();
      acceptor_.reset();
    });
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // From now on nothing comes down.
  void HoldDown() {
    loop_.Do([this] { ends_->holds = true; });
  }
  void Cut() {
    asio::post(loop_.io(), [this] { CutNow(); });
  }

 private:
  struct Ends {
    asio::ip::tcp::socket near, far;
    std::array<char, 4096> up{}, down{};
    bool holds = false;
  };

  void Accept() {
    acceptor_->async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
      if (error) return;
      ends_ = std::make_shared<Ends>(
          Ends{std::move(socket), asio::ip::tcp::socket(loop_.io()), {}, {}, false});
      std::error_code refused;
      ends_->near.set_option(asio::ip::tcp::no_delay(true), refused);
      ends_->far.connect({asio::ip::address_v4::loopback(), to_}, refused);
      if (refused) return CutNow();
      ends_->far.set_option(asio::ip::tcp::no_delay(true), refused);
      Pass(ends_, ends_->near, ends_->far, ends_->up);
      Pass(ends_, ends_->far, ends_->near, ends_->down);
      Accept();
    });
  }
  static void Pass(const std::shared_ptr<Ends>& ends, asio::ip::tcp::socket& from,
                   asio::ip::tcp::socket& to, std::array<char, 4096>& buffer) {
    from.async_read_some(asio::buffer(buffer),
                         [ends, &from, &to, &buffer](std::error_code error, size_t bytes) {
                           if (ends->holds && &from == &ends->far) return;
                           if (!error) asio::write(to, asio::buffer(buffer.data(), bytes), error);
                           if (!error) return Pass(ends, from, to, buffer);
                           from.close(error);
                           to.close(error);
                         });
  }
  void CutNow() {
    std::error_code ignored;
    acceptor_->close(ignored);
    if (ends_ == nullptr) return;
    ends_->near.close(ignored);
    ends_->far.close(ignored);
  }

  Loop& loop_;
  const uint16_t to_;
  uint16_t port_ = 0;
  std::optional<asio::ip::tcp::acceptor> acceptor_;
  std::shared_ptr<Ends> ends_;
};

// Switches by levels: each has so many children, which are members at the lowest level.
//
//    {2, 3}        root
//               leaf    leaf
//              m m m   m m m
class Fabric {
 public:
  explicit Fabric(const std::vector<uint32_t>& fanouts, uint32_t segment_bytes = kSegmentBytes)
      : fanouts_(fanouts), segment_bytes_(segment_bytes) {
    key_.fill('k');
    Build(0, std::nullopt);
  }
  ~Fabric() {
    wires_.clear();
    loop_.Do([this] { servers_.clear(); });
  }

  size_t members() const { return places_.size(); }
  SwitchTreeOptions Member(uint32_t self) const {
    SwitchTreeOptions options;
    options.group = group_;
    options.key = key_;
    options.leaf_address = wires_[places_[self].wire]->address();
    options.child = places_[self].child;
    options.segment_bytes = segment_bytes_;
    options.window = kWindow;
    options.self = self;
    options.members = static_cast<uint32_t>(places_.size());
    options.listen = "127.0.0.1:0";
    return options;
  }
  // In the order of the tree, each switch by itself.
  std::string Folded(Op operation, ElementType type, const std::vector<std::string>& parts) const {
    size_t next = 0;
    return Fold(0, operation, type, parts, &next);
  }

  size_t switches() const { return servers_.size(); }
  size_t wires() const { return wires_.size(); }
  void Stop(size_t number) {
    asio::post(loop_.io(), [this, number] { servers_[number].reset(); });
  }
  void Cut(size_t wire) { wires_[wire]->Cut(); }
  Wire& WireOf(uint32_t member) { return *wires_[places_[member].wire]; }
  Loop& loop() { return loop_; }

 private:
  struct Place {
    size_t wire;
    uint32_t child;
  };

  void Build(size_t level, std::optional<EntryParent> parent) {
    EntrySpec spec;
    spec.group = group_;
    spec.key = key_;
    spec.children = fanouts_[level];
    spec.segment_bytes = segment_bytes_;
    spec.window = kWindow;
    spec.parent = std::move(parent);
    uint16_t port = 0;
    loop_.Do([&] {
      SwitchServer::Options options;
      options.listen = "127.0.0.1:0";
      auto server = SwitchServer::Listen(&loop_.io(), options);
      EXPECT_TRUE(server.ok() && (*server)->Install(spec).ok());
      port = (*server)->port();
      servers_.push_back(*std::move(server));
    });
    for (uint32_t child = 0; child < fanouts_[level]; ++child) {
      wires_.push_back(std::make_unique<Wire>(loop_, port));
      if (level + 1 == fanouts_.size()) {
        places_.push_back({wires_.size() - 1, child});
      } else {
        Build(level + 1, EntryParent{wires_.back()->address(), "", child});
      }
    }
  }
  std::string Fold(size_t level, Op operation, ElementType type,
                   const std::vector<std::string>& parts, size_t* next) const {
    std::string result;
    for (uint32_t child = 0; child < fanouts_[level]; ++child) {
      const std::string part = level + 1 == fanouts_.size()
                                   ? parts[(*next)++]
                                   : Fold(level + 1, operation, type, parts, next);
      if (operation == Op::kTake) {
        result += part;
      } else if (child == 0) {
        result = part;
      } else {
        Combine(operation, type, part, &result);
      }
    }
    return result;
  }

  Loop loop_;
  const std::vector<uint32_t> fanouts_;
  const uint32_t segment_bytes_;
  const Group group_{7, 2};
  LinkKey key_{};
  std::vector<std::unique_ptr<SwitchServer>> servers_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<Place> places_;  // by member
};

// All members, each in a thread of its own, with what MPI would do: a native collective, in which
// all meet. Who is at its end leaves it.
class Job {
 public:
  using Program = std::function<void(uint32_t self, SwitchTree& tree)>;

  explicit Job(Fabric& fabric) : fabric_(fabric), native_(static_cast<long>(fabric.members())) {}

  // With a wire to member 0 for each of the others, if it is to be cut.
  void Run(const Program& program, const std::function<void(SwitchTreeOptions*)>& change = {}) {
    const auto members = static_cast<uint32_t>(fabric_.members());
    for (uint32_t self = 0; self < members; ++self) {
      SwitchTreeOptions options = fabric_.Member(self);
      if (change) change(&options);
      std::string trouble;
      trees_.push_back(SwitchTree::Open(options, &trouble));
      ASSERT_NE(trees_.back(), nullptr) << trouble;
    }
    for (uint32_t self = 0; self < members; ++self) {
      to_coordinator_.push_back(std::make_unique<Wire>(fabric_.loop(), trees_[0]->port()));
    }
    std::vector<std::thread> threads;
    std::promise<void> over;
    std::atomic<uint32_t> running = members;
    for (uint32_t self = 0; self < members; ++self) {
      threads.emplace_back([&, self] {
        std::string trouble;
        const bool is_joined = trees_[self]->Join(to_coordinator_[self]->address(), &trouble);
        EXPECT_TRUE(is_joined) << trouble;
        Meet();
        if (is_joined) program(self, *trees_[self]);
        if (--running == 0) over.set_value();
      });
    }
    // Threads that hang cannot be ended.
    if (over.get_future().wait_for(kDeadline) != std::future_status::ready) {
      std::cerr << running << " members hang; COPPICE_TEST_SEED=" << TestSeed() << "\n";
      std::abort();
    }
    for (std::thread& thread : threads) thread.join();
    trees_.clear();
    to_coordinator_.clear();
  }

  void Meet() { native_.arrive_and_wait(); }
  void CutFromCoordinator(uint32_t member) { to_coordinator_[member]->Cut(); }

 private:
  Fabric& fabric_;
  std::barrier<> native_;
  std::vector<std::unique_ptr<SwitchTree>> trees_;
  std::vector<std::unique_ptr<Wire>> to_coordinator_;
};

struct Plan {
  Op operation;
  ElementType type;
  uint64_t bytes;
  std::vector<std::string> parts;  // by member
  std::string result;

  SwitchCollective At(uint64_t number, uint32_t self) const {
    return {number, operation, type, bytes, parts[self]};
  }
};

// Any operation on any type that has it, of no bytes to some windows of segments.
Plan SomePlan(const Fabric& fabric, std::mt19937_64& random) {
  Plan plan{Op::kNone, ElementType::kNone, 0, {}, {}};
  while (!IsDefined(plan.operation, plan.type)) {
    plan.operation = static_cast<Op>(random() % (kLastOperation + 1));
    plan.type = static_cast<ElementType>(random() % (kLastElementType + 1));
  }
  plan.bytes = random() % (kSegmentBytes / 2) * ElementBytes(plan.type);
  const size_t giver = random() % fabric.members();
  for (size_t member = 0; member < fabric.members(); ++member) {
    const bool gives = plan.operation != Op::kTake || member == giver;
    std::string& part = plan.parts.emplace_back(gives ? plan.bytes : 0, '\0');
    for (char& byte : part) byte = static_cast<char>(random());
  }
  plan.result = fabric.Folded(plan.operation, plan.type, plan.parts);
  return plan;
}

// Until nobody needs this member any more.
void LeaveAndWait(SwitchTree& tree) {
  tree.Leave();
  while (!tree.HasEnded()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

const std::vector<std::vector<uint32_t>> kFanouts = {{3}, {2, 2}, {4, 4}, {2, 2, 2}, {3, 1, 2}};

TEST(SwitchTree, AllMembersHaveTheResultsOfManyCollectives) {
  std::mt19937_64 random(TestSeed());
  for (const auto& fanouts : kFanouts) {
    Fabric fabric(fanouts);
    std::vector<Plan> plans;
    for (int i = 0; i < (FullTier() ? 300 : 40); ++i) plans.push_back(SomePlan(fabric, random));
    Job(fabric).Run([&](uint32_t self, SwitchTree& tree) {
      for (uint64_t number = 1; number <= plans.size(); ++number) {
        const Plan& plan = plans[number - 1];
        const Carried carried = tree.Carry(plan.At(number, self));
        ASSERT_EQ(carried.how, How::kAlongTree) << tree.trouble();
        ASSERT_EQ(*carried.result, plan.result) << "number " << number << " member " << self;
      }
      LeaveAndWait(tree);
    });
  }
}

// How all members ended each number.
class Record {
 public:
  void Add(uint64_t number, const Carried& carried) {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = ways_.emplace(number, carried.how);
    handed_on_ += carried.is_handed_on ? 1 : 0;
    EXPECT_EQ(place->second, carried.how) << "number " << number;
    ++members_[number];
  }
  void ExpectAll(uint64_t numbers, size_t members) {
    for (uint64_t number = 1; number <= numbers; ++number) EXPECT_EQ(members_[number], members);
  }
  uint64_t Numbers(How how) const {
    return static_cast<uint64_t>(std::count_if(
        ways_.begin(), ways_.end(), [how](const auto& way) { return way.second == how; }));
  }
  uint64_t handed_on() const { return handed_on_; }

 private:
  std::mutex mutex_;
  uint64_t handed_on_ = 0;
  std::map<uint64_t, How> ways_;
  std::map<uint64_t, size_t> members_;
};

// The instant: when some member has begun so many collectives, from a thread of its own.
TEST(SwitchTree, WhateverEndsAllMembersEndEachCollectiveTheSameWay) {
  std::mt19937_64 random(TestSeed());
  constexpr uint64_t kNumbers = 40;
  uint64_t broken = 0, along_tree = 0, handed_on = 0;
  for (int round = 0; round < (FullTier() ? 300 : 20); ++round) {
    Fabric fabric(kFanouts[static_cast<size_t>(round) % kFanouts.size()]);
    std::vector<Plan> plans;
    for (uint64_t i = 0; i < kNumbers; ++i) plans.push_back(SomePlan(fabric, random));
    const uint64_t instant = random() % (kNumbers * fabric.members());
    const bool is_switch = random() % 2 == 0;
    const size_t victim = random() % (is_switch ? fabric.switches() : fabric.wires());
    std::atomic<uint64_t> begun = 0;
    Record record;
    Job job(fabric);
    job.Run(
        [&](uint32_t self, SwitchTree& tree) {
          for (uint64_t number = 1; number <= kNumbers; ++number) {
            if (begun++ == instant) is_switch ? fabric.Stop(victim) : fabric.Cut(victim);
            const Plan& plan = plans[number - 1];
            const Carried carried = tree.Carry(plan.At(number, self));
            record.Add(number, carried);
            if (carried.how == How::kAlongTree) {
              EXPECT_EQ(*carried.result, plan.result) << "number " << number << " member " << self;
            } else if (carried.how == How::kNatively) {
              job.Meet();
            } else {
              ADD_FAILURE() << "ended " << static_cast<int>(carried.how) << " without "
                            << carried.lost;
              return;
            }
          }
          job.Meet();
        },
        // A switch that has not yet been welcome at its parent's seeks it on and on.
        [](SwitchTreeOptions* options) { options->patience = std::chrono::milliseconds(2'000); });
    record.ExpectAll(kNumbers, fabric.members());
    broken += record.Numbers(How::kNatively) > 0 ? 1 : 0;
    along_tree += record.Numbers(How::kAlongTree);
    handed_on += record.handed_on();
  }
  std::cout << broken << " broken trees, " << along_tree << " collectives along them, " << handed_on
            << " results handed on\n";
  // Some are ended when nothing is under way any more, some at the beginning.
  EXPECT_GT(broken, 10);
  EXPECT_GT(along_tree, 10 * kNumbers / 4);
}

// Only a member that is needed is missed: the tree goes on without the link to member 0, and when
// it breaks, each names the one that cannot be reached, or member 0 if it is that one.
TEST(SwitchTree, WhoCannotBeReachedWhenItBreaksIsNamedByAll) {
  Fabric fabric({2, 2});
  std::mt19937_64 random(TestSeed());
  const Plan plan = SomePlan(fabric, random);
  Job job(fabric);
  job.Run(
      [&](uint32_t self, SwitchTree& tree) {
        if (self == 0) job.CutFromCoordinator(3);
        job.Meet();
        ASSERT_EQ(tree.Carry(plan.At(1, self)).how, How::kAlongTree) << tree.trouble();
        job.Meet();
        if (self == 0) fabric.Stop(0);
        const Carried carried = tree.Carry(plan.At(2, self));
        // Unless it was soon enough for one more.
        const Carried last =
            carried.how == How::kAlongTree ? tree.Carry(plan.At(3, self)) : carried;
        EXPECT_EQ(last.how, How::kLost);
        EXPECT_EQ(last.lost, self == 3 ? 0 : 3);
      },
      [](SwitchTreeOptions* options) { options->patience = std::chrono::milliseconds(2'000); });
}

// The others have the result of the first when the link of one of them, which has not, is cut. It
// is longer than a frame. Member 0 has to fetch it first if it is the one.
TEST(SwitchTree, WhoLacksTheLastResultGetsItFromOneThatHasIt) {
  for (const uint32_t held : {0, 1, 2}) {
    Fabric fabric({3}, kMaxPayloadBytes);
    std::mt19937_64 random(TestSeed());
    std::vector<std::string> parts(3, std::string(kWindow * kMaxPayloadBytes - 8, '\0'));
    for (std::string& part : parts) {
      for (char& byte : part) byte = static_cast<char>(random());
    }
    const std::string result = fabric.Folded(Op::kSum, ElementType::kUint64, parts);
    std::atomic<int> left = 2;
    Job job(fabric);
    job.Run([&](uint32_t self, SwitchTree& tree) {
      if (self == held) fabric.WireOf(held).HoldDown();
      job.Meet();
      SwitchCollective collective{1, Op::kSum, ElementType::kUint64, result.size(), parts[self]};
      const Carried first = tree.Carry(collective);
      ASSERT_EQ(first.how, How::kAlongTree);
      EXPECT_EQ(*first.result, result);
      EXPECT_EQ(first.is_handed_on, self == held);
      if (self != held && --left == 0) fabric.WireOf(held).Cut();
      collective.number = 2;
      EXPECT_EQ(tree.Carry(collective).how, How::kNatively);
      EXPECT_EQ(tree.Carry(collective).how, How::kNatively);
    });
  }
}

// The same where the others have left after the first.
TEST(SwitchTree, WhoHasLeftAnswersUntilAllHave) {
  for (const uint32_t held : {0, 1, 2}) {
    Fabric fabric({3});
    std::mt19937_64 random(TestSeed());
    const Plan plan = SomePlan(fabric, random);
    std::atomic<int> left = 2;
    Job job(fabric);
    job.Run([&](uint32_t self, SwitchTree& tree) {
      if (self == held) fabric.WireOf(held).HoldDown();
      job.Meet();
      const Carried first = tree.Carry(plan.At(1, self));
      ASSERT_EQ(first.how, How::kAlongTree) << tree.trouble();
      EXPECT_EQ(*first.result, plan.result);
      EXPECT_EQ(first.is_handed_on, self == held);
      if (self == held) return LeaveAndWait(tree);
      tree.Leave();
      EXPECT_FALSE(tree.HasEnded());
      if (--left == 0) fabric.WireOf(held).Cut();
      while (!tree.HasEnded()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
}

TEST(SwitchTree, AMemberThatIsLateForItsPatienceMakesAllGoNatively) {
  Fabric fabric({3});
  Job job(fabric);
  std::promise<void> natively;
  std::shared_future<void> told(natively.get_future());
  std::atomic<int> left = 2;
  job.Run(
      [&](uint32_t self, SwitchTree& tree) {
        const std::string part(200'000, static_cast<char>(self));
        // Member 2 is elsewhere until the others have gone natively.
        if (self == 2) told.wait();
        const Carried carried =
            tree.Carry({1, Op::kBitwiseOr, ElementType::kUint8, part.size(), part});
        EXPECT_EQ(carried.how, How::kNatively);
        if (self != 2 && --left == 0) natively.set_value();
      },
      [](SwitchTreeOptions* options) { options->patience = std::chrono::milliseconds(50); });
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

// They do not close their ends.
TEST(SwitchTree, WhoIsNoMemberHasNoDescriptorOfMember0) {
  Fabric fabric({2});
  std::string trouble;
  const auto first = SwitchTree::Open(fabric.Member(0), &trouble);
  ASSERT_NE(first, nullptr) << trouble;
  const asio::ip::tcp::endpoint door(asio::ip::address_v4::loopback(), first->port());
  asio::io_context io;
  std::vector<asio::ip::tcp::socket> strangers;
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  hello.group = fabric.Member(1).group;
  hello.child = 1;
  hello.length = kKeyBytes;
  const auto header = EncodeHeader(hello);
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 200; ++i) {
    asio::ip::tcp::socket& stranger = strangers.emplace_back(io);
    stranger.connect(door);
    const std::string wrong_key(kKeyBytes, 'x');
    asio::write(stranger, std::array{asio::buffer(header), asio::buffer(wrong_key)});
    std::array<char, 256> word{};
    std::error_code error;
    while (!error) stranger.read_some(asio::buffer(word), error);  // to its end
  }
  EXPECT_LE(OpenDescriptors(), before + strangers.size() + 8);  // some are asio's own
  const auto second = SwitchTree::Open(fabric.Member(1), &trouble);
  ASSERT_NE(second, nullptr) << trouble;
  auto joined = std::async(std::launch::async, [&] {
    std::string why;
    return second->Join(absl::StrCat("127.0.0.1:", door.port()), &why);
  });
  EXPECT_TRUE(first->Join("", &trouble)) << trouble;
  EXPECT_TRUE(joined.get());
  // Nobody else may come: the door is shut once member 0 has joined.
  std::error_code refused;
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  while (!refused && std::chrono::steady_clock::now() < until) {
    asio::ip::tcp::socket late(io);
    late.connect(door, refused);
  }
  EXPECT_EQ(refused, asio::error::connection_refused);
}

TEST(SwitchTree, LeavesHalfOfTheDescriptorsToTheProgram) {
  Fabric fabric({2});
  SwitchTreeOptions options = fabric.Member(0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::string trouble;
  EXPECT_NE(SwitchTree::Open(options, &trouble), nullptr) << trouble;
  options.members = 128;
  EXPECT_EQ(SwitchTree::Open(options, &trouble), nullptr);
  EXPECT_THAT(trouble, testing::HasSubstr("ulimit -n"));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

bool HasOutwardAddress() {
  ifaddrs* all = nullptr;
  bool has_one = false;
  if (getifaddrs(&all) != 0) return false;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    has_one |= at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
               (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
  }
  freeifaddrs(all);
  return has_one;
}

// By the family at which member 0 listens, whatever else its name has; and where others find it,
// although the name of its own node leads to itself.
TEST(SwitchTree, IsReachedAtAnAddressOfTheFamilyThatItListensAt) {
  Fabric fabric({1});
  SwitchTreeOptions options = fabric.Member(0);
  options.members = 2;
  options.listen = "0.0.0.0:0";
  for (const char* leaf : {"localhost:9", "127.0.0.1:9"}) {
    options.leaf_address = leaf;
    std::string trouble;
    const auto tree = SwitchTree::Open(options, &trouble);
    ASSERT_NE(tree, nullptr) << trouble;
    const std::string own = tree->coordinator();
    const std::string port = absl::StrCat(":", tree->port());
    ASSERT_TRUE(absl::EndsWith(own, port)) << own;
    std::error_code error;
    const auto address = asio::ip::make_address(own.substr(0, own.size() - port.size()), error);
    ASSERT_FALSE(error) << own;
    EXPECT_TRUE(address.is_v4());
    const bool is_name = options.leaf_address.starts_with("localhost");
    EXPECT_EQ(address.is_loopback(), !is_name || !HasOutwardAddress()) << own;
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    socket.connect({address, tree->port()}, error);
    EXPECT_FALSE(error) << own << ": " << error.message();
  }
}

TEST(SwitchTree, RefusesWhatIsNotTheNextAndWhatNoTreeCarries) {
  Fabric fabric({1});
  Job(fabric).Run([&](uint32_t, SwitchTree& tree) {
    const std::string part(8, 'x');
    const auto how = [&](uint64_t number, Op operation, ElementType type, uint64_t bytes) {
      return tree.Carry({number, operation, type, bytes, part}).how;
    };
    EXPECT_EQ(how(2, Op::kSum, ElementType::kInt64, 8), How::kMisused);
    EXPECT_EQ(how(1, Op::kNone, ElementType::kInt64, 8), How::kMisused);
    EXPECT_EQ(how(1, Op::kSum, ElementType::kNone, 8), How::kMisused);
    EXPECT_EQ(how(1, Op::kSum, ElementType::kInt64, 16), How::kMisused);
    EXPECT_EQ(how(1, Op::kSum, ElementType::kInt64, 8), How::kAlongTree);
    // The switch refuses it, and all go natively.
    EXPECT_EQ(how(2, Op::kBitwiseAnd, ElementType::kDouble, 8), How::kNatively);
    EXPECT_THAT(tree.trouble(), testing::HasSubstr("type of the operation"));
  });
}

TEST(SwitchTree, SaysWhyItCannotJoin) {
  Fabric fabric({2});
  std::string trouble;
  SwitchTreeOptions options = fabric.Member(0);
  options.segment_bytes = 4;
  EXPECT_EQ(SwitchTree::Open(options, &trouble), nullptr);
  EXPECT_NE(trouble, "");
  options = fabric.Member(0);
  options.listen = "nowhere";
  EXPECT_EQ(SwitchTree::Open(options, &trouble), nullptr);
  EXPECT_THAT(trouble, testing::HasSubstr("nowhere"));
  // Nobody else comes.
  options = fabric.Member(0);
  options.join_within = std::chrono::milliseconds(50);
  EXPECT_FALSE(SwitchTree::Open(options, &trouble)->Join("", &trouble));
  EXPECT_THAT(trouble, testing::HasSubstr("in time"));
  // Of another revision: by the switch's word.
  options = fabric.Member(0);
  options.group.revision = 3;
  EXPECT_FALSE(SwitchTree::Open(options, &trouble)->Join("", &trouble));
  EXPECT_EQ(trouble, "stale revision");
  options = fabric.Member(1);
  EXPECT_FALSE(SwitchTree::Open(options, &trouble)->Join("x", &trouble));
  EXPECT_THAT(trouble, testing::HasSubstr("member 0 at x"));
}

}  // namespace
}  // namespace coppice::mpi::switch_tree_test
