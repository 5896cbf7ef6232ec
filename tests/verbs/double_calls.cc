// libibverbs' functions: devices, domains, regions and completion queues.
#include <cerrno>
#include <cstring>

#include "tests/verbs/double_state.h"

#undef ibv_reg_mr
#undef ibv_query_port

namespace {

using namespace coppice::verbs_double;  // NOLINT: what is defined here is of the C library

DeviceState& StateOf(ibv_context* context) {
  return *reinterpret_cast<ContextState*>(verbs_get_ctx(context))->device_state;
}
ContextState& OwnerOf(ibv_context* context) {
  return *static_cast<ContextState*>(verbs_get_ctx(context));
}
void Made(ibv_context* context) {
  ++Shared().objects;
  ++OwnerOf(context).objects;
}
void Gone(ibv_context* context) {
  --Shared().objects;
  --OwnerOf(context).objects;
}

int QueryPort(ibv_context* context, uint8_t number, ibv_port_attr* attributes, size_t size) {
  const std::lock_guard lock(Shared().mutex);
  const DeviceState& device = StateOf(context);
  if (device.has_vanished) return EIO;
  if (number < 1 || number > device.is.ports.size()) return Misuse("there is no such port", EINVAL);
  const Port& port = device.is.ports[number - 1u];
  std::memset(attributes, 0, size);
  attributes->state = port.state;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = port.mtu;
  attributes->gid_tbl_len = attributes->pkey_tbl_len = 1;
  attributes->lid = port.state == IBV_PORT_ACTIVE ? port.lid : 0;
  attributes->link_layer = port.link_layer;
  attributes->flags = port.needs_global_route ? IBV_QPF_GRH_REQUIRED : 0;
  return 0;
}

int PollQueue(ibv_cq* cq, int most, ibv_wc* completions) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  auto& queue = *static_cast<QueueState*>(cq);
  int count = 0;
  for (; count < most && !queue.completions.empty(); ++count) {
    completions[count] = queue.completions.front();
    queue.completions.pop_front();
    const auto found = state.pair_of.find(completions[count].qp_num);
    if (found == state.pair_of.end()) continue;
    PairState& pair = *found->second;
    --((completions[count].opcode & IBV_WC_RECV) != 0 ? pair.receive_slots : pair.send_slots);
    // Of a failure nothing but these is defined (ibv_poll_cq(3)).
    if (completions[count].status != IBV_WC_SUCCESS) {
      completions[count].opcode = static_cast<ibv_wc_opcode>(0x5a5a);
    }
  }
  return count;
}

}  // namespace

namespace coppice::verbs_double {
int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused);
int PostReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused);
}  // namespace coppice::verbs_double

extern "C" {

int ibv_fork_init() {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  if (state.objects > 0) return Misuse("ibv_fork_init comes after other calls", EINVAL);
  state.is_prepared_for_forks = true;
  return 0;
}

ibv_device** ibv_get_device_list(int* count) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  EnsureConfigured(state);
  // As the library does where the kernel has no verbs (ibv_get_device_list(3)).
  if (state.devices.empty()) {
    if (count != nullptr) *count = 0;
    errno = ENOSYS;
    return nullptr;
  }
  auto** const list = new ibv_device*[state.devices.size() + 1]();
  int listed = 0;
  for (const auto& device : state.devices) {
    if (!device->has_vanished) list[listed++] = device.get();
  }
  if (count != nullptr) *count = listed;
  ++state.objects;
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  const std::lock_guard lock(Shared().mutex);
  --Shared().objects;
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  auto& opened = *static_cast<DeviceState*>(device);
  if (!opened.is.can_be_opened || opened.has_vanished) {
    errno = EACCES;
    return nullptr;
  }
  auto* const context = new ContextState();
  static_cast<verbs_context&>(*context) = verbs_context{};
  context->device_state = &opened;
  context->sz = sizeof(verbs_context);
  context->query_port = QueryPort;
  context->context.device = device;
  context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->context.ops.poll_cq = PollQueue;
  context->context.ops.post_send = PostSend;
  context->context.ops.post_recv = PostReceive;
  ++state.objects;
  return &context->context;
}

