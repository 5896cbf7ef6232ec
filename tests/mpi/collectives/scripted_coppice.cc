// A libcoppice without an agent, for tests: trees of every shape, planned anew or revoked whenever
// it likes. All processes of a program share what was granted by a file:
//
//   COPPICE_TEST_SCRIPT          the file, empty at first
//   COPPICE_TEST_SCRIPT_SHAPES   letters of the shapes: k k-ary, n k-nomial, c chain, s star,
//                                r random
//   COPPICE_TEST_SCRIPT_CHANGES  "revise", "revoke" or "" for none: what happens to trees at
//                                random; "forget": revised, and nobody can say what they are now
//   COPPICE_TEST_SCRIPT_SEED     of all that is random
//   COPPICE_TEST_SCRIPT_MAP      "silent": who asks for an order waits in vain; "score S": the last
//                                node's process goes first and the first one's last, which is S
//                                times the present order; N: there are none, which is found out
//                                N ms after the search's time; else at once
//   COPPICE_TEST_SCRIPT_TREES    "silent": who asks for a tree waits in vain, and says so
//   COPPICE_TEST_SCRIPT_WAITS    anything: the program's own thread says so if it asks for a tree
//   COPPICE_TEST_SCRIPT_MEMORY   N: one of N pieces of the preloaded library's memory is refused,
//                                half of those above 4 KiB; at each rank others
//   COPPICE_TEST_SCRIPT_STARVED  anything, set by a program for as long as the preloaded library
//                                gets no object at all in its first thread
//
// At the end the job says on stderr how many trees were granted and how many were not given back,
// and how many for how many bytes; and each process how often it had no memory. What the preloaded
// library does not call is not here.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/library/coppice.h"

namespace {

constexpr uint32_t kMaxTrees = 1U << 16U;

// Begins with zeroes, as the file.
struct Entry {
  std::atomic<uint32_t> ranks;
  std::atomic<uint32_t> revision;
  std::atomic<uint32_t> is_gone;
  std::atomic<uint32_t> is_released;
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> max_trees;
};

struct Script {
  std::atomic<uint32_t> granted;
  Entry trees[kMaxTrees];  // [id]; there is none with number 0
};

std::string Variable(const char* name, const char* preset) {
  const char* const value = std::getenv(name);
  return value == nullptr ? preset : value;
}

Script* Shared() {
  static Script* const shared = [] {
    const int file = open(Variable("COPPICE_TEST_SCRIPT", "").c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Script)) != 0) std::abort();
    void* const memory = mmap(nullptr, sizeof(Script), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) std::abort();
    close(file);
    return static_cast<Script*>(memory);
  }();
  return shared;
}

uint64_t Seed() { return std::stoull(Variable("COPPICE_TEST_SCRIPT_SEED", "1")); }

std::vector<int32_t> Parents(uint32_t id, uint32_t revision, uint32_t ranks) {
  std::mt19937_64 random(Seed() * 1000003 + id * 257 + revision);
  const std::string shapes = Variable("COPPICE_TEST_SCRIPT_SHAPES", "kncsr");
  std::vector<int32_t> parents(ranks, -1);
  const char shape = shapes[random() % shapes.size()];
  const auto width = static_cast<int32_t>(2 + random() % 4);
  for (int32_t rank = 1; rank < static_cast<int32_t>(ranks); ++rank) {
    int32_t digit = 1;
    while (rank / digit % width == 0) digit *= width;
    switch (shape) {
      case 'k':
        parents[rank] = (rank - 1) / width;
        break;
      case 'n':
        parents[rank] = rank - rank / digit % width * digit;
        break;
      case 'c':
        parents[rank] = rank - 1;
        break;
      case 's':
        parents[rank] = 0;
        break;
      default:
        parents[rank] = static_cast<int32_t>(random() % rank);
    }
  }
  if (shape != 'r') return parents;
  std::vector<int32_t> place(ranks);  // and the root is anywhere
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), random);
  std::vector<int32_t> moved(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    moved[place[rank]] = parents[rank] < 0 ? -1 : place[parents[rank]];
  }
  return moved;
}

// Of some ways of most collectives, each time others the soonest.
std::vector<coppice_way_time> SomeTimes(uint64_t id) {
  std::mt19937_64 random(Seed() * 1000003 + id);
  std::vector<coppice_way_time> times;
  for (const auto operation : {COPPICE_OPERATION_ALLREDUCE, COPPICE_OPERATION_BARRIER,
                               COPPICE_OPERATION_BCAST, COPPICE_OPERATION_REDUCE}) {
    for (uint32_t bits = 0; bits < 24; ++bits) {
      const uint64_t missing = random() % 12;
      for (int way = COPPICE_WAY_NATIVE; way <= COPPICE_WAY_FOREST; ++way) {
        if (static_cast<uint64_t>(way) == missing) continue;
        const double us = 1 + static_cast<double>(random() % 100);
        times.push_back(
            {operation, bits, static_cast<coppice_way>(way), 1, us, random() % 20 == 0 ? 0.5 : 0});
      }
    }
  }
  return times;
}

