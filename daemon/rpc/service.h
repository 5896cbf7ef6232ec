// What every service of the daemon is: a table of methods, each of which is said once, by the
// constructor: its name, how its calls are bounded, where they run and what handles them. Handlers
// are short: convert, one call, status. Who may call is decided before them (access_table.h).
//
//   unary call --may the caller?--> at once, or on a worker --handler--> End
//
// Services are no classes of gRPC's: BoundedService puts them behind the bounds of their callers.
#ifndef COPPICE_DAEMON_RPC_SERVICE_H_
#define COPPICE_DAEMON_RPC_SERVICE_H_

#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/message_allocator.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/access_table.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/server.h"

namespace coppice {

class Connections;

namespace v1 {
class AgentHello;
class Job;
class PingPongResult;
class SwitchAgent;
class SwitchHello;
class SwitchReport;
}  // namespace v1

// Calls of one caller that may wait for a worker: each holds its request, which may be large.
inline constexpr size_t kMaxWaitingCalls = 256;
// More ranks than this are looked up, or told, on a worker: about a millisecond's work.
inline constexpr size_t kMaxRanksInline = 2048;

// One call under way, counted in the statistics of its method. Deletes itself when it is done; its
// request and its response live as long.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(MethodStatistics::Method* method, Peers* peers,
            const grpc::CallbackServerContext* context, std::string object)
      : method_(method), peers_(peers), context_(context), object_(std::move(object)) {}

  // As Peers::Authorise.
  absl::Status Authorise(absl::string_view path) {
    ASSIGN_OR_RETURN(peer_, peers_->Authorise(*context_, path, object_));
    return absl::OkStatus();
  }
  // For whom it is. Only of methods that more is asked of than to read.
  const Peer& peer() const { return *peer_; }
  // The same of any method, whoever may call it.
  Peer caller() const { return peer_ ? *peer_ : peers_->Identify(*context_); }
  std::string user() const { return peer_ ? peer_->user : peers_->Identify(*context_).user; }
  // The client has gone.
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

  // It only asks, though others of its method change something: going well is no deed.
  void ChangesNothing() { is_deed_ = false; }
  // Ends the call, once; `this` may be gone afterwards. RESOURCE_EXHAUSTED instead: its caller has
  // left too much unread.
  void End(absl::Status result) {
    grpc::Status status = ToWire(std::move(result), object_);
    if (status.ok() && peer_ && is_deed_) peers_->NoteDone(*peer_, object_);
    if (status.ok()) status = ToWire(bounds_->HoldAnswer(), "answer");
    const auto took = std::chrono::nanoseconds(Clock::now() - begun_);
    method_->Ended(static_cast<absl::StatusCode>(status.error_code()), took.count());
    Finish(status);
  }
  // Has a worker run `task`, which ends the call; callers take turns. One whose client has gone by
  // then, or has left too much unread, does not run. UNAVAILABLE at once: `most` others of the
  // caller wait already.
  void RunOn(WorkerPool* workers, WorkerPool::Task task, size_t most = kMaxWaitingCalls) {
    auto run = [this, task = std::move(task)]() mutable {
      const absl::Status needless = WhyNot();
      if (needless.ok()) return task();
      End(needless);
    };
    const auto queued = workers->SubmitUnlessFull(std::move(run), most, bounds_->caller());
    if (!queued.ok()) End(queued.status());
  }
  // Runs `task`, which builds an answer of so many ranks and ends the call with it: at once, or on
  // a worker, as others wait for the threads of gRPC and of the store. Never refused, as what it
  // tells may have been done.
  template <class Task>
  void AnswerRanks(WorkerPool* workers, size_t ranks, Task task) {
    if (ranks <= kMaxRanksInline) return task();
    workers->Submit(std::move(task), bounds_->caller());
  }

  void OnCancel() override { is_cancelled_.store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

 private:
  using Clock = std::chrono::steady_clock;
  // Why its work is not to be begun; OK: it is.
  absl::Status WhyNot() const {
    return is_cancelled() ? absl::CancelledError("the client went away") : bounds_->CanAnswer();
  }

  MethodStatistics::Method* const method_;
  Peers* const peers_;
  const grpc::CallbackServerContext* const context_;
  const std::string object_;  // what it is about, as errors and deeds name it: "job:7"
  const std::shared_ptr<CallUnderWay> bounds_ = CallUnderWay::OfThisThread();
  const Clock::time_point begun_ = Clock::now();
  std::optional<Peer> peer_;
  bool is_deed_ = true;  // if its method is one of deeds
  std::atomic<bool> is_cancelled_{false};
};

