#include "tests/unit/rpc/loopback.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "proto/status_conversion.h"

namespace coppice {

namespace {

std::string MakeDirectory() {
  std::string path = "/tmp/coppice-loopback-XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  EXPECT_EQ(chmod(path.c_str(), 0755), 0);  // other users' connections come through it
  return path;
}

}  // namespace

Loopback::Loopback(Options options) : directory_(MakeDirectory()) {
  if (options.server.listen.empty()) options.server.listen = {"unix:" + directory_ + "/s"};
  // Tests of rights come as users that the default mode keeps out.
  if (options.server.socket_mode == RpcServerOptions().socket_mode) {
    options.server.socket_mode = 0666;
  }
  Store* const store = options.store == nullptr ? &store_ : options.store;
  auto port = OfflineSubnetPort::Create(options.fabric);
  EXPECT_TRUE(port.ok()) << port.status();
  port_ = *std::move(port);
  ManagerOptions manager_options;
  manager_options.profile = *BuiltInProfile("hdr");
  CapabilityRule rule;
  rule.description = "*";
  rule.entries = options.entries;
  rule.degree_limit = options.degree_limit;
  manager_options.capability_rules = {rule};
  manager_options.kept_tree_changes = options.kept_tree_changes;
  manager_options.quotas = options.quotas;
  auto manager = Manager::Create(store, port_.get(), &clock_, manager_options);
  EXPECT_TRUE(manager.ok()) << manager.status();
  manager_ = *std::move(manager);
  (void)manager_->Sweep();  // tests of a daemon without a fabric name one that cannot be read
  auto distances = DistanceStore::Create(store);
  EXPECT_TRUE(distances.ok()) << distances.status();
  distances_ = *std::move(distances);
  mapper_ = std::make_unique<RankMapper>(manager_.get(), &SystemClock(), options.mapper,
                                         distances_.get());
  orders_ = std::make_unique<OrderStore>(store, manager_.get(), &clock_);
  auto patterns = PatternStore::Create(store, &clock_, options.pattern_bytes, &manager_->quotas(),
                                       &manager_->deeds());
  EXPECT_TRUE(patterns.ok()) << patterns.status();
  patterns_ = *std::move(patterns);
  meter_ = std::make_unique<DistanceMeter>(manager_.get(), distances_.get(), &clock_);
  auto server = RpcServer::Start(parts(), options.server);
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  const std::shared_ptr<grpc::Channel> channel = Connect();
  jobs_ = v1::Jobs::NewStub(channel);
  trees_ = v1::Trees::NewStub(channel);
  fabric_ = v1::Fabric::NewStub(channel);
}

Loopback::~Loopback() { std::filesystem::remove_all(directory_); }

std::shared_ptr<grpc::Channel> Loopback::Connect(size_t address) const {
  return grpc::CreateChannel(server_->addresses()[address], grpc::InsecureChannelCredentials());
}

void Loopback::SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

absl::Status Loopback::ToAbsl(const grpc::Status& status) { return FromGrpcStatus(status); }

std::string Loopback::RegisterAll() {
  v1::RegisterJobRequest request;
  request.set_all_endpoints(true);
  const auto job = Call(jobs(), &v1::Jobs::Stub::RegisterJob, request);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->id() : "";
}

}  // namespace coppice
