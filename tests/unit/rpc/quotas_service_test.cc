// Quotas and the account of deeds as clients meet them: users of this machine against a real
// server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "coppice/v1/mapping.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/users.h"

namespace coppice::quotas_service_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AdminStub = v1::Admin::Stub;
using JobsStub = v1::Jobs::Stub;
using MappingStub = v1::Mapping::Stub;

// The calls of one user, over a connection of its own; of this process's, who administers.
class QuotaUser {
 public:
  explicit QuotaUser(Loopback& loopback) : QuotaUser(loopback, loopback.Connect()) {}
  QuotaUser(Loopback& loopback, uid_t uid)
      : QuotaUser(loopback, ChannelOf(ConnectAs(uid, loopback.server().addresses()[0]))) {}

  absl::StatusOr<v1::Job> Register(const std::string& request_id = "") {
    v1::RegisterJobRequest request;
    request.set_all_endpoints(true);
    request.set_request_id(request_id);
    return loopback_.Call(*jobs_, &JobsStub::RegisterJob, request);
  }
  absl::Status End(const std::string& job) {
    v1::EndJobRequest request;
    request.set_id(job);
    return loopback_.Call(*jobs_, &JobsStub::EndJob, request).status();
  }
  absl::StatusOr<v1::HolderQuota> Quota(const std::string& user = "") {
    v1::GetQuotaRequest request;
    request.set_user(user);
    return loopback_.Call(*admin_, &AdminStub::GetQuota, request);
  }
  absl::StatusOr<v1::HolderQuota> SetQuota(const std::string& user, const std::string& name,
                                           int64_t limit) {
    v1::SetQuotaRequest request;
    request.set_user(user);
    request.set_name(name);
    request.set_limit(limit);
    return loopback_.Call(*admin_, &AdminStub::SetQuota, request);
  }
  absl::StatusOr<v1::HolderQuota> Quota(const v1::GetQuotaRequest& request) {
    return loopback_.Call(*admin_, &AdminStub::GetQuota, request);
  }
  absl::StatusOr<v1::HolderQuota> SetQuota(const v1::SetQuotaRequest& request) {
    return loopback_.Call(*admin_, &AdminStub::SetQuota, request);
  }
  absl::Status Import(const v1::ImportAccountsRequest& request) {
    return loopback_.Call(*admin_, &AdminStub::ImportAccounts, request).status();
  }
  absl::Status SetTenant(const v1::SetTenantRequest& request) {
    return loopback_.Call(*admin_, &AdminStub::SetTenant, request).status();
  }
  absl::StatusOr<v1::ListAccountsResponse> Accounts() {
    return loopback_.Call(*admin_, &AdminStub::ListAccounts, v1::ListAccountsRequest());
  }
  absl::StatusOr<v1::ListDeedsResponse> Deeds(const v1::ListDeedsRequest& request = {}) {
    return loopback_.Call(*admin_, &AdminStub::ListDeeds, request);
  }
  absl::Status PutPattern(const std::string& name, int ranks) {
    v1::PutPatternRequest request;
    request.set_name(name);
    request.mutable_pattern_file()->set_origin("p.csv");
    std::string text;
    for (int row = 0; row < ranks; ++row) {  // a matrix
      for (int column = 0; column < ranks; ++column) text += row == column ? "0 " : "1 ";
      text += "\n";
    }
    request.mutable_pattern_file()->set_text(text);
    return loopback_.Call(*mapping_, &MappingStub::PutPattern, request).status();
  }
  absl::StatusOr<v1::StoredPattern> GetPattern(const std::string& name) {
    v1::GetPatternRequest request;
    request.set_name(name);
    return loopback_.Call(*mapping_, &MappingStub::GetPattern, request);
  }

