#include "daemon/rpc/calls/peer.h"

#include <grpc/grpc_security_constants.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/rpc/listen/unix_users.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr size_t kMaxShown = 100;  // characters of a name that is none
// A node's users are each asked for once a minute, by a thread of gRPC; more than these are not a
// node's.
constexpr int kMaxQuestions = 256;
constexpr double kQuestionsPerSecond = 16;
constexpr size_t kMaxAgents = 65'536;  // whose questions are counted
constexpr absl::string_view kHostInName = "{host}";

constexpr absl::string_view kGetAName =
    "connect to the daemon's Unix socket, or with a client's certificate "
    "(coppicectl --tls-cert FILE --tls-key FILE), or by MUNGE (coppicectl --munge default)";

// They change something, and no mutation brings their deed.
constexpr absl::string_view kNotedWhenDone[] = {
    "Admin.Reload", "Agents.MeasureDistances", "Fabric.Calibrate", "Fabric.ResetCalibration",
    "Fabric.Sweep", "Mapping.PutOrder",
};

// Of "fd:7", as gRPC calls a connection that was given to it as a descriptor; -1: it has none.
std::optional<int> DescriptorOf(absl::string_view connection) {
  int descriptor = -1;
  if (!absl::ConsumePrefix(&connection, "fd:")) return std::nullopt;
  return absl::SimpleAtoi(connection, &descriptor) ? descriptor : -1;
}

// As deeds name it: what the call is about, else what is another's ("job 7").
std::string ObjectOf(const Peer& peer, const std::string& owned) {
  return peer.object.empty() ? absl::StrReplaceAll(owned, {{" ", ":"}}) : peer.object;
}

absl::Status ReadOnly(const Peer& peer) {
  if (!peer.why_not.empty()) return absl::PermissionDeniedError(peer.why_not);
  return absl::PermissionDeniedError(
      absl::StrCat("callers without a name may only read: ", kGetAName));
}

// What stands in `name` where `pattern` has "{host}"; none: it is no such name.
std::optional<std::string> HostIn(absl::string_view name, absl::string_view pattern) {
  const size_t at = pattern.find(kHostInName);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view before = pattern.substr(0, at);
  const absl::string_view after = pattern.substr(at + kHostInName.size());
  if (!absl::ConsumePrefix(&name, before) || !absl::ConsumeSuffix(&name, after)) {
    return std::nullopt;
  }
  // It becomes part of an owner's name.
  return IsWord(name) ? std::optional<std::string>(name) : std::nullopt;
}

// All that it is called, the first one first; none that may not be shown.
std::vector<std::string> NamesOf(const grpc::AuthContext& auth) {
  std::vector<std::string> names;
  for (const char* const kind : {GRPC_X509_CN_PROPERTY_NAME, GRPC_PEER_URI_PROPERTY_NAME,
                                 GRPC_PEER_EMAIL_PROPERTY_NAME, GRPC_PEER_DNS_PROPERTY_NAME}) {
    const auto values = auth.FindPropertyValues(kind);
    if (kind == absl::string_view(GRPC_X509_CN_PROPERTY_NAME) && values.size() > 1) continue;
    for (const grpc::string_ref& value : values) {
      std::string name(value.data(), value.size());
      if (!name.empty() && TextFault(name).empty()) names.push_back(std::move(name));
    }
  }
  return names;
}

// What was shown, in PEM: its own, and those up to its authority.
std::string CertificatesOf(const grpc::AuthContext& auth) {
  std::string all;
  for (const char* const kind :
       {GRPC_X509_PEM_CERT_PROPERTY_NAME, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    for (const grpc::string_ref& value : auth.FindPropertyValues(kind)) {
      all.append(value.data(), value.size());
    }
  }
  return all;
}

Peer AgentOf(std::string user, std::string host) {
  Peer peer{std::move(user)};
  peer.why_not = absl::StrCat(
      "a node's agent changes things for users of its node only: name one (", kUserMetadata, ")");
  peer.is_agent = true;
  peer.host = std::move(host);
  return peer;
}

}  // namespace

