// coppicectl job register|list|show|keepalive|end: who uses the fabric, and for how long.
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

std::string LeaseText(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_ACTIVE) return "-";
  return absl::StrCat(job.lease_left().seconds(), " of ", job.lease().seconds(), " s");
}

std::string RanksText(const v1::Job& job) {
  if (job.lost_ranks_size() == 0) return absl::StrCat(job.rank_count());
  return absl::StrCat(job.rank_count(), ", ", job.lost_ranks_size(), " lost");
}

template <class Jobs>
void PrintJobs(const Session& session, const Jobs& jobs) {
  PrintRows(session,
            {"JOB", "NAME", "OWNER", "STATE", "RANKS", "TREES", "LEASE LEFT", "PARTITION",
             "ACCOUNT", "SINCE"},
            {7, 8, 9}, jobs, [](const v1::Job& job) {
              return CellsOf(job.id(), job.display_name(), job.owner(), Word(job.state()),
                             RanksText(job), job.tree_count(), LeaseText(job),
                             job.partition() == 0 ? "-" : PartitionText(job.partition()),
                             job.account().empty() ? "-" : job.account(),
                             TimeText(job.create_time()));
            });
}

int ShowJob(Session& session, const absl::StatusOr<v1::Job>& job) {
  return Show(session, job,
              [&](const v1::Job& known) { PrintJobs(session, absl::MakeConstSpan(&known, 1)); });
}

struct RegisterOptions {
  v1::RegisterJobRequest request;
  std::string endpoints_file;
  std::string lease;
};

int Register(Session& session, Connection& connection, RegisterOptions& options) {
  if (!options.endpoints_file.empty()) {
    const auto lines = ReadNodeWords(options.endpoints_file);
    if (!lines.ok()) return Fail(lines.status());
    if (lines->empty()) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          options.endpoints_file, ": names no endpoint; write one a line in rank order")));
    }
    for (const std::string& line : *lines) options.request.add_endpoints(line);
  }
  const absl::Status lease = FillDuration("--lease", options.lease, options.request,
                                          &v1::RegisterJobRequest::mutable_lease);
  if (!lease.ok()) return Fail(lease);
  const auto job = connection.Call(&JobsStub::RegisterJob, options.request);
  if (job.ok()) session.done = absl::StrCat("job ", job->id(), " is registered");
  return ShowJob(session, job);
}

int ShowOne(Session& session, Connection& connection, const std::string& id, bool only_endpoints) {
  const absl::StatusOr<v1::Job> job = CallOn(connection, id, &JobsStub::GetJob);
  if (!only_endpoints || !job.ok()) return ShowJob(session, job);
  for (const std::string& endpoint : job->endpoints()) std::cout << endpoint << "\n";
  return 0;
}

int ListJobs(Session& session, Connection& connection) {
  return Show(session, ListAll(connection, &JobsStub::ListJobs),
              [&](const auto& all) { PrintJobs(session, all.jobs()); });
}

// A job that is gone as the error that other commands answer.
absl::Status StatusOf(const v1::KeepAliveResponse& response) {
  switch (response.state()) {
    case v1::JOB_STATE_ACTIVE:
      return absl::OkStatus();
    case v1::JOB_STATE_ENDED:
    case v1::JOB_STATE_EXPIRED:
      return absl::FailedPreconditionError(absl::StrCat(
          "job ", response.id(), " has ", Word(response.state()), "; register a new job"));
    default:
      return absl::NotFoundError(absl::StrCat("job ", response.id(), " was never registered"));
  }
}

int KeepAlive(Session& session, Connection& connection, const std::string& id) {
  const auto response = connection.KeepAlive(id);
  if (!response.ok()) return Fail(response.status());
  if (session.json) PrintJson(std::cout, *response);
  if (const absl::Status gone = StatusOf(*response); !gone.ok()) return Fail(gone);
  if (!session.json) {
    std::cout << "job " << response->id() << " is active, lease " << response->lease().seconds()
              << " s\n";
  }
  return 0;
}

int End(Session& session, Connection& connection, const std::string& id) {
  return Show(session, CallOn(connection, id, &JobsStub::EndJob), [&](const auto& ended) {
    std::cout << "job " << id << " ended, " << Counted(ended.released_trees(), "tree")
              << " released\n";
  });
}

struct AuditOptions {
  v1::ListDeedsRequest request;
  std::string since;
};

