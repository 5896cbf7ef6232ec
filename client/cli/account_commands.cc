// coppicectl quota: what users, accounts and tenants may have and have.
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "proto/text/byte_size.h"

namespace coppice {
namespace {

struct QuotaLine {
  std::string user, account, tenant, set;
  bool all = false;
};

// Into the oneof `holder` of a message; a user, unless another is named.
template <class Message>
void SetHolder(const QuotaLine& line, Message& message) {
  if (!line.account.empty()) {
    message.set_account(line.account);
  } else if (!line.tenant.empty()) {
    message.set_tenant(line.tenant);
  } else {
    message.set_user(line.user);
  }
}

std::string HolderText(const v1::HolderQuota& quota) {
  if (quota.has_account()) return "account " + quota.account();
  if (quota.has_tenant()) return "tenant " + quota.tenant();
  return "user " + quota.user();
}

std::string OrNone(bool has, int64_t value) { return has ? absl::StrCat(value) : "-"; }

void AddRows(const v1::HolderQuota& quota, bool with_holder, Table& table) {
  for (const v1::QuotaLimit& limit : quota.limits()) {
    std::vector<std::string> row = {limit.name(),
                                    OrNone(limit.has_used(), limit.used()),
                                    OrNone(limit.has_limit(), limit.limit()),
                                    limit.is_own()     ? "own"
                                    : quota.has_user() ? "all users'"
                                                       : "-",
                                    OrNone(limit.has_all_used(), limit.all_used()),
                                    OrNone(limit.has_for_users(), limit.for_users()),
                                    OrNone(limit.has_whole(), limit.whole())};
    if (with_holder) row.insert(row.begin(), HolderText(quota));
    table.Add(std::move(row));
  }
}

std::vector<std::string> Heading() {
  return {"LIMIT", "USED", "MOST", "WHOSE", "USED BY ALL", "MOST OF USERS", "THERE ARE"};
}

int ShowQuota(Session& session, const absl::StatusOr<v1::HolderQuota>& quota) {
  return Show(session, quota, [&](const v1::HolderQuota& of) {
    std::string heading = HolderText(of);
    heading.front() = absl::ascii_toupper(static_cast<unsigned char>(heading.front()));
    std::cout << heading << "\n";
    Table table(Heading(), {6}, session.is_wide);
    AddRows(of, /*with_holder=*/false, table);
    table.Print(std::cout);
  });
}

int ShowAll(Session& session, Connection& connection) {
  return Show(session, connection.Call(&AdminStub::ListQuotas), [&](const auto& list) {
    std::vector<std::string> heading = Heading();
    heading.insert(heading.begin(), "HOLDER");
    Table table(std::move(heading), {5, 6, 7}, session.is_wide);
    for (const v1::HolderQuota& quota : list.holders()) AddRows(quota, /*with_holder=*/true, table);
    table.Print(std::cout);
  });
}

// NAME=NUMBER, NAME=none, NAME=configured. Returns what is wrong; empty: nothing.
std::string ReadSetting(const std::string& text, v1::SetQuotaRequest& request) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return "give LIMIT=NUMBER, LIMIT=none or LIMIT=configured";
  request.set_name(text.substr(0, equals));
  const std::string value = text.substr(equals + 1);
  if (value == "none") {
    request.set_unlimited(true);
  } else if (value == "configured") {
    request.set_as_configured(true);
  } else if (const auto number = ParseByteSize(value, INT64_MAX)) {
    request.set_limit(static_cast<int64_t>(*number));
  } else {
    return "\"" + value + "\" is neither a number from 0 on, nor none, nor configured";
  }
  return "";
}

int Quota(Session& session, Connection& connection, const QuotaLine& line) {
  if (line.all) return ShowAll(session, connection);
  const bool names_one = !line.user.empty() || !line.account.empty() || !line.tenant.empty();
  if (!line.set.empty() && !names_one) {
    return Fail(
        absl::InvalidArgumentError("--set: name a user, --account or --tenant, whose limit it is"));
  }
  if (!line.set.empty()) {
    v1::SetQuotaRequest request;
    (void)ReadSetting(line.set, request);  // checked when the line was read
    SetHolder(line, request);
    return ShowQuota(session, connection.Call(&AdminStub::SetQuota, request));
  }
  v1::GetQuotaRequest request;
  SetHolder(line, request);
  return ShowQuota(session, connection.Call(&AdminStub::GetQuota, request));
}

}  // namespace

void AddQuotaCommand(CLI::App& app, Session& session) {
  auto [command, line] = AddCommand<QuotaLine>(
      app, session, "quota",
      "What a user, an account or a tenant may have at most, and has; you, if none "
      "is named",
      Quota);
  AddWideOption(*command, session);
  CLI::Option* user = command->add_option("user", line.user, "As jobs name their owner");
  CLI::Option* account =
      command->add_option("--account", line.account, "An account, with those below it")
          ->excludes(user);
  CLI::Option* tenant =
      command
          ->add_option("--tenant", line.tenant, "A tenant: 0x0001, as a partition, or another name")
          ->excludes(user)
          ->excludes(account);
  command
      ->add_flag("--all", line.all,
                 "Administrators: of all who hold something or have limits of their own")
      ->excludes(user)
      ->excludes(account)
      ->excludes(tenant);
  command
      ->add_option("--set", line.set,
                   "Administrators, of a user, an account or a tenant: LIMIT=NUMBER, such as "
                   "pattern_bytes=1G, LIMIT=none or, to take back what was set, LIMIT=configured")
      ->check([](const std::string& text) {
        v1::SetQuotaRequest request;
        return ReadSetting(text, request);
      });
}

}  // namespace coppice
