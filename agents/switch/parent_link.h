// An entry's way up: connects to the parent, says hello for the entry, and tries again until it is
// welcome, as the parent's entry may be installed later than this one. What goes up meanwhile
// waits; it is no more than a window. After the welcome nothing is tried again: a link that is lost
// then ends the tree at this revision.
#ifndef COPPICE_AGENTS_SWITCH_PARENT_LINK_H_
#define COPPICE_AGENTS_SWITCH_PARENT_LINK_H_

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "agents/links/frame.h"
#include "agents/links/link.h"
#include "agents/switch/entry.h"
#include "client/library/retry_pause.h"

namespace coppice {

// Belongs to the thread of its io_context. Keeps itself while asio works for it; Close ends that.
class ParentLink final : public std::enable_shared_from_this<ParentLink> {
 public:
  struct Events {
    std::function<void(const FrameHeader& header, std::string_view payload)> on_result;
    // After the welcome, or if that did not come in time; last.
    std::function<void(Refusal why)> on_lost;
  };

  // `spec` has a parent.
  ParentLink(asio::io_context* io, EntrySpec spec, std::chrono::milliseconds welcome_within,
             Events events);

  void Begin();
  void Send(const Entry::Up& up);
  // No more events. `refusal`: what the parent is told; kNone: nothing.
  void Close(Refusal refusal);

  bool is_welcome() const { return is_welcome_; }
  // As Link's; nothing before the welcome.
  std::optional<Link::Clock::time_point> waits_since() const;
  // The last reason why it is not welcome.
  const std::string& trouble() const { return trouble_; }

 private:
  void Connect();
  void OnConnected(const std::error_code& error);
  void OnFrame(const FrameHeader& header, std::string_view payload);
  void TryAgain(std::string why);
  void Lose(Refusal why);

  asio::io_context* const io_;
  const EntrySpec spec_;
  const Link::Clock::time_point welcome_until_;
  const Events events_;
  asio::steady_timer timer_;  // of a try, or until the next
  RetryPause pause_;
  std::optional<asio::ip::tcp::socket> socket_;  // while it connects
  std::shared_ptr<Link> link_;
  std::deque<Entry::Up> waiting_;  // for the welcome
  std::string trouble_;
  bool is_welcome_ = false;
  bool is_closed_ = false;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_PARENT_LINK_H_
