#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "client/library/agent_socket.h"
#include "client/library/client.h"
#include "client/library/retry_pause.h"

namespace coppice {
namespace {

constexpr char kMethod[] = "/coppice.v1.Trees/WatchTrees";
constexpr std::chrono::milliseconds kFirstPause{100}, kMaxPause{5000};
// Nothing ends a connect(2) before its time, and who closes the client waits for it.
constexpr uint32_t kConnectTimeoutMs = 1000;
// While nothing changes a connection may be silent for as long as it likes.
constexpr std::chrono::hours kPatience{24};
constexpr uint64_t kCall = 1;

// Trying again does not help.
bool IsForGood(coppice_status code) {
  switch (code) {
    case COPPICE_INVALID_ARGUMENT:
    case COPPICE_NOT_FOUND:
    case COPPICE_PERMISSION_DENIED:
    case COPPICE_FAILED_PRECONDITION:
    case COPPICE_UNIMPLEMENTED:
      return true;
    default:
      return false;
  }
}

// Signals of the program are for the program's threads.
class NoSignals final {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// One watch of a job's trees: a connection and a thread of its own, so that a function that takes
// its time holds up nothing but the watch, and may itself call libcoppice.
//
// The watch outlives restarts of agent and daemon: it connects anew, after a pause that grows, and
// goes on behind the last change that it saw. Where the daemon no longer knows that one, trees are
// listed again and what is told is the difference.
class JobTreesWatch final {
 public:
  struct Listener {
    coppice_watch_function function;
    void* context;
  };

  // Returns once what is there has been told: no later change is missed. The function is called
  // from then on until ~JobTreesWatch, which waits for a call under way. Errors as the first try's.
  static Outcome Start(const std::string& path, uint64_t job, Listener listener,
                       uint32_t timeout_ms, std::unique_ptr<JobTreesWatch>& watch) {
    const SteadyTime deadline = After(timeout_ms);
    watch.reset(new JobTreesWatch(path, job, listener));
    if (!watch->wake_.OpenEvent()) {
      return {COPPICE_RESOURCE_EXHAUSTED, "watch: the process has no descriptor left"};
    }
    Outcome outcome = AgentSocket::Connect(path, deadline, watch->socket_);
    if (!outcome.ok()) return outcome;
    {
      const NoSignals inherited;
      watch->thread_ = std::thread([raw = watch.get()] { raw->RunUntilStopped(); });
    }
    return watch->AwaitBegin(deadline);
  }

  ~JobTreesWatch() {
    const uint64_t one = 1;
    while (write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    if (thread_.joinable()) thread_.join();
  }

  // Nothing more is told and ~JobTreesWatch does not wait.
  bool is_over() const { return is_over_; }

 private:
  JobTreesWatch(std::string path, uint64_t job, Listener listener)
      : path_(std::move(path)),
        job_(job),
        listener_(listener),
        pause_(kFirstPause, kMaxPause, static_cast<uint64_t>(getpid()) * 1'000'003 + job) {}

  void RunUntilStopped() {
    try {
      Watch();
    } catch (const std::exception&) {
      // Without memory for a text there is still this one.
      if (HasBegun() && !IsStopped()) {
        listener_.function(listener_.context, COPPICE_CHANGE_LOST, 0, 0, "out of memory");
      }
      Begun({COPPICE_RESOURCE_EXHAUSTED, {}});
    }
    socket_.reset();
    is_over_ = true;
  }

  void Watch();
  // The watch stands, or the first try has failed: Start may return. Only the first call counts.
  void Begun(const Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mu_);
    if (!begin_) begin_ = outcome;
    begun_.notify_all();
  }

  bool HasBegun() {
    const std::lock_guard<std::mutex> lock(mu_);
    return begin_ && begin_->ok();
  }

  Outcome AwaitBegin(SteadyTime deadline) {
    std::unique_lock<std::mutex> lock(mu_);
    if (begun_.wait_until(lock, deadline, [this] { return begin_.has_value(); })) return *begin_;
    return {COPPICE_DEADLINE_EXCEEDED,
            "agent at " + path_ + ": the watch of job " + std::to_string(job_) +
                " did not begin in time; allow more, or see the agent's log"};
  }

