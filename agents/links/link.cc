#include "agents/links/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/connect.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice {
namespace {

// A host that dies without a word says nothing any more: after these seconds of silence it is
// asked, so often and so many times. With bytes under way the kernel does not ask but sends them
// again, for so long (tcp(7), TCP_USER_TIMEOUT).
constexpr int kAskAfterS = 10, kAskEveryS = 5, kAskTimes = 3;
constexpr int kUnacknowledgedMs = (kAskAfterS + kAskTimes * kAskEveryS) * 1000;
// Frames that are written by one call.
constexpr size_t kFramesAtOnce = 16;
// Of a leaving link, so that its last word arrives: a socket that is closed with bytes unread tells
// the other side only that it is gone (RFC 2525, 2.17).
constexpr size_t kMaxDropped = 4 << 20;

bool IsSetUp(int descriptor) {
  int milliseconds = 0;
  socklen_t size = sizeof milliseconds;
  return getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) == 0 &&
         milliseconds == kUnacknowledgedMs;
}

}  // namespace

void SetUpSocket(int descriptor) {
  struct Option {
    int level, name, value;
  };
  for (const Option& option :
       {Option{IPPROTO_TCP, TCP_NODELAY, 1}, Option{SOL_SOCKET, SO_KEEPALIVE, 1},
        Option{IPPROTO_TCP, TCP_KEEPIDLE, kAskAfterS},
        Option{IPPROTO_TCP, TCP_KEEPINTVL, kAskEveryS}, Option{IPPROTO_TCP, TCP_KEEPCNT, kAskTimes},
        Option{IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs}}) {
    setsockopt(descriptor, option.level, option.name, &option.value, sizeof option.value);
  }
}

Link::Link(asio::ip::tcp::socket socket, LinkBounds bounds)
    : socket_(std::move(socket)),
      parting_(socket_.get_executor()),
      bounds_(bounds),
      parser_(bounds.max_payload) {
  if (!IsSetUp(socket_.native_handle())) SetUpSocket(socket_.native_handle());
}

void Link::Start(Events events) {
  events_ = std::make_shared<const Events>(std::move(events));
  Read();
}

void Link::HandOver(Events events, LinkBounds bounds) {
  if (!is_open()) return;
  events_ = std::make_shared<const Events>(std::move(events));
  bounds_ = bounds;
  parser_.Allow(bounds.max_payload);
}

void Link::Read() {
  const std::span<char> room = parser_.Room();
  socket_.async_read_some(asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const std::error_code& error, size_t bytes) {
                            self->OnRead(error, bytes);
                          });
}

void Link::OnRead(const std::error_code& error, size_t bytes) {
  if (is_closed_) return;
  if (error) return End(error == asio::error::eof ? LinkEnd::kClosed : LinkEnd::kLost);
  if (is_leaving_) {
    dropped_ += bytes;
    return dropped_ > kMaxDropped ? Close() : Read();
  }
  parser_.Filled(bytes);
  TakeFrame();
}

// One frame a turn: others whose bytes are there come first.
void Link::TakeFrame() {
  if (is_closed_) return;
  if (is_leaving_) {
    parser_.Drop();
    return Read();
  }
  FrameHeader header;
  std::string_view payload;
  switch (parser_.Next(&header, &payload)) {
    case FrameParser::State::kNeedsMore:
      return Read();
    case FrameParser::State::kMalformed:
      return End(LinkEnd::kMalformed);
    case FrameParser::State::kFrame:
      break;
  }
  const std::shared_ptr<const Events> events = events_;  // may be replaced by what it calls
  events->on_frame(header, payload);
  if (is_closed_) return;
  if (parser_.IsEmpty()) return Read();
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->TakeFrame(); });
}

void Link::Send(FrameHeader header, SharedBytes payload) {
  if (!is_open() || is_full_) return;
  if (queue_.size() >= bounds_.max_queued) {
    is_full_ = true;
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->is_open()) self->End(LinkEnd::kUnread);
    });
    return;
  }
  header.length = payload ? static_cast<uint32_t>(payload->size()) : 0;
  queue_.push_back({EncodeHeader(header), std::move(payload)});
  if (!waits_since_) Write();
}

void Link::Write() {
  waits_since_ = Clock::now();
  std::vector<asio::const_buffer> buffers;
  size_t skipped = written_;
  const auto add = [&](const char* data, size_t size) {
    const size_t skip = std::min(skipped, size);
    skipped -= skip;
    if (skip < size) buffers.emplace_back(data + skip, size - skip);
  };
  for (size_t i = 0; i < std::min(queue_.size(), kFramesAtOnce); ++i) {
    add(queue_[i].header.data(), kHeaderBytes);
    if (queue_[i].payload) add(queue_[i].payload->data(), queue_[i].payload->size());
  }
  socket_.async_write_some(buffers,
                           [self = shared_from_this()](const std::error_code& error, size_t bytes) {
                             self->OnWritten(error, bytes);
                           });
}

