// TLS of the server: the files that it needs, checked before gRPC sees them, because gRPC would
// only log what is wrong with them and refuse every connection; and looked at again at each
// connection, so that a certificate that was renewed in its place is the one that is shown.
#ifndef COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_
#define COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>
#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/caller_bounds.h"

namespace coppice {

// INVALID_ARGUMENT, with the file's name: it cannot be read, is not what it should be, has expired,
// or the key is another certificate's; or nobody could connect.
absl::Status CheckTlsFiles(const AccessOptions& access);

// Fingerprints (proto/munge/credential.h) of all certificates that this daemon has shown to
// clients. Thread-safe.
class ShownCertificates final {
 public:
  void Add(std::string fingerprint) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Has(absl::string_view fingerprint) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<std::string> fingerprints_ ABSL_GUARDED_BY(mutex_);
};

// Files that have changed since the last connection are read, and are in force for this one and
// those to come if CheckTlsFiles would take them; otherwise an error says once what is wrong, and
// what was in force stays. With `client_ca` a client cannot connect with a certificate of somebody
// else, nor without one if takes_certificates_only(). What is shown is added to `shown`, which must
// outlive the result; and that the servers that were built with it: they do not hold it.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const AccessOptions& access,
                                                            ShownCertificates* shown);

// --- Certificates that their authorities have revoked (RFC 5280, section 5) ---

// What `text`, revocation lists in PEM, says: [authority, as they follow each other in
// `authorities`, also PEM] serial number in DER. INVALID_ARGUMENT, with `path`: it holds none, or
// what is none, a difference from an earlier list, or one that no authority has signed, or that was
// to be replaced by now.
using RevokedSerials = absl::flat_hash_set<std::pair<size_t, std::string>>;
absl::StatusOr<RevokedSerials> ReadRevocations(const std::string& path, const std::string& text,
                                               const std::string& authorities);

// Those of `files.client_crl`, at any time. Thread-safe.
class Revocations final {
 public:
  // Without such a file, or before it can be read, nothing is revoked.
  explicit Revocations(TlsFiles files) : files_(std::move(files)) { Look(); }

  // Reads the file if it, or client_ca, has changed. What does not fit is told once, and what was
  // in force stays, also when it was to be replaced by now. To be called about once a second.
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether one of the certificates of that text in PEM is revoked by who signed it. Parses what it
  // has not seen of late.
  bool HasAny(const std::string& certificates) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_asked() const { return !files_.client_crl.empty(); }

 private:
  bool Judge(const std::string& certificates) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsFiles files_;
  mutable absl::Mutex mutex_;
  std::array<std::tuple<dev_t, ino_t, off_t, time_t, long>, 2> seen_ ABSL_GUARDED_BY(mutex_);
  std::string authorities_ ABSL_GUARDED_BY(mutex_);
  RevokedSerials revoked_ ABSL_GUARDED_BY(mutex_);
  bool is_in_force_ ABSL_GUARDED_BY(mutex_) = false;
  mutable absl::flat_hash_map<std::string, bool> judged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_
