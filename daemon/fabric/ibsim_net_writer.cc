#include "daemon/fabric/ibsim_net_writer.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

constexpr size_t kMaxName = 60;         // ibsim's NODEIDLEN is 65, with prefix and end
constexpr size_t kMaxDescription = 63;  // IBA vol. 1, 14.2.5.2 NodeDescription: 64 bytes, with end

// LinkWidthEnabled and LinkSpeedEnabled (IBA vol. 1, 14.2.5.6) as far as ibsim knows them.
int WidthBit(uint8_t lanes) { return lanes >= 12 ? 8 : lanes >= 8 ? 4 : lanes >= 4 ? 2 : 1; }
int SpeedBit(LaneSpeed speed) {
  return speed >= LaneSpeed::kQdr ? 4 : speed == LaneSpeed::kDdr ? 2 : 1;
}

std::string Name(absl::string_view text) {
  std::string name(text.substr(0, kMaxName));
  for (char& c : name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

class IbsimWriter {
 public:
  explicit IbsimWriter(const Fabric& fabric) : fabric_(fabric) {}
  std::string Write();

 private:
  void NameNodes();
  void WriteHeader(absl::string_view type, absl::string_view guid_key, Guid guid,
                   uint16_t device_id, uint8_t ports, absl::string_view name);
  void WriteSwitch(SwitchIndex s);
  void WriteAdapter(AdapterIndex a, uint32_t first_endpoint, uint32_t last_endpoint);
  void WritePort(const Channel& channel, absl::string_view lid);
  absl::string_view NodeName(VertexIndex v) const;

  const Fabric& fabric_;
  std::vector<std::string> switch_names_, adapter_names_;
  std::string out_;
};

// Each node takes the first of its candidates that no other node has among its candidates of that
// rank or before.
void IbsimWriter::NameNodes() {
  std::vector<std::vector<std::string>> candidates;
  for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
    const SwitchInfo& info = fabric_.switch_info(SwitchIndex(s));
    const std::string name = Name(info.description);
    candidates.push_back({name, name, absl::StrCat("S-", ToString(info.guid))});
  }
  for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
    const AdapterInfo& info = fabric_.adapter(AdapterIndex(a));
    candidates.push_back({Name(fabric_.host_name(info.host)), Name(info.description),
                          absl::StrCat("H-", ToString(info.guid))});
  }
  absl::flat_hash_map<std::string, uint32_t> uses;
  for (const std::vector<std::string>& c : candidates) {
    ++uses[c[0]];
    if (c[1] != c[0]) ++uses[c[1]];
    ++uses[c[2]];
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::vector<std::string>& c = candidates[i];
    size_t rank = 0;
    while (rank < 2 && (c[rank].empty() || uses[c[rank]] > 1)) ++rank;
    (i < fabric_.switch_count() ? switch_names_ : adapter_names_).push_back(std::move(c[rank]));
  }
}

absl::string_view IbsimWriter::NodeName(VertexIndex v) const {
  if (fabric_.IsSwitch(v)) return switch_names_[v.value()];
  return adapter_names_[fabric_.endpoint(fabric_.AsEndpoint(v)).adapter.value()];
}

void IbsimWriter::WriteHeader(absl::string_view type, absl::string_view guid_key, Guid guid,
                              uint16_t device_id, uint8_t ports, absl::string_view name) {
  absl::StrAppend(&out_, "\ndevid=0x", absl::Hex(device_id), "\n", guid_key, "=0x",
                  absl::Hex(guid.value()), "\n");
  absl::StrAppend(&out_, type, "\t", static_cast<int>(ports), " \"", name, "\"\t\t# \"");
}

// A description in quotes; ibsim ends it at the first quote.
std::string Quotable(absl::string_view description) {
  std::string text = CleanDescription(description.substr(0, kMaxDescription));
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

// ibsim takes every '=' in a port line for an option: what comments say must not hold one.
void IbsimWriter::WritePort(const Channel& channel, absl::string_view lid) {
  const LinkInfo& link = fabric_.link(Fabric::link_of(channel.index));
  const LinkRate rate = link.rate;
  absl::StrAppend(&out_, "[", static_cast<int>(channel.port.value()), "]\t\"", NodeName(channel.to),
                  "\"[", static_cast<int>(channel.to_port.value()), "]");
  if (rate.lanes > 0) absl::StrAppend(&out_, " w=", WidthBit(rate.lanes));
  if (rate.speed != LaneSpeed::kUnknown) absl::StrAppend(&out_, " s=", SpeedBit(rate.speed));
  absl::StrAppend(&out_, "\t#", lid, " ", FormatLinkRate(rate, link.capacity_gbps), "\n");
}

void IbsimWriter::WriteSwitch(SwitchIndex s) {
  const SwitchInfo& info = fabric_.switch_info(s);
  WriteHeader("Switch", "switchguid", info.guid, info.device_id, info.port_count,
              switch_names_[s.value()]);
  absl::StrAppend(&out_, Quotable(info.description), "\" enhanced port 0 lid ",
                  static_cast<int>(info.lid.value()), " lmc 0\n");
  const absl::Span<const Channel> row = fabric_.channels(fabric_.Vertex(s));
  std::vector<Channel> channels(row.begin(), row.end());
  std::sort(channels.begin(), channels.end(),
            [](const Channel& x, const Channel& y) { return x.port < y.port; });
  for (const Channel& channel : channels) WritePort(channel, "");
}

void IbsimWriter::WriteAdapter(AdapterIndex a, uint32_t first_endpoint, uint32_t last_endpoint) {
  const AdapterInfo& info = fabric_.adapter(a);
  const bool is_router = info.kind == AdapterKind::kRouter;
  WriteHeader(is_router ? "Rt" : "Ca", is_router ? "rtguid" : "caguid", info.guid, info.device_id,
              info.port_count, adapter_names_[a.value()]);
  absl::StrAppend(&out_, Quotable(info.description), "\"\n");
  for (uint32_t e = first_endpoint; e < last_endpoint; ++e) {
    const EndpointInfo& endpoint = fabric_.endpoint(EndpointIndex(e));
    const std::string lid = absl::StrCat(" lid ", static_cast<int>(endpoint.lid.value()), " lmc ",
                                         static_cast<int>(endpoint.lmc));
    for (const Channel& channel : fabric_.channels(fabric_.Vertex(EndpointIndex(e)))) {
      WritePort(channel, lid);
    }
  }
}

std::string IbsimWriter::Write() {
  NameNodes();
  absl::StrAppend(&out_, "# ibsim net file: written by Coppice\n");
  // ibsim attaches programs without SIM_HOST to the first node: let it be a host.
  uint32_t e = 0;
  for (uint32_t a = 0; a < fabric_.adapter_count(); ++a) {
    const uint32_t first = e;
    while (e < fabric_.endpoint_count() &&
           fabric_.endpoint(EndpointIndex(e)).adapter == AdapterIndex(a)) {
      ++e;
    }
    WriteAdapter(AdapterIndex(a), first, e);
  }
  for (uint32_t s = 0; s < fabric_.switch_count(); ++s) WriteSwitch(SwitchIndex(s));
  return std::move(out_);
}

}  // namespace

std::string WriteIbsimNet(const Fabric& fabric) { return IbsimWriter(fabric).Write(); }

}  // namespace coppice
