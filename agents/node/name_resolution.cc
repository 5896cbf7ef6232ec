#include "agents/node/name_resolution.h"

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Names that hang, each on a thread: one a measurement, each as long as the resolver's own
// patience.
constexpr int kMostLookUps = 16;

struct HostAndPort {
  std::string host;  // empty: any
  std::string port;
};

absl::StatusOr<HostAndPort> Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 0xffff) {
    return absl::InvalidArgumentError(absl::StrCat("address \"", address, "\": give HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostAndPort{std::move(host), absl::StrCat(port)};
}

// 0, or an error of getaddrinfo's.
int LookUp(const HostAndPort& at, int flags, Addresses& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), at.port.c_str(), &hints, &list);
  if (error == 0) found.reset(list);
  return error;
}

absl::Status Unknown(const std::string& address, int error) {
  return absl::UnavailableError(absl::StrCat("address ", address, ": ", gai_strerror(error)));
}

// What the thread and whoever waits for it share.
struct Answer {
  std::mutex mu;
  std::condition_variable changed;
  // Guarded by mu.
  bool is_there = false;
  int error = 0;
  Addresses found;
};

absl::StatusOr<std::shared_ptr<Answer>> BeginLookUp(const HostAndPort& at) {
  static std::atomic<int> under_way{0};
  const auto answer = std::make_shared<Answer>();
  const auto ask = [at, answer] {
    Addresses found;
    const int error = LookUp(at, 0, found);
    --under_way;
    const std::lock_guard<std::mutex> lock(answer->mu);
    answer->is_there = true;
    answer->error = error;
    answer->found = std::move(found);
    answer->changed.notify_all();
  };
  if (++under_way > kMostLookUps) {
    --under_way;
    return absl::UnavailableError(absl::StrCat(
        "the names of ", kMostLookUps, " peers are still looked up; is the name server there?"));
  }
  try {
    std::thread(ask).detach();
  } catch (const std::system_error& error) {
    --under_way;
    return absl::UnavailableError(absl::StrCat("no thread to look a name up: ", error.what()));
  }
  return answer;
}

}  // namespace

absl::StatusOr<Addresses> Resolve(const std::string& address, const MeasuringLimit& limit) {
  const absl::StatusOr<HostAndPort> at = Split(address);
  if (!at.ok()) return at.status();
  Addresses numeric;
  if (LookUp(*at, AI_NUMERICHOST, numeric) == 0) return numeric;  // asks nobody
  const absl::StatusOr<std::shared_ptr<Answer>> answer = BeginLookUp(*at);
  if (!answer.ok()) return answer.status();
  const std::string late = absl::StrCat("address ", address, ": no answer of the name server");
  std::unique_lock<std::mutex> lock((*answer)->mu);
  while (!(*answer)->is_there) {
    const auto wait = limit.NextWait(late);
    if (!wait.ok()) return wait.status();
    (*answer)->changed.wait_for(lock, *wait);
  }
  if ((*answer)->error != 0) return Unknown(address, (*answer)->error);
  return std::move((*answer)->found);
}

absl::StatusOr<Addresses> ResolveOwn(const std::string& address) {
  const absl::StatusOr<HostAndPort> at = Split(address);
  if (!at.ok()) return at.status();
  Addresses found;
  const int error = LookUp(*at, AI_PASSIVE, found);
  if (error != 0) return Unknown(address, error);
  return found;
}

}  // namespace coppice
