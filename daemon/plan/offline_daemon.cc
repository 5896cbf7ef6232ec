#include "daemon/plan/offline_daemon.h"

#include <grpcpp/channel.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <future>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/inventory.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/rpc/server.h"
#include "daemon/tools/held_nodes.h"
#include "db/sqlite_store.h"
#include "proto/text/command_line.h"
#include "proto/text/limits.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// Nobody else is served: what one caller asks may take all that there is.
constexpr int kMaxBytes = std::numeric_limits<int>::max();
constexpr auto kNoBound = static_cast<int64_t>(kMaxByteSize);
constexpr uint32_t kMaxRanks = 1u << 26;

absl::Status NoFabric() {
  return absl::InvalidArgumentError(
      "--fabric: what to plan on is needed, file:PATH or model:NAME(ARGUMENT=VALUE,...)");
}

// What was read when this was made, at every sweep; without a fabric sweeps fail.
class ReadOncePort final : public SubnetPort {
 public:
  ReadOncePort(std::string source, const Snapshot& snapshot) : source_(std::move(source)) {
    result_.fabric = snapshot.fabric;
    if (result_.fabric == nullptr) return;
    // As long as the routes live.
    result_.tables = {snapshot.routes, snapshot.routes->tables()};
    result_.is_dimension_ordered = snapshot.routes->kind() == RouteKind::kDimensionOrder;
    result_.load = snapshot.load;
  }

  std::string Describe() const override { return source_; }
  absl::StatusOr<SweepResult> Sweep(const SweepOptions&) override {
    if (result_.fabric == nullptr) return NoFabric();
    return result_;
  }
  absl::StatusOr<LightSweepResult> LightSweep() override { return LightSweepResult(); }
  absl::StatusOr<CounterSweep> ReadCounters() override {
    return absl::UnimplementedError(absl::StrCat(source_, " has no counters"));
  }

 private:
  const std::string source_;
  SweepResult result_;
};

// For a database that nobody keeps: a folder that goes with the last who has it. In memory, where
// that is a folder.
absl::StatusOr<std::shared_ptr<const std::string>> MakeScratchFolder() {
  std::error_code none;
  std::string path = access("/dev/shm", W_OK | X_OK) == 0
                         ? "/dev/shm"
                         : std::filesystem::temp_directory_path(none).string();
  path += "/coppice-plan-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, path);
  return std::shared_ptr<const std::string>(new std::string(path), [](const std::string* folder) {
    std::error_code left;
    std::filesystem::remove_all(*folder, left);
    delete folder;
  });
}

// The fabric without the nodes of `list`, as if their cables were cut.
absl::StatusOr<std::shared_ptr<const Fabric>> WithoutNodes(std::shared_ptr<const Fabric> fabric,
                                                           const std::string& list) {
  if (list.empty()) return fabric;
  ASSIGN_OR_RETURN(const std::string text, ReadNodesText(list));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadHostNames(text, list));
  std::vector<bool> is_lost(fabric->link_count());
  for (const std::string& name : names) {
    const auto hosts = ResolveHosts(*fabric, name);
    RETURN_IF_ERROR(Annotate(hosts.status(), absl::StrCat("--down ", list)));
    for (const HostIndex host : *hosts) {
      for (const EndpointIndex e : fabric->endpoints_of_host(host)) {
        for (const Channel& channel : fabric->channels(fabric->Vertex(e))) {
          is_lost[Fabric::link_of(channel.index).value()] = true;
        }
      }
    }
  }
  return WithoutLinks(*fabric, is_lost);
}

// Who is full has as many entries as the others, all with somebody else.
absl::StatusOr<std::vector<CapabilityRule>> RulesOf(const TreeOptions& options,
                                                    const Fabric& fabric) {
  CapabilityRule rule;
  rule.entries = options.entries.value_or(kDefaultEntries);
  rule.degree_limit = options.switch_degree.value_or(kDefaultSwitchDegree);
  std::vector<CapabilityRule> rules;
  ASSIGN_OR_RETURN(const std::vector<SwitchIndex> full, LoadFullSwitches(options, fabric));
  for (const SwitchIndex s : full) {
    rules.push_back(rule);
    rules.back().guid = fabric.switch_info(s).guid;
    rules.back().reserved = rule.entries;
  }
  rules.push_back(rule);
  return rules;
}

// Another fabric would take the members from the jobs that the database keeps, and revise or revoke
// their trees. A later picture of the same one may lack some links. FAILED_PRECONDITION: it lacks
// more than half of those that the database has seen last.
absl::Status CheckIsSameFabric(Store& store, const Fabric& fabric, const OfflineOptions& options) {
  using Ends = std::tuple<Guid, uint8_t, Guid, uint8_t>;
  const auto ends_of = [](const LinkRecord& link) {
    return Ends(link.node_a, link.port_a, link.node_b, link.port_b);
  };
  ASSIGN_OR_RETURN(const std::vector<LinkRecord> known, store.LastLinks());
  absl::flat_hash_set<Ends> given;
  for (const LinkRecord& link : LinksOf(fabric)) given.insert(ends_of(link));
  const auto missing = absl::c_count_if(
      known, [&](const LinkRecord& link) { return !given.contains(ends_of(link)); });
  if (2 * static_cast<size_t>(missing) <= known.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options.database, ": is of another fabric: of its ", known.size(), " links ",
                   options.fabric.fabric, " lacks ", missing,
                   "; give the fabric that it was made with, or another database"));
}

