#include "agents/switch/switch_server.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Besides a window of results: the welcome, the last word and answers to pings.
constexpr size_t kOtherChildFrames = 8;

absl::Status CannotListenAt(const std::string& address, const std::error_code& error) {
  if (error == std::errc::invalid_argument) {
    return absl::InvalidArgumentError(
        absl::StrCat("listen \"", address, "\": give ADDRESS:PORT, such as 0.0.0.0:18516"));
  }
  return absl::UnavailableError(absl::StrCat("listen ", address, ": ", error.message()));
}

FrameHeader AnswerTo(const FrameHeader& header, FrameKind kind) {
  FrameHeader answer;
  answer.kind = kind;
  answer.group = header.group;
  answer.child = kFromParent;
  answer.sequence = header.sequence;
  return answer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SwitchServer>> SwitchServer::Listen(asio::io_context* io,
                                                                   const Options& options) {
  std::unique_ptr<SwitchServer> server(new SwitchServer(io, options));
  SwitchServer* const raw = server.get();
  std::error_code error;
  server->listener_ =
      LinkListener::Listen(io, options.listen, options.strangers,
                           {[raw](const std::shared_ptr<Link>& link, const FrameHeader& hello,
                                  const LinkKey& key) { raw->OnHello(link, hello, key); },
                            [raw](Refusal refusal) { raw->Count(refusal); }},
                           &error);
  if (server->listener_ == nullptr) return CannotListenAt(options.listen, error);
  server->LookForStalls();
  return server;
}

SwitchServer::SwitchServer(asio::io_context* io, const Options& options)
    : io_(io),
      stall_(options.stall),
      welcome_within_(options.welcome_within),
      table_(options.limits),
      stall_timer_(*io) {}

SwitchServer::~SwitchServer() {
  std::vector<uint64_t> trees;
  for (const auto& [tree, wires] : wires_) trees.push_back(tree);
  for (const uint64_t tree : trees) Unwire(tree, Refusal::kBroken);
}

absl::Status SwitchServer::Install(const EntrySpec& spec) {
  const absl::StatusOr<EntryTable::Installed> installed = table_.Install(spec);
  if (!installed.ok()) return installed.status();
  if (*installed == EntryTable::Installed::kAlready) return absl::OkStatus();
  Unwire(spec.group.tree, Refusal::kStaleRevision);
  Wires& wires = wires_[spec.group.tree];
  wires.children.resize(spec.children);
  if (!spec.parent) return absl::OkStatus();
  const Group group = spec.group;
  wires.parent = std::make_shared<ParentLink>(
      io_, spec, welcome_within_,
      ParentLink::Events{[this, group](const FrameHeader& header, std::string_view payload) {
                           OnResult(group, header, payload);
                         },
                         [this, group](Refusal) { OnParentLost(group); }});
  wires.parent->Begin();
  return absl::OkStatus();
}

void SwitchServer::Remove(const Group& group) {
  if (table_.Remove(group)) Unwire(group.tree, Refusal::kRemoved);
}

void SwitchServer::Keep(std::span<const Group> groups) {
  for (const Group& group : table_.Strangers(groups)) Remove(group);
}

void SwitchServer::OnHello(const std::shared_ptr<Link>& link, const FrameHeader& hello,
                           const LinkKey& key) {
  const Refusal refusal = table_.Admit(hello, key);
  if (refusal != Refusal::kNone) {
    Count(refusal);
    link->Refuse(hello.group, refusal, RefusalName(refusal));
    // Somebody left while nothing was under way, and now one who has the key is in need of it.
    if (refusal == Refusal::kBroken) Break(hello.group);
    return link->Close();
  }
  const EntrySpec& spec = table_.Find(hello.group.tree)->spec();
  LinkBounds bounds;
  bounds.max_payload = std::max<uint32_t>(spec.segment_bytes, kMaxRefusalText + sizeof(uint32_t));
  bounds.max_queued = spec.window + kOtherChildFrames;
  const Group group = hello.group;
  const uint32_t child = hello.child;
  link->HandOver({[this, group, child](const FrameHeader& header, std::string_view payload) {
                    OnChild(group, child, header, payload);
                  },
                  [this, group, child](LinkEnd end) { OnChildEnd(group, child, end); }},
                 bounds);
  wires_[group.tree].children[child] = link;
  link->Send(AnswerTo(hello, FrameKind::kWelcome));
}

void SwitchServer::OnChild(const Group& group, uint32_t child, const FrameHeader& header,
                           std::string_view payload) {
  Wires& wires = wires_[group.tree];
  if (header.kind == FrameKind::kPing && payload.empty()) {
    return wires.children[child]->Send(AnswerTo(header, FrameKind::kPong));
  }
  if (header.kind == FrameKind::kPong && payload.empty()) return;
  // A switch below whose entry broke.
  if (header.kind == FrameKind::kRefusal) return Break(group);
  if (header.kind != FrameKind::kContribution) {
    return RefuseChild(group, child, Refusal::kMalformed);
  }
  const Entry::Answer answer = table_.Find(group.tree)->Contribute(child, header, payload);
  if (answer.refusal != Refusal::kNone) return RefuseChild(group, child, answer.refusal);
  if (answer.up) wires.parent->Send(*answer.up);
  if (answer.down) PassDown(wires, *answer.down);
}

void SwitchServer::OnResult(const Group& group, const FrameHeader& header,
                            std::string_view payload) {
  const Entry::Answer answer = table_.Find(group.tree)->TakeResult(header, payload);
  if (answer.refusal != Refusal::kNone) {
    Count(answer.refusal);
    return Break(group);
  }
  PassDown(wires_[group.tree], *answer.down);
}

void SwitchServer::PassDown(Wires& wires, const Entry::Down& down) {
  for (size_t child = 0; child < wires.children.size(); ++child) {
    if (wires.children[child] == nullptr) continue;
    wires.children[child]->Send(down.header, down.wants[child] ? down.payload : nullptr);
  }
}

void SwitchServer::OnChildEnd(const Group& group, uint32_t child, LinkEnd end) {
  if (end == LinkEnd::kMalformed) return RefuseChild(group, child, Refusal::kMalformed);
  if (end == LinkEnd::kUnread) return RefuseChild(group, child, Refusal::kUnread);
  Wires& wires = wires_[group.tree];
  wires.children[child].reset();
  if (!table_.Find(group.tree)->Lose()) return LeaveParent(wires);
  TellBroken(group);
  Unwire(group.tree, Refusal::kBroken);
}

// A tree that nobody uses just now ends without a word: those below hear of it when they next use
// it, and the switch above sees at once that this one is gone, since it may be in use there.
void SwitchServer::LeaveParent(Wires& wires) {
  if (wires.parent != nullptr) std::exchange(wires.parent, nullptr)->Close(Refusal::kNone);
}

void SwitchServer::OnParentLost(const Group& group) {
  Wires& wires = wires_[group.tree];
  if (!table_.Find(group.tree)->Lose()) return LeaveParent(wires);
  TellBroken(group);
  Unwire(group.tree, Refusal::kBroken);
}

void SwitchServer::RefuseChild(const Group& group, uint32_t child, Refusal refusal) {
  Count(refusal);
  const std::shared_ptr<Link> link = std::move(wires_[group.tree].children[child]);
  if (link != nullptr) link->Refuse(group, refusal, RefusalName(refusal));
  Break(group);
}

void SwitchServer::Break(const Group& group) {
  if (table_.Find(group.tree)->Break()) TellBroken(group);
  Unwire(group.tree, Refusal::kBroken);
}

void SwitchServer::TellBroken(const Group& group) {
  ++broken_;
  asio::post(*io_, [this, group, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired() && on_broken_) on_broken_(group);
  });
}