 private:
  QuotaUser(Loopback& loopback, const std::shared_ptr<grpc::Channel>& channel)
      : loopback_(loopback),
        jobs_(v1::Jobs::NewStub(channel)),
        admin_(v1::Admin::NewStub(channel)),
        mapping_(v1::Mapping::NewStub(channel)) {}

  Loopback& loopback_;
  const std::unique_ptr<v1::Jobs::Stub> jobs_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  const std::unique_ptr<v1::Mapping::Stub> mapping_;
};

Loopback::Options OneJobEach() {
  Loopback::Options options;
  options.quotas[Quota::kJobs] = {1};
  return options;
}

v1::QuotaLimit LimitOf(const absl::StatusOr<v1::HolderQuota>& quota, const std::string& name) {
  EXPECT_TRUE(quota.ok()) << quota.status();
  for (const v1::QuotaLimit& limit : quota->limits()) {
    if (limit.name() == name) return limit;
  }
  ADD_FAILURE() << name;
  return {};
}

// "CALLER METHOD OBJECT OUTCOME COUNT"
std::vector<std::string> Told(const absl::StatusOr<v1::ListDeedsResponse>& deeds) {
  EXPECT_TRUE(deeds.ok()) << deeds.status();
  std::vector<std::string> lines;
  for (const v1::Deed& deed : deeds->deeds()) {
    lines.push_back(absl::StrCat(deed.caller(), " ", deed.method(), " ", deed.object(), " ",
                                 deed.outcome(), " ", deed.count()));
  }
  return lines;
}

TEST(QuotasServiceTest, ARefusalIsAQuotaFailureThatNamesLimitUseAndHolder) {
  if (!MayActAsOthers()) return;
  Loopback loopback(OneJobEach());
  QuotaUser bin(loopback, kBinUser), administrator(loopback);
  ASSERT_TRUE(bin.Register().ok());
  const absl::Status refused = bin.Register().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  const auto failure = GetDetail<google::rpc::QuotaFailure>(refused);
  ASSERT_TRUE(failure.has_value());
  ASSERT_EQ(failure->violations_size(), 1);
  EXPECT_EQ(failure->violations(0).subject(), "user:bin");
  EXPECT_EQ(failure->violations(0).description(),
            "1 of 1 active jobs (quota jobs), 1 more asked for");
  EXPECT_TRUE(administrator.Register().ok());
  EXPECT_TRUE(administrator.Register().ok());
  const v1::QuotaLimit jobs = LimitOf(bin.Quota(), "jobs");
  EXPECT_EQ(jobs.limit(), 1);
  EXPECT_EQ(jobs.used(), 1);
  EXPECT_EQ(jobs.all_used(), 3);
}