// Workers of services. Batches, searches and placements, which take seconds, have some of their
// own, so that no single tree queues behind them, and take what processor time others leave.
struct WorkerPools {
  explicit WorkerPools(const RpcServerOptions& options,
                       const WorkerPool::ShareFor& share_for = nullptr);

  WorkerPool calls, batches, searches, patterns, placements;
};

// What services are made of. All of it outlives them and every call.
struct ServiceParts {
  ServedParts served;
  const RpcServerOptions* options = nullptr;
  Peers* peers = nullptr;
  MethodStatistics* statistics = nullptr;
  WorkerPools* pools = nullptr;
  std::function<DaemonNumbers()> numbers = nullptr;
};

struct MethodTraits {
  bool is_bulk = false;        // its requests may be as large as any; others up to 1 MiB
  bool is_change = false;      // what it answers has been done, and is told whatever room there is
  WorkerPool* pool = nullptr;  // that its handler runs on; null: gRPC's threads, which are few
  size_t most_waiting = kMaxWaitingCalls;
};

// Thread-safe once it is made.
class Service {
 public:
  using Traits = MethodTraits;
  struct Method {
    std::string name;  // "CreateTree"
    Traits traits;
    std::unique_ptr<grpc::internal::MethodHandler> handler;
    // The answer in what gRPC holds for a unary call; null: of another kind.
    google::protobuf::Message* (*answer_of)(void* holder) = nullptr;
  };

  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::string& name() const { return name_; }  // "coppice.v1.Trees"
  const std::vector<Method>& methods() const { return methods_; }

  // Ends every open stream that would last for long with UNAVAILABLE, and from now on new ones at
  // once: a shutdown need not wait for them.
  virtual void CloseStreams() {}

 protected:
  Service(std::string name, const ServiceParts& parts)
      : manager_(parts.served.manager),
        peers_(parts.peers),
        workers_(&parts.pools->calls),
        name_(std::move(name)),
        statistics_(parts.statistics) {}

  // Counts the streams of a method.
  MethodStatistics::Method* CountStreams(absl::string_view method) {
    return statistics_->AddStream(ShortName(PathOf(method)));
  }

  // A unary method. `object`: what a call is about, or a function of the request that tells it.
  // `handle` is given the call if it wants to, request and response, and gives the status that the
  // call ends with, or, if it gives nothing, ends it itself.
  template <class Self, class Request, class Response, class Object>
  auto& Unary(const char* method, absl::Status (Self::*handle)(const Request&, Response&),
              Object object, Traits traits = {}) {
    return Add<Request, Response>(method, object, traits, [=, this](UnaryCall* call, auto&... m) {
      call->End((static_cast<Self*>(this)->*handle)(m...));
    });
  }
  template <class Self, class Result, class Call, class Request, class Response, class Object>
  auto& Unary(const char* method, Result (Self::*handle)(Call, const Request&, Response&),
              Object object, Traits traits = {}) {
    return Add<Request, Response>(method, object, traits, [=, this](UnaryCall* call, auto&... m) {
      if constexpr (std::is_void_v<Result>) {
        (static_cast<Self*>(this)->*handle)(call, m...);
      } else {
        call->End((static_cast<Self*>(this)->*handle)(*call, m...));
      }
    });
  }

  // A method that answers with a stream, and one that is a dialogue. `open` is given who calls, or
  // why he may not, which its stream is to end with.
  template <class Self, class Request, class Update, class Object>
  void Stream(const char* method,
              grpc::ServerWriteReactor<Update>* (Self::*open)(const absl::StatusOr<Peer>&,
                                                              const Request&),
              Object object, Traits traits = {}) {
    const auto handle = [=, this, path = PathOf(method)](grpc::CallbackServerContext* context,
                                                         const Request* request) {
      const auto peer = peers_->Authorise(*context, path, ObjectOf(object, *request));
      return (static_cast<Self*>(this)->*open)(peer, *request);
    };
    using Handler = grpc::internal::CallbackServerStreamingHandler<Request, Update>;
    methods_.push_back({method, traits, std::make_unique<Handler>(handle)});
  }
  template <class Self, class In, class Out>
  void Dialogue(const char* method,
                grpc::ServerBidiReactor<In, Out>* (Self::*open)(const absl::StatusOr<Peer>&),
                const std::string& object) {
    const auto handle = [=, this, path = PathOf(method)](grpc::CallbackServerContext* context) {
      return (static_cast<Self*>(this)->*open)(peers_->Authorise(*context, path, object));
    };
    using Handler = grpc::internal::CallbackBidiHandler<In, Out>;
    methods_.push_back({method, {}, std::make_unique<Handler>(handle)});
  }