void Link::OnWritten(const std::error_code& error, size_t bytes) {
  if (is_closed_) return;
  waits_since_.reset();
  if (error) return End(LinkEnd::kLost);
  written_ += bytes;
  while (!queue_.empty() && written_ >= queue_.front().size()) {
    written_ -= queue_.front().size();
    queue_.pop_front();
  }
  if (!queue_.empty()) return Write();
  if (is_leaving_) Part();
}

void Link::End(LinkEnd end) {
  if (is_closed_) return;
  const std::shared_ptr<const Events> events = std::exchange(events_, nullptr);
  const bool is_told = !is_leaving_;
  // The owner may still refuse it in so many words.
  if (is_told && events != nullptr && (end == LinkEnd::kMalformed || end == LinkEnd::kUnread)) {
    events->on_end(end);
    if (!is_leaving_) Close();
    if (is_leaving_ && !is_closed_ && end == LinkEnd::kMalformed) {
      parser_.Drop();
      Read();
    }
    return;
  }
  Close();
  if (is_told && events != nullptr) events->on_end(end);
}

void Link::Leave(std::chrono::milliseconds within) {
  if (!is_open()) return;
  is_leaving_ = true;
  events_.reset();
  parting_.expires_after(within);
  parting_.async_wait([self = shared_from_this()](const std::error_code&) { self->Close(); });
  if (queue_.empty()) Part();
}

void Link::Refuse(const Group& group, Refusal refusal, std::string_view text) {
  FrameHeader header;
  header.kind = FrameKind::kRefusal;
  header.group = group;
  header.child = kFromParent;
  bounds_.max_queued = queue_.size() + 1;
  is_full_ = false;
  Send(header, std::make_shared<const std::string>(RefusalPayload(refusal, text)));
  Leave();
}

// All is said; the other side reads to the end, and closes.
void Link::Part() {
  std::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Link::Close() {
  if (std::exchange(is_closed_, true)) return;
  events_.reset();
  waits_since_.reset();
  queue_.clear();
  parting_.cancel();
  std::error_code ignored;
  socket_.close(ignored);
}

bool SplitAddress(const std::string& address, std::string* host, std::string* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  *host = address.substr(0, colon);
  *port = address.substr(colon + 1);
  if (host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
    if (host->empty()) return false;
  } else if (host->find(':') != std::string::npos) {
    return false;
  }
  if (port->empty() || port->size() > 5 ||
      port->find_first_not_of("0123456789") != std::string::npos)
    return false;
  return std::stoul(*port) <= 65535;
}

namespace {

using OnConnected = std::function<void(const std::error_code& error)>;

void LookUpAndConnect(const std::string& host, const std::string& port,
                      asio::ip::tcp::socket& socket, const OnConnected& on_done) {
  std::error_code error;
  socket.open(asio::ip::tcp::v4(), error);  // so that who closes it meanwhile is seen
  const auto resolver = std::make_shared<asio::ip::tcp::resolver>(socket.get_executor());
  const auto connect = [resolver, &socket, on_done](
                           const std::error_code& unknown,
                           const asio::ip::tcp::resolver::results_type& found) {
    if (unknown) return on_done(unknown);
    if (!socket.is_open()) return on_done(asio::error::operation_aborted);
    asio::async_connect(socket, found,
                        [on_done](const std::error_code& result, const asio::ip::tcp::endpoint&) {
                          on_done(result);
                        });
  };
  try {
    if (!error) return resolver->async_resolve(host, port, connect);
  } catch (const std::system_error& no_thread) {
    error = no_thread.code();
  }
  asio::post(socket.get_executor(), [on_done, error] { on_done(error); });
}

}  // namespace

void ConnectTo(const std::string& address, asio::ip::tcp::socket& socket,
               std::function<void(const std::error_code& error)> on_done) {
  std::string host, port;
  std::error_code error;
  if (!SplitAddress(address, &host, &port)) {
    asio::post(socket.get_executor(), [on_done = std::move(on_done)] {
      on_done(std::make_error_code(std::errc::invalid_argument));
    });
    return;
  }
  const asio::ip::address numeric = asio::ip::make_address(host, error);
  if (error) return LookUpAndConnect(host, port, socket, on_done);
  socket.async_connect({numeric, static_cast<uint16_t>(std::stoul(port))}, std::move(on_done));
}

}  // namespace coppice
