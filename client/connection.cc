#include "client/connection.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {

std::string DefaultServer() {
  const char* server = std::getenv("COPPICE_SERVER");
  return server != nullptr && *server != '\0' ? server : kDefaultServer;
}

absl::Status CheckServer(absl::string_view server) {
  const size_t colon = server.rfind(':');
  uint32_t port = 0;
  const bool is_socket = absl::StartsWith(server, "unix:") && server.size() > 5;
  const bool is_tcp = colon != absl::string_view::npos && colon > 0 &&
                      absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 &&
                      port <= 0xffff && !absl::StrContains(server, "/");
  if (is_socket || is_tcp) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("server \"", server, "\": give unix:PATH or HOST:PORT"));
}

Connection::Connection(std::string server, absl::Duration deadline)
    : server_(std::move(server)), deadline_(deadline) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      -1);  // the full view of a tree of 40,960 ranks has no bound here
  const auto channel =
      grpc::CreateCustomChannel(server_, grpc::InsecureChannelCredentials(), arguments);
  jobs_ = v1::Jobs::NewStub(channel);
  trees_ = v1::Trees::NewStub(channel);
  fabric_ = v1::Fabric::NewStub(channel);
}

std::chrono::system_clock::time_point Connection::Deadline() const {
  return std::chrono::system_clock::now() +
         std::chrono::microseconds(absl::ToInt64Microseconds(deadline_));
}

absl::StatusOr<v1::KeepAliveResponse> Connection::KeepAlive(const std::string& job_id) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  if (on_wait_) on_wait_(true);
  const auto stream = jobs_->KeepAlive(&context);  // waits for the connection
  v1::KeepAliveRequest request;
  request.set_id(job_id);
  v1::KeepAliveResponse response;
  const bool answered = stream->Write(request) && stream->Read(&response);
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  if (on_wait_) on_wait_(false);
  if (!status.ok()) return Explain(status);
  if (!answered) return absl::UnavailableError(absl::StrCat("no answer from ", server_));
  return response;
}

absl::Status Connection::Explain(const grpc::Status& status) const {
  const absl::Status converted = FromGrpcStatus(status);
  if (converted.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("no answer from ", server_, " within ",
                                                    absl::FormatDuration(deadline_),
                                                    "; allow more time, or see the daemon's log"));
  }
  if (converted.code() != absl::StatusCode::kUnavailable || !status.error_details().empty()) {
    return converted;
  }
  return absl::UnavailableError(absl::StrCat("no answer from ", server_, ": ", converted.message(),
                                             " (is coppiced running there?)"));
}

}  // namespace coppice
