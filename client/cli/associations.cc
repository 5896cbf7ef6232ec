// The tables are read first, as rows of text with their lines; then those of the cluster become
// accounts and users, each looked up among the others.
#include "client/cli/associations.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr absl::string_view kPrintAssociations =
    "sacctmgr -P show assoc format=cluster,account,user,parentname";
constexpr absl::string_view kPrintDefaults =
    "sacctmgr -P show user withassoc format=cluster,user,defaultaccount";

enum AssociationColumn : size_t { kCluster, kAccount, kUser, kParent, kDefault, kColumns };

// As sacctmgr of Slurm 22.05 has them, and beside them as other releases and its own format= do.
struct ColumnName {
  AssociationColumn column;
  absl::string_view name;
};
constexpr ColumnName kColumnNames[] = {
    {kCluster, "Cluster"},        {kAccount, "Account"}, {kUser, "User"},
    {kParent, "ParentName"},      {kParent, "Par Name"}, {kDefault, "Def Acct"},
    {kDefault, "DefaultAccount"},
};

// A row of either kind of table; what its table has no column for is empty.
struct AssociationRow {
  uint32_t line = 0;
  std::array<absl::string_view, kColumns> cells;
  absl::string_view operator[](AssociationColumn column) const { return cells[column]; }
};

// Which cell of a row is what.
class AssociationHeading {
 public:
  // Nothing: the line is none. Two columns make one, as a row may have an account named "User".
  static std::optional<AssociationHeading> Read(const std::vector<absl::string_view>& cells) {
    AssociationHeading heading;
    heading.width_ = cells.size();
    size_t found = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      for (const ColumnName& known : kColumnNames) {
        if (cells[i] != known.name || heading.at_[known.column]) continue;
        heading.at_[known.column] = i;
        ++found;
      }
    }
    if (found < 2) return std::nullopt;
    return heading;
  }

  bool Has(AssociationColumn column) const { return at_[column].has_value(); }
  bool IsOfDefaults() const { return Has(kDefault); }
  size_t width() const { return width_; }

  // A name of the first column that such a table needs and this lacks; empty: none.
  absl::string_view Missing() const {
    for (const ColumnName& known : kColumnNames) {
      const bool is_needed = IsOfDefaults() ? known.column == kUser : known.column != kDefault;
      if (is_needed && !Has(known.column)) return known.name;
    }
    return "";
  }

  AssociationRow Row(uint32_t line, const std::vector<absl::string_view>& cells) const {
    AssociationRow row{line, {}};
    for (size_t column = 0; column < kColumns; ++column) {
      if (at_[column]) row.cells[column] = cells[*at_[column]];
    }
    return row;
  }

 private:
  size_t width_ = 0;  // cells of a row
  std::array<std::optional<size_t>, kColumns> at_;
};

class AssociationReader {
 public:
  explicit AssociationReader(absl::string_view file) : file_(file) {}

  // All tables of the text.
  absl::Status Read(absl::string_view text) {
    if (!text.empty() && text.back() != '\n') {
      return absl::InvalidArgumentError(
          absl::StrCat(file_,
                       ": its last line has no end, so it may have been cut; print it anew, "
                       "or end the line"));
    }
    std::optional<AssociationHeading> heading;
    for (const TextLine& line : LinesOf(text)) {
      if (const std::string fault = TextFault(line.text); !fault.empty()) {
        return Error(line.number, fault);
      }
      std::vector<absl::string_view> cells = absl::StrSplit(line.text, '|');
      for (absl::string_view& cell : cells) cell = absl::StripAsciiWhitespace(cell);
      if (auto next = AssociationHeading::Read(cells)) {
        if (!next->Missing().empty()) return Lacks(line.number, *next);
        heading = std::move(next);
        continue;
      }
      if (!heading) {
        return Error(line.number, absl::StrCat("no heading such as Cluster|Account|User|ParentName "
                                               "comes before it; print it with ",
                                               kPrintAssociations));
      }
      if (cells.size() != heading->width()) {
        return Error(line.number, absl::StrCat(cells.size(), " columns, and ", heading->width(),
                                               " in the heading"));
      }
      (heading->IsOfDefaults() ? defaults_ : associations_)
          .push_back(heading->Row(line.number, cells));
    }
    return absl::OkStatus();
  }