Peers::Peers(const AccessOptions& options, bool are_own, DeedLog* deeds,
             const ShownCertificates* shown)
    : anonymous_may_change_(options.insecure_tcp && !options.tls.has_any()),
      are_own_(are_own),
      is_name_needed_(options.tls.has_any() && !options.tls.open_reading),
      is_munge_root_trusted_(options.munge.trust_root),
      agents_(options.agents),
      deeds_(deeds),
      users_(options.admin_group),
      munge_({options.munge.socket, options.munge.realm}, shown),
      revocations_(options.tls),
      tls_administrators_(options.tls_administrators) {}

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

Peer Peers::Identify(const grpc::CallbackServerContext& context, bool whoever_for) {
  const std::string connection = context.peer();  // which gRPC makes anew each time
  const std::optional<int> descriptor = DescriptorOf(connection);
  Peer caller = Caller(context, descriptor);
  std::string name = caller.user, origin = std::move(caller.origin);
  absl::Status refusal = std::move(caller.refusal);
  const bool is_agent = caller.is_agent;
  Peer peer = whoever_for ? std::move(caller) : InTheNameOf(std::move(caller), context);
  peer.is_by_agent = is_agent && peer.user != name;
  peer.caller = std::move(name);
  peer.descriptor = descriptor;
  peer.refusal = std::move(refusal);
  const uid_t uid = descriptor ? UidOf(*descriptor) : kNobodyYet;
  peer.origin = uid != kNobodyYet ? absl::StrCat("uid:", uid)
                : descriptor      ? "unix"
                                  : absl::StrCat(std::move(origin), connection);
  return peer;
}

Peer Peers::InTheNameOf(Peer caller, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto [first, last] = metadata.equal_range(kUserMetadata);
  if (first == last) return caller;
  const std::string named(first->second.data(), first->second.size());
  const std::string shown = absl::CHexEscape(named.substr(0, kMaxShown));
  if (!caller.is_administrator && !caller.is_agent) {
    return {caller.user, false, false,
            absl::StrCat("only administrators call in the name of others, and nodes' agents (",
                         kUserMetadata, ": ", shown, "), and you are ", caller.user,
                         ": leave that out, or ask one (", WhoAdministers(), ")")};
  }
  bool is_asked_for_too_many = false;
  const auto may_ask = [&] {
    is_asked_for_too_many = !caller.is_administrator && !MayAskFor(caller);
    return !is_asked_for_too_many;
  };
  std::optional<UnixUser> user;
  if (std::next(first) == last) user = users_.FindNamed(named, may_ask);
  if (is_asked_for_too_many) {
    return {caller.user, false, false,
            absl::StrCat(caller.user, " names too many users at once, of whom ", shown,
                         " is one: call again in a moment")};
  }
  if (!user.has_value()) {
    return {caller.user, false, false,
            absl::StrCat(kUserMetadata, ": ", shown,
                         " cannot be the name of a user; give one login name or uid")};
  }
  if (caller.is_agent) {
    return UserByWord(agents_.trust_root, absl::StrCat(kRootOfNode, caller.host), *std::move(user));
  }
  Peer peer{std::move(user->name), true, user->is_administrator};
  peer.is_scheduled = metadata.find(kByAgentMetadata) == metadata.end();
  return peer;
}

bool Peers::MayAskFor(const Peer& agent) {
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mutex_);
  if (questions_.size() >= kMaxAgents) questions_.clear();
  const auto [found, is_new] = questions_.try_emplace(agent.user);
  Questions& questions = found->second;
  const double more = absl::ToDoubleSeconds(now - questions.filled) * kQuestionsPerSecond;
  questions.left =
      is_new ? kMaxQuestions : std::clamp(questions.left + more, 0.0, double{kMaxQuestions});
  questions.filled = now;
  if (questions.left < 1) return false;
  questions.left -= 1;
  return true;
}

