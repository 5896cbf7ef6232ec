#include "agents/node/search_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr size_t kQuotedBytes = 64;   // of a bad word, in a message
constexpr size_t kLongestName = 128;  // of an application, as of PutPattern

bool IsId(const std::string& text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) && number >= 1 && absl::StrCat(number) == text;
}

// As the daemon has them (mapping.proto, PutPattern); none that a program takes for an option.
bool IsApplication(const std::string& name) {
  constexpr absl::string_view kOthers = "._-+/@";
  return !name.empty() && name.size() <= kLongestName && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [kOthers](char c) {
           return absl::ascii_isalnum(c) || kOthers.find(c) != absl::string_view::npos;
         });
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", text.substr(0, kQuotedBytes), "\"");
}

absl::Status CheckWords(const SearchSettings& settings, const v1::SearchOrderRequest& request) {
  if (!IsId(request.job_id())) {
    return absl::InvalidArgumentError(
        absl::StrCat("job_id: ", Quoted(request.job_id()),
                     " is no id of a job; give it as the daemon answered it"));
  }
  if (!IsApplication(request.application())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "application: ", Quoted(request.application()), " is no name of a stored pattern: 1 to ",
        kLongestName, " letters, digits and . _ - + / @, the first no -"));
  }
  const auto most = settings.max_budget.count();
  if (request.budget_ms() >= 1 && request.budget_ms() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("budget: ", request.budget_ms(), " ms; give 1 to ", most,
                   ", the most that this node's agent allows (search.max_budget)"));
}

}  // namespace

absl::Status CheckSearchRequest(const SearchSettings& settings, const LocalCaller& caller,
                                uid_t own, const v1::SearchOrderRequest& request) {
  if (settings.command.empty()) {
    return absl::FailedPreconditionError(
        "this node's agent starts no searches; set search.command in its configuration, or start "
        "coppice-search by hand");
  }
  if (caller.uid != own && settings.as_user.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "this node's agent starts searches of its own user, ", own, ", only, and the caller is ",
        caller.uid, "; set search.as_user in its configuration, or start coppice-search by hand"));
  }
  return CheckWords(settings, request);
}

SearchWords WordsOf(const v1::GuardedSearch& search, uid_t user) {
  const v1::SearchOrderRequest& request = search.request();
  return {{"{job}", request.job_id()},
          {"{application}", request.application()},
          {"{budget}", absl::StrCat(request.budget_ms(), "ms")},
          {"{seed}", absl::StrCat(std::max<uint64_t>(request.seed(), 1))},
          {"{uid}", absl::StrCat(user)},
          {"{server}", search.server()},
          {"{agent}", search.agent()}};
}

}  // namespace coppice
