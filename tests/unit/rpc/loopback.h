// A real server over real sockets, where this process's user is an administrator, on a small model
// fabric and a store of its own, with a clock that is turned by hand.
#ifndef COPPICE_TESTS_UNIT_RPC_LOOPBACK_H_
#define COPPICE_TESTS_UNIT_RPC_LOOPBACK_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "coppice/v1/jobs.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/server.h"
#include "tests/support/manual_clock.h"
#include "tests/support/scratch_store.h"

namespace coppice {

//   4 leaves x 4 hosts, 2 spines: 16 endpoints, 6 switches of 2 entries each
inline constexpr char kSmallFabric[] = "model:fat-tree(leaves=4,spines=2,hosts-per-leaf=4)";

// The parts in the order of their lifetimes. Swept once unless the source cannot be read.
class Loopback final {
 public:
  struct Options {
    std::string fabric = kSmallFabric;
    uint32_t entries = 2;
    uint32_t degree_limit = 16;
    uint32_t kept_tree_changes = 65'536;
    uint64_t pattern_bytes = 1 << 20;
    QuotaOptions quotas = {};
    MapperOptions mapper = {};
    Store* store = nullptr;        // which outlives it; null: one of its own
    RpcServerOptions server = {};  // without an address: a Unix socket of its own
  };
  Loopback() : Loopback(Options()) {}
  explicit Loopback(Options options);
  ~Loopback();

  ManualClock& clock() { return clock_; }
  Manager& manager() { return *manager_; }
  RpcServer& server() { return *server_; }
  ServedParts parts() {
    return {manager_.get(),  mapper_.get(), orders_.get(),
            patterns_.get(), meter_.get(),  distances_.get()};
  }
  DistanceMeter& meter() { return *meter_; }
  DistanceStore& distances() { return *distances_; }
  std::shared_ptr<grpc::Channel> Connect(size_t address = 0) const;
  v1::Jobs::Stub& jobs() { return *jobs_; }
  v1::Trees::Stub& trees() { return *trees_; }
  v1::Fabric::Stub& fabric() { return *fabric_; }

  // Calls `method` of `stub` with a generous deadline; the status has its details.
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    Response response;
    const absl::Status status = ToAbsl((stub.*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  static void SetDeadline(grpc::ClientContext& context);
  static absl::Status ToAbsl(const grpc::Status& status);

  // Registers a job over all endpoints; its id.
  std::string RegisterAll();

 private:
  const std::string directory_;
  ScratchStore store_;
  ManualClock clock_;
  std::unique_ptr<OfflineSubnetPort> port_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<RankMapper> mapper_;  // by the machine's clock: a search ends by its budget
  std::unique_ptr<OrderStore> orders_;
  std::unique_ptr<PatternStore> patterns_;
  std::unique_ptr<DistanceStore> distances_;
  std::unique_ptr<DistanceMeter> meter_;  // by the clock that is turned by hand; no timer
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Trees::Stub> trees_;
  std::unique_ptr<v1::Fabric::Stub> fabric_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_LOOPBACK_H_