TEST(QuotasServiceTest, AdministratorsGiveLimits) {
  if (!MayActAsOthers()) return;
  Loopback loopback(OneJobEach());
  QuotaUser bin(loopback, kBinUser), administrator(loopback);
  EXPECT_EQ(bin.SetQuota("bin", "jobs", 9).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(administrator.SetQuota("bin", "cows", 9).status().code(),
            absl::StatusCode::kInvalidArgument);
  const v1::QuotaLimit jobs = LimitOf(administrator.SetQuota("bin", "jobs", 2), "jobs");
  EXPECT_EQ(jobs.limit(), 2);
  EXPECT_TRUE(jobs.is_own());
  EXPECT_TRUE(bin.Register().ok());
  EXPECT_TRUE(bin.Register().ok());
  EXPECT_FALSE(bin.Register().ok());
}

TEST(QuotasServiceTest, NamesOfRequestsAndPatternsCannotBeSquatted) {
  if (!MayActAsOthers()) return;
  Loopback loopback;
  QuotaUser bin(loopback, kBinUser), daemon(loopback, kDaemonUser), administrator(loopback);
  const auto first = bin.Register("slurm-7");
  const auto second = daemon.Register("slurm-7");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(first->id(), second->id());
  ASSERT_TRUE(bin.PutPattern("lammps/melt", 3).ok());
  EXPECT_EQ(daemon.GetPattern("lammps/melt").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(daemon.GetPattern("bin:lammps/melt")->rank_count(), 3u);
  ASSERT_TRUE(administrator.PutPattern("lammps/melt", 4).ok());
  EXPECT_EQ(daemon.GetPattern("lammps/melt")->rank_count(), 4u);
  EXPECT_EQ(bin.GetPattern("lammps/melt")->rank_count(), 3u);
}

TEST(QuotasServiceTest, TheAccountTellsDeedsAndDenials) {
  if (!MayActAsOthers()) return;
  Loopback loopback;
  QuotaUser bin(loopback, kBinUser), daemon(loopback, kDaemonUser), administrator(loopback);
  const std::string job = bin.Register()->id();
  EXPECT_EQ(bin.Deeds().status().code(), absl::StatusCode::kPermissionDenied);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(daemon.End(job).code(), absl::StatusCode::kPermissionDenied);
  }
  ASSERT_TRUE(bin.End(job).ok());
  ASSERT_TRUE(bin.Register().ok());
  const std::vector<std::string> told = Told(administrator.Deeds());
  EXPECT_THAT(told, Contains("bin Jobs.RegisterJob job:1 OK 1"));
  EXPECT_THAT(told, Contains("bin Admin.ListDeeds deeds PERMISSION_DENIED 1"));
  EXPECT_THAT(told, Contains("daemon Jobs.EndJob job:1 PERMISSION_DENIED 1"));
  EXPECT_THAT(told, Contains("daemon Jobs.EndJob job:1 PERMISSION_DENIED 4")) << "as one";
  EXPECT_THAT(told, Contains("bin Jobs.EndJob job:1 OK 1"));
  v1::ListDeedsRequest request;
  request.set_user("bin");
  request.set_method_prefix("Jobs.");
  const auto of_bin = administrator.Deeds(request);
  EXPECT_THAT(Told(of_bin),
              ElementsAre("bin Jobs.RegisterJob job:1 OK 1", "bin Jobs.EndJob job:1 OK 1",
                          "bin Jobs.RegisterJob job:2 OK 1"));
  EXPECT_EQ(of_bin->deeds(0).origin(), absl::StrCat("uid:", kBinUser));
  EXPECT_EQ(of_bin->deeds(0).user(), "bin");
  EXPECT_FALSE(of_bin->deeds(0).is_administrator());
}

TEST(QuotasServiceTest, EventsNameWhoDidIt) {
  if (!MayActAsOthers()) return;
  Loopback loopback;
  QuotaUser bin(loopback, kBinUser), administrator(loopback);
  const std::string job = bin.Register()->id();
  ASSERT_TRUE(administrator.End(job).ok());
  ASSERT_TRUE(bin.Register().ok());  // events come after their change
  v1::ListEventsRequest request;
  request.set_kind_prefix("job.");
  const auto events = loopback.Call(loopback.fabric(), &v1::Fabric::Stub::ListEvents, request);
  ASSERT_TRUE(events.ok());
  ASSERT_GE(events->events_size(), 2);
  EXPECT_EQ(events->events(0).actor(), "bin");
  EXPECT_EQ(events->events(1).kind(), "job.ended");
  EXPECT_EQ(events->events(1).actor(), "root");
}

TEST(QuotasServiceTest, AccountsAndTenantsHaveQuotas) {
  if (!MayActAsOthers()) return;
  Loopback loopback;
  QuotaUser bin(loopback, kBinUser), administrator(loopback);
  v1::ImportAccountsRequest import;
  v1::Account& physics = *import.add_accounts();
  physics.set_name("physics");
  physics.set_tenant("science");
  v1::Account& atlas = *import.add_accounts();
  atlas.set_name("atlas");
  atlas.set_parent("physics");
  v1::AccountUser& user = *import.add_users();
  user.set_user("bin");
  user.set_account("atlas");
  user.set_is_default(true);
  EXPECT_EQ(bin.Import(import).code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(administrator.Import(import).ok());
  const auto listed = bin.Accounts();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->accounts(1).tenant(), "science");
  EXPECT_EQ(listed->users(0).account(), "atlas");

  v1::SetQuotaRequest set;
  set.set_tenant("science");
  set.set_name("jobs");
  set.set_limit(1);
  EXPECT_EQ(bin.SetQuota(set).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(administrator.SetQuota(set).ok());
  const auto job = bin.Register();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->account(), "atlas");
  const absl::Status refused = bin.Register().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("tenant:science holds 1"));
  const auto failure = GetDetail<google::rpc::QuotaFailure>(refused);
  ASSERT_TRUE(failure);
  ASSERT_EQ(failure->violations_size(), 2);
  EXPECT_EQ(failure->violations(0).subject(), "tenant:science");
  EXPECT_EQ(failure->violations(1).subject(), "user:bin");

  // Another tenant: what is held already is that one's.
  v1::SetTenantRequest tenant;
  tenant.set_account("physics");
  tenant.set_tenant("arts");
  ASSERT_TRUE(administrator.SetTenant(tenant).ok());
  EXPECT_TRUE(bin.Register().ok());
  v1::GetQuotaRequest get;
  get.set_tenant("arts");
  EXPECT_EQ(LimitOf(bin.Quota(get), "jobs").used(), 2);
  tenant.set_account("none");
  EXPECT_EQ(administrator.SetTenant(tenant).code(), absl::StatusCode::kNotFound);
  // The import says nothing of tenants, which stay; one that is no tree is refused whole.
  import.mutable_accounts(0)->clear_tenant();
  ASSERT_TRUE(administrator.Import(import).ok());
  EXPECT_EQ(bin.Accounts()->accounts(1).tenant(), "arts");
  import.mutable_accounts(0)->set_parent("atlas");
  const absl::Status circle = administrator.Import(import);
  EXPECT_EQ(circle.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(circle.message()), testing::HasSubstr("account physics: it is within"));
}

