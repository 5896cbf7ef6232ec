#include "agents/node/program_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/node/perftest.h"

namespace coppice {
namespace {

struct Pipe {
  OwnedFd mine, theirs;  // read without blocking; written by the program

  // False: errno.
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    mine = OwnedFd(ends[0]);
    theirs = OwnedFd(ends[1]);
    return fcntl(mine.get(), F_SETFL, O_NONBLOCK) == 0;
  }
};

// Without the signals that the agent blocks because it waits for them; heeding a broken pipe, which
// it does not. 0, or an error.
int Spawn(char* const* arguments, int output, int errors, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, ignored;
  sigemptyset(&none);
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

absl::Status CannotStart(const std::string& program, int error) {
  const std::string why = absl::StrCat(program, ": cannot be started: ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(why) : absl::UnavailableError(why);
}

}  // namespace

absl::Status Subprocess::Start(const std::vector<std::string>& arguments,
                               std::chrono::seconds cpu_limit) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  Pipe output, errors;
  if (!output.Open() || !errors.Open()) return CannotStart(arguments[0], errno);
  const int failed = Spawn(words.data(), output.theirs.get(), errors.theirs.get(), pid_);
  if (failed != 0) {
    pid_ = 0;
    return CannotStart(arguments[0], failed);
  }
  output_.fd = std::move(output.mine);
  errors_.fd = std::move(errors.mine);
  // Not pidfd_open(3), which glibc 2.36 declares for C alone.
  end_fd_ = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (end_fd_.get() < 0) return CannotStart(arguments[0], errno);
  const auto seconds = static_cast<rlim_t>(cpu_limit.count());
  const rlimit limit{seconds, seconds};
  (void)prlimit(pid_, RLIMIT_CPU, &limit, nullptr);  // a second line of defence
  return absl::OkStatus();
}

Subprocess::~Subprocess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  WaitFor(pid_);
}