  Manager* const manager_;
  Peers* const peers_;
  WorkerPool* const workers_;  // for calls that take long

 private:
  template <class Object, class Request>
  static std::string ObjectOf(const Object& object, const Request& request) {
    if constexpr (std::is_invocable_v<const Object&, const Request&>) {
      return object(request);
    } else {
      return object;
    }
  }
  std::string PathOf(absl::string_view method) const {
    return absl::StrCat("/", name_, "/", method);
  }

  template <class Request, class Response, class Object, class Handle>
  grpc::internal::CallbackUnaryHandler<Request, Response>& Add(const char* method, Object object,
                                                               Traits traits, Handle handle) {
    const std::string path = PathOf(method);
    const MethodAccess* const access = FindAccess(path);
    const bool is_open = access != nullptr && access->least == Role::kReader;
    auto* const counted = statistics_->AddUnary(ShortName(path));
    auto handler = std::make_unique<grpc::internal::CallbackUnaryHandler<Request, Response>>(
        [=, this](grpc::CallbackServerContext* context, const Request* request,
                  Response* response) {
          auto* const call = new UnaryCall(counted, peers_, context, ObjectOf(object, *request));
          const absl::Status allowed = is_open ? absl::OkStatus() : call->Authorise(path);
          const auto run = [=] { handle(call, *request, *response); };
          if (!allowed.ok()) {
            call->End(allowed);
          } else if (traits.pool == nullptr) {
            run();
          } else {
            call->RunOn(traits.pool, run, traits.most_waiting);
          }
          return call;  // gRPC's until this has returned
        });
    auto& made = *handler;
    methods_.push_back(
        {method, traits, std::move(handler), [](void* holder) -> google::protobuf::Message* {
           return static_cast<grpc::MessageHolder<Request, Response>*>(holder)->response();
         }});
    return made;
  }

  const std::string name_;
  MethodStatistics* const statistics_;
  std::vector<Method> methods_;
};

// The services, each in the file of its name.
class HealthService : public Service {
 public:
  using Service::Service;
  // NOT_SERVING at first, and for good from CloseStreams on.
  virtual void SetServing() = 0;
};
std::unique_ptr<Service> MakeJobsService(const ServiceParts& parts);
std::unique_ptr<Service> MakeTreesService(const ServiceParts& parts);
std::unique_ptr<Service> MakeFabricService(const ServiceParts& parts);
std::unique_ptr<Service> MakeMappingService(const ServiceParts& parts);
std::unique_ptr<Service> MakePlacementsService(const ServiceParts& parts);
std::unique_ptr<Service> MakeAgentsService(const ServiceParts& parts);
std::unique_ptr<Service> MakeSwitchesService(const ServiceParts& parts);
std::unique_ptr<Service> MakeAdminService(const ServiceParts& parts);
std::unique_ptr<HealthService> MakeHealthService(const ServiceParts& parts);
std::unique_ptr<Service> MakeReflectionService(const ServiceParts& parts);

// Ends a call that registered a job, or started one, with it, and with its endpoints.
void AnswerJob(UnaryCall* call, absl::StatusOr<JobView> job, Manager* manager, WorkerPool* workers,
               v1::Job& response);

// What the Agents service reads of agents. INVALID_ARGUMENT: a port that is no GUID.
absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& hello);
PingPongOutcome FromProto(const v1::PingPongResult& result);

// The same of the Switches service. INVALID_ARGUMENT: no GUID.
absl::StatusOr<SwitchHello> FromProto(const v1::SwitchHello& message);
SwitchReport FromProto(const v1::SwitchReport& message);
// What it and the Fabric service tell of a switch that speaks, or did.
void ToProto(const SwitchView& view, v1::SwitchAgent& message);

// Where the Agents service's listing by pairs goes on: after this one; both empty: from the start.
// INVALID_ARGUMENT: not a token of such a listing.
absl::StatusOr<HostPair> ParsePairToken(absl::string_view token);
std::string PairToken(absl::string_view from, absl::string_view to);

// What the calls of all services share. Outlives them.
struct Bounds {
  Admission* admission = nullptr;
  Peers* peers = nullptr;
  Connections* connections = nullptr;
  size_t most_request_bytes = 0;   // of any method
  size_t most_request_memory = 0;  // that one request may take
};

// In front of `service`. Both outlive it.
std::unique_ptr<grpc::Service> MakeBoundedService(const Service& service, const Bounds* bounds);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_SERVICE_H_
