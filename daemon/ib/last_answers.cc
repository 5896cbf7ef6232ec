#include "daemon/ib/last_answers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace coppice {
namespace {

std::string LastDescription(const Fabric& fabric, const FoundNode& node) {
  const Guid guid = node.info.node_guid;
  if (node.info.type == NodeType::kSwitch) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    return s ? fabric.switch_info(*s).description : std::string();
  }
  for (size_t port = 1; port < node.ports.size(); ++port) {
    const auto endpoint = fabric.FindEndpoint(guid, PortNum(static_cast<uint8_t>(port)));
    if (endpoint) return fabric.adapter(*endpoint).description;
  }
  return "";
}

void FillTable(absl::Span<const uint8_t> last, bool was_asked, FoundNode& node) {
  if (node.is_table_silent || !was_asked) {
    node.table.assign(last.begin(), last.end());
    return;
  }
  if (node.table.size() != last.size()) return;
  for (size_t block = 0; block < node.is_block_silent.size(); ++block) {
    if (!node.is_block_silent[block]) continue;
    const size_t first = block * kLidsPerBlock;
    const size_t count = std::min<size_t>(kLidsPerBlock, last.size() - first);
    std::copy_n(last.begin() + first, count, node.table.begin() + first);
  }
}

}  // namespace

void FillFromLast(const Fabric& fabric, const ForwardingTables* tables, bool were_tables_asked,
                  SubnetRecord& subnet) {
  for (FoundNode& node : subnet.nodes) {
    if (node.is_description_silent) node.description = LastDescription(fabric, node);
    if (tables == nullptr || node.info.type != NodeType::kSwitch) continue;
    const std::optional<SwitchIndex> s = fabric.FindSwitch(node.info.node_guid);
    if (s) FillTable(tables->row(*s), were_tables_asked, node);
  }
}

}  // namespace coppice
