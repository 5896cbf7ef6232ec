// What rank 0 of coppice-search tells the others, and the daemon answers with: any bytes give a
// problem that says the same when it is written again, or a reason.
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "coppice/v1/search.pb.h"
#include "daemon/search/job_question.h"
#include "google/protobuf/stubs/logging.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer quiet;  // of text that is no UTF-8
  coppice::v1::SearchAssignment assignment;
  if (!assignment.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto problem = coppice::FromProto(assignment.problem());
  if (!problem.ok()) {
    if (problem.status().message().empty()) __builtin_trap();
    return 0;
  }
  coppice::v1::MappingProblem written, again;
  const absl::Status told = coppice::ToProto(*problem, written);
  if (absl::IsResourceExhausted(told)) return 0;  // more slots than are told at once
  if (!told.ok()) __builtin_trap();
  const auto same = coppice::FromProto(written);
  if (!same.ok() || !coppice::ToProto(*same, again).ok()) __builtin_trap();
  if (written.SerializeAsString() != again.SerializeAsString()) __builtin_trap();
  return 0;
}
