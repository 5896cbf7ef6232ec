// A test double of verbs devices: libibverbs' functions as far as coppice-agent calls them, defined
// in front of those of the library, by link order or LD_PRELOAD.
//
// No hardware and no kernel: two queue pairs, in one process or two, are joined by a Unix socket in
// a folder that both name. It is strict where a device may be lenient or fail late: states and
// their attributes, memory that is not registered, queues that are too short, receives that come
// too late, objects that are not destroyed are misuse, which is counted and written down. It knows
// of a device what the verbs' manual pages and the InfiniBand specification say, and nothing of
// timing.
#ifndef COPPICE_TESTS_VERBS_DEVICE_DOUBLE_H_
#define COPPICE_TESTS_VERBS_DEVICE_DOUBLE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::verbs_double {

struct Port {
  ibv_port_state state = IBV_PORT_ACTIVE;
  uint8_t link_layer = IBV_LINK_LAYER_INFINIBAND;
  uint16_t lid = 1;
  uint64_t subnet_prefix = 0xfe80000000000000, guid = 1;
  ibv_mtu mtu = IBV_MTU_4096;
  bool needs_global_route = false;
};

enum class Fault {
  kNone,
  kVanish,    // the device is taken away: calls fail, nothing completes any more
  kPortDown,  // the port goes down: what is sent is not acknowledged
  kLose,      // so that what is sent is not acknowledged, though the port is active
  kError,     // the queue pair goes into error
};

struct Device {
  std::string name = "double0";
  std::vector<Port> ports{Port()};
  std::string fabric = "one";  // what is on others is not reached, though prefix and LID fit
  uint32_t most_requests = 1024;
  size_t most_locked = size_t{64} << 20;  // bytes of registered memory
  bool can_be_opened = true;
  Fault fault = Fault::kNone;
  uint32_t fault_after = 0;  // messages sent or received
};

// What the process has from now on; `folder`: where the sockets are. Before that, what the
// environment says: VERBS_DOUBLE_FOLDER, and VERBS_DOUBLE_DEVICES as ParseDevices reads it. No
// objects may be alive.
void SetDevices(const std::string& folder, std::vector<Device> devices);
// "NAME KEY=VALUE... ; NAME ...", a port each: lid, guid, prefix (hexadecimal), state (active,
// down), layer (ib, ethernet), fabric, fault (KIND@MESSAGES). Ends the process if it is something
// else.
std::vector<Device> ParseDevices(const std::string& text);
// Of the device at once.
void Break(const std::string& device, Fault fault);

// What was done since the last call that no caller may do, in words; also in the folder's file
// "misuse".
std::vector<std::string> TakeMisuses();
// Contexts, domains, regions, queues and pairs that have not been destroyed.
size_t LiveObjects();
// Messages that any device has delivered.
size_t Delivered();

}  // namespace coppice::verbs_double

#endif  // COPPICE_TESTS_VERBS_DEVICE_DOUBLE_H_
