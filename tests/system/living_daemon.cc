#include "tests/system/living_daemon.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/topology_lines.h"
#include "db/sqlite_store.h"
#include "tests/system/injected_loads.h"
#include "tests/system/reference_text.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice {
namespace {

constexpr absl::Duration kMaxPatience = absl::Minutes(2);

}  // namespace

LivingDaemon::~LivingDaemon() {
  manager_.reset();
  store_.reset();
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

void LivingDaemon::Begin(const SweepPeriods& periods, const std::string& routing,
                         const std::string& model) {
  ASSERT_NO_FATAL_FAILURE(Start(model, ""));
  ASSERT_NO_FATAL_FAILURE(ManageSubnet({routing}));
  if (directory_.empty()) {
    std::string pattern = std::filesystem::temp_directory_path() / "coppice-live-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  gate_ = std::make_unique<CounterGate>(port_.get());
  options_.profile = *BuiltInProfile("hdr");
  options_.sweep_periods = periods;
  options_.default_lease = absl::Hours(1);
  CapabilityRule rule;
  rule.entries = 6;
  rule.degree_limit = 16;
  options_.capability_rules.push_back(rule);
  const absl::Status opened = OpenDaemon();
  ASSERT_TRUE(opened.ok()) << opened;
  const auto view = manager_->Sweep();
  ASSERT_TRUE(view.ok()) << view.status();
}

absl::Status LivingDaemon::OpenDaemon() {
  manager_.reset();
  store_.reset();
  ASSIGN_OR_RETURN(store_, SqliteStore::Open(directory_ + "/coppice.db"));
  ASSIGN_OR_RETURN(manager_, Manager::Create(store_.get(), gate_.get(), &clock_, options_));
  manager_->Start();
  return absl::OkStatus();
}

std::unique_ptr<ChildProcess> LivingDaemon::StartManager(const SubnetManager& manager) {
  const std::string home = absl::StrCat(subnet_->directory(), "/osm-", ++managers_started_);
  std::filesystem::create_directory(home);
  std::vector<std::string> arguments = {"opensm", "-R", manager.routing, "-s",
                                        "2",      "-f", home + "/log"};
  arguments.insert(arguments.end(), manager.arguments.begin(), manager.arguments.end());
  auto environment = subnet_->Environment();
  for (auto& [name, value] : environment) {
    if (name == "OSM_CACHE_DIR" || name == "OSM_TMP_DIR") value = home;
    if (name == "SIM_HOST" && !manager.host.empty()) value = manager.host;
  }
  auto child = ChildProcess::Start(
      {std::move(arguments), std::move(environment), subnet_->directory(), home + "/out", ""});
  EXPECT_TRUE(child.ok()) << child.status();
  if (!child.ok()) return nullptr;
  // OpenSM writes its log late, but this file whenever it has set up the subnet.
  Await("OpenSM", [&] { return std::filesystem::exists(home + "/opensm-subnet.lst"); });
  return *std::move(child);
}

void LivingDaemon::ManageSubnet(const SubnetManager& manager) {
  manager_of_subnet_.reset();
  manager_of_subnet_ = StartManager(manager);
}

void LivingDaemon::Console(const std::string& command) {
  std::lock_guard lock(console_);
  const absl::StatusOr<std::string> said = subnet_->Console(command);
  ASSERT_TRUE(said.ok()) << said.status();
}

void LivingDaemon::Await(const std::string& what, const std::function<bool()>& condition) {
  ASSERT_TRUE(WaitUntil(condition, kMaxPatience)) << "in vain: " << what;
}

void LivingDaemon::AwaitSettled(const std::string& reference_host) {
  std::vector<std::string> reference = {"ibnetdiscover"};
  if (!reference_host.empty()) {
    reference.insert(reference.begin(), {"env", "SIM_HOST=" + reference_host});
  }
  std::string difference = "nothing was compared";
  const auto is_settled = [&] {
    const std::shared_ptr<const FabricView> view = manager_->fabric();
    if (!view->routes_settled || !view->unanswered.empty()) return false;
    const absl::StatusOr<std::string> text = subnet_->Run(reference);
    if (!text.ok()) {
      difference = text.status().ToString();
      return false;
    }
    difference = Difference(DescribeIbnetdiscover(*text), DescribeFabric(*view->snapshot->fabric));
    return difference.empty() && manager_->fabric()->snapshot->fabric == view->snapshot->fabric;
  };
  ASSERT_TRUE(WaitUntil(is_settled, kMaxPatience))
      << "settled: " << manager_->fabric()->routes_settled
      << ", unanswered: " << manager_->fabric()->unanswered.size() << "\n"
      << difference;
}

absl::StatusOr<JobId> LivingDaemon::Register(std::vector<std::string> hosts) {
  RegisterJobArgs args;
  args.endpoints = std::move(hosts);
  const auto job = AwaitAnswer<JobView>(
      [&](auto done) { manager_->RegisterJob(std::move(args), std::move(done)); });
  if (!job.ok()) return job.status();
  return job->record->id;
}

absl::StatusOr<TreeView> LivingDaemon::Grant(JobId job, TreeType type) {
  CreateTreeArgs args;
  args.job = job;
  args.type = type;
  return AwaitAnswer<TreeView>(
      [&](auto done) { manager_->CreateTree(std::move(args), std::move(done)); });
}

std::vector<EventRecord> LivingDaemon::EventsOf(const std::string& kind) const {
  EventFilter filter;
  filter.kind_prefix = kind;
  filter.limit = 100'000;
  auto events = manager_->Events(filter);
  EXPECT_TRUE(events.ok()) << events.status();
  return events.ok() ? *std::move(events) : std::vector<EventRecord>();
}

std::string LivingDaemon::Sql(const std::string& query) {
  const std::string output = absl::StrCat(directory_, "/sql-", ++programs_run_);
  // The shell needs no part in the subnet.
  const absl::StatusOr<std::string> rows =
      RunToEnd({{"sqlite3", "-readonly", directory_ + "/coppice.db", query},
                {{"LD_PRELOAD", ""}},
                directory_,
                output,
                ""},
               kMaxPatience);
  EXPECT_TRUE(rows.ok()) << rows.status() << "\n" << query;
  return rows.ok() ? std::string(absl::StripSuffix(*rows, "\n")) : "";
}

void LivingDaemon::ExpectAllRight() {
  manager_->Stop();
  // What was handed to the store before is in it now.
  ASSERT_TRUE(store_->Apply(AppendEvents{}).ok());
  ExpectAllStand(*manager_);
  EXPECT_EQ("0", Sql("SELECT count(*) FROM tree, json_each(tree.links) AS crossed"
                     " LEFT JOIN link ON link.id = crossed.value"
                     " WHERE ifnull(link.last_seen_ns, 0) < (SELECT max(last_seen_ns) FROM link)"));
  size_t entries = 0;
  const std::vector<TreeView> trees = manager_->ListTrees(JobId(), TreeId(), 1u << 20);
  for (const TreeView& tree : trees) entries += tree.record->switches.size();
  EXPECT_EQ(absl::StrCat(trees.size()), Sql("SELECT count(*) FROM tree"));
  EXPECT_EQ(absl::StrCat(entries), Sql("SELECT count(*) FROM tree_switch"));
  EXPECT_EQ(entries, manager_->Counts().entries_taken);
  EXPECT_EQ("0", Sql("SELECT count(*) FROM (SELECT guid, count(*) AS taken FROM tree_switch"
                     " GROUP BY guid) LEFT JOIN switch_capability USING (guid)"
                     " WHERE taken > ifnull(entries_grantable, 0)"));
  manager_->Start();
}

size_t LivingDaemon::CheckLoads(size_t links, std::mt19937_64* random) {
  InjectedLoads loads(manager_.get(), gate_.get(),
                      {[this](const std::string& command) { Console(command); },
                       [this](const std::string& what, const std::function<bool()>& condition) {
                         Await(what, condition);
                       }},
                      random);
  return loads.Check(links);
}

std::string LivingDaemon::CableOf(const TreeRecord& record) const {
  const FabricView& view = *manager_->fabric();
  const Fabric& fabric = *view.snapshot->fabric;
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (std::binary_search(record.links.begin(), record.links.end(), (*view.link_ids)[l]) &&
        fabric.IsSwitch(link.a) && fabric.IsSwitch(link.b)) {
      return EndOf(fabric, LinkIndex(l));
    }
  }
  return "";
}

std::string LivingDaemon::EndOf(const Fabric& fabric, LinkIndex link) {
  const LinkInfo& info = fabric.link(link);
  const bool is_switch = fabric.IsSwitch(info.a);
  const std::string name =
      is_switch ? fabric.switch_info(fabric.AsSwitch(info.a)).description
                : std::string(fabric.host_name(fabric.host(fabric.AsEndpoint(info.a))));
  return absl::StrCat("\"", name, "\"[", info.a_port.value(), "]");
}

}  // namespace coppice
