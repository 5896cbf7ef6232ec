#include "client/cli/placement_options.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
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
  const absl::StatusOr<std::string> text = ReadTextFile(pattern);
  if (!text.ok()) return text.status();
  traffic.mutable_pattern_file()->set_origin(pattern);
  traffic.mutable_pattern_file()->set_text(*text);
  return absl::OkStatus();
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

absl::Status ReadDurationOption(const std::string& option, const std::string& text,
                                google::protobuf::Duration& to) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", text, ": write a duration such as 90s, 10m or 24h"));
  }
  to.set_seconds(absl::ToInt64Seconds(duration));
  to.set_nanos(static_cast<int32_t>((duration - absl::Floor(duration, absl::Seconds(1))) /
                                    absl::Nanoseconds(1)));
  return absl::OkStatus();
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
  v1::PlacementConstraints& c = *options.request.mutable_constraints();
  const auto number = [&](const char* name, auto setter, const char* help) {
    return command.add_option_function<uint32_t>(name, setter, help);
  };
  number(
      "--nodes", [&c](uint32_t n) { c.set_node_count(n); }, "How many nodes")
      ->required();
  command.add_option(
      "--candidates", options.candidates,
      std::string("Nodes to choose from, ") + kNodeWordsHelp + "; default: all that nobody holds");
  command.add_option("--include", options.include, "Nodes that must be among them");
  command.add_option("--avoid", options.avoid, "Nodes that must not");
  number(
      "--nodes-per-leaf", [&c](uint32_t n) { c.set_nodes_per_leaf(n); },
      "Exactly so many on every leaf switch used, the last excepted");
  number(
      "--max-nodes-per-leaf", [&c](uint32_t n) { c.set_max_nodes_per_leaf(n); },
      "At most so many on a leaf switch");
  number(
      "--max-leaf-switches", [&c](uint32_t n) { c.set_max_leaf_switches(n); },
      "On at most so many leaf switches");
  number(
      "--min-leaf-switches", [&c](uint32_t n) { c.set_min_leaf_switches(n); },
      "Spread over at least so many leaf switches");
  number(
      "--min-pods", [&c](uint32_t n) { c.set_min_pods(n); }, "Over at least so many pods");
  command.add_flag_callback(
      "--same-pod", [&c] { c.set_same_pod(true); }, "All in one pod");
  command.add_flag_callback(
      "--exclusive-switches", [&c] { c.set_exclusive_switches(true); },
      "On leaf switches that nobody else has nodes on");
  v1::PlacementTraffic& traffic = *options.request.mutable_traffic();
  command.add_option("--pattern", options.pattern,
                     "Of the job's communication: a file that is there, else the name of a stored "
                     "one");
  number(
      "--ranks-per-node", [&traffic](uint32_t n) { traffic.set_ranks_per_node(n); },
      "Ranks on each node; default 1");
  number(
      "--trees", [&traffic](uint32_t n) { traffic.set_trees(n); },
      "Aggregation trees of type II that the job will ask for");
  command.add_option("--weights", options.weights,
                     "Of the terms of the cost, as leaf-switches=1,distance=2; terms not named "
                     "weigh nothing; default: the daemon's. Terms: " +
                         TermNames());
  command.add_option("--budget", options.budget, "Time of a search with a pattern; default 1s");
  command.add_option_function<uint64_t>(
      "--seed", [&options](uint64_t seed) { options.request.set_seed(seed); }, "Of a search");
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

}  // namespace coppice
