// Accepts links from anybody, and hands on those that say hello. Whoever has not is a stranger: of
// them there are so many at most, the oldest goes for the next, and each costs one buffer of 64
// bytes and a descriptor, for so long. Plain C++, for the library that is preloaded into MPI
// programs.
#ifndef COPPICE_AGENTS_LINKS_LINK_LISTENER_H_
#define COPPICE_AGENTS_LINKS_LINK_LISTENER_H_

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <system_error>

#include "agents/links/frame.h"
#include "agents/links/link.h"

namespace coppice {

// Belongs to the thread of its io_context, which outlives it.
class LinkListener final {
 public:
  struct Options {
    size_t max_strangers = 64;
    std::chrono::milliseconds hello_within{10'000};
  };
  struct Events {
    // The first frame of a link is a hello with a key. The link is the owner's: it hands it over or
    // refuses it in the call.
    std::function<void(const std::shared_ptr<Link>& link, const FrameHeader& hello,
                       const LinkKey& key)>
        on_hello;
    // A stranger was sent away.
    std::function<void(Refusal refusal)> on_refused;
  };

  // `address`: "ADDRESS:PORT", numeric; port 0: any. Null with *error: std::errc::invalid_argument,
  // it is none; another one, it cannot be listened at, or no descriptor is left.
  static std::unique_ptr<LinkListener> Listen(asio::io_context* io, const std::string& address,
                                              Options options, Events events,
                                              std::error_code* error);
  ~LinkListener();
  LinkListener(const LinkListener&) = delete;
  LinkListener& operator=(const LinkListener&) = delete;

  uint16_t port() const { return port_; }
  size_t strangers() const { return strangers_.size(); }

 private:
  struct Stranger {
    std::shared_ptr<Link> link;
    Link::Clock::time_point until;
  };
  using Place = std::list<Stranger>::iterator;

  LinkListener(asio::ip::tcp::acceptor acceptor, uint16_t port, Options options, Events events);

  void Accept();
  void AcceptLater();
  void Take(asio::ip::tcp::socket socket);
  void OnFrame(Place place, const FrameHeader& header, std::string_view payload);
  // With its last word, and counted.
  void SendAway(Place place, Refusal refusal);
  void WatchOldest();

  asio::ip::tcp::acceptor acceptor_;
  const uint16_t port_;
  const Options options_;
  const Events events_;
  asio::steady_timer pause_;
  asio::steady_timer deadline_;
  bool is_watching_ = false;
  std::list<Stranger> strangers_;  // the oldest first
  // Gone with the listener: what asio calls later looks here first.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_LINKS_LINK_LISTENER_H_
