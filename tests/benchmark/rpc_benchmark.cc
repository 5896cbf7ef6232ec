// How many durable CreateTree + ReleaseTree calls a second the daemon answers, as a share of the
// empty unary calls that the same server answers to the same clients over the same Unix socket.
//
// Trees: 64 ranks drawn anew for each call out of the 512 ports of the standard fat tree, half of
// them type II, the full view in the reply, SQLite with synchronous=FULL. Each call counts once.
// Client and server share the process and the machine's cores. Empty calls (service Empty, a
// callback service that the benchmark registers beside the daemon's own) and tree calls take turns
// of one second, so that other load on the machine meets both alike. The processor time of a call,
// client's and server's together, is told beside it: it hardly depends on what else runs.
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "coppice/v1/jobs.grpc.pb.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/server.h"
#include "db/sqlite_store.h"
#include "tests/benchmark/empty.grpc.pb.h"

namespace coppice {
namespace {

using benchmark::EmptyMessage;

constexpr uint32_t kPorts = 512;
constexpr uint32_t kMembers = 64;
constexpr auto kTurn = std::chrono::seconds(1);

class EmptyService final : public benchmark::Empty::CallbackService {
  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* context, const EmptyMessage*,
                                 EmptyMessage*) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "rpc_benchmark: %s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

// The daemon's parts on the 512-port fabric and a database of its own.
class Daemon {
 public:
  Daemon() {
    char name[] = "rpc_benchmark-XXXXXX";
    directory_ = std::filesystem::absolute(mkdtemp(name)).string();
    port_ = Must(OfflineSubnetPort::Create("model:fat-tree()"));
    store_ = Must(SqliteStore::Open(directory_ + "/coppice.db"));
    ManagerOptions options;
    options.profile = *BuiltInProfile("hdr");
    CapabilityRule rule;
    rule.description = "*";
    rule.entries = 256;
    rule.degree_limit = 64;
    options.capability_rules = {rule};
    options.default_lease = absl::Hours(24);
    manager_ = Must(Manager::Create(store_.get(), port_.get(), &SystemClock(), options));
    manager_->Start();
    Must(manager_->Sweep());
    RpcServerOptions server;
    server.listen = {"unix:" + directory_ + "/s"};
    mapper_ = std::make_unique<RankMapper>(manager_.get(), &SystemClock(), MapperOptions());
    orders_ = std::make_unique<OrderStore>(store_.get(), manager_.get(), &SystemClock());
    patterns_ =
        Must(PatternStore::Create(store_.get(), &SystemClock(), 1 << 20, &manager_->quotas()));
    distances_ = Must(DistanceStore::Create(store_.get()));
    meter_ = std::make_unique<DistanceMeter>(manager_.get(), distances_.get(), &SystemClock());
    server_ = Must(RpcServer::Start({manager_.get(), mapper_.get(), orders_.get(), patterns_.get(),
                                     meter_.get(), distances_.get()},
                                    server, {&empty_}));
  }
  ~Daemon() {
    server_->Shutdown(absl::Seconds(10));
    server_.reset();
    meter_.reset();
    distances_.reset();
    patterns_.reset();
    orders_.reset();
    mapper_.reset();
    manager_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::shared_ptr<grpc::Channel> Connect() {
    return grpc::CreateChannel(server_->addresses()[0], grpc::InsecureChannelCredentials());
  }

 private:
  std::string directory_;
  EmptyService empty_;
  std::unique_ptr<OfflineSubnetPort> port_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<RankMapper> mapper_;
  std::unique_ptr<OrderStore> orders_;
  std::unique_ptr<PatternStore> patterns_;
  std::unique_ptr<DistanceStore> distances_;
  std::unique_ptr<DistanceMeter> meter_;
  std::unique_ptr<RpcServer> server_;
};

// One call in flight: when it is answered the next is sent, until the turn is over and what it
// holds is given back.
class Slot {
 public:
  Slot(const std::shared_ptr<grpc::Channel>& channel, std::string job, uint64_t seed)
      : empty_(benchmark::Empty::NewStub(channel)),
        trees_(v1::Trees::NewStub(channel)),
        job_(std::move(job)),
        random_(seed) {
    for (uint32_t rank = 0; rank < kPorts; ++rank) ranks_.push_back(rank);
  }

  void RunEmpty(const std::atomic<bool>* over, absl::BlockingCounter* running) {
    if (*over) return (void)running->DecrementCount();
    context_ = std::make_unique<grpc::ClientContext>();
    empty_->async()->Call(context_.get(), &nothing_, &nothing_back_,
                          [this, over, running](const grpc::Status& status) {
                            Count(status);
                            RunEmpty(over, running);
                          });
  }

  void RunTrees(const std::atomic<bool>* over, absl::BlockingCounter* running) {
    if (*over) return (void)running->DecrementCount();
    Draw();
    context_ = std::make_unique<grpc::ClientContext>();
    trees_->async()->CreateTree(context_.get(), &create_, &tree_,
                                [this, over, running](const grpc::Status& status) {
                                  Count(status);
                                  Release(over, running);
                                });
  }

