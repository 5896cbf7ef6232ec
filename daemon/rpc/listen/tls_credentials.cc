#include "daemon/rpc/listen/tls_credentials.h"

#include <grpc/grpc_security.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <array>
#include <mutex>
#include <tuple>
#include <utility>

#include "daemon/base/status_macros.h"
#include "proto/text/log.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

struct Free {
  void operator()(BIO* text) const { BIO_free(text); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

absl::Status Bad(const std::string& path, absl::string_view what) {
  ERR_clear_error();  // OpenSSL's reasons are of no use to who wrote the file
  return absl::InvalidArgumentError(absl::StrCat("file ", path, ": ", what));
}

// Of the files, as they were read.
struct TlsTexts {
  std::string certificate, key, client_ca;
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (text.ok() && !text->empty()) return text;
  return Bad(path, "cannot be read, or is empty; is it the daemon's to read?");
}

// The first object of a PEM text. A key with a password is refused: nobody is there to type it.
template <class T, class Parse>
absl::StatusOr<Owned<T>> Read(const std::string& path, const std::string& text, const char* kind,
                              Parse parse) {
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Owned<T> parsed(bio == nullptr ? nullptr : parse(bio.get(), nullptr, no_password, nullptr));
  if (parsed == nullptr) {
    return Bad(path, absl::StrCat("holds no ", kind, " in PEM without a password"));
  }
  return parsed;
}

// "Nov 23 16:30:00 2026 GMT"
std::string EndOf(const X509& certificate) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (bio == nullptr || ASN1_TIME_print(bio.get(), X509_get0_notAfter(&certificate)) != 1)
    return "";
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::StatusOr<Owned<X509>> ReadCertificate(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(Owned<X509> certificate,
                   Read<X509>(path, text, "certificate", PEM_read_bio_X509));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Bad(path,
               absl::StrCat("its certificate has expired on ", EndOf(*certificate), ": renew it"));
  }
  return certificate;
}

// Read and checked.
absl::StatusOr<TlsTexts> TextsOf(const TlsFiles& files) {
  TlsTexts texts;
  ASSIGN_OR_RETURN(texts.certificate, ReadText(files.certificate));
  ASSIGN_OR_RETURN(texts.key, ReadText(files.key));
  ASSIGN_OR_RETURN(const Owned<X509> certificate,
                   ReadCertificate(files.certificate, texts.certificate));
  ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key,
                   Read<EVP_PKEY>(files.key, texts.key, "private key", PEM_read_bio_PrivateKey));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Bad(files.key, absl::StrCat("is not the key of ", files.certificate));
  }
  if (files.client_ca.empty()) return texts;
  ASSIGN_OR_RETURN(texts.client_ca, ReadText(files.client_ca));
  RETURN_IF_ERROR(ReadCertificate(files.client_ca, texts.client_ca).status());
  return texts;
}

// What tells that a file has been written or exchanged, or that others may read it now.
using Stamp = std::tuple<dev_t, ino_t, off_t, time_t, long>;
using Stamps = std::array<Stamp, 3>;

Stamps StampsOf(const TlsFiles& files) {
  Stamps stamps;
  for (size_t i = 0; const std::string* path : {&files.certificate, &files.key, &files.client_ca}) {
    struct stat now = {};
    if (stat(path->c_str(), &now) == 0) {
      stamps[i] = {now.st_dev, now.st_ino, now.st_size, now.st_ctim.tv_sec, now.st_ctim.tv_nsec};
    }
    ++i;
  }
  return stamps;
}

// gRPC asks it for what is to be shown at each connection.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(TlsFiles files) : files_(std::move(files)) {
    const auto clients = files_.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                         : files_.open_reading
                             ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            clients,
            [](void* self, grpc_ssl_server_certificate_config** config) {
              return static_cast<TlsCredentials*>(self)->Renew(config);
            },
            this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_ssl_certificate_config_reload_status Renew(grpc_ssl_server_certificate_config** config) {
    std::lock_guard lock(mu_);
    // Stamps first: what is written meanwhile is seen the next time.
    const Stamps stamps = StampsOf(files_);
    if (stamps == seen_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    seen_ = stamps;
    const absl::StatusOr<TlsTexts> texts = TextsOf(files_);
    if (!texts.ok()) {
      spdlog::error("TLS: {}; connections are made with what was there before",
                    std::string(texts.status().message()));
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair = {texts->key.c_str(), texts->certificate.c_str()};
    // gRPC insists on an authority; where clients are not asked for certificates, none is judged.
    *config = grpc_ssl_server_certificate_config_create(
        files_.client_ca.empty() ? pair.cert_chain : texts->client_ca.c_str(), &pair, 1);
    if (is_in_force_) spdlog::info("TLS: {} is read again and in force", files_.certificate);
    is_in_force_ = true;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsFiles files_;
  grpc_server_credentials* credentials_;
  std::mutex mu_;
  // Guarded by mu_.
  Stamps seen_;
  bool is_in_force_ = false;
};

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (files.client_ca.empty() && !files.open_reading) {
    return absl::InvalidArgumentError(
        "nobody could connect: give tls.client_ca, who signs clients' certificates, or state "
        "tls.open_reading = true to let everybody who reaches the port read");
  }
  return TextsOf(files).status();
}

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const TlsFiles& files) {
  return std::make_shared<TlsCredentials>(files);
}

}  // namespace coppice