  // One stream, from connecting to its end.
  Outcome WatchOnce() {
    if (Outcome outcome = Begin(); !outcome.ok()) return outcome;
    const Outcome lost{COPPICE_UNAVAILABLE, "agent at " + path_ + ": it closed the connection"};
    for (;;) {
      socket_->Wait(POLLIN, std::chrono::steady_clock::now() + kPatience, wake_.get());
      if (IsStopped()) return {COPPICE_CANCELLED, {}};
      const AgentSocket::Io io = socket_->Receive();
      if (io == AgentSocket::Io::kLost) return lost;
      Outcome end;
      if (io == AgentSocket::Io::kSome && !TakeFrames(&end)) return end;
    }
  }

  Outcome Begin() {
    if (socket_ == nullptr) {
      Outcome outcome = AgentSocket::Connect(path_, After(kConnectTimeoutMs), socket_);
      if (!outcome.ok()) return outcome;
    }
    is_listing_ = resume_token_.empty();
    listed_.clear();
    std::string frame;
    AppendFrame(EncodeCall(kCall, kMethod, EncodeWatch(job_, resume_token_), /*timeout_ms=*/0),
                frame);
    // A new socket has room for the few bytes of a frame like this.
    std::string_view rest = frame;
    while (!rest.empty()) {
      if (socket_->Send(rest) == AgentSocket::Io::kSome) continue;
      return {COPPICE_UNAVAILABLE, "agent at " + path_ + ": it takes no request"};
    }
    return {};
  }

  // Frames that have arrived; false: the stream is over, with *end.
  bool TakeFrames(Outcome* end) {
    bool is_good = true;
    while (is_good) {
      const std::optional<std::string_view> frame = socket_->Next();
      if (!frame || IsStopped()) break;
      AgentReply reply;
      is_good = DecodeReply(*frame, reply);
      if (is_good && reply.is_end) {
        *end = std::move(reply.end);
        return false;
      }
      is_good = is_good && TakeChange(reply.message);
    }
    if (is_good && !socket_->is_broken()) return true;
    *end = {COPPICE_UNAVAILABLE, "agent at " + path_ + ": its answer cannot be read"};
    return false;
  }

  bool TakeChange(std::string_view message) {
    ChangeAnswer change;
    if (!DecodeChange(message, change)) return false;
    pause_.Reset();
    switch (static_cast<ChangeKind>(change.kind)) {
      case ChangeKind::kPresent:
        TakePresent(change);
        break;
      case ChangeKind::kSynced:
        TakeSynced();
        break;
      case ChangeKind::kGranted:
      case ChangeKind::kRevised:
        trees_[change.tree] = change.revision;
        Tell(static_cast<coppice_change>(change.kind), change.tree, change.revision, change.reason);
        break;
      case ChangeKind::kRevoked:
      case ChangeKind::kReleased:
        trees_.erase(change.tree);
        Tell(static_cast<coppice_change>(change.kind), change.tree, change.revision, change.reason);
        break;
    }
    if (!change.resume_token.empty()) resume_token_ = change.resume_token;
    return true;
  }

  // What the program knows already is not told again.
  void TakePresent(const ChangeAnswer& change) {
    listed_[change.tree] = change.revision;
    const auto known = trees_.find(change.tree);
    if (known == trees_.end()) {
      trees_[change.tree] = change.revision;
      Tell(COPPICE_CHANGE_PRESENT, change.tree, change.revision, change.reason);
    } else if (known->second != change.revision) {
      Tell(COPPICE_CHANGE_REVISED, change.tree, change.revision,
           "planned anew while nobody watched");
    }
  }

  void TakeSynced();

  void Tell(coppice_change kind, uint64_t tree, uint32_t revision, const std::string& reason) {
    if (!IsStopped()) listener_.function(listener_.context, kind, tree, revision, reason.c_str());
  }

