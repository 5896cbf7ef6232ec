#include "client/connection.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr char kUserKey[] = "coppice-user";  // for whom a call is; the daemon's convention

std::string FromEnvironment(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

absl::Status ReadInto(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path);
  std::ostringstream read;
  if (!file || !(read << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("TLS file ", path, ": cannot be read, or is empty"));
  }
  text = read.str();
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> ChannelTo(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      -1);  // the full view of a tree of 40,960 ranks has no bound here
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

}  // namespace

std::string DefaultServer() { return FromEnvironment("COPPICE_SERVER", kDefaultServer); }

TlsOptions DefaultTls() {
  return {FromEnvironment("COPPICE_TLS_CA", ""), FromEnvironment("COPPICE_TLS_CERT", ""),
          FromEnvironment("COPPICE_TLS_KEY", "")};
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& server,
                                                                         const TlsOptions& tls) {
  // The environment may be set for a daemon elsewhere; a socket needs none of it.
  if (tls.empty() || absl::StartsWith(server, "unix:")) return grpc::InsecureChannelCredentials();
  if (tls.ca.empty()) {
    return absl::InvalidArgumentError(
        "TLS: give the authority of the daemon's certificate, too: --tls-ca FILE");
  }
  if (tls.cert.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "TLS: a certificate and its key go together: --tls-cert FILE --tls-key FILE");
  }
  grpc::SslCredentialsOptions options;
  for (const auto& [path, text] :
       {std::pair(&tls.ca, &options.pem_root_certs), std::pair(&tls.cert, &options.pem_cert_chain),
        std::pair(&tls.key, &options.pem_private_key)}) {
    if (absl::Status status = ReadInto(*path, *text); !status.ok()) return status;
  }
  return grpc::SslCredentials(options);
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

Connection::Connection(std::string server, absl::Duration deadline,
                       const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : Connection(server, deadline, ChannelTo(server, credentials)) {}

Connection::Connection(std::string server, absl::Duration deadline,
                       const std::shared_ptr<grpc::Channel>& channel)
    : server_(std::move(server)), deadline_(deadline) {
  jobs_ = v1::Jobs::NewStub(channel);
  trees_ = v1::Trees::NewStub(channel);
  fabric_ = v1::Fabric::NewStub(channel);
  mapping_ = v1::Mapping::NewStub(channel);
  placements_ = v1::Placements::NewStub(channel);
  agents_ = v1::Agents::NewStub(channel);
  admin_ = v1::Admin::NewStub(channel);
}

std::chrono::system_clock::time_point Connection::Deadline() const {
  return std::chrono::system_clock::now() +
         std::chrono::microseconds(absl::ToInt64Microseconds(deadline_));
}

absl::StatusOr<v1::KeepAliveResponse> Connection::KeepAlive(const std::string& job_id) {
  grpc::ClientContext context;
  context.set_deadline(Deadline());
  NameUser(context);
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

void Connection::NameUser(grpc::ClientContext& context) const {
  if (!user_.empty()) context.AddMetadata(kUserKey, user_);
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
