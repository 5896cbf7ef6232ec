#include "agents/links/link_listener.h"

#include <algorithm>
#include <asio/error.hpp>
#include <cerrno>
#include <utility>

namespace coppice {
namespace {

// Between two tries to accept when the process has no descriptor left.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

std::unique_ptr<LinkListener> LinkListener::Listen(asio::io_context* io, const std::string& address,
                                                   Options options, Events events,
                                                   std::error_code* error) {
  std::string host, port;
  error->clear();
  const bool is_split = SplitAddress(address, &host, &port);
  const asio::ip::address numeric =
      is_split ? asio::ip::make_address(host, *error) : asio::ip::address();
  if (!is_split || *error) {
    *error = std::make_error_code(std::errc::invalid_argument);
    return nullptr;
  }
  const asio::ip::tcp::endpoint endpoint(numeric, static_cast<uint16_t>(std::stoul(port)));
  asio::ip::tcp::acceptor acceptor(*io);
  acceptor.open(endpoint.protocol(), *error);
  if (!*error) acceptor.set_option(asio::socket_base::reuse_address(true), *error);
  // Once instead of six calls for each stranger.
  if (!*error) SetUpSocket(acceptor.native_handle());
  if (!*error) acceptor.bind(endpoint, *error);
  if (!*error) acceptor.listen(asio::socket_base::max_listen_connections, *error);
  if (*error) return nullptr;
  const asio::ip::tcp::endpoint bound = acceptor.local_endpoint(*error);
  if (*error) return nullptr;
  std::unique_ptr<LinkListener> listener(
      new LinkListener(std::move(acceptor), bound.port(), options, std::move(events)));
  listener->Accept();
  return listener;
}

LinkListener::LinkListener(asio::ip::tcp::acceptor acceptor, uint16_t port, Options options,
                           Events events)
    : acceptor_(std::move(acceptor)),
      port_(port),
      options_(options),
      events_(std::move(events)),
      pause_(acceptor_.get_executor()),
      deadline_(acceptor_.get_executor()) {}

LinkListener::~LinkListener() {
  for (const Stranger& stranger : strangers_) stranger.link->Close();
}

void LinkListener::Accept() {
  acceptor_.async_accept([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code& error,
                                                                     asio::ip::tcp::socket socket) {
    if (alive.expired()) return;
    const bool is_spent = error == asio::error::no_descriptors ||
                          error == asio::error::no_buffer_space ||
                          error == asio::error::no_memory ||
                          error == std::error_code(ENFILE, asio::error::get_system_category());
    if (is_spent) return AcceptLater();
    if (!error) Take(std::move(socket));
    Accept();
  });
}

// What there is goes on meanwhile, and the oldest stranger's descriptor is given back.
void LinkListener::AcceptLater() {
  if (!strangers_.empty()) SendAway(strangers_.begin(), Refusal::kTooManyStrangers);
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code&) {
    if (!alive.expired()) Accept();
  });
}

void LinkListener::Take(asio::ip::tcp::socket socket) {
  if (strangers_.size() >= options_.max_strangers) {
    SendAway(strangers_.begin(), Refusal::kTooManyStrangers);
  }
  const Place place =
      strangers_.insert(strangers_.end(), {std::make_shared<Link>(std::move(socket), LinkBounds()),
                                           Link::Clock::now() + options_.hello_within});
  place->link->Start({[this, place](const FrameHeader& header, std::string_view payload) {
                        OnFrame(place, header, payload);
                      },
                      [this, place](LinkEnd end) {
                        if (end == LinkEnd::kMalformed) return SendAway(place, Refusal::kMalformed);
                        strangers_.erase(place);
                      }});
  WatchOldest();
}

void LinkListener::OnFrame(Place place, const FrameHeader& header, std::string_view payload) {
  if (header.kind != FrameKind::kHello || payload.size() != kKeyBytes) {
    return SendAway(place, Refusal::kMalformed);
  }
  LinkKey key;
  std::copy(payload.begin(), payload.end(), key.begin());
  const std::shared_ptr<Link> link = std::move(place->link);
  strangers_.erase(place);
  events_.on_hello(link, header, key);
}

// Closed at once, not left to part in peace: who makes a thousand connections would have them all
// for that time. What fits is written.
void LinkListener::SendAway(Place place, Refusal refusal) {
  const std::shared_ptr<Link> link = std::move(place->link);
  strangers_.erase(place);
  link->Refuse({}, refusal, RefusalName(refusal));
  link->Close();
  events_.on_refused(refusal);
}

void LinkListener::WatchOldest() {
  if (is_watching_ || strangers_.empty()) return;
  is_watching_ = true;
  deadline_.expires_at(strangers_.front().until);
  deadline_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code&) {
    if (alive.expired()) return;
    is_watching_ = false;
    const auto now = Link::Clock::now();
    while (!strangers_.empty() && strangers_.front().until <= now) {
      SendAway(strangers_.begin(), Refusal::kNoHello);
    }
    WatchOldest();
  });
}

}  // namespace coppice
