// What a request would take in memory, from its wire form, before anything is built of it: two
// bytes on the wire may become a message of a hundred. Knows messages by their descriptors only.
#ifndef COPPICE_DAEMON_RPC_MESSAGE_COST_H_
#define COPPICE_DAEMON_RPC_MESSAGE_COST_H_

#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
namespace io {
class ZeroCopyInputStream;
}
}  // namespace google::protobuf

namespace coppice {

// Of messages of one type. Thread-safe, and costs nothing until asked.
class MessageCost final {
 public:
  explicit MessageCost(const google::protobuf::Descriptor* type);
  ~MessageCost();
  MessageCost(const MessageCost&) = delete;
  MessageCost& operator=(const MessageCost&) = delete;

  // About the bytes that the message of this wire form takes as an object, and not less but for the
  // room that growing lists have to spare. Stops reading as soon as it is above `most`, and answers
  // what it has by then.
  // INVALID_ARGUMENT: it is no wire form of such a message; names the field. Nothing that protobuf
  // reads is refused. O(bytes), and little memory.
  absl::StatusOr<size_t> Of(google::protobuf::io::ZeroCopyInputStream* wire, size_t most) const;

 private:
  struct Type;
  const Type* Add(const google::protobuf::Descriptor* type);

  absl::flat_hash_map<const google::protobuf::Descriptor*, std::unique_ptr<Type>> types_;
  const Type* root_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_MESSAGE_COST_H_
