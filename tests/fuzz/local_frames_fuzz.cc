// What arrives over a node's Unix socket: any cut of any stream gives the same frames or is
// refused, and libcoppice's decoders read what the generated classes write, and stay within
// whatever else comes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/messages.h"
#include "coppice/v1/local.pb.h"

namespace {

// The messages of a stream that comes in parts of so many bytes.
std::vector<std::string> Cut(std::string_view stream, size_t part, bool* is_broken) {
  coppice::FrameReader reader(size_t{1} << 16);
  std::vector<std::string> messages;
  for (size_t next = 0; next < stream.size(); next += part) {
    reader.Append(stream.substr(next, part));
    while (const auto message = reader.Next()) messages.emplace_back(*message);
    if (reader.buffered() > stream.size()) std::abort();
  }
  *is_broken = reader.is_broken();
  return messages;
}

void Decode(const std::string& text) {
  coppice::AgentReply reply;
  coppice::v1::LocalReply generated;
  // What the agent may write is read.
  const bool is_reply = generated.ParseFromString(text);
  generated.DiscardUnknownFields();  // groups, which no message of ours has
  if (is_reply && !coppice::DecodeReply(generated.SerializeAsString(), reply)) {
    std::abort();
  }
  if (coppice::DecodeReply(text, reply) && reply.message.size() > text.size()) std::abort();
  coppice::TreeAnswer tree;
  if (coppice::DecodeTree(text, tree)) coppice::IsWhole(tree);
  coppice::ChangeAnswer change;
  coppice::DecodeChange(text, change);
  coppice::OrderAnswer order;
  coppice::DecodeOrder(text, order);
  coppice::AgentFacts facts;
  coppice::DecodeAgent(text, facts);
  uint64_t job = 0;
  coppice::DecodeJobId(text, job);
  if (tree.parents.size() > text.size() || order.positions.size() > text.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool is_broken = false, is_broken_too = false;
  const auto whole = Cut(stream, size, &is_broken);
  if (whole != Cut(stream, size_t{1} + data[0] % 16, &is_broken_too) ||
      is_broken != is_broken_too) {
    std::abort();
  }
  for (const std::string& message : whole) Decode(message);
  Decode(std::string(stream));
  return 0;
}
