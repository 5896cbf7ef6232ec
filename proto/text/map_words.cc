#include "proto/text/map_words.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/text/command_line.h"
#include "proto/text/names.h"
#include "proto/text/option_words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxRanksPerHost = 1 << 24;

// Decimal digits only, unlike CLI11 and SimpleAtoi.
bool IsSeed(absl::string_view text) {
  uint64_t seed = 0;
  return text.find_first_not_of("0123456789") == text.npos && absl::SimpleAtoi(text, &seed);
}

// The order goes to standard output.
bool PrintsOrder(const MapWords& words) {
  return !words.emit.empty() && (words.out.empty() || words.out == "-");
}

void AddSearchWords(CLI::App& command, MapWords& words) {
  AddText(command, "--algorithm", words.algorithm, "A name of --list; default auto");
  command
      .add_option("--objective", words.objective,
                  "congestion, dilation, qap, or weights as congestion=1,dilation=0.5; default "
                  "congestion, without a fabric qap")
      ->check(Understood(ParseObjective,
                         "congestion, dilation, qap or weights such as congestion=1,dilation=0.5"));
  command.add_option("--budget", words.budget, "How long to search; default 1s")
      ->check(Understood(ParseBudget,
                         "a duration above 0, and at most a year, such as 500ms, 1s or 2m"));
  command.add_option("--seed", words.seed, "Of all that is random; default 1")
      ->check(Understood(IsSeed, absl::StrCat("a whole number from 0 to ", UINT64_MAX)));
  command
      .add_option("--option", words.parameters,
                  "NAME=VALUE, an option of the algorithm, as --list shows them; may be given "
                  "again")
      ->allow_extra_args(false)
      ->check(Understood(ParseParameter, "NAME=VALUE with a number"));
}

}  // namespace

void AddMapWords(CLI::App& command, MapWords& words) {
  AddText(command, "--pattern", words.pattern,
          "Who sends how much to whom: a Matrix Market file, a METIS graph, a dense text matrix or "
          "a trace; - for stdin");
  AddText(command, "--messages", words.messages,
          "The same with counts of messages for weights, or a trace, of which its messages count");
  AddText(command, "--hosts", words.hosts,
          "Hosts in rank order, such as n[001-128,130], or a file with one or more a line; - for "
          "stdin");
  AddCount(command, "--ranks-per-host,--ranks-per-place", words.ranks_per_host,
           "Ranks on each host that is named; default 1", 1, kMaxRanksPerHost);
  AddText(command, "--distance", words.distance,
          "Between hosts: hops, routes, or a file with a matrix; of a daemon also measured (by "
          "distance measure); default hops");
  command
      .add_option("--traffic", words.traffic,
                  "How links share it: over the routes, even shares of all shortest paths, or "
                  "approximate; default routes, where they are not known even")
      ->check(CLI::IsMember(ListOf(kTrafficNames)));
  AddSearchWords(command, words);
  CLI::Option* const emit = command.add_option(
      "--emit", words.emit, "Print the order, for a launcher or as numbers, instead of the report");
  emit->check(CLI::IsMember(LaunchFormatNames()));
  AddText(command, "--out", words.out, "Write what --emit says there, and print the report")
      ->needs(emit);
  command.add_flag("--list", words.list, "List the algorithms, their sources and options");
}

void CheckMapWords(const CLI::App& command, const MapWords& words) {
  if (words.list) CheckNoneBut(command, "--list", {"--json"});
  if (PrintsOrder(words)) CheckNoneOf(command, "--emit without --out", {"--json", "--links"});
}

absl::Duration BudgetOf(const MapWords& words) {
  return words.budget.empty() ? absl::Seconds(1) : *ParseBudget(words.budget);
}

std::string WhereOrderIs(const MapWords& words) {
  if (words.emit.empty()) return "where each rank goes: --emit permutation";
  return absl::StrCat("the order is in ", words.out, ", as --emit ", words.emit, " has it");
}

absl::Status CheckOut(const MapWords& words) {
  return words.out.empty() ? absl::OkStatus() : CheckMayWrite(words.out);
}

absl::StatusOr<bool> WriteOrder(const MapWords& words, absl::string_view order) {
  if (words.emit.empty()) return false;
  const bool is_all = PrintsOrder(words);
  const absl::Status written = is_all ? PrintText(order) : WriteTextFile(words.out, order);
  if (!written.ok()) return written;
  return is_all;
}

}  // namespace coppice
