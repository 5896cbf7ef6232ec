#include "daemon/rpc/calls/munge_callers.h"

#include <grpc/grpc_security_constants.h>

#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "daemon/rpc/listen/unix_users.h"

namespace coppice {
namespace {

constexpr char kUserProperty[] = "coppice_munge_user";  // "UID:GID"
// Ours have 250 characters.
constexpr size_t kMaxCredential = 4096;
// Connections of one network whose credentials wait to be read.
constexpr size_t kMaxUnread = 64;
// Calls that wait for that, of one connection, and of all, as many as wait for their turn by
// default.
constexpr size_t kMaxLine = 256, kMaxWaiting = 32'768;

// What is the connection's own as long as it is there: where gRPC keeps a property that TLS gave
// it. Null: it is none over TLS.
const void* KeyOf(const grpc::AuthContext& connection) {
  const auto values = connection.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  const bool is_tls = values.size() == 1 && values.front() == GRPC_SSL_TRANSPORT_SECURITY_TYPE;
  return is_tls ? values.front().data() : nullptr;
}

}  // namespace

void MungeCallers::Learn(const grpc::CallbackServerContext& context, Then then) {
  if (!workers_.has_value()) return then(absl::OkStatus());
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kMungeMetadata);
  if (found == metadata.end()) return then(absl::OkStatus());
  const Connection connection = context.auth_context();
  if (connection == nullptr || connection->IsPeerAuthenticated()) return then(absl::OkStatus());
  if (found->second.size() > kMaxCredential) {
    return then(absl::UnauthenticatedError(absl::StrCat(
        kMungeFailure, "it has more than ", kMaxCredential, " characters: make a new one")));
  }
  const void* key = nullptr;
  bool is_known = false, is_first = false;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    key = KeyOf(*connection);
    is_known = key == nullptr || UserNow(*connection).has_value();
    if (!is_known) status = Line(key, then, is_first);
  }
  if (is_known || !status.ok()) return then(status);
  if (!is_first) return;
  const std::string credential(found->second.data(), found->second.size());
  const std::string from = context.peer();
  status = workers_
               ->SubmitUnlessFull([this, key, connection, credential,
                                   from] { Read(key, connection, credential, from); },
                                  kMaxUnread, NetworkOf(from))
               .status();
  if (status.ok()) return;
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    waiters = TakeLine(key);
  }
  for (Waiter& waiter : waiters) waiter.then(status);
}

absl::Status MungeCallers::Line(const void* key, Then& then, bool& is_first) {
  const auto [found, is_new] = lines_.try_emplace(key);
  is_first = is_new;
  if (waiting_ >= kMaxWaiting || found->second.size() >= kMaxLine) {
    if (is_new) lines_.erase(found);
    return absl::UnavailableError(
        absl::StrCat(kMungeFailure, "too many calls wait until theirs are read: call again"));
  }
  found->second.push_back({std::move(then), absl::Now()});
  ++waiting_;
  return absl::OkStatus();
}

std::vector<MungeCallers::Waiter> MungeCallers::TakeLine(const void* key) {
  std::vector<Waiter> waiters = std::move(lines_.extract(key).mapped());
  waiting_ -= waiters.size();
  return waiters;
}

void MungeCallers::Read(const void* key, const Connection& connection,
                        const std::string& credential, const std::string& from) {
  {
    absl::MutexLock lock(&mutex_);
    if (lines_[key].empty()) {  // all have been given up
      lines_.erase(key);
      return;
    }
  }
  const absl::StatusOr<MungeUser> user = ReadCredential(
      munge_, credential, [this](absl::string_view print) { return shown_->Has(print); });
  if (!user.ok()) refused_.Say(absl::StrCat(from, ": ", user.status().message()));
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    waiters = TakeLine(key);
    if (user.ok()) {
      // gRPC's own context is no constant; who asks for one is given it as such.
      const_cast<grpc::AuthContext&>(*connection)
          .AddProperty(kUserProperty, absl::StrCat(user->uid, ":", user->gid));
    }
  }
  for (Waiter& waiter : waiters) waiter.then(user.status());
}

std::optional<MungeUser> MungeCallers::UserNow(const grpc::AuthContext& connection) const {
  const auto values = connection.FindPropertyValues(kUserProperty);
  if (values.empty()) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> ids =
      absl::StrSplit(absl::string_view(values.front().data(), values.front().size()), ':');
  MungeUser user;
  if (!absl::SimpleAtoi(ids.first, &user.uid) || !absl::SimpleAtoi(ids.second, &user.gid)) {
    return std::nullopt;
  }
  return user;
}

std::optional<MungeUser> MungeCallers::UserOf(const grpc::AuthContext& connection) const {
  if (!workers_.has_value()) return std::nullopt;
  absl::ReaderMutexLock lock(&mutex_);
  return UserNow(connection);
}

void MungeCallers::Tick() {
  if (!workers_.has_value()) return;
  const absl::Time now = absl::Now();
  std::vector<Waiter> late;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [key, waiters] : lines_) {
      // The first has waited for longest.
      size_t count = 0;
      while (count < waiters.size() && now - waiters[count].since > kLongestReading) ++count;
      const auto end = waiters.begin() + static_cast<ptrdiff_t>(count);
      std::move(waiters.begin(), end, std::back_inserter(late));
      waiters.erase(waiters.begin(), end);
    }
    waiting_ -= late.size();
  }
  if (late.empty()) return;
  const absl::Status status = absl::UnavailableError(
      absl::StrCat(kMungeFailure, "the daemon's munged has not read it in ",
                   absl::FormatDuration(kLongestReading),
                   ": an administrator looks at it there (systemctl status munge); call again"));
  refused_.Say(std::string(status.message()));
  for (Waiter& waiter : late) waiter.then(status);
}

}  // namespace coppice
