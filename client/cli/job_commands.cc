// coppicectl job register|list|show|keepalive|end: who uses the fabric, and for how long.
#include <fstream>
#include <iostream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using JobsStub = v1::Jobs::StubInterface;

std::string LeaseText(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_ACTIVE) return "-";
  return absl::StrCat(job.lease_left().seconds(), " of ", job.lease().seconds(), " s");
}

std::string RanksText(const v1::Job& job) {
  if (job.lost_ranks_size() == 0) return absl::StrCat(job.rank_count());
  return absl::StrCat(job.rank_count(), ", ", job.lost_ranks_size(), " lost");
}

void PrintJobs(const google::protobuf::RepeatedPtrField<v1::Job>& jobs) {
  Table table({"JOB", "NAME", "OWNER", "STATE", "RANKS", "TREES", "LEASE LEFT", "SINCE"});
  for (const v1::Job& job : jobs) {
    table.Add({job.id(), job.display_name(), job.owner(), Word(job.state()), RanksText(job),
               absl::StrCat(job.tree_count()), LeaseText(job), TimeText(job.create_time())});
  }
  table.Print(std::cout);
}

int ShowJob(Session& session, absl::StatusOr<v1::Job> job) {
  if (!job.ok()) return Fail(job.status());
  if (session.json) {
    PrintJson(std::cout, *job);
    return 0;
  }
  google::protobuf::RepeatedPtrField<v1::Job> one;
  *one.Add() = *std::move(job);
  PrintJobs(one);
  return 0;
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
  if (!options.lease.empty()) {
    absl::Duration lease;
    if (!absl::ParseDuration(options.lease, &lease) || lease <= absl::ZeroDuration()) {
      return Fail(absl::InvalidArgumentError(
          absl::StrCat("--lease ", options.lease, ": write a duration such as 90s, 10m or 24h")));
    }
    options.request.mutable_lease()->set_seconds(absl::ToInt64Seconds(lease));
    options.request.mutable_lease()->set_nanos(static_cast<int32_t>(
        (lease - absl::Floor(lease, absl::Seconds(1))) / absl::Nanoseconds(1)));
  }
  return ShowJob(session,
                 connection.Call(connection.jobs(), &JobsStub::RegisterJob, options.request));
}

int Show(Session& session, Connection& connection, const std::string& id, bool only_endpoints) {
  v1::GetJobRequest request;
  request.set_id(id);
  absl::StatusOr<v1::Job> job = connection.Call(connection.jobs(), &JobsStub::GetJob, request);
  if (!only_endpoints || !job.ok()) return ShowJob(session, std::move(job));
  for (const std::string& endpoint : job->endpoints()) std::cout << endpoint << "\n";
  return 0;
}

int ListJobs(Session& session, Connection& connection) {
  const auto all =
      ListAll(connection, connection.jobs(), &JobsStub::ListJobs, v1::ListJobsRequest());
  if (!all.ok()) return Fail(all.status());
  if (session.json) return PrintJson(std::cout, *all), 0;
  PrintJobs(all->jobs());
  return 0;
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
  v1::EndJobRequest request;
  request.set_id(id);
  const auto response = connection.Call(connection.jobs(), &JobsStub::EndJob, request);
  if (!response.ok()) return Fail(response.status());
  if (session.json) return PrintJson(std::cout, *response), 0;
  std::cout << "job " << id << " ended, " << Counted(response->released_trees(), "tree")
            << " released\n";
  return 0;
}

}  // namespace

void AddJobCommands(CLI::App& app, Session& session) {
  CLI::App* job = app.add_subcommand("job", "Register, list and end jobs");
  job->require_subcommand(1);

  CLI::App* add =
      job->add_subcommand("register", "Register a job with its endpoints in rank order");
  AddJsonFlag(*add, session);
  auto options = std::make_shared<RegisterOptions>();
  CLI::Option_group* const which = add->add_option_group("Endpoints", "One of them is needed");
  which->require_option(1);
  which->add_option(
      "--endpoints", options->endpoints_file,
      std::string("Endpoints in rank order, hosts, host/port or port GUIDs, ") + kNodeWordsHelp);
  which->add_flag_callback(
      "--all", [options] { options->request.set_all_endpoints(true); },
      "All endpoints of the fabric, by host name and port");
  add->add_option("--name", *options->request.mutable_display_name(), "What to call it");
  add->add_option("--request-id", *options->request.mutable_request_id(),
                  "Makes a retry harmless: the same id registers once");
  add->add_option("--lease", options->lease, "Term of the lease: 90s, 10m, 24h");
  add->callback([&session, options] {
    session.run = [&session, options](Connection& c) { return Register(session, c, *options); };
  });

  CLI::App* list = job->add_subcommand("list", "Active jobs");
  AddJsonFlag(*list, session);
  list->callback(
      [&session] { session.run = [&session](Connection& c) { return ListJobs(session, c); }; });

  const auto with_id = [&](const char* name, const char* what, auto action) {
    CLI::App* command = job->add_subcommand(name, what);
    AddJsonFlag(*command, session);
    auto id = std::make_shared<std::string>();
    command->add_option("JOB", *id, "Number of the job")->required();
    command->callback([&session, id, action] {
      session.run = [&session, id, action](Connection& c) { return action(session, c, *id); };
    });
    return command;
  };
  auto only_endpoints = std::make_shared<bool>(false);
  with_id("show", "One job",
          [only_endpoints](Session& s, Connection& c, const std::string& id) {
            return Show(s, c, id, *only_endpoints);
          })
      ->add_flag("--endpoints", *only_endpoints,
                 "Its endpoints alone, one a line in rank order, as register takes them");
  with_id("keepalive", "Renew the lease once", KeepAlive);
  with_id("end", "End the job and release its trees", End);
}

}  // namespace coppice
