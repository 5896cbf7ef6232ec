// A pattern from a graph file as METIS reads it (METIS manual 5.1.0, section 4.1.1).
//
//   3 2 001           ranks, edges, what lines hold: vertex sizes, vertex weights, edge weights
//   2 4096 3 64       rank 0 exchanges 4096 bytes with rank 1 and 64 with rank 2 (counted from 1)
//   1 4096
//   1 64
//
// The graph has no directions: the weight of an edge is the bytes of both together, half each way;
// it stands in both ranks' lines. Without edge weights each weighs 1. Sizes and weights of vertices
// say nothing of communication and are passed over. A blank line is a rank that talks to nobody;
// lines that begin with % or # are comments.
#ifndef COPPICE_DAEMON_MAPPING_INPUT_METIS_GRAPH_H_
#define COPPICE_DAEMON_MAPPING_INPUT_METIS_GRAPH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/mapping/pattern.h"

namespace coppice {

// INVALID_ARGUMENT, naming `origin` and the line: no such header, no or more than
// Pattern::kMaxRanks ranks, a neighbour that does not exist, a weight that ParseWeight refuses, an
// edge whose two lines do not agree, other numbers of lines or edges than promised. Edges that are
// named several times are added up; a loop counts once. O(edges log edges).
absl::StatusOr<std::shared_ptr<const Pattern>> ReadMetisGraph(absl::string_view text,
                                                              absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_INPUT_METIS_GRAPH_H_
