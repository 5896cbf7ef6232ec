#include "client/connection.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {

std::string DefaultServer() {
  const char* server = std::getenv("COPPICE_SERVER");
  return server != nullptr && *server != '\0' ? server : kDefaultServer;
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

absl::Status Connection::Explain(const grpc::Status& status) const {
  const absl::Status converted = FromGrpcStatus(status);
  if (converted.code() != absl::StatusCode::kUnavailable || !status.error_details().empty()) {
    return converted;
  }
  return absl::UnavailableError(absl::StrCat("no answer from ", server_, ": ", converted.message(),
                                             " (is coppiced running there?)"));
}

}  // namespace coppice
