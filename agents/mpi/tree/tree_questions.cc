#include "agents/mpi/tree/tree_questions.h"

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_counts.h"
#include "agents/mpi/tree/tree_shape.h"

namespace coppice::mpi {
namespace {

std::mutex unused_mutex;  // nobody is called under it
std::vector<uint64_t> unused;

template <class Question>
Session::Answer Ask(Waits waits, const Question& question) {
  Session& session = Session::Get();
  return waits == Waits::kProgram ? session.Ask(question) : session.AskMeanwhile(question);
}

// Reads and frees it. None if it is no type I tree over `ranks` ranks.
GrantedTree Take(coppice_tree* tree, size_t ranks) {
  GrantedTree granted;
  granted.revision = coppice_tree_revision(tree);
  const int32_t* const parents = coppice_tree_parents(tree);
  TreeShape shape;
  if (coppice_tree_nodes(tree) == ranks && coppice_tree_ranks(tree) == ranks &&
      parents != nullptr) {
    granted.parents.assign(parents, parents + ranks);
    if (MakeTreeShape(granted.parents, 0, &shape)) granted.id = coppice_tree_id(tree);
  }
  coppice_tree_free(tree);
  return granted;
}

// A type I tree for the communicator of these ranks of the world. None: *why_not says why.
GrantedTree AskForTree(const std::vector<int>& world_ranks, coppice_operation operation,
                       uint64_t bytes, Waits waits, std::string* why_not) {
  CountTree(kCountAsked);
  const std::vector<uint32_t> ranks(world_ranks.begin(), world_ranks.end());
  coppice_tree_request request = {};
  request.size = sizeof(request);
  request.job = Session::Get().Job();
  request.ranks = ranks.data();
  request.rank_count = static_cast<uint32_t>(ranks.size());
  request.operation = operation;
  request.bytes = bytes;
  request.type = COPPICE_TREE_TYPE_I;
  coppice_tree* tree = nullptr;
  const Session::Answer answer = Ask(
      waits, [&](coppice_client* client) { return coppice_tree_create(client, &request, &tree); });
  if (answer.status != COPPICE_OK) {
    *why_not = answer.why_not;
    GrantedTree no_tree;
    no_tree.wasted_ms = answer.wasted_ms;
    return no_tree;
  }
  const uint64_t id = coppice_tree_id(tree);
  GrantedTree granted = Take(tree, ranks.size());
  if (granted.id == 0) {
    *why_not = "tree " + std::to_string(id) + " is none over the communicator's ranks";
    GiveBack(id);
  } else {
    CountTree(kCountGranted);
  }
  return granted;
}

}  // namespace

GrantedTree AskAgain(uint64_t id, size_t ranks) {
  coppice_tree* tree = nullptr;
  const Session::Answer answer = Session::Get().Ask(
      [&](coppice_client* client) { return coppice_tree_get(client, id, &tree); });
  GrantedTree granted;
  if (answer.status == COPPICE_OK) granted = Take(tree, ranks);
  granted.wasted_ms = answer.wasted_ms;
  return granted;
}

void GiveBack(uint64_t id) {
  const std::lock_guard<std::mutex> lock(unused_mutex);
  try {
    unused.push_back(id);
  } catch (const std::exception&) {  // no memory: it is given back with the job
  }
}

void GiveBackAll(Waits waits) {
  std::vector<uint64_t> now;
  {
    const std::lock_guard<std::mutex> lock(unused_mutex);
    now.swap(unused);
  }
  for (const uint64_t id : now) {
    const Session::Answer answer =
        Ask(waits, [&](coppice_client* client) { return coppice_tree_release(client, id); });
    const bool is_answered =
        answer.status != COPPICE_UNAVAILABLE && answer.status != COPPICE_DEADLINE_EXCEEDED;
    if (!is_answered) GiveBack(id);
  }
}

namespace {

class Questions final {
 public:
  // The process's own, which is never destroyed.
  static Questions& Get() {
    static auto* const questions = new Questions;
    return *questions;
  }

  bool Add(std::shared_ptr<TreeQuestion> question) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!HasThread()) return false;
    questions_.push_back(std::move(question));
    wakes_.notify_one();
    return true;
  }

  void GiveBack() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!HasThread()) return;
    is_giving_back_ = true;
    wakes_.notify_one();
  }

  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_stopping_ = true;
      questions_.clear();
      wakes_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // mutex_ is held. Signals are the program's threads' business.
  bool HasThread() {
    if (is_stopping_) return false;
    if (thread_.joinable()) return true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::exception&) {  // the system has none to give
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread_.joinable();
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wakes_.wait(lock, [this] { return is_stopping_ || is_giving_back_ || !questions_.empty(); });
      if (is_stopping_) return;
      if (questions_.empty()) {
        is_giving_back_ = false;
        lock.unlock();
        GiveBackAll(Waits::kMeanwhile);
      } else {
        const std::shared_ptr<TreeQuestion> question = std::move(questions_.front());
        questions_.pop_front();
        lock.unlock();
        question->Ask(Waits::kMeanwhile);
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::thread thread_;
  std::deque<std::shared_ptr<TreeQuestion>> questions_;
  bool is_giving_back_ = false, is_stopping_ = false;
};

}  // namespace

TreeQuestion::TreeQuestion(std::vector<int> world_ranks, coppice_operation operation,
                           uint64_t bytes)
    : world_ranks_(std::move(world_ranks)), operation_(operation), bytes_(bytes) {}

void TreeQuestion::Ask(Waits waits) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_dropped_) return;
  }
  GrantedTree granted;
  std::string why_not = "there is no memory for it";
  try {
    granted = AskForTree(world_ranks_, operation_, bytes_, waits, &why_not);
  } catch (const std::exception&) {
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  is_answered_ = true;
  if (is_dropped_ && granted.id != 0) {
    GiveBack(granted.id);
    CountTree(kCountReleased);
    return;
  }
  granted_ = std::move(granted);
  why_not_ = std::move(why_not);
}

bool TreeQuestion::IsAnswered() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_answered_;
}

GrantedTree TreeQuestion::Take(std::string* why_not) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *why_not = why_not_;
  return std::exchange(granted_, GrantedTree());
}

void TreeQuestion::Drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_dropped_ = true;
  const uint64_t id = std::exchange(granted_, GrantedTree()).id;
  if (id == 0) return;
  GiveBack(id);
  CountTree(kCountReleased);
}

bool AskMeanwhile(std::shared_ptr<TreeQuestion> question) {
  return Questions::Get().Add(std::move(question));
}

void TellWhatIsGivenBack() {
  {
    const std::lock_guard<std::mutex> lock(unused_mutex);
    if (unused.empty()) return;
  }
  Questions::Get().GiveBack();
}

void StopAskingMeanwhile() { Questions::Get().Stop(); }

}  // namespace coppice::mpi