  // Chooses the cluster whose rows count.
  absl::Status Choose(absl::string_view cluster) {
    std::set<absl::string_view> clusters;
    for (const AssociationRow& row : associations_) clusters.insert(row[kCluster]);
    if (clusters.empty()) {
      return absl::NotFoundError(
          absl::StrCat(file_, ": no account is in it; print them with ", kPrintAssociations));
    }
    const std::string names = absl::StrJoin(clusters, ", ");
    if (cluster.empty() && clusters.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": accounts of several clusters; choose one by --cluster: ", names));
    }
    cluster_ = cluster.empty() ? *clusters.begin() : cluster;
    if (clusters.count(cluster_) == 0) {
      return absl::NotFoundError(
          absl::StrCat(file_, ": no account of cluster ", cluster_, " is in it, but of ", names));
    }
    has_others_ = clusters.size() > 1;
    return absl::OkStatus();
  }

  absl::StatusOr<v1::ImportAccountsRequest> Build() {
    for (const auto step : {&AssociationReader::AddAccounts, &AssociationReader::AddUsers,
                            &AssociationReader::AddDefaults}) {
      if (const absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return Request();
  }

 private:
  struct UserAccounts {
    std::set<absl::string_view> in;
    absl::string_view preset;  // the default one; empty: none was named
  };

  absl::Status Error(uint32_t line, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ":", line, ": ", what));
  }

  absl::Status Lacks(uint32_t line, const AssociationHeading& heading) const {
    return Error(line, absl::StrCat("no column ", heading.Missing(), "; print it with ",
                                    heading.IsOfDefaults() ? kPrintDefaults : kPrintAssociations));
  }

  absl::Status AddAccounts() {
    for (const AssociationRow& row : associations_) {
      if (row[kCluster] != cluster_ || !row[kUser].empty()) continue;
      const absl::string_view account = row[kAccount];
      if (account.empty()) return Error(row.line, "neither an account nor a user");
      const auto [found, is_new] = accounts_.try_emplace(account, row);
      if (!is_new && found->second[kParent] != row[kParent]) {
        return Error(row.line, absl::StrCat("account ", account, " is within ", row[kParent],
                                            ", and in line ", found->second.line, " within ",
                                            found->second[kParent]));
      }
    }
    for (const auto& [name, row] : accounts_) {
      if (!row[kParent].empty() && accounts_.count(row[kParent]) == 0) {
        return Error(row.line,
                     absl::StrCat("account ", name, " is within ", row[kParent], NotAmongThem()));
      }
    }
    return absl::OkStatus();
  }

  std::string NotAmongThem() const {
    return absl::StrCat(", which is no account of cluster ", cluster_,
                        " here; print all associations, to the end");
  }

  // Who is in an account by several partitions of Slurm's has a row for each.
  absl::Status AddUsers() {
    for (const AssociationRow& row : associations_) {
      if (row[kCluster] != cluster_ || row[kUser].empty()) continue;
      if (accounts_.count(row[kAccount]) == 0) {
        return Error(row.line,
                     absl::StrCat("user ", row[kUser], " is in ", row[kAccount], NotAmongThem()));
      }
      users_[row[kUser]].in.insert(row[kAccount]);
    }
    return absl::OkStatus();
  }

  // A table without clusters has, of each user, the default account of one of them, which it does
  // not tell. sacctmgr names users of other clusters, too, with no cluster or no account.
  absl::Status AddDefaults() {
    for (const AssociationRow& row : defaults_) {
      const absl::string_view account = row[kDefault], cluster = row[kCluster];
      if (account.empty() || (!cluster.empty() && cluster != cluster_)) continue;
      const auto user = users_.find(row[kUser]);
      if (cluster.empty() && user == users_.end()) continue;
      if (cluster.empty() && has_others_) {
        return Error(row.line, absl::StrCat("which cluster's default account of ", row[kUser],
                                            " it is; print it with ", kPrintDefaults));
      }
      if (user == users_.end() || user->second.in.count(account) == 0) {
        return Error(row.line,
                     absl::StrCat("user ", row[kUser], " has the default account ", account,
                                  ", and no row has him in it; print all associations"));
      }
      absl::string_view& preset = user->second.preset;
      if (!preset.empty() && preset != account) {
        return Error(row.line, absl::StrCat("user ", row[kUser], " has the default account ",
                                            account, ", and above ", preset));
      }
      preset = account;
    }
    return absl::OkStatus();
  }

  v1::ImportAccountsRequest Request() const {
    v1::ImportAccountsRequest request;
    for (const auto& [name, row] : accounts_) {
      v1::Account& account = *request.add_accounts();
      account.set_name(std::string(name));
      account.set_parent(std::string(row[kParent]));
    }
    for (const auto& [name, of] : users_) {
      for (const absl::string_view account : of.in) {
        v1::AccountUser& user = *request.add_users();
        user.set_user(std::string(name));
        user.set_account(std::string(account));
        user.set_is_default(of.in.size() == 1 || account == of.preset);
      }
    }
    return request;
  }

  const absl::string_view file_;
  std::vector<AssociationRow> associations_, defaults_;
  absl::string_view cluster_;
  bool has_others_ = false;  // accounts of other clusters are there, too
  std::map<absl::string_view, AssociationRow> accounts_;
  std::map<absl::string_view, UserAccounts> users_;
};

}  // namespace

absl::StatusOr<v1::ImportAccountsRequest> ParseAssociations(absl::string_view text,
                                                            absl::string_view file,
                                                            absl::string_view cluster) {
  AssociationReader reader(file);
  absl::Status status = reader.Read(text);
  if (status.ok()) status = reader.Choose(cluster);
  if (!status.ok()) return status;
  return reader.Build();
}

}  // namespace coppice