TEST(QuotasServiceTest, AdministratorsMakeReservations) {
  if (!MayActAsOthers()) return;
  Loopback loopback;
  const auto admin = v1::Admin::NewStub(loopback.Connect());
  const auto of_bin =
      v1::Admin::NewStub(ChannelOf(ConnectAs(kBinUser, loopback.server().addresses()[0])));
  v1::CreateReservationRequest request;
  request.set_tenant("0x0001");
  request.set_entries(1);
  const auto code = [&](v1::Admin::Stub& stub) {
    return loopback.Call(stub, &AdminStub::CreateReservation, request).status();
  };
  EXPECT_EQ(code(*of_bin).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(code(*admin).message()), testing::HasSubstr("until_time: not set"));
  request.mutable_until_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(1)));
  request.add_switches("cow");
  EXPECT_EQ(code(*admin).code(), absl::StatusCode::kInvalidArgument);
  request.clear_switches();
  const auto made = loopback.Call(*admin, &AdminStub::CreateReservation, request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->id(), "1");
  EXPECT_GT(made->switches_size(), 0);
  request.set_entries(1'000'000);
  EXPECT_EQ(code(*admin).code(), absl::StatusCode::kResourceExhausted);
  const auto list =
      loopback.Call(*of_bin, &AdminStub::ListReservations, v1::ListReservationsRequest());
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->reservations_size(), 1);
  EXPECT_EQ(list->reservations(0).tenant(), "0x0001");
  v1::DeleteReservationRequest end;
  end.set_id("1");
  EXPECT_TRUE(loopback.Call(*admin, &AdminStub::DeleteReservation, end).ok());
  EXPECT_EQ(loopback.Call(*admin, &AdminStub::DeleteReservation, end).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace coppice::quotas_service_test