int ibv_close_device(ibv_context* context) {
  const std::lock_guard lock(Shared().mutex);
  ContextState& closed = OwnerOf(context);
  if (closed.objects > 0) return Misuse("a device is closed before its objects", EBUSY);
  --Shared().objects;
  delete &closed;
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  const std::lock_guard lock(Shared().mutex);
  const DeviceState& device = StateOf(context);
  *attributes = ibv_device_attr{};
  attributes->phys_port_cnt = static_cast<uint8_t>(device.is.ports.size());
  attributes->max_qp_wr = static_cast<int>(device.is.most_requests);
  return device.has_vanished ? EIO : 0;
}

int ibv_query_gid(ibv_context* context, uint8_t number, int index, ibv_gid* gid) {
  const std::lock_guard lock(Shared().mutex);
  const DeviceState& device = StateOf(context);
  if (device.has_vanished) return -1;
  if (number < 1 || number > device.is.ports.size() || index != 0) {
    return Misuse("there is no such GID", -1);
  }
  const Port& port = device.is.ports[number - 1u];
  for (int i = 0; i < 8; ++i) {
    gid->raw[i] = static_cast<uint8_t>(port.subnet_prefix >> (56 - 8 * i));
    gid->raw[8 + i] = static_cast<uint8_t>(port.guid >> (56 - 8 * i));
  }
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const std::lock_guard lock(Shared().mutex);
  auto* const domain = new DomainState();
  domain->context = context;
  Made(context);
  return domain;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  const std::lock_guard lock(Shared().mutex);
  auto* const domain = static_cast<DomainState*>(pd);
  if (domain->users > 0) return Misuse("a domain goes before what is in it", EBUSY);
  Gone(pd->context);
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* memory, size_t bytes, int access) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  DeviceState& device = StateOf(pd->context);
  if (!state.is_prepared_for_forks) Misuse("memory is registered without ibv_fork_init", 0);
  if (device.has_vanished || device.locked + bytes > device.is.most_locked) {
    errno = device.has_vanished ? EIO : ENOMEM;
    return nullptr;
  }
  auto* const region = new RegionState();
  region->context = pd->context;
  region->pd = pd;
  region->addr = memory;
  region->length = bytes;
  region->lkey = region->rkey = ++state.last_number;
  region->access = access;
  device.locked += bytes;
  ++static_cast<DomainState*>(pd)->users;
  state.regions.insert(region);
  Made(pd->context);
  return region;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* memory, size_t bytes, uint64_t, unsigned access) {
  return ibv_reg_mr(pd, memory, bytes, static_cast<int>(access));
}

int ibv_dereg_mr(ibv_mr* mr) {
  State& state = Shared();
  const std::lock_guard lock(state.mutex);
  auto* const region = static_cast<RegionState*>(mr);
  for (const PairState* const pair : state.pairs) {
    if (pair->domain != mr->pd) continue;
    // Of one whose pair is destroyed later the device might still write there.
    Misuse("memory is deregistered before its queue pair is destroyed", 0);
  }
  StateOf(mr->context).locked -= mr->length;
  --static_cast<DomainState*>(mr->pd)->users;
  state.regions.erase(region);
  Gone(mr->context);
  delete region;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  const std::lock_guard lock(Shared().mutex);
  if (entries < 1 || channel != nullptr || StateOf(context).has_vanished) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const queue = new QueueState();
  static_cast<ibv_cq&>(*queue) = ibv_cq{};
  queue->context = context;
  queue->cqe = entries;
  Made(context);
  return queue;
}

int ibv_destroy_cq(ibv_cq* cq) {
  const std::lock_guard lock(Shared().mutex);
  auto* const queue = static_cast<QueueState*>(cq);
  if (queue->users > 0) return Misuse("a completion queue goes before its pairs", EBUSY);
  Gone(cq->context);
  delete queue;
  return 0;
}

}  // extern "C"
