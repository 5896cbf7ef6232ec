// The bytes of a message that is passed on as it is, by coppicectl and by the node's agent.
#ifndef COPPICE_CLIENT_BYTE_BUFFER_TEXT_H_
#define COPPICE_CLIENT_BYTE_BUFFER_TEXT_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

namespace coppice {

// Empty: the buffer cannot be read. Copies its bytes once.
inline std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace coppice

#endif  // COPPICE_CLIENT_BYTE_BUFFER_TEXT_H_
