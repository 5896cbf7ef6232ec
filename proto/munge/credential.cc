#include "proto/munge/credential.h"

#include <munge.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr absl::string_view kPurpose = "coppice/1 sha256:";

struct FreeMunge {
  void operator()(munge_ctx_t context) const { munge_ctx_destroy(context); }
  void operator()(void* text) const { std::free(text); }
};
using MungeContext = std::unique_ptr<munge_ctx, FreeMunge>;
using MungeText = std::unique_ptr<void, FreeMunge>;

std::string SocketOf(const Munge& munge) {
  if (munge.socket != kDefaultMunged) return munge.socket;
  const MungeContext context(munge_ctx_create());
  char* path = nullptr;
  const bool is_told =
      context != nullptr && munge_ctx_get(context.get(), MUNGE_OPT_SOCKET, &path) == EMUNGE_SUCCESS;
  return is_told && path != nullptr ? path : kDefaultMunged;
}

// Null: no memory.
MungeContext ContextOf(const Munge& munge) {
  MungeContext context(munge_ctx_create());
  if (context != nullptr && munge.socket != kDefaultMunged &&
      munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, munge.socket.c_str()) != EMUNGE_SUCCESS) {
    context = nullptr;
  }
  return context;
}

absl::Status Unauthenticated(absl::string_view what) {
  return absl::UnauthenticatedError(absl::StrCat(kMungeFailure, what));
}

absl::Status Unanswered(const Munge& munge, munge_err_t error, const MungeContext& context) {
  const char* const detail = context == nullptr ? nullptr : munge_ctx_strerror(context.get());
  return absl::UnavailableError(absl::StrCat(
      kMungeFailure, "munged at ", SocketOf(munge), " does not answer (",
      detail != nullptr ? detail : munge_strerror(error), "): start it (systemctl start munge)"));
}

absl::Status Refused(const Munge& munge, munge_err_t error, const MungeContext& context) {
  switch (error) {
    case EMUNGE_CRED_EXPIRED:
      return Unauthenticated(
          "it has expired: call again with a new one; if that has, too, set the clocks of the "
          "daemon's node and of yours alike");
    case EMUNGE_CRED_REWOUND:
      return Unauthenticated(
          "it is from the future: set the clocks of the daemon's node and of yours alike");
    case EMUNGE_CRED_REPLAYED:
      return Unauthenticated(
          "it was used before, and each is good for one connection: make a new one");
    case EMUNGE_CRED_UNAUTHORIZED:
      return Unauthenticated("it is restricted to another reader: make one without a restriction");
    case EMUNGE_BAD_CRED:
    case EMUNGE_BAD_VERSION:
    case EMUNGE_BAD_CIPHER:
    case EMUNGE_BAD_MAC:
    case EMUNGE_BAD_ZIP:
    case EMUNGE_BAD_LENGTH:
      return Unauthenticated(absl::StrCat("it is none (", munge_strerror(error),
                                          "): give what munge_encode(3) or munge(1) has made"));
    case EMUNGE_BAD_REALM:
    case EMUNGE_CRED_INVALID:
      return Unauthenticated(
          "it was made with another key, or changed on its way: /etc/munge/munge.key of your node "
          "and of the daemon's must be the same");
    default:
      return Unanswered(munge, error, context);
  }
}

}  // namespace

std::string FingerprintOf(absl::string_view pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const certificate =
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (certificate != nullptr) X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  X509_free(certificate);
  BIO_free(bio);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

absl::StatusOr<std::string> MakeCredential(const Munge& munge, absl::string_view fingerprint) {
  const MungeContext context = ContextOf(munge);
  if (context == nullptr) return Unanswered(munge, EMUNGE_NO_MEMORY, context);
  if (!munge.realm.empty()) munge_ctx_set(context.get(), MUNGE_OPT_REALM, munge.realm.c_str());
  const std::string payload = absl::StrCat(kPurpose, fingerprint);
  char* credential = nullptr;
  const munge_err_t error =
      munge_encode(&credential, context.get(), payload.data(), static_cast<int>(payload.size()));
  const MungeText owned(credential);
  if (error != EMUNGE_SUCCESS) return Unanswered(munge, error, context);
  return std::string(credential);
}

absl::StatusOr<MungeUser> ReadCredential(const Munge& munge, const std::string& credential,
                                         absl::FunctionRef<bool(absl::string_view)> is_ours) {
  const MungeContext context = ContextOf(munge);
  if (context == nullptr) return Unanswered(munge, EMUNGE_NO_MEMORY, context);
  MungeUser user;
  void* payload = nullptr;
  int size = 0;
  const munge_err_t error =
      munge_decode(credential.c_str(), context.get(), &payload, &size, &user.uid, &user.gid);
  const MungeText owned(payload);  // also of one that has expired
  if (error != EMUNGE_SUCCESS) return Refused(munge, error, context);
  char* text = nullptr;
  munge_ctx_get(context.get(), MUNGE_OPT_REALM, &text);
  const std::string realm = text != nullptr ? text : "";
  if (realm != munge.realm) {
    return Unauthenticated(absl::StrCat("it is of the realm \"", absl::CHexEscape(realm),
                                        "\", and the daemon takes those of \"", munge.realm,
                                        "\": name that (--munge-realm)"));
  }
  absl::string_view said(static_cast<const char*>(payload), static_cast<size_t>(size));
  if (!absl::ConsumePrefix(&said, kPurpose)) {
    return Unauthenticated("it was made for another service: make one for this daemon");
  }
  if (!is_ours(said)) {
    return Unauthenticated(
        "it was made for another daemon's certificate: connect to the daemon itself, and make a "
        "new one");
  }
  return user;
}

}  // namespace coppice
