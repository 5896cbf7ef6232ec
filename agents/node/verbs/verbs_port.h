// An InfiniBand port of this node as libibverbs has it.
#ifndef COPPICE_AGENTS_NODE_VERBS_VERBS_PORT_H_
#define COPPICE_AGENTS_NODE_VERBS_VERBS_PORT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/node/verbs/verbs_choice.h"
#include "agents/node/verbs/verbs_offer.h"

namespace coppice {

class VerbsPort final {
 public:
  // Opens the device. NOT_FOUND: the node has no such port, or no verbs at all.
  // FAILED_PRECONDITION, naming device and port: it is not active, or cannot be opened.
  static absl::StatusOr<VerbsPort> Open(const VerbsChoice& choice);

  ibv_context* context() const { return context_.get(); }
  uint8_t number() const { return number_; }
  // Where it is on its subnet; the queue pair's part is zero.
  const VerbsOffer& place() const { return place_; }
  // The port takes no packets without a global route header (virtual ports).
  bool needs_global_route() const { return needs_global_route_; }
  const std::string& name() const { return name_; }  // "mlx5_0 port 1"

  // FAILED_PRECONDITION: "mlx5_0 port 1: WHAT", and what became of the port if that is why.
  absl::Status Failed(const std::string& what) const;
  // FAILED_PRECONDITION: the port is not active now, or the device has gone.
  absl::Status CheckActive() const;

 private:
  struct Close {
    void operator()(ibv_context* context) const { ibv_close_device(context); }
  };
  explicit VerbsPort(std::unique_ptr<ibv_context, Close> context) : context_(std::move(context)) {}

  static absl::StatusOr<VerbsPort> OpenOn(ibv_device* device, const VerbsChoice& choice);
  // Reads what the port is. NOT_FOUND: it is not InfiniBand, or not the one of `choice`.
  absl::Status Read(const VerbsChoice& choice);

  std::unique_ptr<ibv_context, Close> context_;
  uint8_t number_ = 0;
  std::string name_;
  VerbsOffer place_;
  bool needs_global_route_ = false;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_VERBS_VERBS_PORT_H_
