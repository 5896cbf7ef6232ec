#include "tests/unit/agents/node/standing_daemon.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>
#include <utility>

namespace coppice {
namespace {

std::string MakeFolder() {
  char folder[] = "/tmp/coppice-node-XXXXXX";
  return mkdtemp(folder);
}

}  // namespace

std::string StandingDaemon::UserOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("coppice-user");
  return found == context.client_metadata().end()
             ? ""
             : std::string(found->second.data(), found->second.size());
}

class StandingDaemon::JobsService final : public v1::Jobs::Service {
 public:
  explicit JobsService(StandingDaemon* daemon) : daemon_(daemon) {}

  grpc::Status KeepAlive(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::KeepAliveResponse, v1::KeepAliveRequest>* stream) override {
    v1::KeepAliveRequest request;
    while (stream->Read(&request)) {
      v1::KeepAliveResponse response;
      grpc::Status status;
      daemon_->Note([&] {
        ++daemon_->renewals[request.id()];
        daemon_->last_user = UserOf(*context);
        status = daemon_->renewal_status;
        response.set_id(request.id());
        response.set_state(daemon_->state);
        response.mutable_lease()->set_nanos(daemon_->lease_ms * 1'000'000);
      });
      if (!status.ok()) return status;
      stream->Write(response);
    }
    return grpc::Status::OK;
  }
  grpc::Status EndJob(grpc::ServerContext* context, const v1::EndJobRequest* request,
                      v1::EndJobResponse*) override {
    grpc::Status status;
    daemon_->Note([&] {
      daemon_->ended[request->id()] = UserOf(*context);
      status = daemon_->end_status;
    });
    return status;
  }
  // Never answers.
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest*, v1::Job*) override {
    daemon_->Note([&] { ++daemon_->hanging; });
    while (!context->IsCancelled() && !daemon_->Locked([&] { return daemon_->is_stopping_; })) {
      std::this_thread::yield();
    }
    daemon_->Note([&] { ++daemon_->hanging_cancelled; });
    return grpc::Status::CANCELLED;
  }

 private:
  StandingDaemon* const daemon_;
};

class StandingDaemon::TreesService final : public v1::Trees::Service {
 public:
  explicit TreesService(StandingDaemon* daemon) : daemon_(daemon) {}

  // Says who asked.
  grpc::Status GetTree(grpc::ServerContext* context, const v1::GetTreeRequest* request,
                       v1::Tree* tree) override {
    if (request->id() == "0") return {grpc::StatusCode::NOT_FOUND, "tree 0: none", "details"};
    tree->set_id(request->id());
    tree->set_reason(UserOf(*context));
    return grpc::Status::OK;
  }
  // Large messages without end.
  grpc::Status WatchTrees(grpc::ServerContext*, const v1::WatchTreesRequest*,
                          grpc::ServerWriter<v1::TreeChange>* writer) override {
    daemon_->Note([&] { ++daemon_->watches; });
    v1::TreeChange change;
    change.set_reason(std::string(100'000, 'x'));
    while (writer->Write(change)) daemon_->Note([&] { ++daemon_->watch_messages; });
    daemon_->Note([&] { ++daemon_->watches_cancelled; });
    return grpc::Status::CANCELLED;
  }

 private:
  StandingDaemon* const daemon_;
};

class StandingDaemon::AgentsService final : public v1::Agents::Service {
 public:
  explicit AgentsService(StandingDaemon* daemon) : daemon_(daemon) {}

  grpc::Status Connect(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::AgentTask, v1::AgentMessage>* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    std::vector<v1::PingPongTask> tasks;
    grpc::Status status;
    daemon_->Note([&] {
      daemon_->hellos.push_back(message.hello());
      tasks.swap(daemon_->tasks);
      status = daemon_->connect_status;
    });
    if (!status.ok()) return status;
    v1::AgentTask task;
    task.mutable_welcome()->set_host(message.hello().host());
    stream->Write(task);
    for (const v1::PingPongTask& one : tasks) {
      *task.mutable_ping_pong() = one;
      stream->Write(task);
    }
    while (stream->Read(&message)) {
      daemon_->Note([&] { daemon_->results.push_back(message.ping_pong()); });
    }
    return grpc::Status::OK;
  }

 private:
  StandingDaemon* const daemon_;
};

StandingDaemon::StandingDaemon()
    : folder_(MakeFolder()),
      address_("unix:" + folder_ + "/d.sock"),
      jobs_(std::make_unique<JobsService>(this)),
      trees_(std::make_unique<TreesService>(this)),
      agents_(std::make_unique<AgentsService>(this)) {
  Start();
}

StandingDaemon::~StandingDaemon() {
  Stop();
  std::filesystem::remove_all(folder_);
}

void StandingDaemon::Start() {
  Note([this] { is_stopping_ = false; });
  // A server takes a service once.
  jobs_ = std::make_unique<JobsService>(this);
  trees_ = std::make_unique<TreesService>(this);
  agents_ = std::make_unique<AgentsService>(this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  for (grpc::Service* service : {jobs_.get(), trees_.get(), agents_.get()}) {
    builder.RegisterService(service);
  }
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
}

void StandingDaemon::Stop() {
  if (server_ == nullptr) return;
  Note([this] { is_stopping_ = true; });
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void StandingDaemon::Note(const std::function<void()>& what) {
  const std::lock_guard<std::mutex> lock(mu_);
  what();
  changed_.notify_all();
}

bool StandingDaemon::Await(const std::function<bool()>& condition) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, std::chrono::seconds(60), condition);
}

StandingAgent::StandingAgent(const std::string& server, const LocalBounds& bounds)
    : folder_(MakeFolder()) {
  settings_.bounds = bounds;
  settings_.server = server;
  settings_.socket = folder_ + "/a.sock";
  settings_.state_dir = folder_;
  settings_.host = "n1";
  settings_.port_guids = {"0002c90300a1b2c3"};
  settings_.measure_listen = "127.0.0.1:0";
  Start();
}

StandingAgent::~StandingAgent() {
  Stop();
  std::filesystem::remove_all(folder_);
}

// Listens when it returns.
void StandingAgent::Start() {
  auto loop = EventLoop::Create();
  ASSERT_TRUE(loop.ok());
  loop_ = *std::move(loop);
  std::promise<absl::Status> started;
  thread_ = std::thread([this, &started] {
    auto agent = NodeAgent::Start(settings_, NodeFacts{"node", {}, 4, 1, 1}, "0.1.0", loop_.get());
    started.set_value(agent.status());
    if (agent.ok()) loop_->Run();
  });
  const absl::Status status = started.get_future().get();
  ASSERT_TRUE(status.ok()) << status;
}

void StandingAgent::Stop() {
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

void StandingAgent::Restart() {
  Stop();
  Start();
}

}  // namespace coppice
