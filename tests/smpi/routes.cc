// Prints the routes of a SimGrid platform, so that they can be compared with those of a fabric.
//
//   routes PLATFORM STRIDE     a line for each pair of hosts, the destination STRIDE hosts after
//                              the one before: "n0 n5 LINK LINK ..."
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  simgrid::s4u::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: routes PLATFORM STRIDE\n");
    return 2;
  }
  engine.load_platform(argv[1]);
  const std::vector<simgrid::s4u::Host*> hosts = engine.get_all_hosts();
  const size_t stride = std::strtoul(argv[2], nullptr, 10);
  for (size_t from = 0; from < hosts.size(); ++from) {
    for (size_t to = from % stride; to < hosts.size(); to += stride) {
      if (from == to) continue;
      std::vector<simgrid::s4u::Link*> links;
      double latency = 0;
      hosts[from]->route_to(hosts[to], links, &latency);
      std::printf("%s %s", hosts[from]->get_cname(), hosts[to]->get_cname());
      for (const simgrid::s4u::Link* link : links) std::printf(" %s", link->get_cname());
      std::printf("\n");
    }
  }
  return 0;
}
