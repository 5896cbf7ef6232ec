// A program's connection to coppiced by gRPC: one channel, one stub per service, and calls that
// always have a deadline and answer with an absl::Status. Of coppicectl, coppice-plan, agents and
// searches; libcoppice comes through a node's agent instead. Knows nothing of the daemon's code.
#ifndef COPPICE_CLIENT_CONNECTION_H_
#define COPPICE_CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "coppice/v1/jobs.grpc.pb.h"
#include "coppice/v1/mapping.grpc.pb.h"
#include "coppice/v1/placements.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "proto/status_conversion.h"

namespace coppice {

// Where the daemon listens unless told otherwise.
inline constexpr char kDefaultServer[] = "unix:/run/coppice/coppiced.sock";

// $COPPICE_SERVER, else kDefaultServer.
std::string DefaultServer();

// Files in PEM; all empty: no TLS.
struct TlsOptions {
  std::string ca;         // of whoever signed the daemon's certificate
  std::string cert, key;  // ours, for a daemon that asks for one
  bool empty() const { return ca.empty() && cert.empty() && key.empty(); }
};

// $COPPICE_TLS_CA, $COPPICE_TLS_CERT and $COPPICE_TLS_KEY.
TlsOptions DefaultTls();

// What a Connection is made with. A Unix socket needs no TLS and ignores it. INVALID_ARGUMENT:
// files that are not enough; NOT_FOUND, with its name: a file cannot be read.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& server,
                                                                         const TlsOptions& tls);

// INVALID_ARGUMENT, with the text, unless `server` is "unix:PATH" or "HOST:PORT".
absl::Status CheckServer(absl::string_view server);

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

  v1::Jobs::StubInterface& jobs() { return *jobs_; }
  v1::Trees::StubInterface& trees() { return *trees_; }
  v1::Fabric::StubInterface& fabric() { return *fabric_; }
  v1::Mapping::StubInterface& mapping() { return *mapping_; }
  v1::Placements::StubInterface& placements() { return *placements_; }
  v1::Agents::StubInterface& agents() { return *agents_; }
  v1::Admin::StubInterface& admin() { return *admin_; }
  const std::string& server() const { return server_; }

  // Calls a unary method: Call(trees(), &v1::Trees::StubInterface::GetTree, request). Errors are
  // the server's, with their details as payloads; UNAVAILABLE names the server's address.
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    NameUser(context);
    Response response;
    if (on_wait_) on_wait_(true);
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (on_wait_) on_wait_(false);
    if (!status.ok()) return Explain(status);
    return response;
  }

  // Reads a stream to its end, each message handed to `on_message` as it comes. Errors as Call's;
  // what came before one was handed over.
  template <class Message, class Stub, class Request>
  absl::Status Read(Stub& stub,
                    std::unique_ptr<grpc::ClientReaderInterface<Message>> (Stub::*method)(
                        grpc::ClientContext*, const Request&),
                    const Request& request, const std::function<void(Message&)>& on_message) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    NameUser(context);
    if (on_wait_) on_wait_(true);
    const auto stream = (stub.*method)(&context, request);
    Message message;
    bool waits = true;
    while (stream->Read(&message)) {
      if (on_wait_ && std::exchange(waits, false)) on_wait_(false);
      on_message(message);
    }
    const grpc::Status status = stream->Finish();
    if (on_wait_ && waits) on_wait_(false);
    return status.ok() ? absl::OkStatus() : Explain(status);
  }

  // Hands on what a streaming method writes until it ends or `each` returns false. No deadline:
  // such a call may last for days. Errors as Call's.
  template <class Stub, class Request, class Response>
  absl::Status Watch(Stub& stub,
                     std::unique_ptr<grpc::ClientReaderInterface<Response>> (Stub::*method)(
                         grpc::ClientContext*, const Request&),
                     const Request& request, const std::function<bool(const Response&)>& each) {
    grpc::ClientContext context;
    NameUser(context);
    const auto reader = (stub.*method)(&context, request);
    Response response;
    while (reader->Read(&response)) {
      if (each(response)) continue;
      context.TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    const grpc::Status status = reader->Finish();
    return status.ok() ? absl::OkStatus() : Explain(status);
  }

  // Renews the lease of a job once, over a stream of its own. Errors as Call's; a job that is gone
  // is an answer, with its state.
  absl::StatusOr<v1::KeepAliveResponse> KeepAlive(const std::string& job_id);

 private:
  std::chrono::system_clock::time_point Deadline() const;
  void NameUser(grpc::ClientContext& context) const;
  absl::Status Explain(const grpc::Status& status) const;

  std::string server_;
  absl::Duration deadline_;
  std::string user_;  // empty: whoever runs this
  std::function<void(bool)> on_wait_;
  std::unique_ptr<v1::Jobs::StubInterface> jobs_;
  std::unique_ptr<v1::Trees::StubInterface> trees_;
  std::unique_ptr<v1::Fabric::StubInterface> fabric_;
  std::unique_ptr<v1::Mapping::StubInterface> mapping_;
  std::unique_ptr<v1::Placements::StubInterface> placements_;
  std::unique_ptr<v1::Agents::StubInterface> agents_;
  std::unique_ptr<v1::Admin::StubInterface> admin_;
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
