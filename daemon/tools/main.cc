// coppice-plan: the planning engine without a daemon. Parses the command line and hands over to the
// subcommands.
#include <cstdio>

#include "daemon/tools/command.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Plans aggregation trees, orders of ranks and placements of jobs on a fabric from a file or "
      "a "
      "model, without a daemon",
      "coppice-plan");
  app.require_subcommand(1);
  coppice::CommandOutcome outcome;
  coppice::RegisterFabricCommand(app, outcome);
  coppice::RegisterTreeCommand(app, outcome);
  coppice::RegisterTreeBatchCommand(app, outcome);
  coppice::RegisterMapCommand(app, outcome);
  coppice::RegisterPlaceCommand(app, outcome);
  coppice::RegisterSimulateCommand(app, outcome);
  coppice::RegisterTableCommand(app, outcome);
  coppice::RegisterCalibrateCommand(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? coppice::kDone : coppice::kWrongUsage;
  }
  if (outcome.status.ok()) return coppice::kDone;
  std::fprintf(stderr, "coppice-plan: %s\n", coppice::Printable(outcome.status.ToString()).c_str());
  return coppice::kRequestFailed;
}
