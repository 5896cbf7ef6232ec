#include "agents/mpi/tree/tree_questions.h"

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "agents/mpi/tree/tree_counts.h"

namespace coppice::mpi {
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
  if (IsAnyGivenBack()) Questions::Get().GiveBack();
}

void StopAskingMeanwhile() { Questions::Get().Stop(); }

}  // namespace coppice::mpi
