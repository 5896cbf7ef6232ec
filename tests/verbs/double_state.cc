#include "tests/verbs/double_state.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace coppice::verbs_double {
namespace {

[[noreturn]] void BadText(const std::string& what) {
  std::fprintf(stderr, "VERBS_DOUBLE_DEVICES: %s\n", what.c_str());
  std::abort();
}

Fault FaultOf(const std::string& name) {
  if (name == "vanish") return Fault::kVanish;
  if (name == "port-down") return Fault::kPortDown;
  if (name == "lose") return Fault::kLose;
  if (name == "error") return Fault::kError;
  BadText("fault=" + name);
}

void Set(Device& device, const std::string& key, const std::string& value) {
  Port& port = device.ports[0];
  if (key == "lid") {
    port.lid = static_cast<uint16_t>(std::stoul(value));
  } else if (key == "guid") {
    port.guid = std::stoull(value, nullptr, 16);
  } else if (key == "prefix") {
    port.subnet_prefix = std::stoull(value, nullptr, 16);
  } else if (key == "state") {
    port.state = value == "active" ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  } else if (key == "layer") {
    port.link_layer = value == "ib" ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  } else if (key == "fabric") {
    device.fabric = value;
  } else if (key == "fault") {
    device.fault = FaultOf(value.substr(0, value.find('@')));
    device.fault_after = static_cast<uint32_t>(std::stoul(value.substr(value.find('@') + 1)));
  } else {
    BadText(key);
  }
}

void Install(State& state, std::vector<Device> devices) {
  for (auto& old : state.devices) state.replaced.push_back(std::move(old));
  state.devices.clear();
  for (Device& device : devices) {
    auto made = std::make_unique<DeviceState>();
    static_cast<ibv_device&>(*made) = ibv_device{};
    std::snprintf(made->name, sizeof made->name, "%s", device.name.c_str());
    made->node_type = IBV_NODE_CA;
    made->transport_type = IBV_TRANSPORT_IB;
    made->is = std::move(device);
    state.devices.push_back(std::move(made));
  }
  state.is_configured = true;
}

void Configure(State& state) {
  const char* const folder = std::getenv("VERBS_DOUBLE_FOLDER");
  const char* const devices = std::getenv("VERBS_DOUBLE_DEVICES");
  state.folder = folder == nullptr ? "" : folder;
  Install(state, ParseDevices(devices == nullptr ? "" : devices));
}

}  // namespace

State& Shared() {
  static State* const state = new State;  // threads may outlive main
  return *state;
}

std::vector<Device> ParseDevices(const std::string& text) {
  std::vector<Device> devices;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    Device device;
    if (!(words >> device.name)) continue;
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) BadText(word);
      Set(device, word.substr(0, equals), word.substr(equals + 1));
    }
    devices.push_back(device);
  }
  return devices;
}

void SetDevices(const std::string& folder, std::vector<Device> devices) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  if (state.objects > 0) Misuse("objects are alive while the devices change", 0);
  state.folder = folder;
  Install(state, std::move(devices));
}

void EnsureConfigured(State& state) {
  if (!state.is_configured) Configure(state);
}

void Break(const std::string& device, Fault fault) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  for (const auto& one : state.devices) {
    if (one->is.name == device) BreakDevice(*one, fault);
  }
}

std::vector<std::string> TakeMisuses() {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  return std::exchange(state.misuses, {});
}

size_t LiveObjects() {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  return state.objects;
}

size_t Delivered() {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  return state.delivered;
}

int Misuse(const std::string& what, int error) {
  State& state = Shared();
  state.misuses.push_back(what);
  if (!state.folder.empty()) std::ofstream(state.folder + "/misuse", std::ios::app) << what << "\n";
  return error;
}

Port* PortOf(PairState& pair) {
  std::vector<Port>& ports = pair.owner->device_state->is.ports;
  const size_t number = pair.attributes.port_num;
  return number >= 1 && number <= ports.size() ? &ports[number - 1] : nullptr;
}

void Complete(QueueState& queue, PairState& pair, const Request& request, ibv_wc_opcode opcode,
              ibv_wc_status status, uint32_t bytes) {
  if (pair.owner->device_state->has_vanished) return;
  if (queue.completions.size() == static_cast<size_t>(queue.cqe)) {
    Misuse("a completion queue overran", 0);
    return;
  }
  ibv_wc completion{};
  completion.wr_id = request.id;
  completion.status = status;
  completion.qp_num = pair.qp_num;
  completion.opcode = opcode;
  completion.byte_len = bytes;
  queue.completions.push_back(completion);
}

void Fail(PairState& pair) {
  pair.state = IBV_QPS_ERR;
  for (const Request& send : pair.sends) {
    Complete(*pair.send_queue, pair, send, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, 0);
  }
  for (const Request& receive : pair.receives) {
    Complete(*pair.receive_queue, pair, receive, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
  }
  pair.sends.clear();
  pair.receives.clear();
}

void BreakDevice(DeviceState& device, Fault fault) {
  if (fault == Fault::kVanish) device.has_vanished = true;
  if (fault == Fault::kLose) device.loses = true;
  if (fault == Fault::kPortDown) {
    for (Port& port : device.is.ports) port.state = IBV_PORT_DOWN;
  }
  if (fault != Fault::kError) return;
  for (PairState* const pair : Shared().pairs) {
    if (pair->owner->device_state == &device) Fail(*pair);
  }
}

void CountMessage(PairState& pair) {
  DeviceState& device = *pair.owner->device_state;
  ++device.messages;
  if (device.is.fault != Fault::kNone && device.messages == device.is.fault_after) {
    BreakDevice(device, device.is.fault);
  }
}

}  // namespace coppice::verbs_double
