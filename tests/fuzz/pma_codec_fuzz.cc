// Any bytes as a packet of performance management.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "daemon/ib/mad_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto reply = coppice::DecodeReply(absl::MakeConstSpan(bytes, size));
  coppice::MadData data{};
  if (reply) {
    data = reply->data;
  } else {
    std::copy_n(bytes, std::min(size, data.size()), data.begin());
  }
  const coppice::CounterAbilities abilities = coppice::DecodeCounterAbilities(data);
  coppice::PortCounters counters;
  coppice::DecodePortSelect(data);
  coppice::DecodePortErrors(data, abilities, counters);
  coppice::DecodePortData(data, counters);
  coppice::DecodePortCountersExtended(data, abilities, counters);
  return 0;
}
