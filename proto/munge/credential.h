// MUNGE credentials, with which a caller over TLS says as which Unix user it runs: a client makes
// one for each connection, the daemon reads it once. The one place that knows libmunge.
//
//   payload: "coppice/1 sha256:" + fingerprint of the certificate that the daemon has shown
//
// So a credential is of use for nothing else than Coppice, and to no daemon but the one that the
// client's TLS connection ends at: who passes it on shows a certificate of his own. That it is used
// once, and soon, munged holds (munge(7)). Its realm is what MUNGE_OPT_REALM says: munged 0.5.15
// carries and authenticates it, and leaves it to us to compare (munge_ctx(3)).
#ifndef COPPICE_PROTO_MUNGE_CREDENTIAL_H_
#define COPPICE_PROTO_MUNGE_CREDENTIAL_H_

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Metadata of calls over TLS that holds the credential.
inline constexpr char kMungeMetadata[] = "coppice-munge";
// Begins the words of every failure.
inline constexpr char kMungeFailure[] = "MUNGE credential: ";
// As a socket: the one that libmunge was built with, /run/munge/munge.socket.2 on Debian.
inline constexpr char kDefaultMunged[] = "default";

struct Munge {
  std::string socket = {};  // of munged, or kDefaultMunged; empty: no credentials
  std::string realm = {};   // that a credential is made for, and must be of; empty: none
};

struct MungeUser {
  uid_t uid = 0;
  gid_t gid = 0;
  friend bool operator==(const MungeUser&, const MungeUser&) = default;
};

// SHA-256 of the first certificate of a text in PEM, 64 hex digits, as `openssl x509 -fingerprint
// -sha256` has them, in small letters without colons. Empty: there is none.
std::string FingerprintOf(absl::string_view pem);

// Both ask munged, which takes some 50 us; where it does not answer, libmunge gives up after ten
// seconds. Any number of threads may ask at once.

// Of this process's user, for the daemon with that certificate. UNAVAILABLE: munged does not
// answer.
absl::StatusOr<std::string> MakeCredential(const Munge& munge, absl::string_view fingerprint);

// Who made it. `is_ours`: whether a fingerprint is of this daemon's. UNAVAILABLE: munged does not
// answer. UNAUTHENTICATED, with what to do: it was used before, is too old or from the future, of
// another key, realm or service, or for another daemon.
absl::StatusOr<MungeUser> ReadCredential(const Munge& munge, const std::string& credential,
                                         absl::FunctionRef<bool(absl::string_view)> is_ours);

}  // namespace coppice

#endif  // COPPICE_PROTO_MUNGE_CREDENTIAL_H_
