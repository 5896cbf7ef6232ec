// Certificates for a test, of an authority of its own, that are never written to a disk but where a
// server reads its own.
#ifndef COPPICE_TESTS_UNIT_RPC_CERTIFICATES_H_
#define COPPICE_TESTS_UNIT_RPC_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace coppice {

// In PEM.
struct Certificate {
  std::string certificate, key;
};

class Authority final {
 public:
  Authority();

  const std::string& certificate() const { return own_.certificate; }
  // `name`: the common one, or nothing; `alternative`: "DNS:n1.example", or nothing.
  Certificate Sign(const std::string& name, const std::string& alternative = "");

  // A list, in PEM, of what has been revoked so far and `certificate`, unless that is empty; to be
  // replaced after so many days. With `is_delta` it is called the difference from another.
  std::string Revoke(const std::string& certificate, int days = 1, bool is_delta = false);

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Signed = std::unique_ptr<X509, Free>;

  Signed Make(const std::string& name, const std::string& alternative, EVP_PKEY* key,
              const X509* issuer);

  Key key_;
  Signed root_;
  long last_serial_ = 0;
  std::vector<std::string> revoked_;
  Certificate own_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_CERTIFICATES_H_
