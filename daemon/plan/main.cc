// coppice-plan: the planning engine without a daemon. Parses the command line and hands over to the
// subcommands.
#include <cstdio>

#include "daemon/tools/command.h"
#include "proto/text/exit_status.h"

namespace {

// Has it be wrong usage if two of the command's options are "-": standard input is read once.
void AllowStandardInputOnce(CLI::App& command) {
  command.parse_complete_callback([&command] {
    const CLI::Option* first = nullptr;
    for (const CLI::Option* option : command.get_options()) {
      const bool is_read = option->count() > 0 && option->get_single_name() != "out";
      if (!is_read || option->results().front() != "-") continue;
      if (first != nullptr) {
        throw CLI::ExcludesError(first->get_name() + " -", option->get_name() + " -");
      }
      first = option;
    }
  });
}

}  // namespace

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
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    AllowStandardInputOnce(*command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? coppice::kDone : coppice::kWrongUsage;
  }
  if (!outcome.status.ok()) {
    std::fprintf(stderr, "%s\n", coppice::ErrorLine(outcome.status).c_str());
  }
  return coppice::ExitStatusOf(outcome.status);
}
