// What coppice-search is asked on the command line: the options of coppice-plan map, and those for
// a question that a running coppiced answers.
#ifndef COPPICE_DAEMON_SEARCH_SEARCH_OPTIONS_H_
#define COPPICE_DAEMON_SEARCH_SEARCH_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "client/connection.h"
#include "daemon/tools/map_options.h"

namespace coppice {

struct SearchOptions {
  MapOptions map;
  std::string grace = "30s";
  // Of a daemon.
  std::string job, application;
  std::string server = DefaultServer();
  std::string agent;  // socket of the one that the daemon is asked through; empty: none
  TlsOptions tls = DefaultTls();
};

void AddSearchOptions(CLI::App& app, SearchOptions& options);

// To be called after parsing. Throws CLI::RequiredError or CLI::ExcludesError where options are
// missing or contradict each other.
void CheckUsage(const SearchOptions& options);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_SEARCH_OPTIONS_H_
