// The links of a job's routes, counted with Routes::Append, and that holders can be taken away.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "daemon/placement/placement_metrics.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/placement/placement_oracle.h"

namespace coppice::job_links_test {
namespace {

// Channels between switches on all routes between the hosts' first endpoints.
std::vector<ChannelIndex> NaiveChannels(const PlacementScene& scene,
                                        const std::vector<HostIndex>& hosts) {
  const Fabric& fabric = scene.fabric();
  std::set<ChannelIndex> channels;
  std::vector<ChannelIndex> path;
  for (const HostIndex a : hosts) {
    for (const HostIndex b : hosts) {
      path.clear();
      const auto status =
          scene.snapshot->routes->Append(fabric.Vertex(fabric.endpoints_of_host(a).front()),
                                         fabric.Vertex(fabric.endpoints_of_host(b).front()), path);
      if (!status.ok()) continue;
      for (const ChannelIndex c : path) {
        if (fabric.IsSwitch(fabric.channel_from(c)) && fabric.IsSwitch(fabric.channel_to(c))) {
          channels.insert(c);
        }
      }
    }
  }
  return {channels.begin(), channels.end()};
}

std::vector<HostIndex> RandomHosts(const PlacementScene& scene, uint32_t count,
                                   std::mt19937_64& rng) {
  std::vector<HostIndex> hosts(scene.index->hosts_by_leaf().begin(),
                               scene.index->hosts_by_leaf().end());
  std::shuffle(hosts.begin(), hosts.end(), rng);
  hosts.resize(std::min<size_t>(count, hosts.size()));
  return hosts;
}

TEST(JobLinks, AreThoseOfAllRoutes) {
  std::mt19937_64 rng(TestSeed() + 3);
  for (uint32_t round = 0; round < 40; ++round) {
    const PlacementScene scene = round % 4 == 0 ? MakeScene("model:torus(dims=3x3x2,hosts=2)")
                                 : round % 4 == 1
                                     ? MakeScene(
                                           "model:fat-tree(supernodes=3,leaves=3,spines=2,"
                                           "hosts-per-leaf=3,tops=2)")
                                 : round % 4 == 2 ? MakeScene("model:dragonfly(p=2,a=4,h=2)")
                                                  : MakeScene(RandomFabric(rng, 6, 12, 14));
    const auto hosts = RandomHosts(scene, 1 + rng() % 12, rng);
    EXPECT_EQ(JobChannels(*scene.snapshot, *scene.index, hosts), NaiveChannels(scene, hosts));
  }
}

TEST(JobLinks, OfABigJobAreAFixedSampleOfThem) {
  const PlacementScene scene =
      MakeScene("model:fat-tree(supernodes=8,leaves=8,spines=4,hosts-per-leaf=8,tops=8)");
  std::mt19937_64 rng(5);
  auto hosts = RandomHosts(scene, 400, rng);  // on 64 leaf switches: more than kMaxRoutes
  const auto sample = JobChannels(*scene.snapshot, *scene.index, hosts);
  const auto all = NaiveChannels(scene, hosts);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), sample.begin(), sample.end()));
  EXPECT_GT(sample.size(), all.size() * 9 / 10) << "spread evenly, little is missed";
  std::shuffle(hosts.begin(), hosts.end(), rng);
  EXPECT_EQ(JobChannels(*scene.snapshot, *scene.index, hosts), sample);
}

TEST(JobLinks, HoldersAreCountedByTheirChannels) {
  const PlacementScene scene = MakeScene("model:torus(dims=4x4,hosts=2)");
  std::mt19937_64 rng(9);
  std::vector<std::vector<HostIndex>> holders;
  for (uint32_t i = 0; i < 6; ++i) holders.push_back(RandomHosts(scene, 2 + i, rng));
  std::vector<uint32_t> users;
  for (const auto& hosts : holders) AddHolder(*scene.snapshot, *scene.index, hosts, users);
  ASSERT_EQ(users.size(), scene.fabric().channel_count());
  EXPECT_GT(*std::max_element(users.begin(), users.end()), 1U);
  for (const auto& hosts : holders) {
    for (const ChannelIndex c : JobChannels(*scene.snapshot, *scene.index, hosts)) {
      --users[c.value()];
    }
  }
  EXPECT_EQ(*std::max_element(users.begin(), users.end()), 0U);
}

}  // namespace
}  // namespace coppice::job_links_test
