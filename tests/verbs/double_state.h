// What the parts of the double share. One lock guards all of it; sockets are used without it.
#ifndef COPPICE_TESTS_VERBS_DOUBLE_STATE_H_
#define COPPICE_TESTS_VERBS_DOUBLE_STATE_H_

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/verbs/device_double.h"

namespace coppice::verbs_double {

struct DeviceState : ibv_device {
  Device is;
  bool has_vanished = false, loses = false;
  uint32_t messages = 0;
  size_t locked = 0;
};

struct ContextState : verbs_context {
  DeviceState* device_state = nullptr;
  size_t objects = 0;
};

struct DomainState : ibv_pd {
  size_t users = 0;
};

struct RegionState : ibv_mr {
  int access = 0;
};

struct QueueState : ibv_cq {
  std::deque<ibv_wc> completions;
  size_t users = 0;
};

// A request that was posted.
struct Request {
  uint64_t id;
  char* memory;
  uint32_t bytes;
  bool is_signaled;
};

struct PairState : ibv_qp {
  ContextState* owner = nullptr;
  DomainState* domain = nullptr;
  QueueState *send_queue = nullptr, *receive_queue = nullptr;
  ibv_qp_cap cap{};
  bool signals_all = false, is_closing = false;
  ibv_qp_attr attributes{};                    // of all transitions so far
  std::deque<Request> sends, receives;         // posted and not carried out
  uint32_t send_slots = 0, receive_slots = 0;  // taken until their completions have been polled
  uint32_t next_sent = 0, next_received = 0;   // packet sequence numbers
  std::condition_variable changed;             // sends, or closing
  int listener = -1, from_peer = -1, to_peer = -1;
  std::string path;
  std::thread sender, receiver;
};

struct State {
  std::mutex mutex;
  std::string folder;
  std::vector<std::unique_ptr<DeviceState>> devices;
  std::vector<std::unique_ptr<DeviceState>> replaced;  // that somebody may still name
  std::set<RegionState*> regions;
  std::set<PairState*> pairs;
  std::map<uint32_t, PairState*> pair_of;  // by number
  std::vector<std::string> misuses;
  size_t objects = 0, delivered = 0;
  uint32_t last_number = 0x10;  // of pairs and keys
  bool is_configured = false, is_prepared_for_forks = false;
};

State& Shared();
// With the lock held. Returns `error`.
int Misuse(const std::string& what, int error);
// The port of a pair; null: its device has none of that number.
Port* PortOf(PairState& pair);
void Complete(QueueState& queue, PairState& pair, const Request& request, ibv_wc_opcode opcode,
              ibv_wc_status status, uint32_t bytes);
// Into the error state: what is posted is flushed.
void Fail(PairState& pair);
// Counts a message of the pair's device, and breaks the device if it is time.
void CountMessage(PairState& pair);
void BreakDevice(DeviceState& device, Fault fault);

void EnsureConfigured(State& state);
// Sockets and threads of a pair.
void StartReceiving(PairState& pair);
void StartSending(PairState& pair);
// Without the lock.
void StopWire(PairState& pair);

}  // namespace coppice::verbs_double

#endif  // COPPICE_TESTS_VERBS_DOUBLE_STATE_H_
