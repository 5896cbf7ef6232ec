#include "client/cli/placement_options.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// Of the message's fields, as the command line writes them.
std::string TermNames() {
  const google::protobuf::Descriptor& terms = *v1::PlacementObjective::descriptor();
  std::vector<std::string> names;
  for (int i = 0; i < terms.field_count(); ++i) {
    names.push_back(absl::StrReplaceAll(std::string(terms.field(i)->name()), {{"_", "-"}}));
  }
  return absl::StrJoin(names, ", ");
}

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--weights ", text, ": ", why));
}

absl::Status FillPattern(const std::string& pattern, v1::PlacementTraffic& traffic) {
  std::error_code unknown;
  if (pattern != "-" && !std::filesystem::exists(pattern, unknown)) {
    traffic.set_pattern_name(pattern);
    return absl::OkStatus();
  }
  return FillInputFile(pattern, *traffic.mutable_pattern_file());
}

}  // namespace

absl::StatusOr<v1::PlacementObjective> ParseWeights(absl::string_view text) {
  v1::PlacementObjective objective;
  const google::protobuf::Descriptor& terms = *objective.GetDescriptor();
  const google::protobuf::Reflection& reflection = *objective.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> named;
  double sum = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> words = absl::StrSplit(part, '=');
    if (words.size() != 2) {
      return Refuse(text, absl::StrCat("\"", part, "\" is no weight; write it as distance=2"));
    }
    const std::string name =
        absl::StrReplaceAll(absl::StripAsciiWhitespace(words[0]), {{"-", "_"}});
    const google::protobuf::FieldDescriptor* const term = terms.FindFieldByName(name);
    if (term == nullptr) {
      return Refuse(text,
                    absl::StrCat("there is no term \"", words[0], "\"; there are ", TermNames()));
    }
    if (std::find(named.begin(), named.end(), term) != named.end()) {
      return Refuse(text, absl::StrCat(words[0], " is named twice"));
    }
    named.push_back(term);
    double weight = 0;
    if (!absl::SimpleAtod(words[1], &weight) || !std::isfinite(weight) || weight < 0) {
      return Refuse(text, absl::StrCat("the weight \"", words[1], "\" of ", words[0],
                                       " is not a number from 0 up"));
    }
    reflection.SetDouble(&objective, term, weight);
    sum += weight;
  }
  if (sum > 0) return objective;
  return Refuse(text, "all are 0, which stands for the daemon's weights; give one above 0");
}

absl::Status ReadNodesOption(const std::string& text,
                             google::protobuf::RepeatedPtrField<std::string>& nodes) {
  if (text.empty()) return absl::OkStatus();
  const auto words = ReadNodeWords(text);
  if (!words.ok()) return words.status();
  for (const std::string& word : *words) nodes.Add(std::string(word));
  return absl::OkStatus();
}

void AddPlacementRequestOptions(CLI::App& command, PlacementRequestOptions& options) {
  using Constraints = v1::PlacementConstraints;
  using Traffic = v1::PlacementTraffic;
  Constraints& c = *options.request.mutable_constraints();
  Traffic& traffic = *options.request.mutable_traffic();
  AddField(command, "--nodes", c, &Constraints::set_node_count, "How many nodes")->required();
  command.add_option(
      "--candidates", options.candidates,
      std::string("Nodes to choose from, ") + kNodeWordsHelp + "; default: all that nobody holds");
  command.add_option("--include", options.include, "Nodes that must be among them");
  command.add_option("--avoid", options.avoid, "Nodes that must not");
  AddField(command, "--nodes-per-leaf", c, &Constraints::set_nodes_per_leaf,
           "Exactly so many on every leaf switch used, the last excepted");
  AddField(command, "--max-nodes-per-leaf", c, &Constraints::set_max_nodes_per_leaf,
           "At most so many on a leaf switch");
  AddField(command, "--max-leaf-switches", c, &Constraints::set_max_leaf_switches,
           "On at most so many leaf switches");
  AddField(command, "--min-leaf-switches", c, &Constraints::set_min_leaf_switches,
           "Spread over at least so many leaf switches");
  AddField(command, "--min-pods", c, &Constraints::set_min_pods, "Over at least so many pods");
  AddField(command, "--same-pod", c, &Constraints::set_same_pod, "All in one pod");
  AddField(command, "--exclusive-switches", c, &Constraints::set_exclusive_switches,
           "On leaf switches that nobody else has nodes on");
  command.add_option("--pattern", options.pattern,
                     "Of the job's communication: a file that is there, else the name of a stored "
                     "one");
  AddField(command, "--ranks-per-node", traffic, &Traffic::set_ranks_per_node,
           "Ranks on each node; default 1");
  AddField(command, "--trees", traffic, &Traffic::set_trees,
           "Aggregation trees of type II that the job will ask for");
  command.add_option("--weights", options.weights,
                     "Of the terms of the cost, as leaf-switches=1,distance=2; terms not named "
                     "weigh nothing; default: the daemon's. Terms: " +
                         TermNames());
  command.add_option("--budget", options.budget, "Time of a search with a pattern; default 1s");
  AddField(command, "--seed", options.request, &v1::PlacementRequest::set_seed, "Of a search");
}

