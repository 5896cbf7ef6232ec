// The Admin service: coppice/v1/admin.proto over the daemon's numbers. What a reload does is handed
// in: the configuration file is not this folder's to know.
#include <algorithm>

#include "coppice/v1/admin.pb.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/service.h"

namespace coppice {
namespace {

// coppice.v1.DaemonStatus <- the daemon's plain numbers.

void ToProto(const DaemonNumbers& numbers, v1::DaemonStatus& status);

void ToProto(const SweepNumbers& sweep, v1::SweepStatus& status) {
  status.set_count(sweep.count);
  status.set_failed(sweep.failed);
  if (sweep.count > sweep.failed) {
    *status.mutable_last_time() = ToTimestamp(sweep.last_time);
    *status.mutable_last_duration() = ToDuration(sweep.last_duration);
  }
  if (sweep.period < absl::InfiniteDuration()) {
    *status.mutable_period() = ToDuration(sweep.period);
  }
  status.set_last_error(sweep.last_error);
}

void AddSweeps(const SweepStanding& sweeps, v1::DaemonStatus& status) {
  ToProto(sweeps.full, *status.mutable_full_sweep());
  ToProto(sweeps.light, *status.mutable_light_sweep());
  ToProto(sweeps.counters, *status.mutable_counter_sweep());
  status.set_routes_settled(sweeps.routes_settled);
  status.set_mads_sent(sweeps.mads_sent);
  status.set_mads_resent(sweeps.mads_resent);
  status.set_mads_timed_out(sweeps.mads_timed_out);
}

void AddFabric(const DaemonNumbers& numbers, v1::DaemonStatus& status) {
  if (numbers.view == nullptr) return;
  const FabricView& view = *numbers.view;
  status.set_fabric_version(view.snapshot->fabric->version());
  *status.mutable_snapshot_age() = ToDuration(*numbers.snapshot_age());
  status.set_has_subnet_manager(view.has_subnet_manager);
  status.set_unanswered_nodes(static_cast<uint32_t>(view.unanswered.size()));
  ToProto(view, numbers.counts, *status.mutable_fabric());
}

void AddHoldings(const DaemonCounts& counts, v1::DaemonStatus& status) {
  status.set_active_jobs(counts.active_jobs);
  status.set_granted_trees(counts.granted_trees);
  status.set_held_placements(counts.held_placements);
  status.set_placed_nodes(counts.placed_nodes);
  status.set_entries_total(counts.entries_total);
  status.set_entries_taken(counts.entries_taken);
  status.set_trees_created(counts.trees.granted);
  status.set_trees_refused(counts.trees.refused);
  status.set_trees_repaired(counts.trees.repaired);
  status.set_trees_revoked(counts.trees.revoked);
  for (const std::string& sign : counts.other_daemons) status.add_other_daemons(sign);
}

// An upper bound of what this share of the commits kept; the last bucket has no bound, the one
// below it is the best that can be said.
absl::Duration CommitQuantile(const StoreStatistics& store, double share) {
  const std::optional<size_t> bucket = BucketOfShare(store.commit_times, share);
  if (!bucket) return absl::ZeroDuration();
  return StoreStatistics::kBounds[std::min(*bucket, StoreStatistics::kBounds.size() - 1)];
}

void AddStore(const StoreStatistics& store, v1::DaemonStatus& status) {
  status.set_queued_mutations(static_cast<uint32_t>(store.queued));
  status.set_commits(store.commits);
  *status.mutable_median_commit() = ToDuration(CommitQuantile(store, 0.5));
  *status.mutable_p99_commit() = ToDuration(CommitQuantile(store, 0.99));
  status.set_database_bytes(store.database_bytes);
  status.set_refused_writes(store.refused);
  status.set_write_fault(store.fault);
}

void AddMethod(const MethodNumbers& method, v1::DaemonStatus& status) {
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (method.by_code[code] == 0) continue;
    v1::MethodStatus& line = *status.add_methods();
    line.set_method(method.name);
    line.set_code(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    line.set_count(method.by_code[code]);
    if (method.is_stream) continue;  // they last as long as their clients like
    const absl::Duration median = method.Quantile(0.5), p99 = method.Quantile(0.99);
    if (median < absl::InfiniteDuration()) *line.mutable_median() = ToDuration(median);
    if (p99 < absl::InfiniteDuration()) *line.mutable_p99() = ToDuration(p99);
  }
}

// Busiest methods first.
void AddCalls(const RpcNumbers& rpc, v1::DaemonStatus& status) {
  status.set_tree_watchers(rpc.open("Trees.WatchTrees"));
  status.set_event_watchers(rpc.open("Fabric.WatchEvents"));
  status.set_agents(rpc.agents);
  status.set_measured_distances(rpc.measured_distances);
  status.set_queued_calls(rpc.waiting_calls + rpc.waiting_batches + rpc.waiting_searches);
  std::vector<const MethodNumbers*> methods;
  for (const MethodNumbers& method : rpc.methods) methods.push_back(&method);
  std::stable_sort(
      methods.begin(), methods.end(),
      [](const MethodNumbers* a, const MethodNumbers* b) { return a->calls() > b->calls(); });
  for (const MethodNumbers* method : methods) AddMethod(*method, status);
}

void ToProto(const DaemonNumbers& numbers, v1::DaemonStatus& status) {
  status.set_version(numbers.version);
  *status.mutable_start_time() = ToTimestamp(numbers.process.start_time);
  status.set_resident_bytes(numbers.process.resident_bytes);
  AddFabric(numbers, status);
  AddSweeps(numbers.sweeps, status);
  AddHoldings(numbers.counts, status);
  AddStore(numbers.store, status);
  AddCalls(numbers.rpc, status);
}

// Of a message with a oneof `holder`; a user without a name is `caller`.
template <class Message>
QuotaHolderName HolderOf(const Message& message, const std::string& caller) {
  switch (message.holder_case()) {
    case Message::kAccount:
      return {QuotaHolder::kAccount, message.account()};
    case Message::kTenant:
      return {QuotaHolder::kTenant, TenantName(message.tenant())};
    default:
      return {QuotaHolder::kUser, message.user().empty() ? caller : message.user()};
  }
}

void ToProto(const QuotaLedger& quotas, const QuotaHolderName& holder, v1::HolderQuota& message) {
  switch (holder.kind) {
    case QuotaHolder::kUser:
      message.set_user(holder.name);
      break;
    case QuotaHolder::kAccount:
      message.set_account(holder.name);
      break;
    case QuotaHolder::kTenant:
      message.set_tenant(holder.name);
      break;
  }
  for (const QuotaStanding& standing : quotas.StandingOf(holder)) {
    if (standing.quota == Quota::kWeight && holder.kind != QuotaHolder::kTenant) continue;
    const QuotaWords& words = kQuotaWords[static_cast<size_t>(standing.quota)];
    v1::QuotaLimit& limit = *message.add_limits();
    limit.set_name(std::string(words.name));
    limit.set_unit(std::string(words.unit));
    if (standing.limit != QuotaLimit::kNone) limit.set_limit(standing.limit);
    limit.set_is_own(standing.is_own);
    const bool is_counted = IsCounted(standing.quota);
    if (is_counted || standing.quota == Quota::kPlannerSeconds) limit.set_used(standing.used);
    if (is_counted) limit.set_all_used(standing.all_used);
    if (standing.whole != QuotaLimit::kNone) limit.set_whole(standing.whole);
    if (standing.for_users != QuotaLimit::kNone) limit.set_for_users(standing.for_users);
  }
}

absl::StatusOr<PutQuota> QuotaOf(const v1::SetQuotaRequest& request) {
  PutQuota put;
  const QuotaHolderName holder = HolderOf(request, "");
  put.quota.kind = holder.kind;
  put.quota.holder = holder.name;
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

void ToProto(const ReservationRecord& reservation, v1::Reservation& message) {
  message.set_id(absl::StrCat(reservation.id.value()));
  message.set_tenant(reservation.tenant);
  message.set_entries(reservation.entries);
  for (const Guid guid : reservation.switches) message.add_switches(ToString(guid));
  message.mutable_nodes()->Add(reservation.nodes.begin(), reservation.nodes.end());
  message.set_lends(reservation.lends);
  *message.mutable_from_time() = ToTimestamp(reservation.from);
  *message.mutable_until_time() = ToTimestamp(reservation.until);
  *message.mutable_create_time() = ToTimestamp(reservation.created);
}

absl::StatusOr<CreateReservationArgs> ArgsOf(const v1::CreateReservationRequest& request) {
  CreateReservationArgs args;
  args.tenant = request.tenant();
  args.entries = request.entries();
  for (const std::string& name : request.switches()) {
    ASSIGN_OR_RETURN(const Guid guid, ParseGuid(name));
    args.switches.push_back(guid);
  }
  args.nodes.assign(request.nodes().begin(), request.nodes().end());
  args.lends = request.lends();
  if (request.has_from_time()) {
    ASSIGN_OR_RETURN(args.from, FromProto(request.from_time(), "from_time"));
  }
  if (!request.has_until_time()) {
    return absl::InvalidArgumentError("until_time: not set; say when the reservation ends");
  }
  ASSIGN_OR_RETURN(args.until, FromProto(request.until_time(), "until_time"));
  return args;
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

class AdminService final : public Service {
 public:
  explicit AdminService(const ServiceParts& parts)
      : Service("coppice.v1.Admin", parts),
        reload_(parts.options->reload),
        numbers_(parts.numbers) {
    Unary("GetStatus", &AdminService::GetStatus, "daemon");
    Unary("Reload", &AdminService::Reload, "configuration", {.is_change = true, .pool = workers_});
    Unary("GetQuota", &AdminService::GetQuota, "quota");
    Unary("ListQuotas", &AdminService::ListQuotas, "quotas", {.pool = workers_});
    Unary("SetQuota", &AdminService::SetQuota,
          [](const auto& request) { return ToString(HolderOf(request, "")); }, {.is_change = true});
    Unary("ListAccounts", &AdminService::ListAccounts, "accounts", {.pool = workers_});
    Unary("ImportAccounts", &AdminService::ImportAccounts, "accounts",
          {.is_change = true, .pool = workers_});
    Unary("SetTenant", &AdminService::SetTenant,
          [](const auto& request) { return absl::StrCat("account:", request.account()); },
          {.is_change = true, .pool = workers_});
    Unary("CreateReservation", &AdminService::CreateReservation, "reservation",
          {.is_change = true, .pool = workers_});
    Unary("ListReservations", &AdminService::ListReservations, "reservations", {.pool = workers_});
    Unary("DeleteReservation", &AdminService::DeleteReservation,
          [](const auto& request) { return absl::StrCat("reservation:", request.id()); },
          {.is_change = true, .pool = workers_});
    Unary("ListDeeds", &AdminService::ListDeeds, "deeds", {.pool = workers_});
  }

 private:
  absl::Status GetStatus(const v1::GetStatusRequest&, v1::DaemonStatus& response) {
    ToProto(numbers_(), response);
    return absl::OkStatus();
  }

  absl::Status Reload(const UnaryCall& call, const v1::ReloadRequest&,
                      v1::ReloadResponse& response) {
    if (reload_ == nullptr) {
      return absl::FailedPreconditionError("this server has no configuration file");
    }
    ASSIGN_OR_RETURN(const ReloadOutcome outcome, reload_(NameOf(ActorOf(call.peer()))));
    for (const std::string& key : outcome.changed) response.add_changed(key);
    for (const std::string& key : outcome.needs_restart) response.add_needs_restart(key);
    return absl::OkStatus();
  }

  absl::Status GetQuota(const UnaryCall& call, const v1::GetQuotaRequest& request,
                        v1::HolderQuota& response) {
    ToProto(manager_->quotas(), HolderOf(request, call.user()), response);
    return absl::OkStatus();
  }

  absl::Status ListQuotas(const v1::ListQuotasRequest&, v1::ListQuotasResponse& response) {
    const QuotaLedger& quotas = manager_->quotas();
    for (const QuotaHolderName& holder : quotas.Holders()) {
      ToProto(quotas, holder, *response.add_holders());
    }
    return absl::OkStatus();
  }

  void SetQuota(UnaryCall* call, const v1::SetQuotaRequest& request, v1::HolderQuota& response) {
    absl::StatusOr<PutQuota> put = QuotaOf(request);
    if (!put.ok()) return call->End(put.status());
    manager_->SetQuota(*std::move(put), ActorOf(call->peer()),
                       [this, call, &response](const absl::StatusOr<QuotaRecord>& set) {
                         if (set.ok()) {
                           ToProto(manager_->quotas(), {set->kind, set->holder}, response);
                         }
                         call->End(set.status());
                       });
  }

  absl::Status ListAccounts(const v1::ListAccountsRequest&, v1::ListAccountsResponse& response) {
    const std::shared_ptr<const Accounts> accounts = manager_->quotas().accounts();
    for (const AccountRecord& account : accounts->accounts()) {
      v1::Account& message = *response.add_accounts();
      message.set_name(account.name);
      message.set_parent(account.parent);
      message.set_tenant(account.tenant);
    }
    for (const AccountUserRecord& user : accounts->users()) {
      v1::AccountUser& message = *response.add_users();
      message.set_user(user.user);
      message.set_account(user.account);
      message.set_is_default(user.is_default);
    }
    return absl::OkStatus();
  }

  absl::Status ImportAccounts(const UnaryCall& call, const v1::ImportAccountsRequest& request,
                              v1::ImportAccountsResponse&) {
    PutAccounts put;
    for (const v1::Account& account : request.accounts()) {
      put.accounts.push_back({account.name(), account.parent(), account.tenant()});
    }
    for (const v1::AccountUser& user : request.users()) {
      put.users.push_back({user.user(), user.account(), user.is_default()});
    }
    return manager_->ImportAccounts(std::move(put), ActorOf(call.peer()));
  }

  absl::Status SetTenant(const UnaryCall& call, const v1::SetTenantRequest& request,
                         v1::SetTenantResponse&) {
    return manager_->SetTenant(request.account(), request.tenant(), ActorOf(call.peer()));
  }

  absl::Status CreateReservation(const UnaryCall& call, const v1::CreateReservationRequest& request,
                                 v1::Reservation& response) {
    ASSIGN_OR_RETURN(const CreateReservationArgs args, ArgsOf(request));
    ASSIGN_OR_RETURN(const ReservationRecord made,
                     manager_->reservations().Create(args, ActorOf(call.peer())));
    ToProto(made, response);
    return absl::OkStatus();
  }

  absl::Status ListReservations(const v1::ListReservationsRequest&,
                                v1::ListReservationsResponse& response) {
    for (const ReservationRecord& reservation : manager_->reservations().List()) {
      ToProto(reservation, *response.add_reservations());
    }
    return absl::OkStatus();
  }

  absl::Status DeleteReservation(const UnaryCall& call, const v1::DeleteReservationRequest& request,
                                 v1::DeleteReservationResponse&) {
    ASSIGN_OR_RETURN(const ReservationId id, ParseReservationId(request.id()));
    return manager_->reservations().Delete(id, ActorOf(call.peer()));
  }

  absl::Status ListDeeds(const v1::ListDeedsRequest& request, v1::ListDeedsResponse& response) {
    manager_->deeds().Flush();
    DeedFilter filter;
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    ASSIGN_OR_RETURN(filter.after_id, ParseIdToken(request.page_token()));
    filter.user = request.user();
    filter.method_prefix = request.method_prefix();
    filter.only_denials = request.only_denials();
    if (request.has_start_time()) {
      ASSIGN_OR_RETURN(filter.start, FromProto(request.start_time(), "start_time"));
    }
    filter.limit = static_cast<uint32_t>(size + 1);
    ASSIGN_OR_RETURN(const std::vector<DeedRecord> deeds, manager_->Deeds(filter));
    response.set_next_page_token(FillPage(
        deeds, size, response.mutable_deeds(),
        [](const DeedRecord& deed, v1::Deed& message) { ToProto(deed, message); },
        [](const DeedRecord& last) { return absl::StrCat(last.id); }));
    return absl::OkStatus();
  }

  const ReloadFunction reload_;
  const std::function<DaemonNumbers()> numbers_;
};

std::unique_ptr<Service> MakeAdminService(const ServiceParts& parts) {
  return std::make_unique<AdminService>(parts);
}

}  // namespace coppice
