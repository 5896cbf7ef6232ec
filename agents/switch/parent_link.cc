#include "agents/switch/parent_link.h"

#include <utility>

namespace coppice {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds kFirstParentPause{50}, kMaxParentPause{2'000};
// From the beginning of a try to the welcome.
constexpr Milliseconds kTryTime{5'000};
// Besides a window of contributions: the hello and answers to pings.
constexpr size_t kOtherFrames = 8;

}  // namespace

ParentLink::ParentLink(asio::io_context* io, EntrySpec spec,
                       std::chrono::milliseconds welcome_within, Events events)
    : io_(io),
      spec_(std::move(spec)),
      welcome_until_(Link::Clock::now() + welcome_within),
      events_(std::move(events)),
      timer_(*io),
      pause_(kFirstParentPause, kMaxParentPause, spec_.group.tree * 31 + spec_.parent->number) {}

void ParentLink::Begin() { Connect(); }

void ParentLink::Connect() {
  socket_.emplace(*io_);
  const auto self = shared_from_this();
  timer_.expires_after(kTryTime);
  timer_.async_wait([self](const std::error_code& error) {
    if (error || self->is_closed_ || self->is_welcome_) return;
    // One that connects is told by its own event.
    std::error_code ignored;
    if (self->socket_) {
      self->socket_->close(ignored);
    } else if (self->link_ != nullptr) {
      self->TryAgain("no welcome in time");
    }
  });
  ConnectTo(spec_.parent->address, *socket_,
            [self](const std::error_code& error) { self->OnConnected(error); });
}

void ParentLink::OnConnected(const std::error_code& error) {
  if (is_closed_) return socket_.reset();
  if (error) {
    socket_.reset();
    return TryAgain(error.message());
  }
  LinkBounds bounds;
  bounds.max_payload = std::max<uint32_t>(spec_.segment_bytes, kMaxRefusalText + sizeof(uint32_t));
  bounds.max_queued = spec_.window + kOtherFrames;
  link_ = std::make_shared<Link>(std::move(*socket_), bounds);
  socket_.reset();
  const std::weak_ptr<ParentLink> weak = weak_from_this();
  link_->Start({[weak](const FrameHeader& header, std::string_view payload) {
                  if (const auto self = weak.lock()) self->OnFrame(header, payload);
                },
                [weak](LinkEnd end) {
                  const auto self = weak.lock();
                  if (self == nullptr || self->is_closed_) return;
                  if (!self->is_welcome_) return self->TryAgain("the connection was closed");
                  self->Lose(end == LinkEnd::kMalformed ? Refusal::kMalformed : Refusal::kBroken);
                }});
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  hello.group = spec_.group;
  hello.child = spec_.parent->number;
  link_->Send(hello, std::make_shared<const std::string>(spec_.key.data(), spec_.key.size()));
}

void ParentLink::OnFrame(const FrameHeader& header, std::string_view payload) {
  if (is_closed_) return;
  const bool is_ours = header.group == spec_.group && header.child == kFromParent;
  if (header.kind == FrameKind::kRefusal) {
    const Refusal refusal = ParseRefusal(payload);
    if (is_welcome_) return Lose(refusal);
    return TryAgain(std::string(RefusalName(refusal)));
  }
  if (header.kind == FrameKind::kWelcome && is_ours && !is_welcome_ && payload.empty()) {
    is_welcome_ = true;
    timer_.cancel();
    trouble_.clear();
    for (Entry::Up& up : std::exchange(waiting_, {})) link_->Send(up.header, std::move(up.payload));
    return;
  }
  if (is_welcome_ && header.kind == FrameKind::kResult && is_ours) {
    return events_.on_result(header, payload);
  }
  if (is_welcome_ && header.kind == FrameKind::kPing && payload.empty()) {
    FrameHeader pong;
    pong.kind = FrameKind::kPong;
    pong.group = spec_.group;
    pong.child = spec_.parent->number;
    return link_->Send(pong);
  }
  if (is_welcome_ && header.kind == FrameKind::kPong) return;
  is_welcome_ ? Lose(Refusal::kMalformed) : TryAgain("something else than a welcome came");
}

void ParentLink::TryAgain(std::string why) {
  trouble_ = std::move(why);
  if (link_ != nullptr) std::exchange(link_, nullptr)->Close();
  if (Link::Clock::now() >= welcome_until_) return Lose(Refusal::kBroken);
  timer_.expires_after(pause_.Next());
  timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error && !self->is_closed_) self->Connect();
  });
}

void ParentLink::Lose(Refusal why) {
  const auto self = shared_from_this();  // its owner lets go
  events_.on_lost(why);
}

void ParentLink::Send(const Entry::Up& up) {
  if (is_closed_) return;
  is_welcome_ ? link_->Send(up.header, up.payload) : waiting_.push_back(up);
}

std::optional<Link::Clock::time_point> ParentLink::waits_since() const {
  return is_welcome_ && link_ != nullptr ? link_->waits_since() : std::nullopt;
}

void ParentLink::Close(Refusal refusal) {
  if (std::exchange(is_closed_, true)) return;
  timer_.cancel();
  waiting_.clear();
  std::error_code ignored;
  if (socket_) socket_->close(ignored);
  if (link_ == nullptr) return;
  if (is_welcome_ && refusal != Refusal::kNone) {
    link_->Refuse(spec_.group, refusal, RefusalName(refusal));
  } else {
    link_->Leave();
  }
}

}  // namespace coppice
