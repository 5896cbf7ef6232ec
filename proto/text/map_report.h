// An order of ranks beside the present one, the search for it and the algorithms that there are, as
// coppicectl, coppice-plan and coppice-search tell of them.
#ifndef COPPICE_PROTO_TEXT_MAP_REPORT_H_
#define COPPICE_PROTO_TEXT_MAP_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/text/text_table.h"

namespace coppice {

// What an order costs; nullopt: not known without a fabric.
struct MapFigures {
  std::optional<double> max_congestion;  // bytes per Gb/s of a link
  std::optional<double> average_dilation;
  std::optional<double> hop_bytes;
  double qap_cost = 0;
  std::optional<uint32_t> max_dilation;
  double inter_node_bytes = 0;
  std::optional<double> inter_switch_bytes;
};

// One direction of a link, and what the ranks send over it.
struct MapLink {
  std::string from, to;
  double bytes = 0, capacity_gbps = 0;
  double congestion = 0;  // bytes / capacity_gbps
  double share = 0;       // of the greatest congestion
};

struct MapReport {
  std::string algorithm, reason;
  MapFigures before, after;
  double seconds = 0;  // of search
  double score = 1;    // the present order has 1
  std::vector<uint32_t> permutation;
  std::string order;                   // where it is to be found, in words
  std::optional<std::string> traffic;  // over what it goes, in words
  std::optional<uint32_t> places;
  std::optional<uint64_t> fabric_version;
  std::optional<std::vector<MapLink>> links;  // if they were asked for, the busiest first
};

struct AlgorithmLine {
  struct Option {
    std::string name;
    double preset = 0, least = 0, greatest = 0;
    std::string meaning;
  };
  std::string name, source;
  bool refines = false;  // the present order, instead of starting anew
  std::vector<Option> options;
};

// As coppice.v1.ListAlgorithmsResponse has them.
std::string AlgorithmsJson(const std::vector<AlgorithmLine>& algorithms);
std::string AlgorithmsText(const std::vector<AlgorithmLine>& algorithms, bool is_for_people);

// "1.5 s of 1m: 0.5449 of the present order"; nullopt: there is no other order yet.
std::string MapProgressText(double seconds, absl::Duration budget, std::optional<double> score);

// What is not known is null.
std::string MapJson(const MapReport& report);
// Reason and moves, the figures, the links; not the order, which is for launchers and programs: of
// 512 ranks it has 1,900 letters.
std::string MapText(const MapReport& report, bool is_for_people);

// "12 of 512 ranks move".
std::string MovesText(const std::vector<uint32_t>& permutation);
// A row for each figure that is known of both.
TextTable FiguresTable(const MapFigures& before, const MapFigures& after);
TextTable LinksTable(const std::vector<MapLink>& links);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_MAP_REPORT_H_