// Pieces of memory that were refused.
class Refusals final {
 public:
  ~Refusals() {
    if (count_ > 0) std::fprintf(stderr, "script: no memory %d times\n", count_.load());
  }
  bool Next(size_t bytes) {
    const bool is_refused = refused_ > 0 && random_() % (bytes > 4096 ? 2 : refused_) == 0;
    if (is_refused) ++count_;
    return is_refused;
  }

 private:
  const uint64_t refused_ =
      std::stoull(Variable("COPPICE_TEST_SCRIPT_MEMORY", "0"));  // one of so many
  std::mt19937_64 random_{Seed() * 1000003 + static_cast<uint64_t>(getpid())};
  std::atomic<int> count_ = 0;
};

}  // namespace

struct coppice_tree {
  uint64_t id;
  uint32_t revision;
  std::vector<std::vector<int32_t>> trees;  // more than one: a forest
  std::vector<coppice_way_time> known;
};

struct coppice_order {
  std::vector<uint32_t> positions;
  double score;
};

struct coppice_client {
  std::atomic<bool> is_closing = false;
  std::thread watch;

  // Looks every millisecond what others, or it itself, did to the trees.
  void Watch(coppice_watch_function function, void* context) {
    std::mt19937_64 random(Seed() + static_cast<uint64_t>(getpid()));
    const std::string changes = Variable("COPPICE_TEST_SCRIPT_CHANGES", "");
    std::vector<uint32_t> revisions(kMaxTrees, 1);
    std::vector<uint32_t> gone(kMaxTrees, 0);
    Script* const script = Shared();
    while (!is_closing) {
      const uint32_t granted = script->granted;
      if (granted > 0 && !changes.empty()) {
        Entry& entry = script->trees[1 + random() % granted];
        if (changes == "revise" || changes == "forget") ++entry.revision;
        if (changes == "revoke" && random() % 16 == 0) entry.is_gone = 1;
      }
      for (uint32_t id = 1; id <= granted; ++id) {
        const Entry& entry = script->trees[id];
        if (entry.revision > revisions[id]) {
          revisions[id] = entry.revision;
          function(context, COPPICE_CHANGE_REVISED, id, revisions[id], "as it likes");
        }
        if (entry.is_gone > gone[id]) {
          gone[id] = 1;
          function(context, COPPICE_CHANGE_REVOKED, id, entry.revision, "as it likes");
        }
      }
      poll(nullptr, 0, 1);  // between two looks
    }
  }
};

