// The check of requests beside the parser: what passes and is a message holds plain texts only. The
// first byte says which request and in how large pieces it comes.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "proto/request_check.h"
#include "proto/text/plain_text.h"

namespace {

void Expect(bool holds, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "\"%s\" passed\n", coppice::ShownText(text).c_str());
  std::abort();
}

void ExpectPlain(const std::string& text) { Expect(coppice::TextFault(text).empty(), text); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const bool silent = (coppice::SilenceMessageLog(), true);
  const std::string wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  ExpectPlain(coppice::ShownText(wire));
  const int piece = data[0] / 2 % 16 + 1;
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()), piece);
  coppice::v1::RegisterJobRequest job;
  coppice::v1::MapRanksRequest map;
  google::protobuf::Message& message =
      data[0] % 2 == 0 ? static_cast<google::protobuf::Message&>(job) : map;
  const bool passes = coppice::CheckRequest(*message.GetDescriptor(), stream).ok();
  if (!passes || !message.ParseFromString(wire)) return silent ? 0 : 1;
  ExpectPlain(job.request_id());
  ExpectPlain(job.display_name());
  for (const std::string& endpoint : job.endpoints()) ExpectPlain(endpoint);
  ExpectPlain(map.task().job_id());
  ExpectPlain(map.task().pattern_name());
  for (const auto& [name, value] : map.options()) ExpectPlain(name);
  return 0;
}
