#include "daemon/rpc/listen/unix_users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/rpc/listen/peer_names.h"

namespace coppice {
namespace {

constexpr size_t kLongestName = 255;
constexpr size_t kFirstBuffer = 4096;
constexpr size_t kLargestBuffer = 1 << 20;  // of one entry; a group may list thousands of members
constexpr int kMaxGroups = 65'536;          // NGROUPS_MAX

struct Account {
  std::string name;
  gid_t group = 0;
};

// Calls `look_up`(buffer, size), which is a get...r function bound to its key, with a buffer that
// is large enough.
template <class LookUp>
int WithBuffer(std::vector<char>& buffer, LookUp look_up) {
  int error = ERANGE;
  for (size_t size = kFirstBuffer; error == ERANGE && size <= kLargestBuffer; size *= 4) {
    buffer.resize(size);
    error = look_up(buffer.data(), size);
  }
  return error;
}

std::optional<Account> FindAccount(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer;
  WithBuffer(buffer, [&](char* space, size_t size) {
    return getpwuid_r(uid, &entry, space, size, &found);
  });
  if (found == nullptr) return std::nullopt;
  return Account{found->pw_name, found->pw_gid};
}

std::optional<uid_t> FindUid(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer;
  WithBuffer(buffer, [&](char* space, size_t size) {
    return getpwnam_r(name.c_str(), &entry, space, size, &found);
  });
  if (found == nullptr) return std::nullopt;
  return found->pw_uid;
}

bool IsMember(const Account& account, gid_t group) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (getgrouplist(account.name.c_str(), account.group, groups.data(), &count) < 0) {
    if (groups.size() >= kMaxGroups) return false;
    groups.resize(std::max<size_t>(static_cast<size_t>(count), groups.size() * 2));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<size_t>(count));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// A name that says something else as an owner is not taken for one: digits are the uid of a user
// without a name.
bool IsNumber(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool IsPlain(const std::string& name) {
  return !IsNumber(name) && name != kAnonymous && name != kUnknownOwner &&
         !absl::StrContains(name, ":") && !absl::StartsWith(name, kRootOfNode);
}

UnixUser LookUp(uid_t uid, const std::string& admin_group) {
  UnixUser user{absl::StrCat(uid), uid == 0, uid == 0};
  const std::optional<Account> account = FindAccount(uid);
  if (!account) return user;
  if (IsPlain(account->name)) user.name = account->name;
  if (user.is_administrator) return user;
  const std::optional<gid_t> group = UnixUsers::FindGroup(admin_group);
  user.is_administrator = group && IsMember(*account, *group);
  return user;
}

}  // namespace

std::optional<gid_t> UnixUsers::FindGroup(const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer;
  WithBuffer(buffer, [&](char* space, size_t size) {
    return getgrnam_r(name.c_str(), &entry, space, size, &found);
  });
  if (found == nullptr) return std::nullopt;
  return found->gr_gid;
}

UnixUser UnixUsers::Find(uid_t uid) {
  std::optional<UnixUser> known;
  {
    absl::ReaderMutexLock lock(&mutex_);
    known = users_.Find(uid);
  }
  UnixUser user = known.has_value() ? *known : Ask(uid);
  user.is_administrator = user.is_administrator || uid == geteuid();
  return user;
}

UnixUser UnixUsers::Ask(uid_t uid) {
  const std::string group = admin_group();
  UnixUser user = LookUp(uid, group);
  absl::MutexLock lock(&mutex_);
  if (group == admin_group_) users_.Put(uid, user);
  return user;
}

std::optional<uid_t> UnixUsers::Ask(const std::string& name) {
  const std::optional<uid_t> uid = FindUid(name);
  absl::MutexLock lock(&mutex_);
  uids_.Put(name, uid);
  return uid;
}

std::optional<UnixUser> UnixUsers::FindNamed(const std::string& user,
                                             absl::FunctionRef<bool()> may_ask) {
  const bool is_word =
      user.size() <= kLongestName &&
      std::all_of(user.begin(), user.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  if (user.empty() || !is_word) return std::nullopt;
  std::optional<uid_t> uid;
  if (IsNumber(user)) {
    uid_t number = 0;
    if (!absl::SimpleAtoi(user, &number) || number == static_cast<uid_t>(-1)) return std::nullopt;
    uid = number;
  } else {
    if (!IsPlain(user)) return std::nullopt;
    std::optional<std::optional<uid_t>> known;
    {
      absl::ReaderMutexLock lock(&mutex_);
      known = uids_.Find(user);
    }
    if (!known.has_value() && !may_ask()) return std::nullopt;
    uid = known.has_value() ? *known : Ask(user);
    if (!uid.has_value()) return UnixUser{user};
  }
  {
    absl::ReaderMutexLock lock(&mutex_);
    std::optional<UnixUser> known = users_.Find(*uid);
    if (known.has_value()) return known;
  }
  if (!may_ask()) return std::nullopt;
  return Ask(*uid);
}

void UnixUsers::SetAdminGroup(std::string group) {
  absl::MutexLock lock(&mutex_);
  admin_group_ = std::move(group);
  users_.Clear();
}

std::string UnixUsers::admin_group() const {
  absl::ReaderMutexLock lock(&mutex_);
  return admin_group_;
}

absl::Status UnixUsers::CheckGroup(const std::string& group) {
  if (FindGroup(group)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no group \"", group,
                                          "\" on this host: make it (groupadd --system ", group,
                                          "), or name another"));
}

}  // namespace coppice
