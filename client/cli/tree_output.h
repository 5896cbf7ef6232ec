// A tree as text and as JSON. The JSON has the shape that coppice-plan prints (type, builder,
// width,
// ..., nodes with ids rank:R and switch:GUID), so that one program can read both.
#ifndef COPPICE_CLIENT_CLI_TREE_OUTPUT_H_
#define COPPICE_CLIENT_CLI_TREE_OUTPUT_H_

#include <iosfwd>

#include "coppice/v1/trees.pb.h"

namespace coppice {

void PrintTreeJson(std::ostream& out, const v1::Tree& tree);

// Type, size, predicted times and the reason; a few lines.
void PrintTreeSummary(std::ostream& out, const v1::Tree& tree);
// The tree drawn from its root, one node a line, runs of leaf ranks joined: "ranks 0-15".
void PrintTreeNodes(std::ostream& out, const v1::Tree& tree);
void PrintAlternatives(std::ostream& out, const v1::Tree& tree);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_TREE_OUTPUT_H_