int Audit(Session& session, Connection& connection, AuditOptions& options) {
  absl::Duration ago;
  if (!options.since.empty() && absl::ParseDuration(options.since, &ago)) {
    options.request.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - ago));
  }
  const auto all = ListAll(connection, &AdminStub::ListDeeds, options.request);
  return Show(session, all, [&](const v1::ListDeedsResponse& list) {
    PrintRows(session, {"TIME", "CALLER", "FOR", "FROM", "METHOD", "OBJECT", "OUTCOME", "TIMES"},
              {2, 3, 6, 7}, list.deeds(), [&](const v1::Deed& deed) {
                const bool is_all = session.is_wide || deed.outcome() == "OK";
                const std::string since =
                    deed.count() == 1 ? "" : absl::StrCat(" since ", TimeText(deed.first_time()));
                return CellsOf(
                    TimeText(deed.time()), deed.caller(), deed.user(), deed.origin(), deed.method(),
                    is_all ? deed.object() : absl::StrCat(deed.object(), ", ", deed.outcome()),
                    deed.outcome(), absl::StrCat(deed.count(), since));
              });
  });
}

}  // namespace

void AddJobCommands(CLI::App& app, Session& session) {
  CLI::App* job = app.add_subcommand("job", "Register, list and end jobs");
  job->require_subcommand(1);

  auto [add, options] = AddCommand<RegisterOptions>(
      *job, session, "register", "Register a job with its endpoints in rank order", Register);
  v1::RegisterJobRequest& request = options.request;
  CLI::Option_group* const which = add->add_option_group("endpoints", "one of them is needed");
  which->require_option(1);
  which->add_option(
      "--endpoints,--nodes", options.endpoints_file,
      std::string("Endpoints in rank order, hosts, host/port or port GUIDs, ") + kNodeWordsHelp);
  AddField(*which, "--all", request, &v1::RegisterJobRequest::set_all_endpoints,
           "All endpoints of the fabric, by host name and port");
  add->add_option("--name", *request.mutable_display_name(), "What to call it");
  add->add_option("--request-id", *request.mutable_request_id(),
                  "Makes a retry harmless: the same id registers once");
  add->add_option("--lease", options.lease,
                  "Term of the lease: 90s, 10m, 24h; default the daemon's, as a rule 60s");
  add->add_option("--account", *request.mutable_account(),
                  "The account that pays; default: the user's own (coppicectl account list)");
  AddPartitionOption(*add, "the one that all endpoints share",
                     [&request](uint32_t partition) { request.set_partition(partition); });
  AddWideOption(*AddCommand(*job, session, "list", "Active jobs", ListJobs), session);
  const auto with_id = [&](const char* name, const char* help, auto action) {
    return AddCommandOn(*job, session, name, help, "JOB", "Number of the job", action);
  };
  auto only_endpoints = std::make_shared<bool>(false);
  CLI::App* show = with_id("show", "One job",
                           [only_endpoints](Session& s, Connection& c, const std::string& id) {
                             return ShowOne(s, c, id, *only_endpoints);
                           });
  AddWideOption(*show, session);
  show->add_flag("--endpoints", *only_endpoints,
                 "Its endpoints alone, one a line in rank order, as register takes them")
      ->excludes("--json")
      ->excludes("--output");
  with_id("keepalive", "Renew the lease once", KeepAlive);
  with_id("end", "End the job and release its trees", End);
}

// coppicectl audit: what was done and denied.

void AddAuditCommand(CLI::App& app, Session& session) {
  auto [command, options] = AddCommand<AuditOptions>(
      app, session, "audit",
      "Administrators: what was changed, by whom and from where, and what was denied", Audit);
  AddWideOption(*command, session);
  v1::ListDeedsRequest& request = options.request;
  command->add_option("--user", *request.mutable_user(), "Only what this user called, or was for");
  command->add_option("--method", *request.mutable_method_prefix(),
                      "Only methods that start so: Jobs. or Trees.CreateTree");
  command->add_option("--since", options.since, "Only what was done so long ago at most: 90s, 12h")
      ->check([](const std::string& text) {
        absl::Duration duration;
        const bool is_good = absl::ParseDuration(text, &duration) &&
                             duration > absl::ZeroDuration() && duration < absl::InfiniteDuration();
        return is_good ? std::string() : "\"" + text + "\" is no duration such as 90s, 5m or 12h";
      });
  AddField(*command, "--denied", request, &v1::ListDeedsRequest::set_only_denials,
           "Only what was denied");
}

}  // namespace coppice
