#include "tests/unit/rpc/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace coppice {
namespace {

constexpr long kDay = 24 * 3600;

EVP_PKEY* NewKey() { return EVP_EC_gen("P-256"); }

template <class Write>
std::string PemOf(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

Certificate InPem(X509* certificate, EVP_PKEY* key) {
  return {PemOf([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); }), PemOf([&](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

void Extend(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Authority::Authority() : key_(NewKey()) {
  root_ = Make("authority", "", key_.get(), nullptr);
  own_ = InPem(root_.get(), key_.get());
}

Certificate Authority::Sign(const std::string& name, const std::string& alternative) {
  const Key key(NewKey());
  return InPem(Make(name, alternative, key.get(), root_.get()).get(), key.get());
}

std::string Authority::Revoke(const std::string& certificate, int days, bool is_delta) {
  if (!certificate.empty()) revoked_.push_back(certificate);
  X509_CRL* const list = X509_CRL_new();
  X509_CRL_set_version(list, 1);  // that is the second
  X509_CRL_set_issuer_name(list, X509_get_subject_name(root_.get()));
  ASN1_TIME* const time = X509_gmtime_adj(nullptr, -kDay * 2);
  X509_CRL_set1_lastUpdate(list, time);
  X509_gmtime_adj(time, kDay * days);
  X509_CRL_set1_nextUpdate(list, time);
  for (const std::string& one : revoked_) {
    BIO* const bio = BIO_new_mem_buf(one.data(), static_cast<int>(one.size()));
    X509* const parsed = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(parsed));
    X509_REVOKED_set_revocationDate(entry, time);
    X509_CRL_add0_revoked(list, entry);
    X509_free(parsed);
    BIO_free(bio);
  }
  ASN1_TIME_free(time);
  if (is_delta) {
    ASN1_INTEGER* const base = ASN1_INTEGER_new();
    ASN1_INTEGER_set(base, 1);
    X509_CRL_add1_ext_i2d(list, NID_delta_crl, base, 1, 0);
    ASN1_INTEGER_free(base);
  }
  X509_CRL_sort(list);
  X509_CRL_sign(list, key_.get(), EVP_sha256());
  std::string pem = PemOf([&](BIO* bio) { PEM_write_bio_X509_CRL(bio, list); });
  X509_CRL_free(list);
  return pem;
}

Authority::Signed Authority::Make(const std::string& name, const std::string& alternative,
                                  EVP_PKEY* key, const X509* issuer) {
  Signed made(X509_new());
  X509_set_version(made.get(), 2);  // that is the third
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++last_serial_);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kDay);
  X509_set_pubkey(made.get(), key);
  X509_NAME* const subject = X509_get_subject_name(made.get());
  if (!name.empty()) {
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  }
  X509_set_issuer_name(made.get(), issuer == nullptr ? subject : X509_get_subject_name(issuer));
  if (issuer == nullptr) Extend(made.get(), NID_basic_constraints, "critical,CA:TRUE");
  if (!alternative.empty()) Extend(made.get(), NID_subject_alt_name, alternative);
  X509_sign(made.get(), key_.get(), EVP_sha256());
  return made;
}

}  // namespace coppice
