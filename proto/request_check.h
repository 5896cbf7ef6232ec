// The check of every request before it becomes a message: each of its texts is UTF-8 and plain
// (proto/text/plain_text.h). It reads the wire form, so what is refused takes no memory, and
// protobuf, which would log each such field on stderr and drop the call without a word, never sees
// it.
//
//   bytes of a call --CheckRequest--> good --parser--> message --> handler
//                                     bad: refused (daemon/rpc/bounded_service.cc)
//
// Messages of a client's stream are read by gRPC as they come. The generated code of the services
// includes this (proto/CMakeLists.txt), so that gRPC checks them, too, and their size, as a stream
// may be one of thousands that wait with what they have; TakeRefusal tells the stream why there is
// no message.
#ifndef COPPICE_PROTO_REQUEST_CHECK_H_
#define COPPICE_PROTO_REQUEST_CHECK_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/config_protobuf.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "absl/status/status.h"

namespace coppice {

// INVALID_ARGUMENT names the field, "placement.constraints.candidates[3]", and what is wrong with
// it. OK also where `wire` is no message of that type at all: the parser says so. O(bytes).
absl::Status CheckRequest(const google::protobuf::Descriptor& type,
                          google::protobuf::io::ZeroCopyInputStream& wire);

// Bytes of a message of a client's stream: an agent's hello with a thousand ports has 20 KB. At
// most 16 times as much while it is read, where all of it is fields that nobody knows.
inline constexpr size_t kMostStreamedBytes = 64 << 10;

// Whether a service of the file that defines it takes messages of that type, one after another.
bool IsStreamed(const google::protobuf::Descriptor& type);

// Why this thread's last message of a stream was refused; OK: it was not. Once.
absl::Status TakeRefusal();

// Its size, then CheckRequest; the status is kept for TakeRefusal.
bool PassesRequestCheck(const google::protobuf::Descriptor& type, grpc::ByteBuffer* wire);
// Keeps for TakeRefusal that the parser made nothing of it.
void RefuseMalformed(const google::protobuf::Descriptor& type);

// What protobuf says of messages that it cannot read or write goes nowhere: whoever reads or writes
// them has a status for that. It would go to stderr, as often as somebody sends such a message. For
// main.cc of a program.
void SilenceMessageLog();

}  // namespace coppice

namespace grpc {

// How gRPC reads and writes messages. As its own for all messages, but for the check.
template <class T>
requires std::is_base_of_v<google::protobuf::Message, T>
class SerializationTraits<
    T, typename std::enable_if<std::is_base_of<protobuf::MessageLite, T>::value>::type> {
 public:
  static Status Serialize(const protobuf::MessageLite& message, ByteBuffer* wire,
                          bool* own_buffer) {
    return GenericSerialize<ProtoBufferWriter, T>(message, wire, own_buffer);
  }

  static Status Deserialize(ByteBuffer* wire, protobuf::MessageLite* message) {
    static const bool is_streamed = coppice::IsStreamed(*T::descriptor());
    if (is_streamed && !coppice::PassesRequestCheck(*T::descriptor(), wire)) {
      wire->Clear();
      return Status(StatusCode::INVALID_ARGUMENT, "refused");
    }
    Status status = GenericDeserialize<ProtoBufferReader, T>(wire, message);
    if (is_streamed && !status.ok()) coppice::RefuseMalformed(*T::descriptor());
    return status;
  }
};

}  // namespace grpc

#endif  // COPPICE_PROTO_REQUEST_CHECK_H_
