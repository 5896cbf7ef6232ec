// Links on loopback: frames arrive whole and in order, a queue that nobody empties ends its link, a
// last word arrives before the end, and of strangers there are only so many.
#include "agents/links/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/write.hpp>
#include <cerrno>
#include <cstdlib>
#include <random>

#include "agents/links/link_listener.h"
#include "tests/support/tier.h"

namespace coppice::link_test {
namespace {

bool RunUntil(asio::io_context& io, const std::function<bool()>& is_done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
  return true;
}

std::pair<asio::ip::tcp::socket, asio::ip::tcp::socket> Connected(asio::io_context& io) {
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket near(io), far(io);
  std::error_code error;
  near.connect(acceptor.local_endpoint(), error);
  EXPECT_FALSE(error);
  acceptor.accept(far, error);
  EXPECT_FALSE(error);
  return {std::move(near), std::move(far)};
}

struct Heard {
  std::vector<std::pair<FrameHeader, std::string>> frames;
  std::optional<LinkEnd> end;

  Link::Events Events() {
    return {[this](const FrameHeader& header, std::string_view payload) {
              frames.emplace_back(header, payload);
            },
            [this](LinkEnd how) { end = how; }};
  }
};

LinkBounds Bounds(uint32_t max_payload, size_t max_queued) { return {max_payload, max_queued}; }

SharedBytes Bytes(size_t count, char byte = 'x') {
  return std::make_shared<const std::string>(count, byte);
}

TEST(Link, CarriesFramesOfAllLengthsInOrder) {
  asio::io_context io;
  auto [near_socket, far_socket] = Connected(io);
  Heard heard_near, heard_far;
  const auto near = std::make_shared<Link>(std::move(near_socket), Bounds(kMaxPayloadBytes, 1'000));
  const auto far = std::make_shared<Link>(std::move(far_socket), Bounds(kMaxPayloadBytes, 1'000));
  near->Start(heard_near.Events());
  far->Start(heard_far.Events());
  std::mt19937_64 random(TestSeed());
  std::vector<size_t> lengths = {0, 1, kMaxPayloadBytes, 0, kMaxPayloadBytes};
  while (lengths.size() < 300) lengths.push_back(random() % 3'000);
  FrameHeader header;
  for (const size_t length : lengths) {
    ++header.sequence;
    near->Send(header, length == 0 ? nullptr : Bytes(length, static_cast<char>(length)));
    far->Send(header);
  }
  ASSERT_TRUE(RunUntil(io, [&] {
    return heard_far.frames.size() == lengths.size() && heard_near.frames.size() == lengths.size();
  }));
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(heard_far.frames[i].first.sequence, i + 1);
    EXPECT_EQ(heard_far.frames[i].second, std::string(lengths[i], static_cast<char>(lengths[i])));
  }
  EXPECT_FALSE(near->waits_since());
  near->Close();
  ASSERT_TRUE(RunUntil(io, [&] { return heard_far.end.has_value(); }));
  EXPECT_EQ(*heard_far.end, LinkEnd::kClosed);
  EXPECT_FALSE(heard_near.end);
}

TEST(Link, WhoDoesNotReadFillsItsQueueAndNoMore) {
  asio::io_context io;
  auto [near_socket, far_socket] = Connected(io);
  Heard heard;
  const auto link = std::make_shared<Link>(std::move(near_socket), Bounds(16, 4));
  link->Start(heard.Events());
  const auto payload = Bytes(kMaxPayloadBytes);
  for (int i = 0; i < 2'000 && !heard.end; ++i) {
    link->Send(FrameHeader(), payload);
    EXPECT_LE(payload.use_count(), 6);  // the queue's four, one being written, and ours
    io.restart();
    io.poll();
  }
  ASSERT_TRUE(heard.end);
  EXPECT_EQ(*heard.end, LinkEnd::kUnread);
  EXPECT_FALSE(link->is_open());
}

TEST(Link, WhatIsMalformedEndsItAndMayBeTold) {
  asio::io_context io;
  auto [near_socket, far_socket] = Connected(io);
  const auto link = std::make_shared<Link>(std::move(near_socket), Bounds(16, 4));
  std::optional<LinkEnd> end;
  link->Start({[](const FrameHeader&, std::string_view) { ADD_FAILURE(); },
               [&](LinkEnd how) {
                 end = how;
                 link->Refuse({}, Refusal::kMalformed, "no frame");
               }});
  Heard heard;
  std::error_code error;
  asio::write(far_socket, asio::buffer(std::string(100, 'x')), error);
  const auto far = std::make_shared<Link>(std::move(far_socket), Bounds(1'000, 4));
  far->Start(heard.Events());
  ASSERT_TRUE(RunUntil(io, [&] { return heard.end.has_value(); }));
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, LinkEnd::kMalformed);
  ASSERT_EQ(heard.frames.size(), 1);
  EXPECT_EQ(ParseRefusal(heard.frames[0].second), Refusal::kMalformed);
}

TEST(Link, LeavesAfterWhatItHasToSay) {
  asio::io_context io;
  auto [near_socket, far_socket] = Connected(io);
  Heard heard_near, heard_far;
  const auto near = std::make_shared<Link>(std::move(near_socket), Bounds(16, 100));
  near->Start(heard_near.Events());
  for (int i = 0; i < 50; ++i) near->Send(FrameHeader(), Bytes(kMaxPayloadBytes));
  near->Refuse({3, 4}, Refusal::kRemoved, "gone");
  near->Send(FrameHeader());  // nothing any more
  const auto far = std::make_shared<Link>(std::move(far_socket), Bounds(kMaxPayloadBytes, 100));
  far->Start(heard_far.Events());
  for (int i = 0; i < 50; ++i) far->Send(FrameHeader(), Bytes(16));  // unheard
  ASSERT_TRUE(RunUntil(io, [&] { return heard_far.end.has_value(); }));
  ASSERT_EQ(heard_far.frames.size(), 51);
  EXPECT_EQ(heard_far.frames.back().first.group, (Group{3, 4}));
  EXPECT_TRUE(heard_near.frames.empty());
  EXPECT_FALSE(heard_near.end);
}

// More than sockets hold, to who reads when the one with little time has gone.
TEST(Link, LeavesWithinTheTimeThatItIsGiven) {
  asio::io_context io;
  constexpr size_t kFrames = 400;
  const auto leaving = [&io](std::chrono::milliseconds within) {
    auto [near_socket, far_socket] = Connected(io);
    const auto near = std::make_shared<Link>(std::move(near_socket), Bounds(16, kFrames));
    near->Start({});
    for (size_t i = 0; i < kFrames; ++i) near->Send(FrameHeader(), Bytes(kMaxPayloadBytes));
    near->Leave(within);
    return std::pair(std::weak_ptr<Link>(near),
                     std::make_shared<Link>(std::move(far_socket), Bounds(kMaxPayloadBytes, 4)));
  };
  const auto [soon, far_of_soon] = leaving(std::chrono::milliseconds(10));
  const auto [late, far_of_late] = leaving(std::chrono::seconds(20));
  ASSERT_TRUE(RunUntil(io, [&gone = soon] { return gone.expired(); }));
  EXPECT_FALSE(late.expired());
  Heard of_soon, of_late;
  far_of_soon->Start(of_soon.Events());
  far_of_late->Start(of_late.Events());
  ASSERT_TRUE(RunUntil(io, [&] { return of_soon.end && of_late.end; }));
  EXPECT_LT(of_soon.frames.size(), kFrames);
  EXPECT_EQ(of_late.frames.size(), kFrames);
}

using SocketNumbers = std::array<int, 4>;

// Frames are sent at once; silence is asked about; what is under way to a host that is gone keeps
// the kernel from asking, so that has a bound of its own.
SocketNumbers NumbersOf(int descriptor) {
  const auto number = [descriptor](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(descriptor, level, name, &value, &size), 0);
    return value;
  };
  return {number(IPPROTO_TCP, TCP_NODELAY), number(SOL_SOCKET, SO_KEEPALIVE),
          number(IPPROTO_TCP, TCP_KEEPIDLE), number(IPPROTO_TCP, TCP_USER_TIMEOUT)};
}
constexpr SocketNumbers kSetUp = {1, 1, 10, 25'000};

TEST(Link, SetsUpASocketThatNobodyHasSetUp) {
  asio::io_context io;
  auto [near_socket, far_socket] = Connected(io);
  const int descriptor = near_socket.native_handle();
  ASSERT_NE(NumbersOf(descriptor), kSetUp);
  const auto near = std::make_shared<Link>(std::move(near_socket), Bounds(16, 4));
  EXPECT_EQ(NumbersOf(descriptor), kSetUp);
}

TEST(Link, AddressesAreHostAndPort) {
  std::string host, port;
  EXPECT_TRUE(SplitAddress("10.0.0.7:18516", &host, &port));
  EXPECT_EQ(host + " " + port, "10.0.0.7 18516");
  EXPECT_TRUE(SplitAddress("[fe80::1]:1", &host, &port));
  EXPECT_EQ(host + " " + port, "fe80::1 1");
  EXPECT_TRUE(SplitAddress("node-7:65535", &host, &port));
  for (const char* bad : {"", ":", ":1", "host", "host:", "host:65536", "host:x", "host:-1",
                          "fe80::1:1", "[]:1", "host:000001"}) {
    EXPECT_FALSE(SplitAddress(bad, &host, &port)) << bad;
  }
}

TEST(Link, ConnectsByAddressAndByName) {
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  const std::string port = std::to_string(acceptor.local_endpoint().port());
  for (const std::string& address : {"127.0.0.1:" + port, "localhost:" + port, std::string("x")}) {
    asio::ip::tcp::socket socket(io);
    std::optional<std::error_code> done;
    ConnectTo(address, socket, [&](const std::error_code& error) { done = error; });
    ASSERT_TRUE(RunUntil(io, [&] { return done.has_value(); }));
    EXPECT_EQ(!*done, address != "x") << address << " " << done->message();
  }
}

TEST(Link, GivesUpWhenTheSocketIsClosedWhileItsNameIsLookedUp) {
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket socket(io);
  std::optional<std::error_code> done;
  ConnectTo("localhost:" + std::to_string(acceptor.local_endpoint().port()), socket,
            [&](const std::error_code& error) { done = error; });
  socket.close();
  ASSERT_TRUE(RunUntil(io, [&] { return done.has_value(); }));
  EXPECT_EQ(*done, asio::error::operation_aborted);
  EXPECT_FALSE(socket.is_open());
}

// As a user who may have no other thread; nor has LeakSanitizer, which std::exit would call.
TEST(Link, SaysThatThereIsNoThreadToLookANameUp) {
  const auto look_up = [] {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) std::_Exit(2);
    const rlimit limit{1, 1};
    setrlimit(RLIMIT_NPROC, &limit);
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    std::optional<std::error_code> done;
    ConnectTo("localhost:1", socket, [&](const std::error_code& error) { done = error; });
    const bool is_told = !done && RunUntil(io, [&] { return done.has_value(); });
    std::_Exit(is_told && done->value() == EAGAIN ? 0 : 1);
  };
  EXPECT_EXIT(look_up(), testing::ExitedWithCode(0), "");
}

struct Door {
  std::vector<std::shared_ptr<Link>> links;
  std::vector<std::pair<FrameHeader, LinkKey>> hellos;
  std::map<Refusal, int> refused;
  std::unique_ptr<LinkListener> listener;

  Door(asio::io_context& io, LinkListener::Options options) {
    std::error_code error;
    listener = LinkListener::Listen(
        &io, "127.0.0.1:0", options,
        {[this](const std::shared_ptr<Link>& link, const FrameHeader& hello, const LinkKey& key) {
           links.push_back(link);
           hellos.emplace_back(hello, key);
         },
         [this](Refusal refusal) { ++refused[refusal]; }},
        &error);
    EXPECT_NE(listener, nullptr) << error.message();
  }
  asio::ip::tcp::socket Knock(asio::io_context& io) const {
    asio::ip::tcp::socket socket(io);
    std::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), listener->port()}, error);
    EXPECT_FALSE(error);
    return socket;
  }
};

TEST(LinkListener, HandsOnWhoSaysHello) {
  asio::io_context io;
  Door door(io, {});
  Heard heard;
  const auto link = std::make_shared<Link>(door.Knock(io), Bounds(16, 4));
  link->Start(heard.Events());
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  hello.group = {8, 9};
  link->Send(hello, std::make_shared<const std::string>("0123456789abcdef"));
  ASSERT_TRUE(RunUntil(io, [&] { return door.hellos.size() == 1; }));
  EXPECT_EQ(door.hellos[0].first.group, (Group{8, 9}));
  EXPECT_EQ(door.hellos[0].second[15], 'f');
  EXPECT_EQ(door.listener->strangers(), 0);
  // Another frame first, or a key of another length.
  for (const auto& [kind, bytes] : {std::pair(FrameKind::kPing, 16), {FrameKind::kHello, 15}}) {
    Heard told;
    const auto other = std::make_shared<Link>(door.Knock(io), Bounds(1'000, 4));
    other->Start(told.Events());
    FrameHeader header;
    header.kind = kind;
    other->Send(header, Bytes(static_cast<size_t>(bytes)));
    ASSERT_TRUE(RunUntil(io, [&] { return told.end.has_value(); }));
    ASSERT_EQ(told.frames.size(), 1);
    EXPECT_EQ(ParseRefusal(told.frames[0].second), Refusal::kMalformed);
  }
  EXPECT_EQ(door.refused[Refusal::kMalformed], 2);
}

TEST(LinkListener, OfStrangersTheOldestGoes) {
  asio::io_context io;
  LinkListener::Options options;
  options.max_strangers = 3;
  Door door(io, options);
  std::vector<asio::ip::tcp::socket> sockets;
  for (int i = 0; i < 50; ++i) {
    sockets.push_back(door.Knock(io));
    io.restart();
    io.poll();
    EXPECT_LE(door.listener->strangers(), 3);
  }
  ASSERT_TRUE(RunUntil(io, [&] { return door.refused[Refusal::kTooManyStrangers] == 47; }));
  EXPECT_EQ(door.listener->strangers(), 3);
  std::error_code error;
  char byte = 0;
  sockets.back().non_blocking(true);
  EXPECT_EQ(sockets.back().read_some(asio::buffer(&byte, 1), error), 0);
  EXPECT_EQ(error, asio::error::would_block);  // the youngest is still there
}

// This process's end of a connection to `port` that was accepted there; -1: there is none.
int AcceptedAt(uint16_t port) {
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    sockaddr_in here = {}, there = {};
    socklen_t size = sizeof here, size_there = sizeof there;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
        here.sin_port == htons(port) &&
        getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &size_there) == 0) {
      return descriptor;
    }
  }
  return -1;
}

TEST(LinkListener, SetsUpWhatItAccepts) {
  asio::io_context io;
  const Door door(io, {});
  const asio::ip::tcp::socket stranger = door.Knock(io);
  ASSERT_TRUE(RunUntil(io, [&] { return door.listener->strangers() == 1; }));
  EXPECT_EQ(NumbersOf(AcceptedAt(door.listener->port())), kSetUp);
}

TEST(LinkListener, RefusesWhatIsNoAddressOrIsTaken) {
  asio::io_context io;
  Door door(io, {});
  std::error_code error;
  for (const std::string& address :
       {std::string("x"), std::string("localhost:1"), std::string("1.2.3.4")}) {
    EXPECT_EQ(LinkListener::Listen(&io, address, {}, {}, &error), nullptr);
    EXPECT_EQ(error, std::errc::invalid_argument);
  }
  const std::string taken = "127.0.0.1:" + std::to_string(door.listener->port());
  EXPECT_EQ(LinkListener::Listen(&io, taken, {}, {}, &error), nullptr);
  EXPECT_EQ(error, asio::error::address_in_use);
}

}  // namespace
}  // namespace coppice::link_test
