// coppicectl quota and audit: what users may have and have, and what was done and denied.
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using AdminStub = v1::Admin::StubInterface;

struct QuotaLine {
  std::string user, set;
  bool all = false;
};

std::string OrNone(bool has, int64_t value) { return has ? absl::StrCat(value) : "-"; }

void AddRows(const v1::UserQuota& quota, bool with_user, Table& table) {
  for (const v1::QuotaLimit& limit : quota.limits()) {
    const bool is_counted = limit.name() != "kept_bytes" && limit.name() != "lease_seconds";
    std::vector<std::string> row = {limit.name(),
                                    OrNone(is_counted, limit.used()),
                                    OrNone(limit.has_limit(), limit.limit()),
                                    limit.is_own() ? "own" : "all users'",
                                    OrNone(is_counted, limit.all_used()),
                                    OrNone(limit.has_for_users(), limit.for_users()),
                                    OrNone(limit.has_whole(), limit.whole())};
    if (with_user) row.insert(row.begin(), quota.user());
    table.Add(std::move(row));
  }
}

std::vector<std::string> Heading() {
  return {"LIMIT", "USED", "MOST", "WHOSE", "USED BY ALL", "MOST OF USERS", "THERE ARE"};
}

int ShowOne(Session& session, const absl::StatusOr<v1::UserQuota>& quota) {
  if (!quota.ok()) return Fail(quota.status());
  if (session.json) return PrintJson(std::cout, *quota), 0;
  std::cout << "User " << quota->user() << "\n";
  Table table(Heading());
  AddRows(*quota, /*with_user=*/false, table);
  table.Print(std::cout);
  return 0;
}

int ShowAll(Session& session, Connection& connection) {
  const auto list =
      connection.Call(connection.admin(), &AdminStub::ListQuotas, v1::ListQuotasRequest());
  if (!list.ok()) return Fail(list.status());
  if (session.json) return PrintJson(std::cout, *list), 0;
  std::vector<std::string> heading = Heading();
  heading.insert(heading.begin(), "USER");
  Table table(std::move(heading));
  for (const v1::UserQuota& quota : list->users()) AddRows(quota, /*with_user=*/true, table);
  table.Print(std::cout);
  return 0;
}

// NAME=NUMBER, NAME=none, NAME=configured. Returns what is wrong; empty: nothing.
std::string ReadSetting(const std::string& text, v1::SetQuotaRequest& request) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return "give LIMIT=NUMBER, LIMIT=none or LIMIT=configured";
  request.set_name(text.substr(0, equals));
  const std::string value = text.substr(equals + 1);
  int64_t number = 0;
  if (value == "none") {
    request.set_unlimited(true);
  } else if (value == "configured") {
    request.set_as_configured(true);
  } else if (absl::SimpleAtoi(value, &number) && number >= 0) {
    request.set_limit(number);
  } else {
    return "\"" + value + "\" is neither a number from 0 on, nor none, nor configured";
  }
  return "";
}

int Quota(Session& session, Connection& connection, const QuotaLine& line) {
  if (line.all) return ShowAll(session, connection);
  if (!line.set.empty()) {
    v1::SetQuotaRequest request;
    (void)ReadSetting(line.set, request);  // checked when the line was read
    request.set_user(line.user);
    return ShowOne(session, connection.Call(connection.admin(), &AdminStub::SetQuota, request));
  }
  v1::GetQuotaRequest request;
  request.set_user(line.user);
  return ShowOne(session, connection.Call(connection.admin(), &AdminStub::GetQuota, request));
}

int Audit(Session& session, Connection& connection, const v1::ListDeedsRequest& request) {
  const auto all = ListAll(connection, connection.admin(), &AdminStub::ListDeeds, request);
  if (!all.ok()) return Fail(all.status());
  if (session.json) return PrintJson(std::cout, *all), 0;
  Table table({"TIME", "CALLER", "FOR", "FROM", "METHOD", "OBJECT", "OUTCOME", "TIMES"});
  for (const v1::Deed& deed : all->deeds()) {
    const std::string since =
        deed.count() == 1 ? "" : absl::StrCat(" since ", TimeText(deed.first_time()));
    table.Add({TimeText(deed.time()), deed.caller(), deed.user(), deed.origin(), deed.method(),
               deed.object(), deed.outcome(), absl::StrCat(deed.count(), since)});
  }
  table.Print(std::cout);
  return 0;
}

}  // namespace

void AddQuotaCommand(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("quota", "What a user may have at most, and has; yours if none is named");
  AddJsonFlag(*command, session);
  auto line = std::make_shared<QuotaLine>();
  CLI::Option* user = command->add_option("user", line->user, "As jobs name their owner");
  CLI::Option* all = command
                         ->add_flag("--all", line->all,
                                    "Administrators: of all who hold something or have limits "
                                    "of their own")
                         ->excludes(user);
  command
      ->add_option("--set", line->set,
                   "Administrators: LIMIT=NUMBER, LIMIT=none or, to take back what was set, "
                   "LIMIT=configured")
      ->check([](const std::string& text) {
        v1::SetQuotaRequest request;
        return ReadSetting(text, request);
      })
      ->needs(user)
      ->excludes(all);
  command->callback([&session, line] {
    session.run = [&session, line](Connection& c) { return Quota(session, c, *line); };
  });
}

void AddAuditCommand(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "audit", "Administrators: what was changed, by whom and from where, and what was denied");
  AddJsonFlag(*command, session);
  auto request = std::make_shared<v1::ListDeedsRequest>();
  auto since = std::make_shared<std::string>();
  command->add_option("--user", *request->mutable_user(), "Only what this user called, or was for");
  command->add_option("--method", *request->mutable_method_prefix(),
                      "Only methods that start so: Jobs. or Trees.CreateTree");
  command->add_option("--since", *since, "Only what was done so long ago at most: 90s, 12h")
      ->check([](const std::string& text) {
        absl::Duration duration;
        const bool is_good = absl::ParseDuration(text, &duration) &&
                             duration > absl::ZeroDuration() && duration < absl::InfiniteDuration();
        return is_good ? std::string() : "\"" + text + "\" is no duration such as 90s, 5m or 12h";
      });
  auto only_denials = std::make_shared<bool>(false);
  command->add_flag("--denied", *only_denials, "Only what was denied");
  command->callback([&session, request, since, only_denials] {
    session.run = [&session, request, since, only_denials](Connection& c) {
      request->set_only_denials(*only_denials);
      absl::Duration ago;
      if (!since->empty() && absl::ParseDuration(*since, &ago)) {
        request->mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - ago));
      }
      return Audit(session, c, *request);
    };
  });
}

}  // namespace coppice
