// Any bytes as a model's name and arguments, for as long as they ask for a small fabric.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "daemon/fabric/models/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view spec(reinterpret_cast<const char*>(data), size);
  // Few digits keep most fabrics small, and a run short.
  if (std::count_if(spec.begin(), spec.end(), [](char c) { return c >= '0' && c <= '9'; }) > 6) {
    return 0;
  }
  const auto fabric = coppice::GenerateModel(spec);
  if (!fabric.ok() && fabric.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
  return 0;
}
