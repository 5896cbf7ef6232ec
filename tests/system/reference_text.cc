#include "tests/system/reference_text.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

std::string NodeName(bool is_switch, uint64_t guid) {
  return absl::StrFormat("%c %x", is_switch ? 'S' : 'H', guid);
}

std::string CableLine(const std::string& from, int from_port, const std::string& to, int to_port,
                      absl::string_view rate) {
  return absl::StrFormat("%s[%d] %s[%d] %s", from, from_port, to, to_port, rate);
}

Lines Sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string Quoted(absl::string_view line) {  // what stands in quotes behind the '#'
  const size_t hash = line.find('#');
  const size_t begin = line.find('"', hash);
  return std::string(line.substr(begin, line.find('"', begin + 1) - begin + 1));
}

int NumberBehind(absl::string_view line, absl::string_view word) {
  const size_t at = line.rfind(word);
  return at == absl::string_view::npos ? -1 : std::atoi(line.data() + at + word.size());
}

struct Vertex {
  std::string name;
  uint64_t guid;
};

Vertex NodeOf(const Fabric& fabric, VertexIndex v) {
  const bool is_switch = fabric.IsSwitch(v);
  const uint64_t guid = (is_switch ? fabric.switch_info(fabric.AsSwitch(v)).guid
                                   : fabric.adapter(fabric.AsEndpoint(v)).guid)
                            .value();
  return {NodeName(is_switch, guid), guid};
}

// Table entries come by switch and LID; one line holds those of 16 LIDs.
void AddEntry(const std::string& name, size_t lid, unsigned port, Lines& lines) {
  const std::string start = absl::StrCat(name, " LIDs from ", lid / 16 * 16, ":");
  if (lines.empty() || !absl::StartsWith(lines.back(), start)) lines.push_back(start);
  absl::StrAppend(&lines.back(), " ", lid, ":", port);
}

// The port lines of ibnetdiscover, below `node`.
void DescribePort(const std::string& line, const std::string& node, Lines& lines) {
  int port = 0, peer_port = 0;
  char kind = 0;
  unsigned long long port_guid = 0, peer = 0;
  const bool adapter = std::sscanf(line.c_str(), "[%d](%llx) \"%c-%llx\"[%d]", &port, &port_guid,
                                   &kind, &peer, &peer_port) == 5;
  if (!adapter &&
      std::sscanf(line.c_str(), "[%d] \"%c-%llx\"[%d]", &port, &kind, &peer, &peer_port) != 4) {
    return;
  }
  const std::string rate = line.substr(line.rfind(' ') + 1);
  lines.push_back(CableLine(node, port, NodeName(kind == 'S', peer), peer_port, rate));
  if (!adapter) return;
  const std::string comment = line.substr(line.find('#'));
  int lid = -1, lmc = -1;
  std::sscanf(comment.c_str(), "# lid %d lmc %d", &lid, &lmc);
  lines.push_back(absl::StrFormat("%s[%d] guid %x lid %d lmc %d", node, port, port_guid, lid, lmc));
}

}  // namespace

Lines DescribeFabric(const Fabric& fabric) {
  Lines lines;
  for (uint32_t i = 0; i < fabric.switch_count(); ++i) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(i));
    lines.push_back(absl::StrFormat("%s ports %d \"%s\" lid %d", NodeName(true, info.guid.value()),
                                    info.port_count, info.description, info.lid.value()));
  }
  for (uint32_t i = 0; i < fabric.adapter_count(); ++i) {
    const AdapterInfo& info = fabric.adapter(AdapterIndex(i));
    lines.push_back(absl::StrFormat("%s ports %d \"%s\"", NodeName(false, info.guid.value()),
                                    info.port_count, info.description));
  }
  for (uint32_t i = 0; i < fabric.endpoint_count(); ++i) {
    const EndpointInfo& info = fabric.endpoint(EndpointIndex(i));
    lines.push_back(absl::StrFormat(
        "%s[%d] guid %x lid %d lmc %d", NodeName(false, fabric.adapter(info.adapter).guid.value()),
        info.port.value(), info.port_guid.value(), info.lid.value(), info.lmc));
  }
  for (uint32_t i = 0; i < fabric.channel_count(); ++i) {
    const ChannelIndex c(i);
    lines.push_back(CableLine(NodeOf(fabric, fabric.channel_from(c)).name,
                              fabric.channel_from_port(c).value(),
                              NodeOf(fabric, fabric.channel_to(c)).name,
                              fabric.channel_from_port(Fabric::Reverse(c)).value(),
                              ToString(fabric.link(Fabric::link_of(c)).rate)));
  }
  return Sorted(std::move(lines));
}

