// Any bytes as a subnet management packet.
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
  coppice::DecodeNodeInfo(data).IgnoreError();
  coppice::DecodePortInfo(data);
  coppice::DecodeNodeDescription(data);
  coppice::DecodeLinearTableTop(data);
  coppice::DecodeFdr10Active(data);
  return 0;
}
