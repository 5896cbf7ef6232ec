#include "daemon/rpc/listen/unix_users.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr size_t kNetworkBytes = 8;

std::string NetworkText(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

std::string NetworkText(in6_addr address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr within{};
    std::memcpy(&within, address.s6_addr + sizeof(address) - sizeof(within), sizeof(within));
    return NetworkText(within);
  }
  std::fill(address.s6_addr + kNetworkBytes, address.s6_addr + sizeof(address), 0);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return absl::StrCat(text, "/64");
}

constexpr size_t kFirstBuffer = 4096;
constexpr size_t kMaxBuffer = 1 << 20;  // of one entry; a group may list thousands of members
constexpr int kMaxGroups = 65'536;      // NGROUPS_MAX

struct Account {
  std::string name;
  gid_t group = 0;
};

// What `tell` says of the entry that a get...r function finds, which `call` calls with all but its
// key, and with a buffer that is large enough.
template <class Entry, class Call, class Tell>
auto FindEntry(Call call, Tell tell) -> std::optional<decltype(tell(std::declval<Entry>()))> {
  Entry entry{};
  Entry* found = nullptr;
  std::vector<char> buffer;
  int error = ERANGE;
  for (size_t size = kFirstBuffer; error == ERANGE && size <= kMaxBuffer; size *= 4) {
    buffer.resize(size);
    error = call(&entry, buffer.data(), size, &found);
  }
  if (found == nullptr) return std::nullopt;
  return tell(*found);
}

std::optional<Account> FindAccount(uid_t uid) {
  return FindEntry<passwd>([&](auto... rest) { return getpwuid_r(uid, rest...); },
                           [](const passwd& one) {
                             return Account{one.pw_name, one.pw_gid};
                           });
}

std::optional<uid_t> FindUid(const std::string& name) {
  return FindEntry<passwd>([&](auto... rest) { return getpwnam_r(name.c_str(), rest...); },
                           [](const passwd& one) { return one.pw_uid; });
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

std::string NetworkOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return NetworkText(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  if (address.ss_family == AF_INET6) {
    return NetworkText(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  return "";
}

std::string NetworkOf(absl::string_view connection) {
  absl::string_view host = connection.substr(0, connection.rfind(':'));
  if (absl::ConsumePrefix(&host, "ipv4:")) return std::string(host);
  if (!absl::ConsumePrefix(&host, "ipv6:")) return std::string(host);
  // In brackets, which gRPC writes as in a URI.
  for (const absl::string_view bracket : {"%5B", "["}) absl::ConsumePrefix(&host, bracket);
  for (const absl::string_view bracket : {"%5D", "]"}) absl::ConsumeSuffix(&host, bracket);
  const std::string text(host.substr(0, host.find('%')));  // without a zone
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1 ? NetworkText(address) : text;
}

std::optional<gid_t> UnixUsers::FindGroup(const std::string& name) {
  return FindEntry<group>([&](auto... rest) { return getgrnam_r(name.c_str(), rest...); },
                          [](const group& one) { return one.gr_gid; });
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
  if (!IsWord(user)) return std::nullopt;
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
