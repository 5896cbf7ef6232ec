// A program's connection to coppiced by gRPC: one channel, one stub per service, and calls that
// always have a deadline and answer with an absl::Status. Of coppicectl, coppice-plan, agents and
// searches; libcoppice comes through a node's agent instead. Knows nothing of the daemon's code.
#ifndef COPPICE_CLIENT_CONNECTION_H_
#define COPPICE_CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/server_address.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "coppice/v1/jobs.grpc.pb.h"
#include "coppice/v1/mapping.grpc.pb.h"
#include "coppice/v1/placements.grpc.pb.h"
#include "coppice/v1/switches.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "proto/status_conversion.h"

namespace coppice {

using AdminStub = v1::Admin::StubInterface;
using AgentsStub = v1::Agents::StubInterface;
using FabricStub = v1::Fabric::StubInterface;
using JobsStub = v1::Jobs::StubInterface;
using MappingStub = v1::Mapping::StubInterface;
using PlacementsStub = v1::Placements::StubInterface;
using SwitchesStub = v1::Switches::StubInterface;
using TreesStub = v1::Trees::StubInterface;

// Thread-safe.
class Connection {
 public:
  // `server`: "unix:PATH" or "HOST:PORT". Connects at the first call. `deadline` bounds each call.
  explicit Connection(std::string server, absl::Duration deadline = absl::Seconds(30),
                      const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                          grpc::InsecureChannelCredentials());

  // Over a channel that there is; `server` is what errors call it.
  Connection(std::string server, absl::Duration deadline,
             const std::shared_ptr<grpc::Channel>& channel);

  // Calls `on_wait` with true before each call and with false after it. Set before the first call.
  void OnWait(std::function<void(bool)> on_wait) { on_wait_ = std::move(on_wait); }

  // Every call is then that user's (a login name or a uid), which the daemon grants administrators.
  // Set before the first call.
  void CallAs(std::string user) { user_ = std::move(user); }

  const std::string& server() const { return server_; }

  // Calls a unary method: Call(&TreesStub::GetTree, request). Errors are the server's, with their
  // details as payloads; UNAVAILABLE names the server's address.
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request = {}) {
    grpc::ClientContext context;
    Begin(context);
    Response response;
    const grpc::Status status = (Of<Stub>().*method)(&context, request, &response);
    if (on_wait_) on_wait_(false);
    if (!status.ok()) return Explain(status);
    return response;
  }

  // Hands on what a streaming method writes until it ends or `each` returns false. Such a call may
  // last for days; `is_bounded`: it has a deadline, and is waited for until the first message.
  // Errors as Call's; what came before one was handed over.
  template <class Stub, class Request, class Response, class Each>
  absl::Status Watch(std::unique_ptr<grpc::ClientReaderInterface<Response>> (Stub::*method)(
                         grpc::ClientContext*, const Request&),
                     const Request& request, const Each& each, bool is_bounded = false) {
    grpc::ClientContext context;
    is_bounded ? Begin(context) : NameUser(context);
    const auto reader = (Of<Stub>().*method)(&context, request);
    Response response;
    bool waits = is_bounded && on_wait_ != nullptr, goes_on = true;
    while (goes_on && reader->Read(&response)) {
      if (std::exchange(waits, false)) on_wait_(false);
      goes_on = each(response);
    }
    if (!goes_on) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (waits) on_wait_(false);
    return status.ok() || !goes_on ? absl::OkStatus() : Explain(status);
  }

  // Renews the lease of a job once, over a stream of its own. Errors as Call's; a job that is gone
  // is an answer, with its state.
  absl::StatusOr<v1::KeepAliveResponse> KeepAlive(const std::string& job_id);

 private:
  template <class Stub>
  Stub& Of() {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }
  // Of a call with a deadline, which is waited for from now on.
  void Begin(grpc::ClientContext& context) const;
  void NameUser(grpc::ClientContext& context) const;
  absl::Status Explain(const grpc::Status& status) const;

  std::string server_;
  absl::Duration deadline_;
  std::string user_;  // empty: whoever runs this
  std::function<void(bool)> on_wait_;
  std::tuple<std::unique_ptr<AdminStub>, std::unique_ptr<AgentsStub>, std::unique_ptr<FabricStub>,
             std::unique_ptr<JobsStub>, std::unique_ptr<MappingStub>,
             std::unique_ptr<PlacementsStub>, std::unique_ptr<SwitchesStub>,
             std::unique_ptr<TreesStub>>
      stubs_;
};

// The bytes of a message that is passed on as it is, by coppicectl and by the node's agent.

// Empty: the buffer cannot be read. Copies its bytes once.
inline std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace coppice

#endif  // COPPICE_CLIENT_CONNECTION_H_
