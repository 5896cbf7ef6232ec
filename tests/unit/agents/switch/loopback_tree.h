// Real switches and members on loopback, all on one io_context that the test itself runs: nothing
// happens but what the test waits for.
#ifndef COPPICE_TESTS_UNIT_AGENTS_SWITCH_LOOPBACK_TREE_H_
#define COPPICE_TESTS_UNIT_AGENTS_SWITCH_LOOPBACK_TREE_H_

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/links/link.h"
#include "agents/switch/switch_server.h"

namespace coppice {

// Runs `io` until `is_done`. False: not within 20 s.
inline bool RunUntil(asio::io_context& io, const std::function<bool()>& is_done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
  return true;
}

// Connects, to 127.0.0.1 as all of these.
inline asio::ip::tcp::socket ConnectedTo(asio::io_context& io, uint16_t port) {
  asio::ip::tcp::socket socket(io);
  std::error_code error;
  socket.connect({asio::ip::address_v4::loopback(), port}, error);
  EXPECT_FALSE(error) << error.message();
  return socket;
}

// A member of a tree: what it is told is kept.
class LoopbackMember {
 public:
  LoopbackMember(asio::io_context& io, uint16_t port, Group group, uint32_t child,
                 const LinkKey& key, uint32_t max_payload = kMaxPayloadBytes)
      : group_(group), child_(child) {
    LinkBounds bounds;
    bounds.max_payload = max_payload;
    bounds.max_queued = 1'000;
    link_ = std::make_shared<Link>(ConnectedTo(io, port), bounds);
    link_->Start({[this](const FrameHeader& header, std::string_view payload) {
                    if (header.kind == FrameKind::kWelcome) is_welcome = true;
                    if (header.kind == FrameKind::kPong) ++pongs;
                    if (header.kind == FrameKind::kRefusal) refusal = ParseRefusal(payload);
                    if (header.kind == FrameKind::kResult) results.emplace_back(header, payload);
                  },
                  [this](LinkEnd) { is_ended = true; }});
    FrameHeader hello;
    hello.kind = FrameKind::kHello;
    hello.group = group;
    hello.child = child;
    link_->Send(hello, std::make_shared<const std::string>(key.data(), key.size()));
  }
  ~LoopbackMember() { link_->Close(); }
  LoopbackMember(const LoopbackMember&) = delete;

  void Contribute(uint64_t sequence, uint32_t segment, std::string payload,
                  ReductionOperation operation = ReductionOperation::kSum,
                  ElementType type = ElementType::kInt64, bool wants = true) {
    FrameHeader header;
    header.kind = FrameKind::kContribution;
    header.operation = operation;
    header.type = type;
    header.wants_result = wants;
    header.group = group_;
    header.child = child_;
    header.sequence = sequence;
    header.segment = segment;
    Send(header, std::move(payload));
  }
  void Send(const FrameHeader& header, std::string payload) {
    link_->Send(header, std::make_shared<const std::string>(std::move(payload)));
  }
  Link& link() { return *link_; }

  bool is_welcome = false;
  bool is_ended = false;
  int pongs = 0;
  Refusal refusal = Refusal::kNone;
  std::vector<std::pair<FrameHeader, std::string>> results;

 private:
  const Group group_;
  const uint32_t child_;
  std::shared_ptr<Link> link_;
};

inline std::unique_ptr<SwitchServer> LoopbackSwitch(asio::io_context& io,
                                                    SwitchServer::Options options = {}) {
  options.listen = "127.0.0.1:0";
  auto server = SwitchServer::Listen(&io, options);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

inline EntrySpec LoopbackEntry(Group group, uint32_t children, uint32_t segment_bytes = 1024,
                               uint32_t window = 4) {
  EntrySpec spec;
  spec.group = group;
  spec.key.fill(static_cast<char>(group.tree * 16 + group.revision));
  spec.children = children;
  spec.segment_bytes = segment_bytes;
  spec.window = window;
  return spec;
}

inline std::string Int64s(std::initializer_list<int64_t> values) {
  std::string bytes;
  for (const int64_t value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

inline uint64_t RefusalsOf(const SwitchServer& server, Refusal refusal) {
  const auto refusals = server.Numbers().refusals;
  const auto found = refusals.find(std::string(RefusalName(refusal)));
  return found == refusals.end() ? 0 : found->second;
}

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_AGENTS_SWITCH_LOOPBACK_TREE_H_
