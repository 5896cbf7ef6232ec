#include "daemon/fabric/ibnetdiscover_writer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

// One fabric on its way into one string.
class Writer {
 public:
  explicit Writer(const Fabric& fabric) : fabric_(fabric) {}

  std::string Write() {
    absl::StrAppend(&out_, "#\n# Topology file: written by Coppice\n#\n");
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) WriteSwitch(SwitchIndex(s));
    // Endpoints are sorted by adapter; an adapter without cables has none, yet keeps its header.
    uint32_t e = 0;
    for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
      WriteAdapter(fabric_.adapter(AdapterIndex(a)));
      for (; e < fabric_.endpoint_count() &&
             fabric_.endpoint(EndpointIndex(e)).adapter == AdapterIndex(a);
           ++e) {
        WriteAdapterPort(EndpointIndex(e));
      }
    }
    return std::move(out_);
  }

 private:
  void WriteSwitch(SwitchIndex s);
  void WriteAdapter(const AdapterInfo& adapter);
  void WriteAdapterPort(EndpointIndex e);
  void WriteIds(uint32_t vendor_id, uint16_t device_id, Guid guid);
  void WriteRemote(const Channel& channel);
  void WriteRate(const LinkInfo& link);
  Guid NodeGuid(VertexIndex v) const;
  char Letter(VertexIndex v) const;
  std::string Description(VertexIndex v) const;

  const Fabric& fabric_;
  std::string out_;
};

char LetterOf(AdapterKind kind) { return kind == AdapterKind::kRouter ? 'R' : 'H'; }

Guid Writer::NodeGuid(VertexIndex v) const {
  return fabric_.IsSwitch(v) ? fabric_.switch_info(fabric_.AsSwitch(v)).guid
                             : fabric_.adapter(fabric_.AsEndpoint(v)).guid;
}

char Writer::Letter(VertexIndex v) const {
  return fabric_.IsSwitch(v) ? 'S' : LetterOf(fabric_.adapter(fabric_.AsEndpoint(v)).kind);
}

std::string Writer::Description(VertexIndex v) const {
  return CleanDescription(fabric_.IsSwitch(v) ? fabric_.switch_info(fabric_.AsSwitch(v)).description
                                              : fabric_.adapter(fabric_.AsEndpoint(v)).description);
}

void Writer::WriteIds(uint32_t vendor_id, uint16_t device_id, Guid guid) {
  absl::StrAppend(&out_, "\nvendid=0x", absl::Hex(vendor_id), "\ndevid=0x", absl::Hex(device_id),
                  "\nsysimgguid=0x", absl::Hex(guid.value()), "\n");
}

void Writer::WriteSwitch(SwitchIndex s) {
  const SwitchInfo& info = fabric_.switch_info(s);
  WriteIds(info.vendor_id, info.device_id, info.guid);
  const uint64_t guid = info.guid.value();
  absl::StrAppend(&out_, "switchguid=0x", absl::Hex(guid), "(", absl::Hex(guid), ")\nSwitch\t",
                  static_cast<int>(info.port_count), " \"S-", ToString(info.guid), "\"\t\t# \"",
                  CleanDescription(info.description), "\" enhanced port 0 lid ",
                  static_cast<int>(info.lid.value()), " lmc 0\n");
  const absl::Span<const Channel> row = fabric_.channels(fabric_.Vertex(s));
  std::vector<Channel> channels(row.begin(), row.end());
  std::sort(channels.begin(), channels.end(),
            [](const Channel& x, const Channel& y) { return x.port < y.port; });
  for (const Channel& channel : channels) {
    absl::StrAppend(&out_, "[", static_cast<int>(channel.port.value()), "]\t");
    WriteRemote(channel);
    absl::StrAppend(&out_, "\t\t# \"", Description(channel.to), "\" lid ",
                    static_cast<int>(fabric_.lid(channel.to).value()), " ");
    WriteRate(fabric_.link(Fabric::link_of(channel.index)));
  }
}

// "S-0002c9020040b0e0"[7], and the port's GUID if it is an adapter's.
void Writer::WriteRemote(const Channel& channel) {
  const char letter[] = {Letter(channel.to), '\0'};
  absl::StrAppend(&out_, "\"", letter, "-", ToString(NodeGuid(channel.to)), "\"[",
                  static_cast<int>(channel.to_port.value()), "]");
  if (fabric_.IsSwitch(channel.to)) return;
  const EndpointInfo& endpoint = fabric_.endpoint(fabric_.AsEndpoint(channel.to));
  absl::StrAppend(&out_, "(", absl::Hex(endpoint.port_guid.value()), ") ");
}

void Writer::WriteRate(const LinkInfo& link) {
  absl::StrAppend(&out_, FormatLinkRate(link.rate, link.capacity_gbps), "\n");
}

void Writer::WriteAdapter(const AdapterInfo& adapter) {
  WriteIds(adapter.vendor_id, adapter.device_id, adapter.guid);
  const bool is_router = adapter.kind == AdapterKind::kRouter;
  const char letter[] = {LetterOf(adapter.kind), '\0'};
  absl::StrAppend(&out_, is_router ? "rtguid=0x" : "caguid=0x", absl::Hex(adapter.guid.value()),
                  is_router ? "\nRt\t" : "\nCa\t", static_cast<int>(adapter.port_count));
  absl::StrAppend(&out_, " \"", letter, "-", ToString(adapter.guid), "\"\t\t# \"",
                  CleanDescription(adapter.description), "\"\n");
}

void Writer::WriteAdapterPort(EndpointIndex e) {
  const EndpointInfo& endpoint = fabric_.endpoint(e);
  for (const Channel& channel : fabric_.channels(fabric_.Vertex(e))) {
    absl::StrAppend(&out_, "[", static_cast<int>(endpoint.port.value()), "](",
                    absl::Hex(endpoint.port_guid.value()), ") \t");
    WriteRemote(channel);
    absl::StrAppend(&out_, "\t\t# lid ", static_cast<int>(endpoint.lid.value()), " lmc ",
                    static_cast<int>(endpoint.lmc), " \"", Description(channel.to));
    absl::StrAppend(&out_, "\" lid ", static_cast<int>(fabric_.lid(channel.to).value()), " ");
    WriteRate(fabric_.link(Fabric::link_of(channel.index)));
  }
}

}  // namespace

std::string WriteIbnetdiscover(const Fabric& fabric) { return Writer(fabric).Write(); }

}  // namespace coppice
