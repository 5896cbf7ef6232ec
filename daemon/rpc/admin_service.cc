#include "daemon/rpc/admin_service.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/jobs_conversion.h"
#include "daemon/rpc/status_report.h"
#include "daemon/rpc/unary.h"

namespace coppice {
namespace {

constexpr char kObject[] = "configuration";

void ToProto(const QuotaLedger& quotas, const std::string& user, v1::UserQuota& message) {
  message.set_user(user);
  for (const QuotaStanding& standing : quotas.StandingOf(user)) {
    const QuotaWords& words = kQuotaWords[static_cast<size_t>(standing.quota)];
    v1::QuotaLimit& limit = *message.add_limits();
    limit.set_name(std::string(words.name));
    limit.set_unit(std::string(words.unit));
    if (standing.limit != QuotaLimit::kNone) limit.set_limit(standing.limit);
    limit.set_is_own(standing.is_own);
    limit.set_used(standing.used);
    limit.set_all_used(standing.all_used);
    if (standing.whole != QuotaLimit::kNone) limit.set_whole(standing.whole);
    if (standing.for_users != QuotaLimit::kNone) limit.set_for_users(standing.for_users);
  }
}

absl::StatusOr<PutQuota> QuotaOf(const v1::SetQuotaRequest& request) {
  PutQuota put;
  put.quota.holder = request.user();
  put.quota.limit = request.name();
  switch (request.value_case()) {
    case v1::SetQuotaRequest::kLimit:
      put.quota.value = request.limit();
      break;
    case v1::SetQuotaRequest::kUnlimited:
      put.quota.value = QuotaLimit::kNone;
      break;
    case v1::SetQuotaRequest::kAsConfigured:
      put.drop = true;
      break;
    case v1::SetQuotaRequest::VALUE_NOT_SET:
      return absl::InvalidArgumentError("value: give limit, unlimited or as_configured");
  }
  return put;
}

void ToProto(const DeedRecord& deed, v1::Deed& message) {
  message.set_id(deed.id);
  *message.mutable_time() = ToTimestamp(deed.time);
  message.set_caller(deed.caller);
  message.set_user(deed.user);
  message.set_origin(deed.origin);
  message.set_method(deed.method);
  message.set_object(deed.object);
  message.set_outcome(deed.outcome);
  message.set_count(deed.count);
  *message.mutable_first_time() = ToTimestamp(deed.first);
  message.set_is_administrator(deed.share == DeedShare::kAdministrator);
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext*,
                                                  const v1::GetStatusRequest*,
                                                  v1::DaemonStatus* response) {
  return AnswerNow(get_status_, "daemon", [&] {
    ToProto(numbers_(), *response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::Reload(grpc::CallbackServerContext* context,
                                               const v1::ReloadRequest*,
                                               v1::ReloadResponse* response) {
  auto* const reactor = new UnaryCall(reload_method_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Admin/Reload", kObject);
  if (!peer.ok()) return Finish(reactor, peer.status(), kObject);
  if (reload_ == nullptr) {
    return Finish(reactor, absl::FailedPreconditionError("this server has no configuration file"),
                  kObject);
  }
  const std::string by = NameOf(ActorOf(*peer));
  return RunLater(workers_, reactor, kObject, [this, reactor, response, by] {
    const absl::StatusOr<ReloadOutcome> outcome = reload_(by);
    if (outcome.ok()) {
      for (const std::string& key : outcome->changed) response->add_changed(key);
      for (const std::string& key : outcome->needs_restart) response->add_needs_restart(key);
    }
    Finish(reactor, outcome.status(), kObject);
  });
}

grpc::ServerUnaryReactor* AdminService::GetQuota(grpc::CallbackServerContext* context,
                                                 const v1::GetQuotaRequest* request,
                                                 v1::UserQuota* response) {
  return AnswerNow(get_quota_, "quota", [&] {
    const std::string user =
        request->user().empty() ? peers_->Identify(*context).user : request->user();
    ToProto(manager_->quotas(), user, *response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListQuotas(grpc::CallbackServerContext* context,
                                                   const v1::ListQuotasRequest*,
                                                   v1::ListQuotasResponse* response) {
  auto* const reactor = new UnaryCall(list_quotas_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Admin/ListQuotas", "quotas");
  if (!peer.ok()) return Finish(reactor, peer.status(), "quotas");
  return RunLater(workers_, reactor, "quotas", [this, reactor, response] {
    const QuotaLedger& quotas = manager_->quotas();
    for (const std::string& user : quotas.Users()) ToProto(quotas, user, *response->add_users());
    Finish(reactor, absl::OkStatus(), "quotas");
  });
}

grpc::ServerUnaryReactor* AdminService::SetQuota(grpc::CallbackServerContext* context,
                                                 const v1::SetQuotaRequest* request,
                                                 v1::UserQuota* response) {
  auto* const reactor = new UnaryCall(set_quota_, peers_, context);
  const std::string object = absl::StrCat("user:", request->user());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Admin/SetQuota", object);
  if (!peer.ok()) return Finish(reactor, peer.status(), object);
  absl::StatusOr<PutQuota> put = QuotaOf(*request);
  if (!put.ok()) return Finish(reactor, put.status(), object);
  manager_->SetQuota(*std::move(put), ActorOf(*peer),
                     [this, reactor, response, object](const absl::StatusOr<QuotaRecord>& set) {
                       if (set.ok()) ToProto(manager_->quotas(), set->holder, *response);
                       Finish(reactor, set.status(), object);
                     });
  return reactor;
}

absl::Status AdminService::Deeds(const v1::ListDeedsRequest& request,
                                 v1::ListDeedsResponse& response) {
  DeedFilter filter;
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(filter.after_id, ParseIdToken(request.page_token()));
  filter.user = request.user();
  filter.method_prefix = request.method_prefix();
  filter.only_denials = request.only_denials();
  if (request.has_start_time()) {
    filter.start = absl::FromUnixSeconds(request.start_time().seconds()) +
                   absl::Nanoseconds(request.start_time().nanos());
  }
  filter.limit = static_cast<uint32_t>(size + 1);
  ASSIGN_OR_RETURN(std::vector<DeedRecord> deeds, manager_->Deeds(filter));
  const bool has_more = deeds.size() > size;
  if (has_more) deeds.resize(size);
  for (const DeedRecord& deed : deeds) ToProto(deed, *response.add_deeds());
  if (has_more) response.set_next_page_token(absl::StrCat(deeds.back().id));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::ListDeeds(grpc::CallbackServerContext* context,
                                                  const v1::ListDeedsRequest* request,
                                                  v1::ListDeedsResponse* response) {
  auto* const reactor = new UnaryCall(list_deeds_, peers_, context);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Admin/ListDeeds", "deeds");
  if (!peer.ok()) return Finish(reactor, peer.status(), "deeds");
  return RunLater(workers_, reactor, "deeds", [this, reactor, request, response] {
    manager_->deeds().Flush();
    Finish(reactor, Deeds(*request, *response), "deeds");
  });
}

}  // namespace coppice