  uint64_t TakeCount() { return std::exchange(count_, 0); }

 private:
  void Release(const std::atomic<bool>* over, absl::BlockingCounter* running) {
    release_.set_id(tree_.id());
    context_ = std::make_unique<grpc::ClientContext>();
    trees_->async()->ReleaseTree(context_.get(), &release_, &released_,
                                 [this, over, running](const grpc::Status& status) {
                                   Count(status);
                                   RunTrees(over, running);
                                 });
  }

  // Other members than ever before, in random order; every second tree is of type II.
  void Draw() {
    create_.Clear();
    create_.set_job_id(job_);
    for (uint32_t i = 0; i < kMembers; ++i) {
      std::swap(ranks_[i], ranks_[i + random_() % (kPorts - i)]);
      create_.add_ranks(ranks_[i]);
    }
    wants_type_ii_ = !wants_type_ii_;
    create_.set_type(wants_type_ii_ ? v1::TREE_TYPE_II : v1::TREE_TYPE_I);
  }

  void Count(const grpc::Status& status) {
    ++count_;
    if (status.ok()) return;
    std::fprintf(stderr, "rpc_benchmark: %s\n", status.error_message().c_str());
    std::abort();
  }

  std::unique_ptr<benchmark::Empty::Stub> empty_;
  std::unique_ptr<v1::Trees::Stub> trees_;
  const std::string job_;
  std::mt19937_64 random_;
  std::vector<uint32_t> ranks_;
  bool wants_type_ii_ = false;
  uint64_t count_ = 0;
  std::unique_ptr<grpc::ClientContext> context_;
  EmptyMessage nothing_, nothing_back_;
  v1::CreateTreeRequest create_;
  v1::Tree tree_;
  v1::ReleaseTreeRequest release_;
  v1::ReleaseTreeResponse released_;
};

using Run = void (Slot::*)(const std::atomic<bool>*, absl::BlockingCounter*);

double ProcessorSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Turns {
  double calls = 0, seconds = 0, processor_seconds = 0;
  double rate() const { return calls / seconds; }
  double processor_us() const { return 1e6 * processor_seconds / calls; }
};

// Lets all slots call for one turn and adds it up.
void Take(std::vector<std::unique_ptr<Slot>>& slots, Run run, Turns& turns) {
  std::atomic<bool> over = false;
  absl::BlockingCounter running(static_cast<int>(slots.size()));
  const double processor_start = ProcessorSeconds();
  const auto start = std::chrono::steady_clock::now();
  for (auto& slot : slots) ((*slot).*run)(&over, &running);
  std::this_thread::sleep_until(start + kTurn);
  over = true;
  running.Wait();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  turns.processor_seconds += ProcessorSeconds() - processor_start;
  turns.seconds += elapsed.count();
  for (auto& slot : slots) turns.calls += static_cast<double>(slot->TakeCount());
}

std::vector<std::unique_ptr<Slot>> MakeSlots(const std::shared_ptr<grpc::Channel>& channel,
                                             const std::string& job, int64_t count) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (int64_t i = 0; i < count; ++i) {
    slots.push_back(std::make_unique<Slot>(channel, job, static_cast<uint64_t>(i)));
  }
  return slots;
}

void CreateAndReleaseTrees(::benchmark::State& state) {
  Daemon daemon;
  const std::shared_ptr<grpc::Channel> channel = daemon.Connect();
  grpc::ClientContext context;
  v1::RegisterJobRequest request;
  request.set_all_endpoints(true);
  v1::Job job;
  if (!v1::Jobs::NewStub(channel)->RegisterJob(&context, request, &job).ok()) {
    return state.SkipWithError("no job");
  }
  auto slots = MakeSlots(channel, job.id(), state.range(0));
  Turns warm_up, empty, trees;
  Take(slots, &Slot::RunEmpty, warm_up);  // connects
  Take(slots, &Slot::RunTrees, warm_up);
  for (auto _ : state) {
    Take(slots, &Slot::RunEmpty, empty);
    Take(slots, &Slot::RunTrees, trees);
  }
  state.counters["empty_per_s"] = empty.rate();
  state.counters["tree_calls_per_s"] = trees.rate();
  state.counters["ratio"] = trees.rate() / empty.rate();
  state.counters["empty_cpu_us"] = empty.processor_us();
  state.counters["tree_cpu_us"] = trees.processor_us();
  state.counters["cpu_ratio"] = empty.processor_us() / trees.processor_us();
}
BENCHMARK(CreateAndReleaseTrees)
    ->ArgName("in_flight")
    ->Arg(64)
    ->Arg(4)
    ->Arg(1)
    ->Iterations(4)
    ->Unit(::benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace coppice

BENCHMARK_MAIN();
