// coppicectl account list|import|set-tenant, and quota: who pays, and how much he may have.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/associations.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "proto/text/byte_size.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// --- account ---

// Accounts as a tree: each below the one that it is within.
class AccountTree {
 public:
  explicit AccountTree(const v1::ListAccountsResponse& list) {
    for (const v1::Account& account : list.accounts()) below_[account.parent()].push_back(&account);
    for (const v1::AccountUser& user : list.users()) {
      users_[user.account()].push_back(absl::StrCat(user.user(), user.is_default() ? "*" : ""));
    }
  }

  void AddRows(Table& table) const { AddBelow("", 0, "-", table); }

 private:
  // `tenant`: of the account above; in brackets, where that one's counts here. The daemon lets no
  // tree be deeper than some accounts.
  void AddBelow(const std::string& parent, size_t depth, const std::string& tenant,
                Table& table) const {
    const auto found = below_.find(parent);
    if (found == below_.end()) return;
    for (const v1::Account* account : found->second) {
      const bool is_own = !account->tenant().empty();
      const std::string effective = is_own ? account->tenant() : tenant;
      const auto users = users_.find(account->name());
      table.Add({std::string(2 * depth, ' ') + account->name(),
                 is_own || effective == "-" ? effective : absl::StrCat("(", effective, ")"),
                 users == users_.end() ? "" : absl::StrJoin(users->second, ", ")});
      AddBelow(account->name(), depth + 1, effective, table);
    }
  }

  std::map<std::string, std::vector<const v1::Account*>> below_;  // by parent
  std::map<std::string, std::vector<std::string>> users_;         // by account
};

int ListAccounts(Session& session, Connection& connection) {
  return Show(session, connection.Call(&AdminStub::ListAccounts), [&](const auto& list) {
    Table table({"ACCOUNT", "TENANT", "USERS, * BY DEFAULT"}, {}, session.is_wide);
    AccountTree(list).AddRows(table);
    table.Print(std::cout);
  });
}

// All but the tenants, which an import says nothing of.
auto KeyOf(const v1::Account& account) { return std::tie(account.name(), account.parent()); }
auto KeyOf(const v1::AccountUser& user) {
  return std::make_tuple(user.user(), user.account(), user.is_default());
}
auto NameOf(const v1::Account& account) { return account.name(); }
auto NameOf(const v1::AccountUser& user) { return std::make_pair(user.user(), user.account()); }

// Both sorted.
template <class Rows>
bool AreSame(const Rows& a, const Rows& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return KeyOf(x) == KeyOf(y); });
}

// Whether more than half of `present` are none of `next`; both sorted.
template <class Rows>
bool LosesMost(const Rows& present, const Rows& next) {
  const auto gone = std::count_if(present.begin(), present.end(), [&](const auto& row) {
    return !std::binary_search(next.begin(), next.end(), row,
                               [](const auto& x, const auto& y) { return NameOf(x) < NameOf(y); });
  });
  return 2 * gone > present.size();
}

struct AccountImportOptions {
  std::string file, cluster;
  bool replace = false;
};

template <class Accounts>
std::string CountsOf(const Accounts& of) {
  return absl::StrCat(Counted(static_cast<uint64_t>(of.accounts_size()), "account"), ", ",
                      Counted(static_cast<uint64_t>(of.users_size()), "user"), " in them");
}

int ImportAccounts(Session& session, Connection& connection, const AccountImportOptions& options) {
  const absl::StatusOr<std::string> text = ReadTextFile(options.file);
  if (!text.ok()) return Fail(text.status());
  const std::string name = options.file == "-" ? "standard input" : options.file;
  const auto request = ParseAssociations(*text, name, options.cluster);
  if (!request.ok()) return Fail(request.status());
  const auto present = connection.Call(&AdminStub::ListAccounts);
  if (!present.ok()) return Fail(present.status());
  const bool are_same = AreSame(present->accounts(), request->accounts()) &&
                        AreSame(present->users(), request->users());
  if (!options.replace && (LosesMost(present->accounts(), request->accounts()) ||
                           LosesMost(present->users(), request->users()))) {
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        name, ": lacks more than half of the accounts or of their users that there are (",
        CountsOf(*present), "; it has ", CountsOf(*request),
        "): it may have been cut; if it is right, import it with --replace")));
  }
  absl::StatusOr<v1::ImportAccountsResponse> answer = v1::ImportAccountsResponse();
  if (!are_same) answer = connection.Call(&AdminStub::ImportAccounts, *request);
  if (answer.ok()) session.done = "the accounts are imported";
  return Show(session, answer, [&](const auto&) {
    std::cout << CountsOf(*request) << ", "
              << (are_same ? "as before" : "where there were " + CountsOf(*present)) << "\n";
  });
}

int SetTenant(Session& session, Connection& connection, const v1::SetTenantRequest& request) {
  const auto answer = connection.Call(&AdminStub::SetTenant, request);
  const std::string now =
      request.tenant().empty() ? "has no tenant of its own" : "is of tenant " + request.tenant();
  if (answer.ok()) session.done = absl::StrCat("account ", request.account(), " ", now);
  return Show(session, answer, [&](const auto&) { std::cout << session.done << "\n"; });
}

// --- quota ---

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

void AddAccountCommands(CLI::App& app, Session& session) {
  CLI::App* account =
      app.add_subcommand("account", "Who pays: accounts, their users and their tenants");
  account->require_subcommand(1);

  AddWideOption(*AddCommand(*account, session, "list",
                            "Accounts, each below the one that it is within; a tenant in brackets "
                            "is that of an account above",
                            ListAccounts),
                session);
  auto [import, options] = AddCommand<AccountImportOptions>(
      *account, session, "import",
      "Administrators: put the accounts and users of Slurm's associations in place of all present "
      "ones; tenants stay",
      ImportAccounts);
  import
      ->add_option(
          "FILE", options.file,
          "What \"sacctmgr -P show assoc format=cluster,account,user,parentname\" prints, "
          "and behind it, for users of several accounts, \"sacctmgr -P show user withassoc "
          "format=cluster,user,defaultaccount\"; - for stdin")
      ->required();
  import->add_option("--cluster", options.cluster,
                     "Slurm's cluster, if the file has accounts of several");
  import->add_flag("--replace", options.replace,
                   "Also if more than half of the accounts, or of their users, go by it");
  auto [set, request] = AddCommand<v1::SetTenantRequest>(
      *account, session, "set-tenant",
      "Administrators: whose an account is, with those below it that have no tenant of their own",
      SetTenant);
  v1::SetTenantRequest& message = request;
  set->add_option("ACCOUNT", *message.mutable_account(), "As account list names it")->required();
  set->add_option_function<std::string>(
         "TENANT",
         [&message](const std::string& tenant) {
           message.set_tenant(tenant == "none" ? "" : tenant);
         },
         "0x0001, as a partition, in which its jobs are then; another name; or none: that of the "
         "account above, or of each job's partition")
      ->required();
}

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