// Whoever has taken a node over can name anybody, by its agent and by MUNGE's key: so nobody is
// more than a user by such a word.
Peer Peers::UserByWord(bool trust_root, std::string root, UnixUser user) {
  if (trust_root) return {std::move(user.name), true, user.is_administrator};
  if (user.is_root) return {std::move(root), true, false};
  return {std::move(user.name), true, false};
}

Peer Peers::Caller(const grpc::CallbackServerContext& context, std::optional<int> descriptor) {
  if (are_own_) return {users_.Find(geteuid()).name, true, true};
  return descriptor ? FromDescriptor(UidOf(*descriptor)) : FromTransport(context);
}

uid_t Peers::UidOf(int descriptor) {
  const auto fd = static_cast<size_t>(descriptor);
  absl::ReaderMutexLock lock(&mutex_);
  return fd < uids_.size() ? uids_[fd] : kNobodyYet;
}

void Peers::NoteDone(const Peer& peer, absl::string_view object) const {
  if (!absl::c_linear_search(kNotedWhenDone, peer.method)) return;
  deeds_->Note(ActorOf(peer), object, absl::StatusCode::kOk);
}

void Peers::NoteDenied(const Peer& peer, absl::string_view object) const {
  deeds_->Note(ActorOf(peer), object, absl::StatusCode::kPermissionDenied);
}

Peer Peers::FromDescriptor(uid_t uid) {
  if (uid == kNobodyYet) return {kAnonymous, false, false};
  UnixUser user = users_.Find(uid);
  if (!user.is_administrator && absl::c_linear_search(agents_.users, user.name)) {
    return AgentOf(std::move(user.name), agents_.own_host);
  }
  return {std::move(user.name), true, user.is_administrator};
}

Peer Peers::FromTransport(const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) return FromCertificate(*auth);
  if (auth != nullptr) {
    if (const std::optional<MungeUser> user = munge_.UserOf(*auth)) return FromMunge(*user);
  }
  Peer peer{kAnonymous, anonymous_may_change_};
  peer.is_anonymous = anonymous_may_change_;
  if (is_name_needed_) {
    peer.refusal = absl::UnauthenticatedError(
        "this connection says of nobody who calls: give a certificate (--tls-cert FILE --tls-key "
        "FILE), or a MUNGE credential (--munge default)");
  }
  return peer;
}

// The key of MUNGE is on all nodes, so its word is as good as theirs together.
Peer Peers::FromMunge(const MungeUser& munge) {
  std::optional<UnixUser> user = users_.FindNamed(absl::StrCat(munge.uid));
  if (!user.has_value()) return {kAnonymous, false, false};
  Peer peer = UserByWord(is_munge_root_trusted_, kRootByMunge, *std::move(user));
  peer.origin = absl::StrCat("munge:", munge.uid, ":", munge.gid, "@");
  return peer;
}

Peer Peers::FromCertificate(const grpc::AuthContext& auth) const {
  if (revocations_.is_asked() && revocations_.HasAny(CertificatesOf(auth))) {
    Peer peer{kAnonymous};
    peer.refusal = absl::UnauthenticatedError(
        "your certificate was revoked by who signed it (tls.client_crl): ask for another one");
    return peer;
  }
  const auto common = auth.FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  const std::string fault =
      common.size() == 1 ? TextFault({common.front().data(), common.front().size()}) : "";
  if (!fault.empty()) {
    return {kAnonymous, false, false,
            absl::StrCat("the common name of your certificate ", fault, "; ask for another one")};
  }
  const std::vector<std::string> names = NamesOf(auth);
  if (names.empty()) return {kAnonymous, false, false};
  Peer named{absl::StrCat(kTlsPrefix, names.front()), true};
  named.is_administrator = IsTlsAdministrator(names);
  if (named.is_administrator) return named;
  for (const std::string& name : names) {
    for (const std::string& pattern : agents_.certificates) {
      std::optional<std::string> host = HostIn(name, pattern);
      if (host.has_value()) return AgentOf(absl::StrCat(kTlsPrefix, name), *std::move(host));
    }
  }
  return named;
}

