// The double's cable. Each pair listens at a socket of its own; what its peer sends comes over one
// connection, a message at a time, each answered by one byte.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/verbs/double_state.h"

namespace coppice::verbs_double {
namespace {

struct Header {
  uint32_t from, to;  // numbers of the pairs
  uint32_t packet_number;
  uint32_t bytes;
  uint16_t from_lid;
  uint8_t mtu;
};

enum Answer : char { kTaken = 'A', kNotReady = 'R', kTooLong = 'L' };

constexpr uint32_t k24Bits = 0xffffff;

std::string PathTo(const State& state, const PairState& pair, uint64_t prefix, uint16_t lid,
                   uint32_t number) {
  char name[96];
  std::snprintf(name, sizeof name, "/%s-%016llx-%u-%u", pair.owner->device_state->is.fabric.c_str(),
                static_cast<unsigned long long>(prefix), lid, number);
  return state.folder + name;
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    std::fprintf(stderr, "the double of a verbs device: %s is too long\n", path.c_str());
    std::abort();
  }
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
  return address;
}

bool WriteAll(int fd, const void* bytes, size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = send(fd, next, size, MSG_NOSIGNAL);
    if (count <= 0 && errno != EINTR) return false;
    if (count <= 0) continue;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool ReadAll(int fd, void* bytes, size_t size) {
  char* next = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = recv(fd, next, size, 0);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count < 0) continue;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool CanCarry(PairState& pair) {
  const DeviceState& device = *pair.owner->device_state;
  return !device.has_vanished && !device.loses && PortOf(pair)->state == IBV_PORT_ACTIVE;
}

// Whether the pair takes a message with that header; a device drops others without a word.
bool IsMeant(PairState& pair, const Header& header) {
  const ibv_qp_attr& a = pair.attributes;
  const bool is_connected = pair.state == IBV_QPS_RTR || pair.state == IBV_QPS_RTS;
  return is_connected && CanCarry(pair) && header.to == pair.qp_num &&
         header.from == a.dest_qp_num && header.from_lid == a.ah_attr.dlid &&
         header.packet_number == pair.next_received && header.mtu == a.path_mtu;
}

// Says why a message is not taken, after all of it: who closes a socket with something unread takes
// the answer back.
bool Refuse(int fd, const Header& header, Answer answer) {
  std::vector<char> unread(header.bytes);
  if (ReadAll(fd, unread.data(), unread.size())) WriteAll(fd, &answer, 1);
  return false;
}

// One message of the peer; false: it is not taken, nor is what follows.
bool TakeMessage(PairState& pair, int fd) {
  State& state = Shared();
  Header header{};
  if (!ReadAll(fd, &header, sizeof header)) return false;
  std::unique_lock lock(state.mutex);
  CountMessage(pair);
  if (pair.is_closing || !IsMeant(pair, header)) return false;
  if (pair.receives.empty()) {
    Misuse("a message came before a receive was posted", 0);
    lock.unlock();
    return Refuse(fd, header, kNotReady);
  }
  const Request receive = pair.receives.front();
  if (header.bytes > receive.bytes) {
    Misuse("a message is longer than what was posted for it", 0);
    pair.receives.pop_front();
    Complete(*pair.receive_queue, pair, receive, IBV_WC_RECV, IBV_WC_LOC_LEN_ERR, 0);
    Fail(pair);
    lock.unlock();
    return Refuse(fd, header, kTooLong);
  }
  lock.unlock();
  if (!ReadAll(fd, receive.memory, header.bytes)) return false;
  lock.lock();
  // It may have gone into error meanwhile, and the receive with it.
  if (pair.receives.empty() || pair.receives.front().id != receive.id || !CanCarry(pair)) {
    return false;
  }
  pair.receives.pop_front();
  pair.next_received = (pair.next_received + 1) & k24Bits;
  ++state.delivered;
  Complete(*pair.receive_queue, pair, receive, IBV_WC_RECV, IBV_WC_SUCCESS, header.bytes);
  lock.unlock();
  const char answer = kTaken;
  return WriteAll(fd, &answer, 1);
}

void Receive(PairState* pair) {
  State& state = Shared();
  for (;;) {
    const int fd = accept4(pair->listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno == EINTR) continue;
    if (fd < 0) return;
    {
      const std::lock_guard lock(state.mutex);
      pair->from_peer = fd;
      if (pair->is_closing) shutdown(fd, SHUT_RDWR);
    }
    while (TakeMessage(*pair, fd)) {
    }
    const std::lock_guard lock(state.mutex);
    pair->from_peer = -1;
    close(fd);
  }
}

// Connects to the peer's pair if that has not been done.
bool Reach(PairState& pair) {
  State& state = Shared();
  std::unique_lock lock(state.mutex);
  if (!CanCarry(pair) || pair.is_closing) return false;
  if (pair.to_peer >= 0) return true;
  const sockaddr_un address =
      AddressOf(PathTo(state, pair, PortOf(pair)->subnet_prefix, pair.attributes.ah_attr.dlid,
                       pair.attributes.dest_qp_num));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  pair.to_peer = fd;
  lock.unlock();
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  lock.lock();
  return !pair.is_closing;
}

// Carries out one send; what becomes of it.
ibv_wc_status SendMessage(PairState& pair, const Request& request, const Header& header) {
  char answer = 0;
  if (!Reach(pair) || !WriteAll(pair.to_peer, &header, sizeof header) ||
      !WriteAll(pair.to_peer, request.memory, request.bytes) ||
      !ReadAll(pair.to_peer, &answer, 1)) {
    return answer == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  }
  switch (answer) {
    case kTaken:
      return IBV_WC_SUCCESS;
    case kNotReady:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    default:
      return IBV_WC_REM_INV_REQ_ERR;
  }
}

void Send(PairState* pair) {
  State& state = Shared();
  std::unique_lock lock(state.mutex);
  for (;;) {
    pair->changed.wait(lock, [&] { return pair->is_closing || !pair->sends.empty(); });
    if (pair->is_closing) return;
    const Request request = pair->sends.front();
    const Header header{pair->qp_num,       pair->attributes.dest_qp_num,
                        pair->next_sent,    request.bytes,
                        PortOf(*pair)->lid, static_cast<uint8_t>(pair->attributes.path_mtu)};
    CountMessage(*pair);
    lock.unlock();
    const ibv_wc_status status = SendMessage(*pair, request, header);
    lock.lock();
    if (pair->is_closing) return;
    if (pair->sends.empty()) continue;  // flushed meanwhile
    pair->sends.pop_front();
    pair->next_sent = (pair->next_sent + 1) & k24Bits;
    if (status != IBV_WC_SUCCESS || request.is_signaled) {
      Complete(*pair->send_queue, *pair, request, IBV_WC_SEND, status, request.bytes);
    }
    if (status != IBV_WC_SUCCESS) Fail(*pair);
  }
}

}  // namespace

void StartReceiving(PairState& pair) {
  State& state = Shared();
  pair.path = PathTo(state, pair, PortOf(pair)->subnet_prefix, PortOf(pair)->lid, pair.qp_num);
  const sockaddr_un address = AddressOf(pair.path);
  pair.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(pair.listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(pair.listener, 4) != 0) {
    std::perror(("the double of a verbs device: " + pair.path).c_str());
    std::abort();
  }
  pair.receiver = std::thread(Receive, &pair);
}

void StartSending(PairState& pair) { pair.sender = std::thread(Send, &pair); }

void StopWire(PairState& pair) {
  {
    const std::lock_guard lock(Shared().mutex);
    pair.is_closing = true;
    pair.changed.notify_all();
    for (const int fd : {pair.listener, pair.from_peer, pair.to_peer}) {
      if (fd >= 0) shutdown(fd, SHUT_RDWR);
    }
  }
  if (pair.sender.joinable()) pair.sender.join();
  if (pair.receiver.joinable()) pair.receiver.join();
  if (pair.listener >= 0) close(pair.listener);
  if (pair.to_peer >= 0) close(pair.to_peer);
  if (!pair.path.empty()) unlink(pair.path.c_str());
}

}  // namespace coppice::verbs_double