  // True: stop.
  bool Pause() {
    pollfd wake{wake_.get(), POLLIN, 0};
    const SteadyTime end = std::chrono::steady_clock::now() + pause_.Next();
    for (;;) {
      const int ready = poll(&wake, 1, MillisecondsUntil(end));
      if (ready == 0) return false;
      if (ready > 0) return true;
    }
  }

  bool IsStopped() const {
    pollfd wake{wake_.get(), POLLIN, 0};
    return poll(&wake, 1, 0) > 0;
  }

  const std::string path_;
  const uint64_t job_;
  const Listener listener_;
  OwnDescriptor wake_;  // an event: written to by the destructor
  std::shared_ptr<AgentSocket> socket_;
  RetryPause pause_;
  std::string resume_token_;
  bool is_listing_ = true;              // changes tell what is there, up to SYNCED
  std::map<uint64_t, uint32_t> trees_;  // revision of each that is there
  std::map<uint64_t, uint32_t> listed_;
  std::mutex mu_;
  std::condition_variable begun_;
  std::optional<Outcome> begin_;      // guarded by mu_
  std::atomic<bool> is_over_{false};  // set by the thread, last
  std::thread thread_;
};

void JobTreesWatch::Watch() {
  for (;;) {
    const Outcome end = WatchOnce();
    socket_.reset();
    if (IsStopped()) return;
    if (end.ok()) {
      Tell(COPPICE_CHANGE_OVER, 0, 0, "job " + std::to_string(job_) + " is over");
      return Begun({});
    }
    Begun(end);
    if (!HasBegun()) return;
    if (IsForGood(end.code)) return Tell(COPPICE_CHANGE_LOST, 0, 0, end.message);
    if (end.code == COPPICE_OUT_OF_RANGE) resume_token_.clear();
    if (Pause()) return;
  }
}

void JobTreesWatch::TakeSynced() {
  Begun({});
  if (!is_listing_) return;
  is_listing_ = false;
  for (const auto& [tree, revision] : trees_) {
    if (listed_.count(tree) > 0) continue;
    Tell(COPPICE_CHANGE_REVOKED, tree, revision, "it went while nobody watched");
  }
  trees_ = std::move(listed_);
  listed_.clear();
}

TreeWatches::TreeWatches() = default;
TreeWatches::~TreeWatches() { End(); }

Outcome TreeWatches::CheckOpen() const {
  if (!is_ended_) return {};
  return {COPPICE_FAILED_PRECONDITION, "client: it is being closed; watch with another one"};
}

Outcome TreeWatches::Reap() {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto is_open = [](const std::unique_ptr<JobTreesWatch>& watch) {
    return !watch->is_over();
  };
  const auto middle = std::partition(watches_.begin(), watches_.end(), is_open);
  // Their threads have nothing left to do but to return.
  watches_.erase(middle, watches_.end());
  return CheckOpen();
}

Outcome TreeWatches::Add(std::unique_ptr<JobTreesWatch> watch) {
  const std::lock_guard<std::mutex> lock(mu_);
  Outcome outcome = CheckOpen();
  if (outcome.ok()) watches_.push_back(std::move(watch));
  return outcome;
}

void TreeWatches::End() {
  List all;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    is_ended_ = true;
    all.swap(watches_);
  }
  all.clear();
}

}  // namespace coppice

coppice_status coppice_watch_trees(coppice_client* client, uint64_t job,
                                   coppice_watch_function function, void* context) {
  return coppice::RunOn(client, [&](coppice_client& of) {
    coppice::Outcome outcome;
    if (function == nullptr) outcome = coppice::NotNull(nullptr, "function");
    if (outcome.ok()) outcome = of.watches.Reap();
    if (!outcome.ok()) return outcome;
    std::unique_ptr<coppice::JobTreesWatch> watch;
    outcome =
        coppice::JobTreesWatch::Start(of.path, job, {function, context}, of.timeout_ms, watch);
    return outcome.ok() ? of.watches.Add(std::move(watch)) : outcome;
  });
}