bool Peers::IsTlsAdministrator(const std::vector<std::string>& names) const {
  absl::ReaderMutexLock lock(&mutex_);
  return absl::c_any_of(names, [this](const std::string& name) {
    return absl::c_linear_search(tls_administrators_, name);
  });
}

absl::StatusOr<Peer> Peers::Authorise(const grpc::CallbackServerContext& context,
                                      absl::string_view method, absl::string_view object) {
  const MethodAccess* const access = FindAccess(method);
  const bool of_agents = access != nullptr && access->least == Role::kAgent;
  Peer peer = Identify(context, of_agents);
  peer.method = ShortName(method);
  peer.object = std::string(object);
  absl::Status status = Judge(access, method, peer);
  if (status.ok()) return peer;
  NoteDenied(peer, object);
  return status;
}

absl::Status Peers::Judge(const MethodAccess* access, absl::string_view method,
                          const Peer& peer) const {
  if (access == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("method ", method,
                     ": nobody may call it, as the table of access has no line "
                     "for it; that is a mistake of this daemon: report it"));
  }
  if (access->least == Role::kReader || peer.is_administrator) return absl::OkStatus();
  if (access->least == Role::kAgent) {
    if (peer.is_agent) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("to be a node's agent takes a certificate or a user that the daemon's "
                     "configuration names under [agents], or an administrator, and you are ",
                     peer.user, ": ask one (", WhoAdministers(), ")"));
  }
  const bool is_for_users = access->least == Role::kUser || access->least == Role::kNamed;
  if (access->least == Role::kNamed && peer.is_anonymous) {
    return absl::PermissionDeniedError(
        absl::StrCat(peer.method,
                     " may take much of what all callers share, processors and memory, "
                     "and so takes a name: ",
                     kGetAName));
  }
  if (is_for_users && peer.may_change) return absl::OkStatus();
  if (is_for_users || !peer.why_not.empty()) return ReadOnly(peer);
  return absl::PermissionDeniedError(absl::StrCat(access->what,
                                                  " is for administrators, and you are ", peer.user,
                                                  ": ask one (", WhoAdministers(), ")"));
}

absl::Status Peers::MayChange(const Peer& peer, const JobRecord& job) const {
  const std::string id = absl::StrCat("job ", job.id.value());
  if (!peer.is_administrator && peer.may_change && job.owner == kUnknownOwner) {
    NoteDenied(peer, ObjectOf(peer, id));
    return absl::PermissionDeniedError(
        absl::StrCat(id, " was registered when owners were not noted yet: ask an administrator (",
                     WhoAdministers(), ")"));
  }
  return MayChange(peer, id, job.owner, "register a job of your own");
}

absl::Status Peers::MayChange(const Peer& peer, const std::string& object, const std::string& owner,
                              absl::string_view otherwise) const {
  if (peer.is_administrator || (peer.may_change && owner == peer.user)) return absl::OkStatus();
  NoteDenied(peer, ObjectOf(peer, object));
  if (!peer.may_change) return ReadOnly(peer);
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

absl::Status MayChangeJob(Manager& manager, const Peers& peers, const Peer& peer, JobId id) {
  if (peer.is_administrator) return absl::OkStatus();
  const absl::StatusOr<JobView> job = manager.GetJob(id);
  return job.ok() ? peers.MayChange(peer, *job->record) : absl::OkStatus();
}

absl::Status MayChangeTree(const Manager& manager, const Peers& peers, const Peer& peer,
                           TreeId id) {
  if (peer.is_administrator) return absl::OkStatus();
  const absl::StatusOr<TreeView> tree = manager.GetTree(id);
  return tree.ok() ? peers.MayChange(peer, *tree->job) : absl::OkStatus();
}

}  // namespace coppice
