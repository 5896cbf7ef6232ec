// What libcoppice says to the agent and the daemon and what it understands of their answers: the
// messages of proto/coppice/v1 as plain structs, encoded as below. The numbers of fields are in
// messages.cc alone. Decoders take whatever arrives: false means that it is no such message.
#ifndef COPPICE_CLIENT_LIBRARY_MESSAGES_H_
#define COPPICE_CLIENT_LIBRARY_MESSAGES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/coppice.h"

namespace coppice {

// How a step of libcoppice ended: a code of coppice.h and words for people. Used instead of
// Abseil's status, which libcoppice does not carry into other people's programs.

struct Outcome {
  coppice_status code = COPPICE_OK;
  std::string message;

  bool ok() const { return code == COPPICE_OK; }
};

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime After(uint32_t milliseconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

// ---- frames (local.proto) ----------------------------------------------------------------------

std::string EncodeCall(uint64_t call, std::string_view method, std::string_view message,
                       uint32_t timeout_ms);

struct AgentReply {
  uint64_t call = 0;
  std::string_view message;  // of the frame that it was decoded from
  bool is_end = false;
  Outcome end;
};
bool DecodeReply(std::string_view frame, AgentReply& reply);

struct AgentFacts {
  std::string host, version;
  bool is_connected = false;
  uint32_t cores = 0;
};
bool DecodeAgent(std::string_view message, AgentFacts& facts);

std::string EncodeHold(uint64_t job);  // the caller's process; ends the job with it

// ---- jobs --------------------------------------------------------------------------------------

std::string EncodeRegister(const coppice_job_request& request, std::string_view request_id);
bool DecodeJobId(std::string_view message, uint64_t& job);
// A message whose one field is an id: GetTree, ReleaseTree, EndJob.
std::string EncodeId(uint64_t id);
// ReleaseTree with what was measured.
std::string EncodeRelease(uint64_t id, std::string_view application, const coppice_way_time* times,
                          uint32_t count);

// ---- trees -------------------------------------------------------------------------------------

std::string EncodeTreeRequest(const coppice_tree_request& request, std::string_view request_id);

struct TreeAnswer {
  uint64_t id = 0;  // 0: advice
  uint32_t type = 0, width = 0, ranks = 0, revision = 0, root = 0, partition = 0;
  double predicted_us = 0;
  std::string reason;
  std::vector<int32_t> parents;  // empty: the answer had no nodes
  std::vector<int32_t> order;    // empty: the answer had none
  struct ForestTree {
    double share = 0;
    std::vector<int32_t> parents;
  };
  std::vector<ForestTree> forest;  // empty: one tree
  // How switches carry it; without a key none do.
  std::string key;
  uint32_t segment_bytes = 0, window = 0;
  uint64_t operations = 0, types = 0;  // bits
  std::vector<std::string> switch_addresses;
  std::vector<coppice_way_time> known;  // without what is unknown here
};
bool DecodeTree(std::string_view message, TreeAnswer& tree);
// Its nodes are those of a tree: lists fit each other, and from each node one comes to the root; if
// it is carried, so by each of its switches. So is each tree of a forest, whose shares are 1 in
// all.
bool IsWhole(const TreeAnswer& tree);

std::string EncodeWatch(uint64_t job, std::string_view resume_token);

// TreeChangeKind of trees.proto.
enum class ChangeKind : uint32_t {
  kPresent = 1,
  kSynced = 2,
  kGranted = 3,
  kRevised = 4,
  kRevoked = 5,
  kReleased = 6,
};
struct ChangeAnswer {
  uint32_t kind = 0;  // perhaps one that is not in ChangeKind
  std::string resume_token, reason;
  uint64_t tree = 0;
  uint32_t revision = 0;
};
bool DecodeChange(std::string_view message, ChangeAnswer& change);

// ---- rank orders -------------------------------------------------------------------------------

std::string EncodeMap(const coppice_map_request& request);
std::string EncodePattern(const coppice_pattern& pattern);

struct OrderAnswer {
  std::vector<uint32_t> positions;  // empty: no result, only progress
  double score = 1;
  std::string reason;
};
bool DecodeOrder(std::string_view message, OrderAnswer& order);

// Frames of the socket between a node's agent and its processes: a length (4 bytes, little-endian)
// and so many bytes of one message (proto/coppice/v1/local.proto). Used on both sides; knows
// neither sockets nor what the messages mean.

// A job of a million ranks takes about 20 MB.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

// Appends the frame of `message`, which has at most kMaxFrameBytes.
void AppendFrame(std::string_view message, std::string& out);

// Cuts a stream of bytes into messages. Memory grows as bytes arrive, never by what a length
// claims.
class FrameReader final {
 public:
  explicit FrameReader(size_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  // Takes what was read. Ends the life of views from Next().
  void Append(std::string_view bytes);
  // The next whole message; nullopt: more bytes are needed, or the stream is broken.
  std::optional<std::string_view> Next();
  // A length was over the maximum: nothing that follows means anything.
  bool is_broken() const { return is_broken_; }
  // Held for messages that are not whole yet, or that nobody took.
  size_t buffered() const { return buffer_.size() - taken_; }

 private:
  const size_t max_bytes_;
  std::string buffer_;
  size_t taken_ = 0;  // bytes of buffer_ that were given out
  bool is_broken_ = false;
};

}  // namespace coppice

// The encoding of protocol buffers, as much of it as libcoppice needs (README.md says why it is
// ours): https://protobuf.dev/programming-guides/encoding. Fields are few, so the numbers are
// written out in messages.cc; tests hold them to the generated classes.
namespace coppice::wire {

// Appends fields to a message. As proto3 has it, 0 and empty values are left out, except in lists.
class Writer final {
 public:
  Writer& Number(uint32_t field, uint64_t value);
  Writer& Bytes(uint32_t field, std::string_view value);
  Writer& Element(uint32_t field, std::string_view value);  // of a list of texts or messages
  Writer& Numbers(uint32_t field, const uint32_t* values, size_t count);
  Writer& Reals(uint32_t field, const double* values, size_t count);
  Writer& Real(uint32_t field, double value);

  const std::string& text() const { return text_; }

 private:
  void Varint(uint64_t value);
  void Fixed(double value);

  std::string text_;
};

// Walks through the fields of a message: while (reader.Next()) switch (reader.field()) ...
// A message that ends early or holds an unknown kind of field stops it, with ok() false. Values are
// asked for in any kind: one that was sent in another reads as 0 or empty.
class Reader final {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  bool Next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  double real() const;  // of a double
  // Appends the elements of a list of numbers, packed or one by one. Stops the walk if malformed.
  template <class Integer>
  void AppendTo(std::vector<Integer>& list) {
    if (kind_ != kBytes) {
      list.push_back(static_cast<Integer>(number_));
      return;
    }
    // Exact for the usual one chunk. A list in many grows as it does by itself, in linear time.
    if (list.empty()) list.reserve(CountVarints(bytes_));
    for (uint64_t value = 0; !bytes_.empty() && TakeVarint(bytes_, value);) {
      list.push_back(static_cast<Integer>(value));
    }
  }

 private:
  enum Kind : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  static size_t CountVarints(std::string_view bytes);
  bool TakeVarint(std::string_view& from, uint64_t& value);
  bool TakeFixed(size_t size);
  bool Stop();

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0;
  uint32_t kind_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace coppice::wire

#endif  // COPPICE_CLIENT_LIBRARY_MESSAGES_H_