Lines DescribeIbnetdiscover(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  std::string line, node;
  while (std::getline(in, line)) {
    char kind[16] = "", letter = 0;
    int ports = 0;
    unsigned long long guid = 0;
    if (std::sscanf(line.c_str(), "%15s %d \"%c-%llx\"", kind, &ports, &letter, &guid) == 4) {
      const bool is_switch = letter == 'S';
      node = NodeName(is_switch, guid);
      std::string entry = absl::StrFormat("%s ports %d %s", node, ports, Quoted(line));
      if (is_switch) absl::StrAppend(&entry, " lid ", NumberBehind(line, " lid "));
      lines.push_back(std::move(entry));
    } else {
      DescribePort(line, node, lines);
    }
  }
  return Sorted(std::move(lines));
}

Lines DescribeTables(const Fabric& fabric, const ForwardingTables& tables) {
  Lines lines;
  for (uint32_t i = 0; i < fabric.switch_count(); ++i) {
    const SwitchIndex s(i);
    const std::string name = NodeName(true, fabric.switch_info(s).guid.value());
    // ibroute, which dump_lfts runs, stops before a top LID that begins a block of 64.
    size_t end = tables.row(s).size();
    if (end % 64 == 1) --end;
    for (size_t lid = 1; lid < end; ++lid) {
      const uint8_t port = tables.row(s)[lid];
      if (port != ForwardingTables::kNoRoute) AddEntry(name, lid, port, lines);
    }
  }
  return Sorted(std::move(lines));
}

Lines DescribeDumpLfts(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  std::string line, name;
  while (std::getline(in, line)) {
    unsigned lid = 0, port = 0;
    const size_t guid_at = line.find(" guid 0x");
    if (line.rfind("Unicast lids", 0) == 0 && guid_at != std::string::npos) {
      name = NodeName(true, std::stoull(line.substr(guid_at + 6), nullptr, 16));
    } else if (std::sscanf(line.c_str(), "0x%x %u", &lid, &port) == 2) {
      AddEntry(name, lid, port, lines);
    }
  }
  return Sorted(std::move(lines));
}

std::vector<std::string> SwitchHopsOfIbtracert(const std::string& text) {
  // From ca {0x100000} portnum 1 ...        [1] -> switch port {0x200000}[1] lid 2-2 "L0"
  // [17] -> switch port {0x200020}[1] ...   [3] -> ca port {0x100005}[1] ...
  std::vector<std::string> hops;
  std::string at;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    unsigned long long guid = 0;
    int out = 0;
    char kind[16] = "";
    if (std::sscanf(line.c_str(), "From %15s {0x%llx}", kind, &guid) == 2) {
      at = absl::StartsWith(kind, "switch") ? NodeName(true, guid) : "";
    } else if (std::sscanf(line.c_str(), "[%d] -> %15s port {0x%llx}", &out, kind, &guid) == 3) {
      if (!at.empty()) hops.push_back(absl::StrCat(at, "[", out, "]"));
      at = absl::StartsWith(kind, "switch") ? NodeName(true, guid) : "";
    }
  }
  return hops;
}

std::string Difference(const Lines& expected, const Lines& found) {
  Lines missing, extra;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(missing));
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                      std::back_inserter(extra));
  std::string text;
  for (size_t i = 0; i < missing.size() && i < 5; ++i) {
    absl::StrAppend(&text, "- ", missing[i].substr(0, 300), "\n");
  }
  for (size_t i = 0; i < extra.size() && i < 5; ++i) {
    absl::StrAppend(&text, "+ ", extra[i].substr(0, 300), "\n");
  }
  return text;
}

}  // namespace coppice