void SwitchServer::Unwire(uint64_t tree, Refusal refusal) {
  const auto found = wires_.find(tree);
  if (found == wires_.end()) return;
  const Wires wires = std::move(found->second);
  const Entry* const entry = table_.Find(tree);
  const Group group = entry == nullptr ? Group{tree, 0} : entry->spec().group;
  if (entry == nullptr) {
    wires_.erase(found);
  } else {
    found->second = {};
    found->second.children.resize(entry->spec().children);
  }
  for (const auto& link : wires.children) {
    if (link != nullptr) link->Refuse(group, refusal, RefusalName(refusal));
  }
  if (wires.parent != nullptr) wires.parent->Close(refusal);
}

void SwitchServer::LookForStalls() {
  const auto since = Link::Clock::now() - stall_;
  const auto stalls = [since](const auto& link) {
    return link != nullptr && link->waits_since() && *link->waits_since() <= since;
  };
  std::vector<std::pair<Group, uint32_t>> unread;
  for (const auto& [tree, wires] : wires_) {
    const Group group = table_.Find(tree)->spec().group;
    if (stalls(wires.parent)) unread.emplace_back(group, kFromParent);
    const auto child = std::find_if(wires.children.begin(), wires.children.end(), stalls);
    if (child != wires.children.end()) {
      unread.emplace_back(group, static_cast<uint32_t>(child - wires.children.begin()));
    }
  }
  for (const auto& [group, child] : unread) {
    if (child != kFromParent) {
      RefuseChild(group, child, Refusal::kUnread);
    } else {
      Count(Refusal::kUnread);
      Break(group);
    }
  }
  stall_timer_.expires_after(stall_ / 4);
  stall_timer_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code&) {
    if (!alive.expired()) LookForStalls();
  });
}

ServerNumbers SwitchServer::Numbers() const {
  ServerNumbers numbers;
  numbers.counters = table_.Counters();
  numbers.broken = broken_;
  for (const auto& [refusal, count] : refusals_) {
    numbers.refusals[std::string(RefusalName(refusal))] = count;
  }
  return numbers;
}

}  // namespace coppice
