#include "agents/mpi/tree/started.h"

#include <new>
#include <utility>
#include <vector>

#include "agents/mpi/tree/passage.h"

namespace coppice::mpi {
namespace {

const StartHooks* start_hooks = nullptr;
std::vector<StartedCollectives*> under_way;  // queues that are not empty
bool is_advancing = false;

}  // namespace

void SetStartHooks(const StartHooks* hooks) { start_hooks = hooks; }

bool MayStart() { return start_hooks != nullptr; }

StartedCollectives::StartedCollectives() = default;

StartedCollectives::~StartedCollectives() { std::erase(under_way, this); }

MPI_Request StartedCollectives::Start(MPI_Comm comm, std::unique_ptr<Passage> passage) {
  const bool is_first = queue_.empty();
  if (is_first) under_way.reserve(under_way.size() + 1);
  queue_.push_back({std::move(passage), MPI_REQUEST_NULL});
  const MPI_Request request = start_hooks->make(comm);
  if (request == MPI_REQUEST_NULL) {
    queue_.pop_back();
    throw std::bad_alloc();
  }
  queue_.back().request = request;
  if (is_first) under_way.push_back(this);
  AdvanceStarted();
  return request;
}

void StartedCollectives::Drain() {
  while (!queue_.empty()) start_hooks->progress();
}

int StartedCollectives::Advance() {
  int over = 0;
  while (!queue_.empty() && queue_.front().passage->Advance()) {
    const Started ended = std::move(queue_.front());
    queue_.pop_front();
    start_hooks->complete(ended.request, ended.passage->error());
    ++over;
  }
  return over;
}

int AdvanceStarted() {
  if (is_advancing || under_way.empty()) return 0;
  is_advancing = true;
  int over = 0;
  // From the end, as those that are over go.
  for (size_t at = under_way.size(); at-- > 0;) {
    StartedCollectives* const one = under_way[at];
    over += one->Advance();
    if (one->IsEmpty()) under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(at));
  }
  is_advancing = false;
  return over;
}

}  // namespace coppice::mpi
