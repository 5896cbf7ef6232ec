// coppice-plan map: the order of ranks that puts heavy communication on short, idle links, from
// files alone.
#include <memory>
#include <string>

#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/map_search.h"

namespace coppice {
namespace {

constexpr char kMapHelp[] =
    "Files (- is standard input):\n"
    "  --pattern   Matrix Market (row r, column s: bytes that rank r - 1 sends to rank s - 1),\n"
    "              METIS graph (an edge's weight: bytes of both directions together), a dense\n"
    "              matrix, one row a line, before it the number of ranks, or a trace of a run\n"
    "  --hosts     one endpoint a line in rank order: host, host/port or port GUID; repeated "
    "lines\n"
    "              are more ranks there\n"
    "  --distance  a dense matrix, a row and a column for each host in the order of --hosts\n"
    "  --load      NODE-GUID PORT UTILISATION a line, as for tree\n"
    "The order is given as the new position of every rank. --emit writes it for a launcher:\n"
    "  rankfile      mpirun --rankfile FILE (Open MPI)\n"
    "  hostfile      mpirun --hostfile FILE --map-by seq (Open MPI)\n"
    "  machinefile   mpiexec -f FILE (MPICH, MVAPICH, Intel MPI)\n"
    "  slurm         SLURM_HOSTFILE=FILE srun --distribution=arbitrary";

absl::Status RunMap(const MapOptions& options) {
  if (options.list) return PrintText(options.json ? AlgorithmsToJson() : AlgorithmsToText());
  ASSIGN_OR_RETURN(const MapSearch search, MakeMapSearch(options));
  ASSIGN_OR_RETURN(const MapQuestion question, LoadMapQuestion(options));
  ASSIGN_OR_RETURN(const MapResult result, RunMapSearch(question.problem, search));
  return PrintMap(options, question, result);
}

}  // namespace

void RegisterMapCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("map", "The order of ranks that puts heavy communication on short links");
  const auto options = std::make_shared<MapOptions>();
  AddMapOptions(*command, *options);
  command->footer(kMapHelp);
  command->callback([options, &chosen] {
    CheckUsage(*options);
    chosen.json = options->json;
    chosen.run = [options] { return RunMap(*options); };
  });
}

}  // namespace coppice
