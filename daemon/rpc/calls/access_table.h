// What a caller has to be for each method of every service: the one list. Whose an object is, is
// asked beside it, where the object is known (peer.h).
//
//   kReader    whoever could connect: over TLS without a certificate only where tls.open_reading
//   kUser      whom jobs can belong to: a Unix user, a certificate, and anonymous callers where
//              insecure_tcp says so
//   kNamed     of these, who has a name: a Unix user, a certificate
//   kAgent     a node's or a switch's agent, or an administrator; whomever the call is for
//   kOperator  an administrator
//
// An administrator may do everything. An agent is no user: it may read, connect as its node's
// agent, and call for users of its node, who are never administrators that way (peer.h).
#ifndef COPPICE_DAEMON_RPC_CALLS_ACCESS_TABLE_H_
#define COPPICE_DAEMON_RPC_CALLS_ACCESS_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coppice {

enum class Role : uint8_t { kReader, kUser, kNamed, kAgent, kOperator };

struct MethodAccess {
  absl::string_view method;  // "/coppice.v1.Jobs/EndJob"
  Role least;
  absl::string_view what = {};  // in refusals of operators' methods: "a sweep"
};

absl::Span<const MethodAccess> AccessTable();

// "Jobs.EndJob" of "/coppice.v1.Jobs/EndJob".
std::string ShortName(absl::string_view method);

// Null: the table has no such method; nobody may call it.
const MethodAccess* FindAccess(absl::string_view method);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_ACCESS_TABLE_H_
