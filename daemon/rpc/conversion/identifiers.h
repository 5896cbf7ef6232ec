// Ids, GUIDs and page tokens as the wire spells them.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_
#define COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/strong_id.h"
#include "db/store.h"

namespace coppice {

// Decimal, at least 1. INVALID_ARGUMENT names the text.
absl::StatusOr<JobId> ParseJobId(absl::string_view text);
absl::StatusOr<TreeId> ParseTreeId(absl::string_view text);
absl::StatusOr<PlacementId> ParsePlacementId(absl::string_view text);
// 16 hex digits, with or without 0x.
absl::StatusOr<Guid> ParseGuid(absl::string_view text);

// What a call is about, as error details and the deeds name it.
std::string JobObject(absl::string_view id);
std::string TreeObject(absl::string_view id);
std::string PlacementObject(absl::string_view id);

// Items of one page: 0 is 1000, more than 10000 is 10000; INVALID_ARGUMENT: negative.
absl::StatusOr<size_t> PageSize(int32_t requested);

// Where a listing that is ordered by id goes on: after this id. Empty: from the start (0).
absl::StatusOr<int64_t> ParseIdToken(absl::string_view token);

// Where a listing of the fabric goes on: positions hold for one version of it. Empty: from 0.
// ABORTED: the fabric moved since; INVALID_ARGUMENT: not a token of such a listing.
absl::StatusOr<uint32_t> ParseFabricToken(absl::string_view token, uint64_t version);
std::string FabricToken(uint64_t version, uint32_t position);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_