// A job for each holder; the same again from a database that has it.
absl::Status Hold(Manager& manager, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::shared_ptr<const FabricView> view = manager.fabric();
  const Fabric& fabric = *view->snapshot->fabric;
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  ASSIGN_OR_RETURN(const std::vector<HeldNodes> held, ReadHeldNodes(fabric, text, path));
  for (const HeldNodes& one : held) {
    RegisterJobArgs job;
    job.request_id = absl::StrCat("held by ", one.holder);
    job.display_name = job.owner = one.holder;
    for (const HostIndex host : one.hosts) {
      for (const EndpointIndex e : fabric.endpoints_of_host(host)) {
        job.endpoints.push_back(ToString(fabric.endpoint(e).port_guid));
      }
    }
    std::promise<absl::Status> done;
    manager.RegisterJob(std::move(job), [&done](const absl::StatusOr<JobView>& registered) {
      done.set_value(registered.status());
    });
    RETURN_IF_ERROR(Annotate(done.get_future().get(), absl::StrCat(path, ": ", one.holder)));
  }
  return absl::OkStatus();
}

RpcServerOptions ServerOptions() {
  RpcServerOptions options;
  options.in_process = true;
  options.max_request_bytes = kMaxBytes;
  CallerBounds& own = options.admission.administrator;
  own.request_memory = own.answer_memory = kNoBound;
  options.admission.request_memory = options.admission.answer_memory = kNoBound;
  options.max_job_ranks = kMaxRanks;
  options.version = COPPICE_VERSION;
  return options;
}

struct OfflineParts {
  absl::Status Start(const OfflineOptions& options);

  std::shared_ptr<const std::string> scratch;
  std::unique_ptr<ReadOncePort> port;
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<Manager> manager;
  std::unique_ptr<DistanceStore> distances;
  std::unique_ptr<RankMapper> mapper;
  std::unique_ptr<OrderStore> orders;
  std::unique_ptr<PatternStore> patterns;
  std::unique_ptr<DistanceMeter> meter;
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
};

absl::Status OfflineParts::Start(const OfflineOptions& options) {
  ManagerOptions managing;
  ASSIGN_OR_RETURN(managing.profile, LoadProfile(options.fabric.profile));
  const bool has_fabric = !options.fabric.fabric.empty();
  Snapshot snapshot;
  std::shared_ptr<const Fabric> whole;  // with the nodes that are down
  if (has_fabric) {
    ASSIGN_OR_RETURN(whole, LoadFabric(options.fabric.fabric));
    ASSIGN_OR_RETURN(auto fabric, WithoutNodes(whole, options.down));
    ASSIGN_OR_RETURN(snapshot, LoadSnapshot(options.fabric, std::move(fabric)));
    ASSIGN_OR_RETURN(managing.capability_rules, RulesOf(options.fabric, *snapshot.fabric));
  }
  managing.max_job_ranks = kMaxRanks;
  port = std::make_unique<ReadOncePort>(options.fabric.fabric, snapshot);
  std::string database = options.database;
  if (database.empty()) {
    ASSIGN_OR_RETURN(scratch, MakeScratchFolder());
    database = *scratch + "/coppice.db";
  }
  ASSIGN_OR_RETURN(store, SqliteStore::Open(database));
  ASSIGN_OR_RETURN(manager, Manager::Create(store.get(), port.get(), &SystemClock(), managing));
  if (has_fabric) {
    if (scratch == nullptr) RETURN_IF_ERROR(CheckIsSameFabric(*store, *whole, options));
    RETURN_IF_ERROR(manager->Sweep().status());
    RETURN_IF_ERROR(Annotate(Hold(*manager, options.held), "--held"));
  }
  ASSIGN_OR_RETURN(distances, DistanceStore::Create(store.get()));
  mapper =
      std::make_unique<RankMapper>(manager.get(), &SystemClock(), MapperOptions(), distances.get());
  orders = std::make_unique<OrderStore>(store.get(), manager.get(), &SystemClock());
  ASSIGN_OR_RETURN(patterns, PatternStore::Create(store.get(), &SystemClock(), kNoBound,
                                                  &manager->quotas(), &manager->deeds()));
  meter = std::make_unique<DistanceMeter>(manager.get(), distances.get(), &SystemClock());
  ASSIGN_OR_RETURN(server, RpcServer::Start({manager.get(), mapper.get(), orders.get(),
                                             patterns.get(), meter.get(), distances.get()},
                                            ServerOptions()));
  channel = server->Channel();
  return absl::OkStatus();
}

}  // namespace

void AddOfflineOptions(CLI::App& app, OfflineOptions& options) {
  AddText(app, "--fabric", options.fabric.fabric, "file:PATH or model:NAME(ARGUMENT=VALUE,...)");
  AddFabricOptions(app, options.fabric);
  AddText(app, "--held", options.held,
          "Who holds what, a file with NODES HOLDER a line, as n[001-128] job7");
  AddText(app, "--down", options.down, "Nodes that are down: a list or a file");
  AddText(app, "--database", options.database,
          "Keep jobs, trees, placements and patterns in this file from one call to the next");
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> StartOfflineDaemon(const OfflineOptions& options,
                                                                  bool needs_fabric) {
  if (needs_fabric && options.fabric.fabric.empty()) return NoFabric();
  auto parts = std::make_shared<OfflineParts>();
  RETURN_IF_ERROR(parts->Start(options));
  grpc::Channel* const channel = parts->channel.get();
  return std::shared_ptr<grpc::Channel>(std::move(parts), channel);
}

}  // namespace coppice