absl::Status CompleteRequest(PlacementRequestOptions& options) {
  v1::PlacementConstraints& c = *options.request.mutable_constraints();
  absl::Status status = ReadNodesOption(options.candidates, *c.mutable_candidates());
  status.Update(ReadNodesOption(options.include, *c.mutable_include()));
  status.Update(ReadNodesOption(options.avoid, *c.mutable_avoid()));
  if (!options.pattern.empty()) {
    status.Update(FillPattern(options.pattern, *options.request.mutable_traffic()));
  }
  if (!options.weights.empty()) {
    const auto weights = ParseWeights(options.weights);
    status.Update(weights.status());
    if (weights.ok()) *options.request.mutable_objective() = *weights;
  }
  if (!options.budget.empty()) {
    status.Update(
        ReadDurationOption("--budget", options.budget, *options.request.mutable_budget()));
  }
  return status;
}

namespace {

std::string TermText(const v1::Placement& placement) {
  if (placement.state() != v1::PLACEMENT_STATE_HELD) return "-";
  return absl::StrCat(placement.term_left().seconds(), " of ", placement.term().seconds(), " s");
}

double NumberOf(const v1::PlacementMeasures& measures,
                const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *measures.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_UINT32) return fields.GetUInt32(measures, &field);
  if (field.cpp_type() == Field::CPPTYPE_INT32) return fields.GetInt32(measures, &field);
  return fields.GetDouble(measures, &field);
}

// What came after the measures that have words of their own: a line each, unless it is 0.
void PrintOtherMeasures(const v1::PlacementMeasures& measures) {
  const google::protobuf::Descriptor& all = *measures.GetDescriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    if (all.field(i)->number() <= v1::PlacementMeasures::kCostFieldNumber) continue;
    const double value = NumberOf(measures, *all.field(i));
    if (value == 0) continue;
    const std::string name = absl::StrReplaceAll(all.field(i)->name(), {{"_", " "}});
    std::cout << absl::StrFormat("%-10s %s\n", name, Fixed(value));
  }
}

}  // namespace

void PrintPlacements(const google::protobuf::RepeatedPtrField<v1::Placement>& placements,
                     PlacementColumns columns, bool is_wide) {
  const bool is_listing = columns == PlacementColumns::kListing;
  Table table({"PLACEMENT", "NAME", "OWNER", "STATE", "JOB", "NODES", "TERM LEFT", "SINCE", "LIST"},
              is_listing ? std::vector<size_t>{7, 8} : std::vector<size_t>{2, 3, 6, 7}, is_wide);
  for (const v1::Placement& p : placements) {
    table.Add({p.id(), p.display_name(), p.owner(), Word(p.state()),
               p.job_id().empty() ? "-" : p.job_id(), absl::StrCat(p.nodes_size()), TermText(p),
               TimeText(p.create_time()), p.node_list()});
  }
  table.Print(std::cout);
}

void PrintMeasures(const v1::Placement& placement) {
  const v1::PlacementMeasures& m = placement.measures();
  PrintField(std::cout, "nodes", placement.node_list());
  std::cout << "switches   " << Counted(m.leaf_switches(), "leaf switch", "es") << " of at least "
            << m.least_leaf_switches() << ", " << Counted(m.pods(), "pod") << "\n"
            << "distance   " << Fixed(m.mean_distance()) << " links between two of them\n"
            << "load       " << Fixed(100 * m.mean_load(), 1) << " %, most "
            << Fixed(100 * m.most_load(), 1) << " %; " << Counted(m.shared_links(), "link")
            << " shared with others\n";
  PrintOtherMeasures(m);
  std::cout << "cost       " << Fixed(m.cost()) << (placement.is_optimal() ? ", optimal" : "")
            << "\n";
  if (!placement.reason().empty()) PrintField(std::cout, "reason", placement.reason());
}

int ShowPlacement(Session& session, const absl::StatusOr<v1::Placement>& placement) {
  if (const auto status = Settled(session, placement)) return *status;
  google::protobuf::RepeatedPtrField<v1::Placement> one;
  *one.Add() = *placement;
  PrintPlacements(one, PlacementColumns::kListing, session.is_wide);
  PrintMeasures(*placement);
  return 0;
}

}  // namespace coppice
