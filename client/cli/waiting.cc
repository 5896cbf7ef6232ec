#include "client/cli/waiting.h"

#include <chrono>
#include <ostream>
#include <utility>

#include "client/cli/shown_stream.h"

namespace coppice {

Waiting::Waiting(std::ostream& out, bool is_terminal, std::string what)
    : out_(out), is_terminal_(is_terminal), what_(std::move(what)), thread_([this] { Run(); }) {}

Waiting::~Waiting() {
  End();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  over_cv_.notify_all();
  thread_.join();
}

void Waiting::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = true;
}

void Waiting::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = false;
  if (!is_terminal_ || !shown_) return;
  ShownStream::Control(out_, kWipeLine);
  out_ << std::flush;
  shown_ = false;
}

void Waiting::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (over_cv_.wait_for(lock, std::chrono::seconds(1), [this] { return over_; })) return;
    if (!waits_ || (shown_ && !is_terminal_)) continue;
    if (is_terminal_) {
      ShownStream::Control(out_, "\r");
      out_ << what_ << ": " << seconds << " s" << std::flush;
    } else {
      out_ << what_ << std::endl;
    }
    shown_ = true;
  }
}

}  // namespace coppice