absl::Status Subprocess::Listen() {
  char bytes[4096];
  for (Stream* stream : {&output_, &errors_}) {
    while (stream->fd.get() >= 0) {
      const ssize_t count = read(stream->fd.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) break;
      if (count == 0) stream->fd.Close();
      stream->text.append(bytes, static_cast<size_t>(count));
      if (stream->text.size() > kMaxOutput) {
        return absl::ResourceExhaustedError(absl::StrCat("says more than ", kMaxOutput, " bytes"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Subprocess::End() {
  const int status = WaitFor(std::exchange(pid_, 0));
  if (absl::Status listened = Listen(); !listened.ok()) return listened;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      WIFSIGNALED(status) ? absl::StrCat("was ended by signal ", WTERMSIG(status))
                          : absl::StrCat("ended with status ", WEXITSTATUS(status)));
}

namespace {

using Kind = PingPongWord::Kind;
using std::chrono::milliseconds;

constexpr char kLocalHost[] = "127.0.0.1";
// Where connections to servers come from: another address, as one that tries a port of its own
// address where nobody listens yet may meet itself.
constexpr char kFrom[] = "127.0.0.2";
// Where servers listen: a port that is free at one address may be in use at another.
constexpr char kAnyAddress[] = "0.0.0.0";
constexpr milliseconds kConnectEvery{10};
// Two programs tell each other some hundred bytes.
constexpr size_t kMaxEarly = size_t{64} << 10;

sockaddr_in AddressOf(const char* host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

const sockaddr* Generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// A TCP socket at `host` and any free port; none: errno.
OwnedFd Bind(const char* host) {
  const sockaddr_in address = AddressOf(host, 0);
  OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() >= 0 && bind(fd.get(), Generic(address), sizeof address) != 0) return OwnedFd();
  return fd;
}

uint16_t PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

absl::Status OutOfOrder() {
  return absl::UnavailableError("the peer does not keep to the order of a measurement");
}

absl::Status RefusedByPeer(const PingPongWord& word) {
  return absl::FailedPreconditionError(absl::StrCat("the peer: ", word.text));
}

ProgramRun::ProgramRun(MeasuringSocket& socket, const PerftestProgram& program,
                       const InfinibandPort& port, bool is_client)
    : socket_(socket), program_(program), port_(port), is_client_(is_client) {}

absl::Status ProgramRun::Failed(absl::string_view what) const {
  return absl::FailedPreconditionError(absl::StrCat(NameOf(port_), ": ", program_.name, " ", what));
}

absl::Status ProgramRun::RunToEnd() {
  absl::Status status = Start();
  while (status.ok() && !has_ended_) {
    const auto wait = socket_.limit().NextWait(
        absl::StrCat(NameOf(port_), ": ", program_.name, " did not end in time"));
    status = wait.ok() ? Step(*wait) : wait.status();
  }
  return status;
}

absl::Status ProgramRun::Start() {
  OwnedFd reserved = Bind(is_client_ ? kLocalHost : kAnyAddress);
  if (reserved.get() < 0 || (is_client_ && listen(reserved.get(), 1) != 0)) {
    return Failed(absl::StrCat("has no port to meet at: ", std::strerror(errno)));
  }
  tcp_port_ = PortOf(reserved.get());
  if (is_client_) {
    listener_ = std::move(reserved);
  } else {
    // The server shares the port, as it sets this option, too; nobody else may take it meanwhile.
    const int yes = 1;
    setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    reserved_ = std::move(reserved);
  }
  // -F: no word about the processor's frequency.
  std::vector<std::string> arguments{program_.name, "-F",
                                     "-d",          port_.device,
                                     "-i",          absl::StrCat(port_.number),
                                     "-s",          absl::StrCat(program_.bytes),
                                     "-n",          absl::StrCat(program_.iterations),
                                     "-p",          absl::StrCat(tcp_port_)};
  arguments.insert(arguments.end(), program_.options.begin(), program_.options.end());
  if (is_client_) arguments.push_back(kLocalHost);
  const auto left = socket_.limit().deadline - std::chrono::steady_clock::now();
  const auto cpu_limit = std::chrono::ceil<std::chrono::seconds>(left);
  const absl::Status started = process_.Start(
      arguments, std::clamp(cpu_limit, std::chrono::seconds(0), std::chrono::seconds(3600)) +
                     std::chrono::seconds(1));
  if (absl::IsNotFound(started)) return Failed("is not installed: apt-get install perftest");
  return started.ok() ? started : absl::FailedPreconditionError(started.message());
}

absl::Status ProgramRun::Step(milliseconds wait) {
  const bool is_awaited = !is_client_ && !is_connected_;
  pollfd descriptors[] = {{socket_.fd(), POLLIN, 0},
                          {local_.get() >= 0 ? local_.get() : listener_.get(), POLLIN, 0},
                          {process_.output_fd(), POLLIN, 0},
                          {process_.errors_fd(), POLLIN, 0},
                          {process_.end_fd(), POLLIN, 0}};
  poll(descriptors, 5,
       static_cast<int>((is_awaited ? std::min(wait, kConnectEvery) : wait).count()));
  const auto has_news = [&](size_t i) { return descriptors[i].revents != 0; };
  absl::Status status;
  if (is_awaited) status = Connect();
  if (status.ok() && has_news(1)) {
    status = local_.get() >= 0 ? TakeFromProgram().status() : Accept();
  }
  if (status.ok() && has_news(0)) status = TakeFromPeer();
  if (status.ok() && (has_news(2) || has_news(3))) {
    if (absl::Status heard = process_.Listen(); !heard.ok()) return Failed(heard.message());
  }
  if (status.ok() && has_news(4)) status = End();
  return status;
}

absl::Status ProgramRun::Connect() {
  OwnedFd fd = Bind(kFrom);
  const sockaddr_in address = AddressOf(kLocalHost, tcp_port_);
  if (fd.get() < 0) return Failed(absl::StrCat("cannot be reached: ", std::strerror(errno)));
  if (connect(fd.get(), Generic(address), sizeof address) != 0) return absl::OkStatus();  // not yet
  local_ = std::move(fd);
  return Begin();
}

absl::Status ProgramRun::Accept() {
  OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.get() < 0) return absl::OkStatus();
  listener_.Close();
  local_ = std::move(fd);
  return Begin();
}

absl::Status ProgramRun::Begin() {
  const int yes = 1;
  setsockopt(local_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  is_connected_ = true;
  reserved_.Close();
  return Deliver(std::exchange(early_, ""));
}

absl::StatusOr<bool> ProgramRun::TakeFromProgram() {
  char bytes[PingPongWord::kMaxData];
  if (local_.get() < 0) return false;
  const ssize_t count = recv(local_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (count <= 0) {
    local_.Close();  // the peer hears how it ended
    return false;
  }
  absl::Status said =
      SendWord(socket_, Kind::kData, absl::string_view(bytes, static_cast<size_t>(count)));
  if (!said.ok()) return said;
  return true;
}

absl::Status ProgramRun::TakeFromPeer() {
  const absl::StatusOr<PingPongWord> word = ReceiveWord(socket_);
  if (!word.ok()) return word.status();
  switch (word->kind) {
    case Kind::kData:
      return Deliver(word->text);
    case Kind::kEnd:
      has_peer_ended_ = true;
      if (local_.get() >= 0) shutdown(local_.get(), SHUT_WR);
      return absl::OkStatus();
    case Kind::kRefuse:
      is_refused_ = true;
      return RefusedByPeer(*word);
    default:
      return OutOfOrder();
  }
}

absl::Status ProgramRun::Deliver(absl::string_view bytes) {
  if (!is_connected_) {
    absl::StrAppend(&early_, bytes);
    return early_.size() <= kMaxEarly ? absl::OkStatus() : OutOfOrder();
  }
  if (local_.get() < 0 || bytes.empty()) return absl::OkStatus();  // it has hung up
  const ssize_t count = send(local_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool is_gone = count < 0 && (errno == EPIPE || errno == ECONNRESET);
  if (is_gone || count == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return Failed("does not listen to its peer");
}

// What it said last may be what the peer's one waits for.
absl::Status ProgramRun::End() {
  has_ended_ = true;
  const absl::Status ended = process_.End();
  if (is_client_ && !is_connected_) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (poll(&waiting, 1, 0) > 0) (void)Accept();
  }
  for (;;) {
    const absl::StatusOr<bool> more = TakeFromProgram();
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  local_.Close();
  if (ended.ok()) return absl::OkStatus();
  // perftest has its reasons in the errors, and a few in the output.
  std::string words = LastWords(process_.errors());
  if (words.empty()) words = LastWords(output());
  std::string what(ended.message());
  if (!words.empty()) absl::StrAppend(&what, ": ", words);
  // Of ibv_reg_mr(3) there is no other frequent reason.
  if (absl::StrContains(process_.errors(), "Couldn't allocate MR")) {
    absl::StrAppend(&what, " (LimitMEMLOCK of coppice-agent.service, or ulimit -l)");
  }
  return Failed(what);
}

absl::Status ProgramRun::AwaitPeer() {
  absl::Status status;
  while (status.ok() && !has_peer_ended_) status = TakeFromPeer();
  return status;
}

}  // namespace coppice
