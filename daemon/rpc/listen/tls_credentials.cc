#include "daemon/rpc/listen/tls_credentials.h"

#include <grpc/grpc_security.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "daemon/base/status_macros.h"
#include "proto/munge/credential.h"
#include "proto/text/log.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr size_t kMaxJudged = 4096;  // certificates, of 1 to 2 KB

struct Free {
  void operator()(BIO* text) const { BIO_free(text); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
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
  std::string certificate, key, client_ca, client_crl;
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
std::string TextOf(const ASN1_TIME* time) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (bio == nullptr || ASN1_TIME_print(bio.get(), time) != 1) return "";
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::StatusOr<Owned<X509>> ReadCertificate(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(Owned<X509> certificate,
                   Read<X509>(path, text, "certificate", PEM_read_bio_X509));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Bad(path, absl::StrCat("its certificate has expired on ",
                                  TextOf(X509_get0_notAfter(certificate.get())), ": renew it"));
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
  if (files.client_crl.empty()) return texts;
  ASSIGN_OR_RETURN(texts.client_crl, ReadText(files.client_crl));
  return texts;
}

// All of a text in PEM, up to what is none.
template <class T, class Parse>
std::vector<Owned<T>> ReadAll(const std::string& text, Parse parse) {
  std::vector<Owned<T>> all;
  const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  while (bio != nullptr) {
    Owned<T> one(parse(bio.get(), nullptr, nullptr, nullptr));
    if (one == nullptr) break;
    all.push_back(std::move(one));
  }
  return all;
}

// The first of that name.
std::optional<size_t> AuthorityOf(const std::vector<Owned<X509>>& authorities,
                                  const X509_NAME* name) {
  for (size_t i = 0; i < authorities.size(); ++i) {
    if (X509_NAME_cmp(X509_get_subject_name(authorities[i].get()), name) == 0) return i;
  }
  return std::nullopt;
}

std::string DerOf(const ASN1_INTEGER* serial) {
  unsigned char* bytes = nullptr;
  const int size = i2d_ASN1_INTEGER(serial, &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::max(size, 0)));
  OPENSSL_free(bytes);
  return der;
}

// Which authority's it is, if it may be in force.
absl::StatusOr<size_t> CheckRevocations(const std::string& path, X509_CRL* list,
                                        const std::vector<Owned<X509>>& authorities) {
  if (X509_CRL_get_ext_by_NID(list, NID_delta_crl, -1) >= 0) {
    return Bad(path, "tells the difference from an earlier revocation list: give the whole one");
  }
  const X509_NAME* const issuer = X509_CRL_get_issuer(list);
  const auto is_signer = [&](const Owned<X509>& one) {
    return X509_NAME_cmp(X509_get_subject_name(one.get()), issuer) == 0 &&
           X509_CRL_verify(list, X509_get0_pubkey(one.get())) == 1;
  };
  if (std::none_of(authorities.begin(), authorities.end(), is_signer)) {
    return Bad(path, "holds a revocation list that no authority of tls.client_ca has signed");
  }
  const ASN1_TIME* const end = X509_CRL_get0_nextUpdate(list);
  if (end != nullptr && X509_cmp_current_time(end) < 0) {
    return Bad(path, absl::StrCat("its revocation list was to be replaced by ", TextOf(end),
                                  ": get the authority's new one"));
  }
  return *AuthorityOf(authorities, issuer);
}

// What tells that a file has been written or exchanged, or that others may read it now.
using Stamp = std::tuple<dev_t, ino_t, off_t, time_t, long>;

Stamp StampOf(const std::string& path) {
  struct stat now = {};
  if (stat(path.c_str(), &now) != 0) return {};
  return {now.st_dev, now.st_ino, now.st_size, now.st_ctim.tv_sec, now.st_ctim.tv_nsec};
}

// gRPC asks it for what is to be shown at each connection.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  TlsCredentials(const AccessOptions& access, ShownCertificates* shown)
      : files_(access.tls), shown_(shown) {
    const auto clients = files_.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                         : access.takes_certificates_only()
                             ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                             : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
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
    const std::array<Stamp, 3> stamps = {StampOf(files_.certificate), StampOf(files_.key),
                                         StampOf(files_.client_ca)};
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
    shown_->Add(FingerprintOf(texts->certificate));
    if (is_in_force_) spdlog::info("TLS: {} is read again and in force", files_.certificate);
    is_in_force_ = true;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsFiles files_;
  ShownCertificates* const shown_;
  grpc_server_credentials* credentials_;
  std::mutex mu_;
  // Guarded by mu_.
  std::array<Stamp, 3> seen_;
  bool is_in_force_ = false;
};

}  // namespace

