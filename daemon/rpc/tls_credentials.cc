#include "daemon/rpc/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr unsigned kSecondsBetweenReads = 10;

struct Free {
  void operator()(FILE* file) const { std::fclose(file); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

absl::Status Bad(const std::string& path, const char* what) {
  ERR_clear_error();  // OpenSSL's reasons are of no use to who wrote the file
  return absl::InvalidArgumentError(absl::StrCat("file ", path, ": ", what));
}

// Opens and parses one object of a PEM file. A key with a password is refused: nobody is there to
// type it.
template <class T, class Parse>
absl::StatusOr<Owned<T>> Read(const std::string& path, const char* kind, Parse parse) {
  const Owned<FILE> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Bad(path, "cannot be opened; is it the daemon's to read?");
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Owned<T> parsed(parse(file.get(), nullptr, no_password, nullptr));
  if (parsed == nullptr) {
    return Bad(path, absl::StrCat("holds no ", kind, " in PEM without a password").c_str());
  }
  return parsed;
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  ASSIGN_OR_RETURN(const Owned<X509> certificate,
                   Read<X509>(files.certificate, "certificate", PEM_read_X509));
  ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key,
                   Read<EVP_PKEY>(files.key, "private key", PEM_read_PrivateKey));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Bad(files.key, absl::StrCat("is not the key of ", files.certificate).c_str());
  }
  if (files.client_ca.empty()) return absl::OkStatus();
  return Read<X509>(files.client_ca, "certificate", PEM_read_X509).status();
}

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const TlsFiles& files) {
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, kSecondsBetweenReads);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace coppice
