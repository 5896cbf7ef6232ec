// A tree as text and as JSON: id, job_id, type, builder, width, ..., nodes with ids rank:R and
// switch:GUID; enumerators by name, as everywhere in JSON.
#ifndef COPPICE_CLIENT_CLI_TREE_OUTPUT_H_
#define COPPICE_CLIENT_CLI_TREE_OUTPUT_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "client/cli/words.h"
#include "coppice/v1/trees.pb.h"

namespace coppice {

// Port GUID -> "host/port". An endpoint that is not in it is shown by its GUID.
using EndpointNames = absl::flat_hash_map<uint64_t, std::string>;

void PrintTreeJson(std::ostream& out, const v1::Tree& tree, const EndpointNames& names);

// "-": it has none.
std::string WidthText(uint32_t width);

// Type, size, predicted times, the switches that serve and the reason: six lines at most.
void PrintTreeSummary(std::ostream& out, const v1::Tree& tree, const SwitchNames& names);
// The tree drawn from its root, one node a line, runs of leaf ranks joined: "ranks 0-15".
void PrintTreeNodes(std::ostream& out, const v1::Tree& tree, const SwitchNames& names);
// Nothing, if the answer lists none.
void PrintTradeoffs(std::ostream& out, const v1::Tree& tree);
void PrintAlternatives(std::ostream& out, const v1::Tree& tree);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_TREE_OUTPUT_H_
