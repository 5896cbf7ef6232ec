// One page of a listing: so many items as were asked for, and fewer if they are large.
#ifndef COPPICE_DAEMON_RPC_CALLS_LISTING_PAGE_H_
#define COPPICE_DAEMON_RPC_CALLS_LISTING_PAGE_H_

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <cstddef>

namespace coppice {

// On the wire; gRPC's clients refuse more than 4 MiB unless told otherwise.
inline constexpr size_t kMaxPageBytes = 2 << 20;

// Has `add` convert items [0, count), at most `size` of them, one by one, until they fill a page;
// it returns the message, or a reference wrapper of it. How many it converted; the next page begins
// after these.
template <class Add>
size_t FillPage(size_t count, size_t size, Add add) {
  size_t added = 0;
  for (size_t bytes = 0; added < std::min(count, size) && bytes < kMaxPageBytes;) {
    const google::protobuf::MessageLite& message = add(added++);
    bytes += message.ByteSizeLong();
  }
  return added;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_LISTING_PAGE_H_
