#include "agents/mpi/tree/tree_questions.h"

#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/tree_shape.h"

namespace coppice::mpi {
namespace {

// What waits for the thread that asks meanwhile. The process's own, which is never destroyed.
struct Waiting {
  std::mutex mutex;  // of all; nobody is called under it
  std::condition_variable wakes;
  std::thread thread;
  std::deque<std::shared_ptr<TreeQuestion>> questions;
  // Trees that are to be given back, by the thread or another.
  std::vector<std::pair<uint64_t, std::vector<coppice_way_time>>> unused;
  bool is_giving_back = false, is_stopping = false;
};

Waiting& TheWaiting() {
  static auto* const waiting = new Waiting;
  return *waiting;
}

// By operation and length, without times by which runs differed much.
std::vector<KnownTimes> KnownTimesOf(const coppice_way_time* times, uint32_t count) {
  std::map<std::pair<coppice_operation, uint32_t>, KnownTimes> known;
  for (uint32_t i = 0; i < count; ++i) {
    const coppice_way_time& time = times[i];
    if (time.spread > KnownTimes::kMaxSpread) continue;
    KnownTimes& of_length = known[{time.operation, time.length_bits}];
    of_length.operation = static_cast<uint8_t>(time.operation);
    of_length.bits = static_cast<uint8_t>(time.length_bits);
    of_length.us[time.way - COPPICE_WAY_NATIVE] = static_cast<float>(time.us);
  }
  std::vector<KnownTimes> list;
  for (const auto& [of, times_of_length] : known) list.push_back(times_of_length);
  if (list.size() > KnownTimes::kMaxTold) list.resize(KnownTimes::kMaxTold);
  return list;
}

// How its members use the switches. False: they cannot, as no switch carries it or one is away.
bool ReadCarriage(const coppice_tree* tree, GrantedTree* granted) {
  coppice_carriage carriage = COPPICE_INIT(carriage);
  if (coppice_tree_carriage(tree, &carriage) != COPPICE_OK) return false;
  CarriageTerms& terms = granted->terms;
  static_assert(sizeof(terms.key) == COPPICE_KEY_BYTES);
  std::memcpy(terms.key.data(), carriage.key, sizeof(terms.key));
  terms.segment_bytes = carriage.segment_bytes;
  terms.window = carriage.window;
  terms.operations = carriage.operations;
  terms.types = carriage.types;
  for (uint32_t node = coppice_tree_ranks(tree); node < coppice_tree_nodes(tree); ++node) {
    const std::string address = coppice_tree_switch_address(tree, node);
    if (address.empty()) return false;
    granted->addresses += address + "\n";
  }
  terms.address_bytes = static_cast<uint32_t>(granted->addresses.size());
  return granted->is_carried = true;
}

// Reads and frees it. None if it is no tree over `ranks` ranks that these could use.
GrantedTree ReadTree(coppice_tree* tree, size_t ranks) {
  GrantedTree granted;
  granted.revision = coppice_tree_revision(tree);
  granted.reason = coppice_tree_reason(tree);
  const int32_t* const parents = coppice_tree_parents(tree);
  if (coppice_tree_ranks(tree) == ranks && parents != nullptr) {
    granted.parents.assign(parents, parents + ranks);
    const int32_t* const order = coppice_tree_order(tree);
    if (order != nullptr) granted.order.assign(order, order + ranks);
    for (uint32_t number = 0; number < coppice_forest_trees(tree); ++number) {
      granted.shares.push_back(coppice_forest_share(tree, number));
      const int32_t* const of = coppice_forest_parents(tree, number);
      granted.forest_parents.insert(granted.forest_parents.end(), of, of + ranks);
    }
    granted.known = KnownTimesOf(coppice_tree_known(tree), coppice_tree_known_count(tree));
    TreeShape shape;
    const bool is_usable = coppice_tree_nodes(tree) == ranks
                               ? MakeTreeShape(granted.parents, 0, &shape)
                               : ReadCarriage(tree, &granted);
    if (is_usable) granted.id = coppice_tree_id(tree);
  }
  coppice_tree_free(tree);
  return granted;
}

// [TreesType]
constexpr coppice_tree_type kTypes[] = {COPPICE_TREE_AUTO, COPPICE_TREE_TYPE_I,
                                        COPPICE_TREE_TYPE_II};

void AnswerUntilStopped() {
  Waiting& waiting = TheWaiting();
  std::unique_lock<std::mutex> lock(waiting.mutex);
  for (;;) {
    waiting.wakes.wait(lock, [&] {
      return waiting.is_stopping || waiting.is_giving_back || !waiting.questions.empty();
    });
    if (waiting.is_stopping) return;
    if (waiting.questions.empty()) {
      waiting.is_giving_back = false;
      lock.unlock();
      GiveBackAll(Waits::kMeanwhile);
    } else {
      const std::shared_ptr<TreeQuestion> question = std::move(waiting.questions.front());
      waiting.questions.pop_front();
      lock.unlock();
      question->Ask(Waits::kMeanwhile);
    }
    lock.lock();
  }
}

// Its mutex is held. Signals are the program's threads' business.
bool HasThread(Waiting& waiting) {
  if (waiting.is_stopping) return false;
  if (waiting.thread.joinable()) return true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  HasMemoryFor([&] {  // or the system has no thread to give
    waiting.thread = std::thread(AnswerUntilStopped);
    return true;
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return waiting.thread.joinable();
}

}  // namespace

GrantedTree AskAgain(uint64_t id, size_t ranks) {
  coppice_tree* tree = nullptr;
  const Session::Answer answer = Session::Get().Ask(
      [&](coppice_client* client) { return coppice_tree_get(client, id, &tree); });
  GrantedTree granted;
  if (answer.status == COPPICE_OK) granted = ReadTree(tree, ranks);
  granted.known.clear();  // of the revision before
  granted.wasted_ms = answer.wasted_ms;
  return granted;
}

void GiveBack(uint64_t id, std::vector<coppice_way_time> measured) {
  Waiting& waiting = TheWaiting();
  const std::lock_guard<std::mutex> lock(waiting.mutex);
  HasMemoryFor([&] {  // or it is given back with the job
    waiting.unused.emplace_back(id, std::move(measured));
    return true;
  });
}

void GiveBackAll(Waits waits) {
  decltype(Waiting::unused) now;
  {
    const std::lock_guard<std::mutex> lock(TheWaiting().mutex);
    now.swap(TheWaiting().unused);
  }
  const char* const application = Session::Get().settings().agreed_application;
  for (auto& [tree, measured] : now) {
    const auto release = [id = tree, &times = measured, application](coppice_client* client) {
      if (!times.empty()) {
        const coppice_status status = coppice_tree_release_measured(
            client, id, application, times.data(), static_cast<uint32_t>(times.size()));
        const bool is_over = status == COPPICE_OK || status == COPPICE_NOT_FOUND;
        const bool is_away = status == COPPICE_UNAVAILABLE || status == COPPICE_DEADLINE_EXCEEDED;
        if (is_over || is_away) return status;  // else it is given back without them
      }
      return coppice_tree_release(client, id);
    };
    if (!Session::Get().Ask(release, {}, waits).IsThere()) GiveBack(tree, std::move(measured));
  }
}

GrantedTree TreeQuestion::AskForTree(Waits waits, std::string* why_not) const {
  CountTree(kCountAsked);
  coppice_tree_request request = {};
  request.size = sizeof(request);
  request.job = Session::Get().Job();
  request.ranks = world_ranks_.data();
  request.rank_count = static_cast<uint32_t>(world_ranks_.size());
  request.operation = operation_;
  request.bytes = bytes_;
  request.type = kTypes[static_cast<size_t>(type_)];
  request.carried = type_ == TreesType::kRanks ? 0 : 1;
  if (type_ != TreesType::kSwitches) request.max_trees = max_trees_;
  const Settings& settings = Session::Get().settings();
  if (!settings.IsWayFixed()) request.application = settings.agreed_application;
  coppice_tree* tree = nullptr;
  const int work_ms = request.max_trees > 1 ? COPPICE_FOREST_MS : 0;
  Session::Answer answer = Session::Get().Ask(
      [&](coppice_client* client) { return coppice_tree_create(client, &request, &tree); },
      std::chrono::milliseconds(work_ms), waits);
  GrantedTree granted;
  if (answer.status != COPPICE_OK) {
    *why_not = std::move(answer.why_not);
    granted.wasted_ms = answer.wasted_ms;
    return granted;
  }
  const uint64_t id = coppice_tree_id(tree);
  granted = ReadTree(tree, world_ranks_.size());
  if (granted.id == 0) {
    *why_not = "tree " + std::to_string(id) + " is none that its ranks could use";
    GiveBack(id);
  } else {
    CountTree(kCountGranted);
  }
  return granted;
}

void TreeQuestion::Ask(Waits waits) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_dropped_) return;
  }
  GrantedTree granted;
  std::string why_not = "there is no memory for it";
  HasMemoryFor([&] {
    granted = AskForTree(waits, &why_not);
    return true;
  });
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
  Waiting& waiting = TheWaiting();
  const std::lock_guard<std::mutex> lock(waiting.mutex);
  if (!HasThread(waiting)) return false;
  waiting.questions.push_back(std::move(question));
  waiting.wakes.notify_one();
  return true;
}

void TellWhatIsGivenBack() {
  Waiting& waiting = TheWaiting();
  const std::lock_guard<std::mutex> lock(waiting.mutex);
  if (waiting.unused.empty() || !HasThread(waiting)) return;
  waiting.is_giving_back = true;
  waiting.wakes.notify_one();
}

void StopAskingMeanwhile() {
  Waiting& waiting = TheWaiting();
  {
    const std::lock_guard<std::mutex> lock(waiting.mutex);
    waiting.is_stopping = true;
    waiting.questions.clear();
    waiting.wakes.notify_one();
  }
  if (waiting.thread.joinable()) waiting.thread.join();
}

}  // namespace coppice::mpi
