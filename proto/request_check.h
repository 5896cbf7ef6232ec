// The check of every request before it becomes a message: one look at its wire form tells whether
// it is such a message at all, whether each of its texts is UTF-8 and plain
// (proto/text/plain_text.h), and what it would take in memory, which depends on its type: two bytes
// on the wire may become a message of a hundred. So what is refused takes no memory, and protobuf,
// which would log each such field on stderr and drop the call without a word, never sees it.
//
//   bytes of a call --RequestCheck--> good, and its cost --parser--> message --> handler
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
#include <memory>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace coppice {

// Of messages of one type, which it knows by their descriptors only. Thread-safe.
class RequestCheck final {
 public:
  // `type` is of generated code.
  explicit RequestCheck(const google::protobuf::Descriptor* type);
  ~RequestCheck();
  RequestCheck(const RequestCheck&) = delete;
  RequestCheck& operator=(const RequestCheck&) = delete;

  // About the bytes that the message of this wire form takes as an object, and not less but for the
  // room that growing lists have to spare. Stops reading as soon as it is above `most`, and answers
  // what it has by then.
  // INVALID_ARGUMENT names the field, "placement.constraints.candidates[3]", and what is wrong with
  // its text, or that this is no wire form of such a message. Nothing else that protobuf reads is
  // refused. O(bytes), and no more memory than the longest text.
  absl::StatusOr<size_t> CostOf(google::protobuf::io::ZeroCopyInputStream* wire, size_t most) const;

  const google::protobuf::Descriptor& type() const;

 private:
  struct Type;
  struct Field;
  class Walk;
  const Type* Add(const google::protobuf::Descriptor* type);

  absl::flat_hash_map<const google::protobuf::Descriptor*, std::unique_ptr<Type>> types_;
  const Type* root_;
};

// Bytes of a message of a client's stream: an agent's hello with a thousand ports has 20 KB. At
// most 16 times as much while it is read, where all of it is fields that nobody knows.
inline constexpr size_t kMaxStreamedBytes = 64 << 10;

// Of a type that a service of the file that defines it takes one after another; null: none does.
std::unique_ptr<const RequestCheck> CheckOfStreamed(const google::protobuf::Descriptor& type);

// Why this thread's last message of a stream was refused; OK: it was not. Once.
absl::Status TakeRefusal();

// Its size, then the check; the status is kept for TakeRefusal.
bool PassesRequestCheck(const RequestCheck& check, grpc::ByteBuffer* wire);
// Keeps for TakeRefusal that the parser made nothing of it.
void RefuseMalformed(const google::protobuf::Descriptor& type);

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
    static const auto* const check = coppice::CheckOfStreamed(*T::descriptor()).release();
    if (check != nullptr && !coppice::PassesRequestCheck(*check, wire)) {
      wire->Clear();
      return Status(StatusCode::INVALID_ARGUMENT, "refused");
    }
    Status status = GenericDeserialize<ProtoBufferReader, T>(wire, message);
    if (check != nullptr && !status.ok()) coppice::RefuseMalformed(*T::descriptor());
    return status;
  }
};

}  // namespace grpc

#endif  // COPPICE_PROTO_REQUEST_CHECK_H_
