#include "daemon/rpc/peer.h"

#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/rpc/peer_names.h"

namespace coppice {
namespace {

constexpr char kDescriptorPrefix[] = "fd:";
constexpr size_t kMostShown = 100;  // characters of a name that is none

absl::Status ReadOnly(const Peer& peer) {
  if (!peer.why_not.empty()) return absl::PermissionDeniedError(peer.why_not);
  return absl::PermissionDeniedError(
      "callers without a name may only read: connect to the daemon's Unix socket, or with a "
      "client's certificate (coppicectl --tls-cert FILE --tls-key FILE)");
}

}  // namespace

Peers::Peers(PeerOptions options)
    : anonymous_may_change_(options.anonymous_may_change),
      users_(std::move(options.admin_group)),
      tls_administrators_(std::move(options.tls_administrators)) {}

void Peers::SetAdministrators(std::string group, std::vector<std::string> tls_names) {
  users_.SetAdminGroup(std::move(group));
  absl::MutexLock lock(&mutex_);
  tls_administrators_ = std::move(tls_names);
}

void Peers::NoteConnection(int fd, uid_t uid) {
  absl::MutexLock lock(&mutex_);
  const size_t number = static_cast<size_t>(fd);
  if (number >= uids_.size()) uids_.resize(number + 1, kNobodyYet);
  uids_[number] = uid;
}

Peer Peers::Identify(const grpc::CallbackServerContext& context) {
  return InTheNameOf(Caller(context), context);
}

Peer Peers::InTheNameOf(Peer caller, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto [first, last] = metadata.equal_range(kUserMetadata);
  if (first == last) return caller;
  const std::string named(first->second.data(), first->second.size());
  const std::string shown = absl::CHexEscape(named.substr(0, kMostShown));
  if (!caller.is_administrator) {
    return {caller.user, false, false,
            absl::StrCat("only administrators call in the name of others (", kUserMetadata, ": ",
                         shown, "), and you are ", caller.user, ": leave that out, or ask one (",
                         WhoAdministers(), ")")};
  }
  std::optional<UnixUser> user;
  if (std::next(first) == last) user = users_.FindNamed(named);
  if (!user.has_value()) {
    return {caller.user, false, false,
            absl::StrCat(kUserMetadata, ": ", shown,
                         " cannot be the name of a user; give one login name or uid")};
  }
  return {std::move(user->name), true, user->is_administrator};
}

Peer Peers::Caller(const grpc::CallbackServerContext& context) {
  const std::string connection = context.peer();
  absl::string_view number = connection;
  return absl::ConsumePrefix(&number, kDescriptorPrefix) ? FromDescriptor(number)
                                                         : FromTransport(context);
}

Peer Peers::FromDescriptor(absl::string_view number) {
  uid_t uid = kNobodyYet;
  size_t fd = 0;
  if (absl::SimpleAtoi(number, &fd)) {
    absl::ReaderMutexLock lock(&mutex_);
    if (fd < uids_.size()) uid = uids_[fd];
  }
  if (uid == kNobodyYet) return {kAnonymous, false, false};
  UnixUser user = users_.Find(uid);
  return {std::move(user.name), true, user.is_administrator};
}

Peer Peers::FromTransport(const grpc::CallbackServerContext& context) const {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) {
    return {kAnonymous, anonymous_may_change_, false};
  }
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  if (names.size() != 1 || names.front().empty()) return {kAnonymous, false, false};
  const std::string name(names.front().data(), names.front().size());
  return {absl::StrCat(kTlsPrefix, name), true, IsTlsAdministrator(name)};
}

bool Peers::IsTlsAdministrator(const std::string& name) const {
  absl::ReaderMutexLock lock(&mutex_);
  return std::find(tls_administrators_.begin(), tls_administrators_.end(), name) !=
         tls_administrators_.end();
}

absl::StatusOr<Peer> Peers::MayRegister(const grpc::CallbackServerContext& context) {
  Peer peer = Identify(context);
  if (!peer.may_change) return ReadOnly(peer);
  return peer;
}

absl::Status Peers::MayAdminister(const grpc::CallbackServerContext& context,
                                  absl::string_view what) {
  const Peer peer = Identify(context);
  if (peer.is_administrator) return absl::OkStatus();
  if (!peer.why_not.empty()) return ReadOnly(peer);
  return NotAdministrator(peer, what);
}

absl::Status Peers::MayBeAgent(const grpc::CallbackServerContext& context) {
  const Peer peer = Caller(context);
  return peer.is_administrator ? absl::OkStatus() : NotAdministrator(peer, "to be a node's agent");
}

absl::Status Peers::NotAdministrator(const Peer& peer, absl::string_view what) const {
  return absl::PermissionDeniedError(absl::StrCat(what, " is for administrators, and you are ",
                                                  peer.user, ": ask one (", WhoAdministers(), ")"));
}

absl::Status Peers::MayChange(const Peer& peer, const JobRecord& job) const {
  const std::string id = absl::StrCat("job ", job.id.value());
  if (!peer.is_administrator && peer.may_change && job.owner == kUnknownOwner) {
    return absl::PermissionDeniedError(
        absl::StrCat(id, " was registered when owners were not noted yet: ask an administrator (",
                     WhoAdministers(), ")"));
  }
  return MayChange(peer, id, job.owner, "register a job of your own");
}

absl::Status Peers::MayChange(const Peer& peer, const std::string& object, const std::string& owner,
                              absl::string_view otherwise) const {
  if (peer.is_administrator) return absl::OkStatus();
  if (!peer.may_change) return ReadOnly(peer);
  if (owner == peer.user) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(object, " belongs to ", owner, ", and you are ", peer.user, ": ask ", owner,
                   " or an administrator (", WhoAdministers(), "), or ", otherwise));
}

std::string Peers::WhoAdministers() const {
  std::string who = absl::StrCat("root, members of the group ", users_.admin_group());
  absl::ReaderMutexLock lock(&mutex_);
  if (!tls_administrators_.empty()) absl::StrAppend(&who, ", tls.administrators");
  return who;
}

}  // namespace coppice