absl::Status CheckTlsFiles(const AccessOptions& access) {
  const TlsFiles& files = access.tls;
  if (files.client_ca.empty() && access.takes_certificates_only()) {
    return absl::InvalidArgumentError(
        "nobody could connect: give tls.client_ca, who signs clients' certificates, or "
        "munge.socket, or state tls.open_reading = true to let everybody who reaches the port "
        "read");
  }
  ASSIGN_OR_RETURN(const TlsTexts texts, TextsOf(files));
  if (files.client_crl.empty()) return absl::OkStatus();
  return ReadRevocations(files.client_crl, texts.client_crl, texts.client_ca).status();
}

void ShownCertificates::Add(std::string fingerprint) {
  absl::MutexLock lock(&mutex_);
  fingerprints_.insert(std::move(fingerprint));
}

bool ShownCertificates::Has(absl::string_view fingerprint) const {
  absl::ReaderMutexLock lock(&mutex_);
  return fingerprints_.contains(fingerprint);
}

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const AccessOptions& access,
                                                            ShownCertificates* shown) {
  return std::make_shared<TlsCredentials>(access, shown);
}

absl::StatusOr<RevokedSerials> ReadRevocations(const std::string& path, const std::string& text,
                                               const std::string& authorities) {
  const std::vector<Owned<X509>> signers = ReadAll<X509>(authorities, PEM_read_bio_X509);
  ERR_clear_error();
  const std::vector<Owned<X509_CRL>> lists = ReadAll<X509_CRL>(text, PEM_read_bio_X509_CRL);
  const bool is_all = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (lists.empty() || !is_all) {
    return Bad(path, "is not, or not all of it, revocation lists in PEM (X509 CRL)");
  }
  RevokedSerials revoked;
  for (const Owned<X509_CRL>& list : lists) {
    ASSIGN_OR_RETURN(const size_t authority, CheckRevocations(path, list.get(), signers));
    const STACK_OF(X509_REVOKED)* const entries = X509_CRL_get_REVOKED(list.get());
    for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
      const X509_REVOKED* const entry = sk_X509_REVOKED_value(entries, i);
      revoked.emplace(authority, DerOf(X509_REVOKED_get0_serialNumber(entry)));
    }
  }
  ERR_clear_error();
  return revoked;
}

void Revocations::Look() {
  if (!is_asked()) return;
  absl::MutexLock lock(&mutex_);
  // Stamps first: what is written meanwhile is seen the next time.
  const std::array<Stamp, 2> stamps = {StampOf(files_.client_crl), StampOf(files_.client_ca)};
  if (stamps == seen_) return;
  seen_ = stamps;
  const absl::StatusOr<std::string> text = ReadText(files_.client_crl);
  absl::StatusOr<std::string> authorities = ReadText(files_.client_ca);
  absl::StatusOr<RevokedSerials> revoked =
      !text.ok()          ? text.status()
      : !authorities.ok() ? authorities.status()
                          : ReadRevocations(files_.client_crl, *text, *authorities);
  if (!revoked.ok()) {
    spdlog::error("TLS: {}; what was revoked before is, and nothing else",
                  std::string(revoked.status().message()));
    return;
  }
  revoked_ = *std::move(revoked);
  authorities_ = *std::move(authorities);
  judged_.clear();
  if (is_in_force_) {
    spdlog::info("TLS: {} is read again and in force; certificates that it revokes: {}",
                 files_.client_crl, revoked_.size());
  }
  is_in_force_ = true;
}

bool Revocations::HasAny(const std::string& certificates) const {
  if (!is_asked()) return false;
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = judged_.find(certificates);
    if (found != judged_.end()) return found->second;
  }
  absl::MutexLock lock(&mutex_);
  if (judged_.size() >= kMaxJudged) judged_.clear();
  return judged_[certificates] = Judge(certificates);
}

bool Revocations::Judge(const std::string& certificates) const {
  const std::vector<Owned<X509>> authorities = ReadAll<X509>(authorities_, PEM_read_bio_X509);
  const std::vector<Owned<X509>> all = ReadAll<X509>(certificates, PEM_read_bio_X509);
  ERR_clear_error();
  return std::any_of(all.begin(), all.end(), [&](const Owned<X509>& one) {
    const auto authority = AuthorityOf(authorities, X509_get_issuer_name(one.get()));
    return authority &&
           revoked_.contains(std::pair(*authority, DerOf(X509_get0_serialNumber(one.get()))));
  });
}

}  // namespace coppice
