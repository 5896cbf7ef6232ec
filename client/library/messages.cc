#include "client/library/messages.h"

#include <algorithm>
#include <charconv>

#include "client/library/wire.h"

namespace coppice {
namespace {

using wire::Reader;
using wire::Writer;

constexpr uint32_t kMaxCode = 16;  // of google.rpc.Code

// "7"; 0 if it is no number, as of the id of advice, which is empty.
uint64_t IdOf(std::string_view text) {
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? id : 0;
}

std::string_view View(const char* text) { return text == nullptr ? "" : text; }

Outcome DecodeEnd(std::string_view message, bool& is_good) {
  Outcome end;
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) {
      const bool is_code = reader.number() <= kMaxCode;
      end.code = is_code ? static_cast<coppice_status>(reader.number()) : COPPICE_UNKNOWN;
    }
    if (reader.field() == 2) end.message = reader.bytes();
  }
  is_good = reader.ok();
  return end;
}

// first, first + stride, ...: said in a few bytes.
bool IsRange(const uint32_t* ranks, uint32_t count) {
  if (count < 2 || ranks[1] <= ranks[0]) return false;
  const uint32_t stride = ranks[1] - ranks[0];
  for (uint32_t i = 2; i < count; ++i) {
    if (ranks[i] <= ranks[i - 1] || ranks[i] - ranks[i - 1] != stride) return false;
  }
  return true;
}

// google.protobuf.Duration.
std::string Milliseconds(uint32_t value) {
  Writer writer;
  writer.Number(1, value / 1000);
  writer.Number(2, uint64_t{value % 1000} * 1'000'000);
  return writer.text();
}

template <class Pattern>
std::string Pairs(const Pattern& pattern) {
  Writer writer;
  writer.Number(1, pattern.rank_count);
  writer.Numbers(2, pattern.from, pattern.pair_count);
  writer.Numbers(3, pattern.to, pattern.pair_count);
  writer.Reals(4, pattern.bytes, pattern.pair_count);
  if (pattern.messages != nullptr) writer.Reals(5, pattern.messages, pattern.pair_count);
  return writer.text();
}

uint64_t OperationNumber(coppice_operation operation) {
  constexpr uint64_t kAllreduce = 4;  // the others have the same numbers in types.proto
  return operation == COPPICE_OPERATION_ALLREDUCE ? kAllreduce : static_cast<uint64_t>(operation);
}

bool DecodeNodes(std::string_view message, std::vector<int32_t>& parents) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) reader.AppendTo(parents);
  }
  return reader.ok();
}

bool DecodePrediction(std::string_view message, double& total_us) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 3) total_us = reader.real();
  }
  return reader.ok();
}

bool DecodeResult(std::string_view message, OrderAnswer& order) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 4) reader.AppendTo(order.positions);
    if (reader.field() == 6) order.reason = reader.bytes();
    if (reader.field() == 8) order.score = reader.real();
  }
  return reader.ok();
}

}  // namespace

std::string EncodeCall(uint64_t call, std::string_view method, std::string_view message,
                       uint32_t timeout_ms) {
  Writer writer;
  writer.Number(1, call);
  writer.Bytes(2, method);
  writer.Bytes(3, message);
  writer.Number(4, timeout_ms);
  return writer.text();
}

bool DecodeReply(std::string_view frame, AgentReply& reply) {
  reply = AgentReply();
  Reader reader(frame);
  bool is_good = true;
  while (is_good && reader.Next()) {
    if (reader.field() == 1) reply.call = reader.number();
    if (reader.field() == 2) reply.message = reader.bytes();
    if (reader.field() == 3) {
      reply.is_end = true;
      reply.end = DecodeEnd(reader.bytes(), is_good);
    }
  }
  return is_good && reader.ok();
}

bool DecodeAgent(std::string_view message, AgentFacts& facts) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) facts.host = reader.bytes();
    if (reader.field() == 2) facts.version = reader.bytes();
    if (reader.field() == 4) facts.is_connected = reader.number() != 0;
    if (reader.field() == 5) facts.cores = static_cast<uint32_t>(reader.number());
  }
  return reader.ok();
}

std::string EncodeHold(uint64_t job) {
  Writer writer;
  writer.Bytes(1, std::to_string(job));
  writer.Number(3, 1);  // end_job
  return writer.text();
}

std::string EncodeRegister(const coppice_job_request& request, std::string_view request_id) {
  Writer writer;
  writer.Bytes(1, request_id);
  writer.Bytes(2, View(request.display_name));
  for (uint32_t i = 0; i < request.endpoint_count; ++i) {
    writer.Element(3, View(request.endpoints[i]));
  }
  if (request.lease_ms > 0) writer.Bytes(5, Milliseconds(request.lease_ms));
  return writer.text();
}

bool DecodeJobId(std::string_view message, uint64_t& job) {
  Reader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) job = IdOf(reader.bytes());
  }
  return reader.ok() && job != 0;
}

std::string EncodeId(uint64_t id) {
  Writer writer;
  writer.Bytes(1, std::to_string(id));
  return writer.text();
}

std::string EncodeTreeRequest(const coppice_tree_request& request, std::string_view request_id) {
  Writer writer;
  writer.Bytes(1, std::to_string(request.job));
  writer.Bytes(2, request_id);
  if (request.ranks != nullptr && IsRange(request.ranks, request.rank_count)) {
    Writer range;
    range.Number(1, request.ranks[0]);
    range.Number(2, request.rank_count);
    range.Number(3, request.ranks[1] - request.ranks[0]);
    writer.Element(3, range.text());
  } else if (request.ranks != nullptr) {
    writer.Numbers(4, request.ranks, request.rank_count);
  }
  writer.Number(5, OperationNumber(request.operation));
  if (request.bytes > 0) {
    Writer size;
    size.Number(1, request.bytes);
    writer.Element(6, size.text());
  }
  writer.Number(7, static_cast<uint64_t>(request.type));
  writer.Number(9, request.width);
  return writer.text();
}

