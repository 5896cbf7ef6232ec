// Addresses of "HOST:PORT". A name may have to be asked of a server that does not answer, and
// getaddrinfo(3) hears neither a deadline nor a stop.
#ifndef COPPICE_AGENTS_NODE_NAME_RESOLUTION_H_
#define COPPICE_AGENTS_NODE_NAME_RESOLUTION_H_

#include <netdb.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/node/measuring_limit.h"

namespace coppice {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Of a peer. A name is looked up on a thread of its own, which is left behind when the limit ends
// the wait and then ends with the look-up; there are at most 16. INVALID_ARGUMENT: it is no
// HOST:PORT. UNAVAILABLE: the host is not known, or too many look-ups hang. CANCELLED,
// DEADLINE_EXCEEDED.
absl::StatusOr<Addresses> Resolve(const std::string& address, const MeasuringLimit& limit);

// To listen at; waits for as long as it takes. INVALID_ARGUMENT, UNAVAILABLE as above.
absl::StatusOr<Addresses> ResolveOwn(const std::string& address);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_NAME_RESOLUTION_H_
