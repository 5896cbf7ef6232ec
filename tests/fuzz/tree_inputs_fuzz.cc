// Arbitrary bytes as each of the text files of coppice-plan, on a small fabric: no crash, an
// error says which file, what is read lies in the fabric, and Windows line ends change nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "daemon/tools/tree_inputs.h"
#include "tests/support/fabrics.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

template <class Result>
void RequireAlike(const Result& one, const Result& other) {
  Require(one.ok() == other.ok());
  if (one.ok()) {
    Require(*one == *other);
  } else {
    Require(absl::IsInvalidArgument(one.status()) || absl::IsNotFound(one.status()));
    Require(absl::StartsWith(one.status().message(), "fuzz"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const coppice::FabricPtr fabric = coppice::TwoLevelFatTree(2, 2, 2);
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string windows = absl::StrReplaceAll(text, {{"\n", "\r\n"}});

  const auto members = coppice::ReadMembers(*fabric, text, "fuzz");
  RequireAlike(members, coppice::ReadMembers(*fabric, windows, "fuzz"));
  if (members.ok()) {
    Require(!members->empty());
    for (const coppice::EndpointIndex e : *members) Require(e.value() < fabric->endpoint_count());
  }
  const auto names = coppice::ReadHostNames(text, "fuzz");
  RequireAlike(names, coppice::ReadHostNames(windows, "fuzz"));
  if (members.ok()) Require(names.ok() && names->size() == members->size());
  const auto switches = coppice::ReadSwitches(*fabric, text, "fuzz");
  RequireAlike(switches, coppice::ReadSwitches(*fabric, windows, "fuzz"));
  if (switches.ok()) {
    for (const coppice::SwitchIndex s : *switches) Require(s.value() < fabric->switch_count());
  }
  const auto load = coppice::ReadLinkLoad(*fabric, text, "fuzz");
  RequireAlike(load, coppice::ReadLinkLoad(*fabric, windows, "fuzz"));
  if (load.ok()) {
    Require(load->size() == fabric->channel_count());
    Require(std::all_of(load->begin(), load->end(), [](float u) { return u >= 0 && u <= 1; }));
  }
  return 0;
}
