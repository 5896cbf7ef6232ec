// A link: a TCP connection that carries frames, with a bounded buffer of what arrives and a bounded
// queue of what is to be written. TCP is the reliable transport; nothing is sent again here.
//
//   socket --> one frame a turn --> on_frame            Send --> queue --> socket
//
// A link belongs to the one thread that runs its io_context. It keeps itself while asio works for
// it, so its owner may let go at any time, after Close or Leave. Plain C++, for the library that is
// preloaded into MPI programs.
#ifndef COPPICE_AGENTS_LINKS_LINK_H_
#define COPPICE_AGENTS_LINKS_LINK_H_

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agents/links/frame.h"

namespace coppice {

struct LinkBounds {
  uint32_t max_payload = kKeyBytes;  // of one frame that arrives
  size_t max_queued = 8;             // frames to be written
};

// How a link ended by itself.
enum class LinkEnd {
  kClosed,     // by the other side
  kLost,       // the connection broke
  kMalformed,  // no frame arrived
  kUnread,     // the other side does not read, and the queue is full
};

// Small frames are sent at once, and a host that dies without a word is noticed within half a
// minute. On Linux a socket that listens hands this on to those that it accepts.
void SetUpSocket(int descriptor);

class Link final : public std::enable_shared_from_this<Link> {
 public:
  using Clock = std::chrono::steady_clock;
  struct Events {
    // `payload` is valid during the call only.
    std::function<void(const FrameHeader& header, std::string_view payload)> on_frame;
    // Last, once; not after Close or Leave, and never within a call of the owner's.
    std::function<void(LinkEnd end)> on_end;
  };
  // How long one that leaves waits for the other side to take the rest and go.
  static constexpr std::chrono::seconds kPartingTime{1};

  // Takes over a connected socket, and sets it up if its listener has not.
  Link(asio::ip::tcp::socket socket, LinkBounds bounds);

  // Begins to read. Once.
  void Start(Events events);
  // Whose it is from now on; from the next frame on with these bounds. May be called in on_frame.
  void HandOver(Events events, LinkBounds bounds);

  // Sets the header's length. After Close and Leave it does nothing.
  void Send(FrameHeader header, SharedBytes payload = nullptr);
  // Since when nothing of what is to be written was taken; nullopt: there is nothing.
  std::optional<Clock::time_point> waits_since() const { return waits_since_; }

  // No more events. What is queued is still written, if the other side takes it in that time.
  void Leave(std::chrono::milliseconds within = kPartingTime);
  // Leave after a last word.
  void Refuse(const Group& group, Refusal refusal, std::string_view text);
  // No more events, at once.
  void Close();

  bool is_open() const { return !is_closed_ && !is_leaving_; }

 private:
  struct Outgoing {
    std::array<char, kHeaderBytes> header;
    SharedBytes payload;
    size_t size() const { return kHeaderBytes + (payload ? payload->size() : 0); }
  };

  void Read();
  void OnRead(const std::error_code& error, size_t bytes);
  void TakeFrame();
  void Write();
  void OnWritten(const std::error_code& error, size_t bytes);
  void End(LinkEnd end);
  void Part();

  asio::ip::tcp::socket socket_;
  asio::steady_timer parting_;
  LinkBounds bounds_;
  FrameParser parser_;
  std::shared_ptr<const Events> events_;  // null: nobody listens any more
  std::deque<Outgoing> queue_;
  size_t written_ = 0;  // bytes of the first
  std::optional<Clock::time_point> waits_since_;
  size_t dropped_ = 0;  // bytes that came after Leave
  bool is_full_ = false;
  bool is_leaving_ = false;
  bool is_closed_ = false;
};

// Where somebody listens: "10.0.0.7:18516", "[fe80::1]:18516" or "node7:18516". False: it is none.
bool SplitAddress(const std::string& address, std::string* host, std::string* port);

// Connects to `address`, whose name is looked up on a thread of asio's; gives up when `socket` is
// closed, at the latest when the name is known. `socket` lives until `on_done`, which is called
// later, once.
void ConnectTo(const std::string& address, asio::ip::tcp::socket& socket,
               std::function<void(const std::error_code& error)> on_done);

}  // namespace coppice

#endif  // COPPICE_AGENTS_LINKS_LINK_H_
