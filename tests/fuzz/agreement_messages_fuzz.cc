// What a member of a tree over switches says when it breaks: any bytes, cut to payloads anyhow, are
// refused or are messages that would be written the same, and bring no member into a state that is
// none.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agents/mpi/tree/agreement.h"

using coppice::SharedBytes;
using coppice::mpi::Agreement;
using coppice::mpi::AgreementMessage;
using coppice::mpi::AgreementReader;
using coppice::mpi::PayloadsOf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint32_t kMembers = 3;
  constexpr uint64_t kMaxResult = 200'000;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const auto self = static_cast<uint32_t>(data[0]) % kMembers;
  Agreement member(self, kMembers);
  static_cast<void>(member.Enter(data[0] >> 4));
  bytes.remove_prefix(1);
  AgreementReader reader(kMaxResult);
  std::string taken;
  while (!bytes.empty()) {
    // A byte says how long the next payload is.
    const auto length = std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size() - 1);
    const std::string_view payload = bytes.substr(1, length);
    bytes.remove_prefix(1 + length);
    AgreementMessage message;
    const AgreementReader::State state = reader.Take(payload, &message);
    if (state == AgreementReader::State::kMalformed) break;
    taken.append(payload);
    if (state == AgreementReader::State::kNeedsMore) continue;
    std::string written;
    for (const SharedBytes& part : PayloadsOf(message)) written += *part;
    if (written != taken) __builtin_trap();
    taken.clear();
    static_cast<void>(member.MessageFrom(self == 0 ? 1 + message.number % 2 : 0, message));
    if (member.state().lost >= kMembers) __builtin_trap();
  }
  return 0;
}
