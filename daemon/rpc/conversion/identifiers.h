// Ids, GUIDs, times and page tokens as the wire spells them.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_
#define COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/generated_enum_reflection.h>
#include <google/protobuf/repeated_ptr_field.h>
#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "db/store.h"

namespace coppice {

// INVALID_ARGUMENT, "FIELD: WHAT".
inline absl::Status BadField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Decimal, at least 1. INVALID_ARGUMENT names the text.
absl::StatusOr<int64_t> ParseId(absl::string_view text, absl::string_view what);
template <class Id>
absl::StatusOr<Id> ParseIdOf(absl::string_view text, absl::string_view what) {
  const absl::StatusOr<int64_t> id = ParseId(text, what);
  if (!id.ok()) return id.status();
  return Id(*id);
}
inline auto ParseJobId(absl::string_view text) { return ParseIdOf<JobId>(text, "job"); }
inline auto ParseTreeId(absl::string_view text) { return ParseIdOf<TreeId>(text, "tree"); }
inline auto ParseReservationId(absl::string_view text) {
  return ParseIdOf<ReservationId>(text, "reservation");
}
inline auto ParsePlacementId(absl::string_view text) {
  return ParseIdOf<PlacementId>(text, "placement");
}
// 16 hex digits, with or without 0x.
absl::StatusOr<Guid> ParseGuid(absl::string_view text);
// 0: none. INVALID_ARGUMENT: over 0x7fff.
absl::StatusOr<PartitionNum> ParsePartitionNum(uint32_t number);

// INVALID_ARGUMENT, which says what there is.
absl::Status UnknownEnumerator(absl::string_view field, int value,
                               const google::protobuf::EnumDescriptor& type);
// Enumerators and the wire's for them, in pairs: the conversion both ways.
template <class Value, class Wire, size_t kCount>
Wire WireOf(const std::pair<Value, Wire> (&pairs)[kCount], Value value) {
  for (const auto& [one, wire] : pairs) {
    if (one == value) return wire;
  }
  return Wire();  // UNSPECIFIED
}
// None: UNSPECIFIED. INVALID_ARGUMENT, naming `field`: there is no such value.
template <class Value, class Wire, size_t kCount>
absl::StatusOr<std::optional<Value>> ValueOf(const std::pair<Value, Wire> (&pairs)[kCount],
                                             Wire wire, absl::string_view field) {
  if (wire == Wire()) return std::nullopt;
  for (const auto& [value, one] : pairs) {
    if (one == wire) return value;
  }
  return UnknownEnumerator(field, wire, *google::protobuf::GetEnumDescriptor<Wire>());
}

// INVALID_ARGUMENT, naming `field`: out of protobuf's range.
absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& duration,
                                         absl::string_view field);
absl::StatusOr<absl::Time> FromProto(const google::protobuf::Timestamp& time,
                                     absl::string_view field);
google::protobuf::Timestamp ToTimestamp(absl::Time time);
google::protobuf::Duration ToDuration(absl::Duration duration);

// What a call is about, as error details and the deeds name it.
inline std::string JobObject(absl::string_view id) { return absl::StrCat("job:", id); }
inline std::string TreeObject(absl::string_view id) { return absl::StrCat("tree:", id); }
inline std::string PlacementObject(absl::string_view id) { return absl::StrCat("placement:", id); }

// Items of one page: 0 is 1000, more than 10000 is 10000; INVALID_ARGUMENT: negative.
absl::StatusOr<size_t> PageSize(int32_t requested);

// Where a listing that is ordered by id goes on: after this id. Empty: from the start (0).
absl::StatusOr<int64_t> ParseIdToken(absl::string_view token);

// Where a listing of the fabric goes on: positions hold for one version of it. Empty: from 0.
// ABORTED: the fabric moved since; INVALID_ARGUMENT: not a token of such a listing.
absl::StatusOr<uint32_t> ParseFabricToken(absl::string_view token, uint64_t version);
std::string FabricToken(uint64_t version, uint32_t position);

// One page of a listing: so many items as were asked for, and fewer if they are large.

// On the wire; gRPC's clients refuse more than 4 MiB unless told otherwise.
inline constexpr size_t kMaxPageBytes = 2 << 20;

// Has `convert(i, message)` add items [0, count) to `list`, at most `size` of them, one by one,
// until they fill a page. How many it added; the next page begins after these.
template <class Message, class Convert>
size_t FillPage(size_t count, size_t size, google::protobuf::RepeatedPtrField<Message>* list,
                const Convert& convert) {
  size_t added = 0;
  for (size_t bytes = 0; added < std::min(count, size) && bytes < kMaxPageBytes;) {
    Message& message = *list->Add();
    convert(added++, message);
    bytes += message.ByteSizeLong();
  }
  return added;
}

// The same of `items`, of which there is one more than `size` if another page follows. The token of
// that page, which `token_of` makes of the last item of this one; empty: none follows.
template <class Items, class Message, class Convert, class TokenOf>
std::string FillPage(const Items& items, size_t size,
                     google::protobuf::RepeatedPtrField<Message>* list, const Convert& convert,
                     const TokenOf& token_of) {
  const size_t added = FillPage(items.size(), size, list,
                                [&](size_t i, Message& message) { convert(items[i], message); });
  return added < items.size() ? token_of(items[added - 1]) : "";
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_IDENTIFIERS_H_