extern "C" {

// Of the preloaded library (its linker's --wrap=malloc), whose only pieces they are.
void* __real_malloc(size_t bytes);
void* __wrap_malloc(size_t bytes) {
  static Refusals refusals;
  return refusals.Next(bytes) ? nullptr : __real_malloc(bytes);
}

// By its --wrap=_Znwm: operator new.
void* __real__Znwm(size_t bytes);
void* __wrap__Znwm(size_t bytes) {
  if (gettid() == getpid() && std::getenv("COPPICE_TEST_SCRIPT_STARVED")) throw std::bad_alloc();
  return __real__Znwm(bytes);
}

const char* coppice_last_error() { return "the script has no more to say"; }

coppice_status coppice_open(const char*, uint32_t, coppice_client** client) {
  *client = new coppice_client;
  return COPPICE_OK;
}

void coppice_close(coppice_client* client) {
  if (client == nullptr) return;
  client->is_closing = true;
  if (client->watch.joinable()) client->watch.join();
  delete client;
}

coppice_status coppice_query(coppice_client*, coppice_capabilities* answer) {
  // Each process is on a host of its own, unless COPPICE_HOST says otherwise.
  std::snprintf(answer->host, sizeof(answer->host), "n%d", static_cast<int>(getpid()));
  answer->connected = 1;
  return COPPICE_OK;
}

coppice_status coppice_job_register(coppice_client*, const coppice_job_request*, uint64_t* job) {
  *job = 1;
  return COPPICE_OK;
}

coppice_status coppice_job_end(coppice_client*, uint64_t) {
  const Script& script = *Shared();
  uint32_t left = 0;
  std::map<uint64_t, int> asked;
  for (uint32_t id = 1; id <= script.granted; ++id) {
    if (!script.trees[id].is_released) ++left;
    ++asked[script.trees[id].bytes];
  }
  for (const auto& [bytes, times] : asked) {
    std::fprintf(stderr, "script: for %llu bytes %d\n", static_cast<unsigned long long>(bytes),
                 times);
  }
  std::fprintf(stderr, "script: granted %u left %u\n", script.granted.load(), left);
  return COPPICE_OK;
}

coppice_status coppice_tree_get(coppice_client*, uint64_t id, coppice_tree** tree) {
  const Entry& entry = Shared()->trees[id];
  if (entry.is_gone) return COPPICE_NOT_FOUND;
  if (entry.revision > 1 && Variable("COPPICE_TEST_SCRIPT_CHANGES", "") == "forget") {
    return COPPICE_RESOURCE_EXHAUSTED;
  }
  const uint32_t revision = entry.revision;
  *tree = new coppice_tree{id, revision, {}, SomeTimes(id)};
  // Of a forest each time another number.
  const uint32_t trees = entry.max_trees > 1 ? 1 + (id + revision) % entry.max_trees : 1;
  for (uint32_t number = 0; number < trees; ++number) {
    (*tree)->trees.push_back(
        Parents(static_cast<uint32_t>(id), revision + 1000 * number, entry.ranks));
  }
  return COPPICE_OK;
}

coppice_status coppice_tree_create(coppice_client* client, const coppice_tree_request* request,
                                   coppice_tree** tree) {
  Script* const script = Shared();
  if (!Variable("COPPICE_TEST_SCRIPT_WAITS", "").empty() && gettid() == getpid()) {
    std::fprintf(stderr, "script: the program waits\n");
  }
  if (Variable("COPPICE_TEST_SCRIPT_TREES", "") == "silent") {
    std::fprintf(stderr, "script: somebody waits in vain\n");
    poll(nullptr, 0, 200);
    return COPPICE_DEADLINE_EXCEEDED;
  }
  const uint32_t id = ++script->granted;
  if (id >= kMaxTrees) return COPPICE_RESOURCE_EXHAUSTED;
  script->trees[id].ranks = request->rank_count;
  script->trees[id].bytes = request->bytes;
  script->trees[id].max_trees = request->max_trees;
  ++script->trees[id].revision;
  return coppice_tree_get(client, id, tree);
}

coppice_status coppice_tree_release(coppice_client*, uint64_t id) {
  Shared()->trees[id].is_released = 1;
  return COPPICE_OK;
}
coppice_status coppice_tree_release_measured(coppice_client* client, uint64_t id, const char*,
                                             const coppice_way_time*, uint32_t) {
  return coppice_tree_release(client, id);
}
uint32_t coppice_tree_known_count(const coppice_tree* tree) {
  return static_cast<uint32_t>(tree->known.size());
}
const coppice_way_time* coppice_tree_known(const coppice_tree* tree) { return tree->known.data(); }
void coppice_tree_free(coppice_tree* tree) { delete tree; }
uint64_t coppice_tree_id(const coppice_tree* tree) { return tree->id; }
uint32_t coppice_tree_revision(const coppice_tree* tree) { return tree->revision; }
uint32_t coppice_tree_ranks(const coppice_tree* tree) {
  return static_cast<uint32_t>(tree->trees[0].size());
}
uint32_t coppice_tree_nodes(const coppice_tree* tree) { return coppice_tree_ranks(tree); }
const int32_t* coppice_tree_parents(const coppice_tree* tree) { return tree->trees[0].data(); }
uint32_t coppice_forest_trees(const coppice_tree* tree) {
  return tree->trees.size() > 1 ? static_cast<uint32_t>(tree->trees.size()) : 0;
}
// Unequal, and some of them without an element of a short message.
double coppice_forest_share(const coppice_tree* tree, uint32_t number) {
  const auto trees = static_cast<double>(tree->trees.size());
  return 2 * (number + 1) / (trees * (trees + 1));
}
const int32_t* coppice_forest_parents(const coppice_tree* tree, uint32_t number) {
  return tree->trees[number].data();
}
const int32_t* coppice_tree_order(const coppice_tree*) { return nullptr; }
const char* coppice_tree_reason(const coppice_tree*) { return "type I: by the script"; }
coppice_status coppice_tree_carriage(const coppice_tree*, coppice_carriage*) {
  return COPPICE_NOT_FOUND;
}
const char* coppice_tree_switch_address(const coppice_tree*, uint32_t) { return ""; }

coppice_status coppice_watch_trees(coppice_client* client, uint64_t,
                                   coppice_watch_function function, void* context) {
  client->watch = std::thread([=] { client->Watch(function, context); });
  return COPPICE_OK;
}

coppice_status coppice_map(coppice_client*, const coppice_map_request* request,
                           coppice_order** order) {
  const std::string how = Variable("COPPICE_TEST_SCRIPT_MAP", "");
  const std::string score = "score ";
  if (how == "silent") return COPPICE_DEADLINE_EXCEEDED;
  if (how.compare(0, score.size(), score) == 0) {
    *order = new coppice_order{std::vector<uint32_t>(request->rank_count),
                               std::stod(how.substr(score.size()))};
    std::iota((*order)->positions.rbegin(), (*order)->positions.rend(), 0U);
    return COPPICE_OK;
  }
  if (!how.empty()) poll(nullptr, 0, static_cast<int>(request->budget_ms) + std::stoi(how));
  return COPPICE_UNIMPLEMENTED;
}
void coppice_order_free(coppice_order* order) { delete order; }
uint32_t coppice_order_ranks(const coppice_order* order) {
  return static_cast<uint32_t>(order->positions.size());
}
const uint32_t* coppice_order_positions(const coppice_order* order) {
  return order->positions.data();
}
double coppice_order_score(const coppice_order* order) { return order->score; }
const char* coppice_order_reason(const coppice_order*) { return ""; }
coppice_status coppice_pattern_put(coppice_client*, const coppice_pattern*) {
  return COPPICE_UNIMPLEMENTED;
}

}  // extern "C"
