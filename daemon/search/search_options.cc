#include "daemon/search/search_options.h"

#include <initializer_list>
#include <utility>

#include "daemon/tools/command.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

constexpr char kPreset[] = "memetic";

// What a daemon is asked for does not come from files.
void CheckJobUsage(const SearchOptions& options) {
  const MapOptions& map = options.map;
  const std::initializer_list<std::pair<const char*, bool>> others = {
      {"--qap", !map.qap.empty()},
      {"--fabric", !map.fabric.empty()},
      {"--hosts", !map.hosts.empty()},
      {"--hierarchy", !map.hierarchy.empty()},
      {"--distances", !map.distances.empty()},
      {"--ranks-per-host", map.ranks_per_place.has_value()},
      {"--routes", !map.routes.empty()},
      {"--traffic", !map.traffic.empty()},
      {"--load", !map.load.empty()},
      {"--links", map.links.has_value()},
      {"--bytes-per-message", map.bytes_per_message.has_value()}};
  for (const auto& [name, is_given] : others) {
    if (is_given) throw CLI::ExcludesError("--job", name);
  }
  if (map.pattern.empty() == options.application.empty()) {
    throw CLI::RequiredError("beside --job, one of --pattern and --application");
  }
  if (!map.emit.empty() && map.out.empty() && map.json) {
    throw CLI::ExcludesError("--emit without --out", "--json");
  }
}

}  // namespace

void AddSearchOptions(CLI::App& app, SearchOptions& options) {
  options.map.algorithm = kPreset;
  AddMapOptions(app, options.map);
  app.get_option("--algorithm")
      ->description("parallel-annealing, parallel-genetic, combined or memetic; default memetic");
  app.get_option("--threads")
      ->description("of each rank; default the node's processors, shared by its ranks");
  app.get_option("--objective")->description("qap, which is all that is searched for here");
  app.get_option("--distance")
      ->description(
          "between places: hops, routes, a file with a measured matrix, or, with --job, measured; "
          "default hops");
  app.add_option("--grace", options.grace,
                 "how long after the budget a rank waits for others that are silent; default 30s")
      ->check(Understood(ParseBudget, "a time such as 30s"));
  AddText(app, "--job", options.job,
          "search for this job of a running coppiced, and leave the order there");
  AddText(app, "--application", options.application,
          "with --job: the pattern that the daemon keeps under this name");
  AddText(app, "--server", options.server,
          "with --job: unix:PATH or HOST:PORT; default $COPPICE_SERVER, then the daemon's socket");
  AddText(app, "--agent", options.agent,
          "with --job: socket of the node's agent, which asks the daemon in your name; instead of "
          "--server");
  app.get_option("--agent")->excludes(app.get_option("--server"));
  AddText(app, "--tls-ca", options.tls.ca,
          "with HOST:PORT: file of the authority of the daemon's certificate; $COPPICE_TLS_CA");
  AddText(app, "--tls-cert", options.tls.cert, "file of a certificate of yours; $COPPICE_TLS_CERT");
  AddText(app, "--tls-key", options.tls.key, "file of its key; $COPPICE_TLS_KEY");
}

void CheckUsage(const SearchOptions& options) {
  if (!options.map.objective.empty() && options.map.objective != "qap") {
    throw CLI::ValidationError("--objective", "only qap is searched for over MPI");
  }
  if (!options.job.empty()) return CheckJobUsage(options);
  if (!options.agent.empty()) throw CLI::RequiredError("--job beside --agent");
  if (!options.application.empty()) throw CLI::RequiredError("--job beside --application");
  CheckUsage(options.map);
}

}  // namespace coppice
