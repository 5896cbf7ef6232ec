// The one mapping between absl::Status, which every module of Coppice speaks, and grpc::Status with
// google.rpc details, which the wire carries. Used by the daemon and by the client; knows no
// domain.
//
// A payload whose key is a type URL ("type.googleapis.com/google.rpc.QuotaFailure") holds a
// serialised message and becomes one entry of google.rpc.Status.details in the trailer
// grpc-status-details-bin, and back. Payloads under other keys do not leave the process.
#ifndef COPPICE_PROTO_STATUS_CONVERSION_H_
#define COPPICE_PROTO_STATUS_CONVERSION_H_

#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace coppice {

inline constexpr char kTypeUrlPrefix[] = "type.googleapis.com/";

// Codes are equal by number in both worlds.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Details that cannot be read are dropped; code and message always arrive. A code outside of gRPC's
// becomes UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Adds `message` as a detail of `status`, replacing one of the same type. No-op on OK.
template <class Message>
void SetDetail(absl::Status& status, const Message& message) {
  status.SetPayload(absl::StrCat(kTypeUrlPrefix, Message::descriptor()->full_name()),
                    absl::Cord(message.SerializeAsString()));
}

// The detail of that type; nullopt: there is none, or it is malformed.
template <class Message>
std::optional<Message> GetDetail(const absl::Status& status) {
  const auto payload =
      status.GetPayload(absl::StrCat(kTypeUrlPrefix, Message::descriptor()->full_name()));
  Message message;
  if (!payload || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

}  // namespace coppice

#endif  // COPPICE_PROTO_STATUS_CONVERSION_H_