bool DecodeTree(std::string_view message, TreeAnswer& tree) {
  Reader reader(message);
  bool is_good = true;
  while (is_good && reader.Next()) {
    const uint32_t number = static_cast<uint32_t>(reader.number());
    const uint32_t field = reader.field();
    if (field == 1) tree.id = IdOf(reader.bytes());
    if (field == 3) tree.type = number;
    if (field == 5) tree.width = number;
    if (field == 8) tree.ranks = number;
    if (field == 12) is_good = DecodePrediction(reader.bytes(), tree.predicted_us);
    if (field == 14) tree.reason = reader.bytes();
    if (field == 17) tree.revision = number;
    if (field == 19) tree.root = number;
    if (field == 20) is_good = DecodeNodes(reader.bytes(), tree.parents);
  }
  return is_good && reader.ok();
}

// Each node is walked up from until a node that is known to lead to the root: O(nodes).
bool IsWhole(const TreeAnswer& tree) {
  const size_t count = tree.parents.size();
  if (tree.ranks == 0 || tree.ranks > count || tree.root >= count) return false;
  if (tree.parents[tree.root] != -1) return false;
  constexpr uint32_t kUnknown = 0, kRoot = 1;
  std::vector<uint32_t> walk_of(count, kUnknown);  // number of the walk that came by
  walk_of[tree.root] = kRoot;
  for (size_t start = 0; start < count; ++start) {
    const uint32_t walk = static_cast<uint32_t>(start) + 2;
    size_t node = start;
    while (walk_of[node] == kUnknown) {
      walk_of[node] = walk;
      const int32_t parent = tree.parents[node];
      if (parent < 0 || static_cast<size_t>(parent) >= count) return false;
      node = static_cast<size_t>(parent);
    }
    if (walk_of[node] == walk) return false;  // a ring
  }
  return true;
}

std::string EncodeWatch(uint64_t job, std::string_view resume_token) {
  Writer writer;
  writer.Bytes(1, std::to_string(job));
  writer.Bytes(2, resume_token);
  return writer.text();
}

bool DecodeChange(std::string_view message, ChangeAnswer& change) {
  change = ChangeAnswer();
  Reader reader(message);
  bool is_good = true;
  while (is_good && reader.Next()) {
    if (reader.field() == 1) change.kind = static_cast<uint32_t>(reader.number());
    if (reader.field() == 2) change.resume_token = reader.bytes();
    if (reader.field() == 4) change.reason = reader.bytes();
    if (reader.field() == 3) {
      TreeAnswer tree;
      is_good = DecodeTree(reader.bytes(), tree);
      change.tree = tree.id;
      change.revision = tree.revision;
    }
  }
  return is_good && reader.ok();
}

std::string EncodeMap(const coppice_map_request& request) {
  Writer task;
  if (request.hosts == nullptr) task.Bytes(1, std::to_string(request.job));
  for (uint32_t i = 0; request.hosts != nullptr && i < request.host_count; ++i) {
    task.Element(2, View(request.hosts[i]));
  }
  task.Number(3, request.ranks_per_host);
  if (request.pattern_name == nullptr) task.Element(4, Pairs(request));
  task.Bytes(5, View(request.pattern_name));
  Writer writer;
  writer.Bytes(1, task.text());
  writer.Bytes(2, View(request.algorithm));
  if (request.budget_ms > 0) writer.Bytes(3, Milliseconds(request.budget_ms));
  writer.Number(4, request.seed);
  return writer.text();
}

std::string EncodePattern(const coppice_pattern& pattern) {
  Writer writer;
  writer.Bytes(1, View(pattern.name));
  writer.Element(2, Pairs(pattern));
  return writer.text();
}

bool DecodeOrder(std::string_view message, OrderAnswer& order) {
  Reader reader(message);
  bool is_good = true;
  while (is_good && reader.Next()) {
    if (reader.field() == 2) is_good = DecodeResult(reader.bytes(), order);
  }
  return is_good && reader.ok();
}

namespace {

constexpr size_t kLengthBytes = 4;

size_t LengthAt(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return length;
}

}  // namespace

void AppendFrame(std::string_view message, std::string& out) {
  const uint32_t length = static_cast<uint32_t>(message.size());
  for (size_t i = 0; i < kLengthBytes; ++i) {
    out.push_back(static_cast<char>(length >> (8 * i) & 0xff));
  }
  out.append(message);
}

void FrameReader::Append(std::string_view bytes) {
  if (is_broken_) return;
  if (taken_ > 0) {
    buffer_.erase(0, taken_);
    taken_ = 0;
    // One large frame does not keep its memory for good.
    if (buffer_.empty()) std::string().swap(buffer_);
  }
  buffer_.append(bytes);
}

std::optional<std::string_view> FrameReader::Next() {
  if (is_broken_ || buffered() < kLengthBytes) return std::nullopt;
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  const size_t length = LengthAt(rest);
  if (length > max_bytes_) {
    is_broken_ = true;
    std::string().swap(buffer_);
    taken_ = 0;
    return std::nullopt;
  }
  if (rest.size() - kLengthBytes < length) return std::nullopt;
  taken_ += kLengthBytes + length;
  return rest.substr(kLengthBytes, length);
}

}  // namespace coppice
