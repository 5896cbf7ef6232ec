#include "client/library/messages.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

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

// Hands each field to `take`, which may be false: it is none. False: this is no such message.
template <class Take>
bool ForEachField(std::string_view message, const Take& take) {
  Reader reader(message);
  while (reader.Next()) {
    if (!take(reader)) return false;
  }
  return reader.ok();
}

bool DecodeEnd(std::string_view message, Outcome& end) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) {
      const bool is_code = in.number() <= kMaxCode;
      end.code = is_code ? static_cast<coppice_status>(in.number()) : COPPICE_UNKNOWN;
    }
    if (in.field() == 2) end.message = in.bytes();
    return true;
  });
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

// google.protobuf.Duration; empty: none.
std::string Milliseconds(uint32_t value) {
  return Writer().Number(1, value / 1000).Number(2, uint64_t{value % 1000} * 1'000'000).text();
}

template <class Pattern>
std::string Pairs(const Pattern& pattern) {
  Writer writer;
  writer.Number(1, pattern.rank_count)
      .Numbers(2, pattern.from, pattern.pair_count)
      .Numbers(3, pattern.to, pattern.pair_count)
      .Reals(4, pattern.bytes, pattern.pair_count);
  if (pattern.messages != nullptr) writer.Reals(5, pattern.messages, pattern.pair_count);
  return writer.text();
}

uint64_t OperationNumber(coppice_operation operation) {
  constexpr uint64_t kAllreduce = 4;  // the others have the same numbers in types.proto
  return operation == COPPICE_OPERATION_ALLREDUCE ? kAllreduce : static_cast<uint64_t>(operation);
}

bool DecodeNodes(std::string_view message, TreeAnswer& tree) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) in.AppendTo(tree.parents);
    if (in.field() == 5) in.AppendTo(tree.order);
    return true;
  });
}

bool DecodeForestTree(std::string_view message, TreeAnswer::ForestTree& tree) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) tree.share = in.real();
    if (in.field() == 2) in.AppendTo(tree.parents);
    return true;
  });
}

// Each node is walked up from until a node that is known to lead to the root: O(nodes).
bool AllLeadTo(size_t root, const std::vector<int32_t>& parents) {
  const size_t count = parents.size();
  if (root >= count || parents[root] != -1) return false;
  constexpr uint32_t kUnknown = 0, kRoot = 1;
  std::vector<uint32_t> walk_of(count, kUnknown);  // number of the walk that came by
  walk_of[root] = kRoot;
  for (size_t start = 0; start < count; ++start) {
    const uint32_t walk = static_cast<uint32_t>(start) + 2;
    size_t node = start;
    while (walk_of[node] == kUnknown) {
      walk_of[node] = walk;
      const int32_t parent = parents[node];
      if (parent < 0 || static_cast<size_t>(parent) >= count) return false;
      node = static_cast<size_t>(parent);
    }
    if (walk_of[node] == walk) return false;  // a ring
  }
  return true;
}

// Over ranks alone, and the first one is the tree itself.
bool IsForest(const TreeAnswer& tree) {
  double shares = 0;
  for (const TreeAnswer::ForestTree& one : tree.forest) {
    const auto root = std::find(one.parents.begin(), one.parents.end(), -1);
    if (one.parents.size() != tree.ranks || !(one.share > 0) ||
        !AllLeadTo(static_cast<size_t>(root - one.parents.begin()), one.parents)) {
      return false;
    }
    shares += one.share;
  }
  return std::abs(shares - 1) < 1e-6 && tree.forest.front().parents == tree.parents;
}

// Each rank once, the root first if it is one.
bool HasOrder(const TreeAnswer& tree) {
  std::vector<bool> seen(tree.ranks);
  for (const int32_t rank : tree.order) {
    if (rank < 0 || static_cast<size_t>(rank) >= tree.ranks || seen[rank]) return false;
    seen[rank] = true;
  }
  if (tree.order.size() != tree.ranks) return false;
  return tree.root >= tree.ranks || static_cast<size_t>(tree.order.front()) == tree.root;
}

bool DecodePrediction(std::string_view message, double& total_us) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 3) total_us = in.real();
    return true;
  });
}

bool DecodeResult(std::string_view message, OrderAnswer& order) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 4) in.AppendTo(order.positions);
    if (in.field() == 6) order.reason = in.bytes();
    if (in.field() == 8) order.score = in.real();
    return true;
  });
}

}  // namespace

std::string EncodeCall(uint64_t call, std::string_view method, std::string_view message,
                       uint32_t timeout_ms) {
  return Writer().Number(1, call).Bytes(2, method).Bytes(3, message).Number(4, timeout_ms).text();
}

bool DecodeReply(std::string_view frame, AgentReply& reply) {
  reply = AgentReply();
  return ForEachField(frame, [&](Reader& in) {
    if (in.field() == 1) reply.call = in.number();
    if (in.field() == 2) reply.message = in.bytes();
    if (in.field() != 3) return true;
    reply.is_end = true;
    return DecodeEnd(in.bytes(), reply.end = Outcome());
  });
}

bool DecodeAgent(std::string_view message, AgentFacts& facts) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) facts.host = in.bytes();
    if (in.field() == 2) facts.version = in.bytes();
    if (in.field() == 4) facts.is_connected = in.number() != 0;
    if (in.field() == 5) facts.cores = static_cast<uint32_t>(in.number());
    return true;
  });
}

std::string EncodeHold(uint64_t job) {
  return Writer().Bytes(1, std::to_string(job)).Number(3, 1).text();  // end_job
}

std::string EncodeRegister(const coppice_job_request& request, std::string_view request_id) {
  Writer writer;
  writer.Bytes(1, request_id).Bytes(2, View(request.display_name));
  for (uint32_t i = 0; i < request.endpoint_count; ++i) {
    writer.Element(3, View(request.endpoints[i]));
  }
  return writer.Bytes(5, Milliseconds(request.lease_ms)).Number(6, request.partition).text();
}

bool DecodeJobId(std::string_view message, uint64_t& job) {
  const bool is_good = ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) job = IdOf(in.bytes());
    return true;
  });
  return is_good && job != 0;
}

std::string EncodeId(uint64_t id) { return Writer().Bytes(1, std::to_string(id)).text(); }

std::string EncodeRelease(uint64_t id, std::string_view application, const coppice_way_time* times,
                          uint32_t count) {
  Writer writer;
  writer.Bytes(1, std::to_string(id)).Bytes(2, application);
  for (uint32_t i = 0; i < count; ++i) {
    writer.Element(3, Writer()
                          .Number(1, OperationNumber(times[i].operation))
                          .Number(2, times[i].length_bits)
                          .Number(3, static_cast<uint64_t>(times[i].way))
                          .Real(4, times[i].us)
                          .text());
  }
  return writer.text();
}

std::string EncodeTreeRequest(const coppice_tree_request& request, std::string_view request_id) {
  Writer writer;
  writer.Bytes(1, std::to_string(request.job)).Bytes(2, request_id);
  if (request.ranks != nullptr && IsRange(request.ranks, request.rank_count)) {
    const uint32_t stride = request.ranks[1] - request.ranks[0];
    writer.Element(3, Writer()
                          .Number(1, request.ranks[0])
                          .Number(2, request.rank_count)
                          .Number(3, stride)
                          .text());
  } else if (request.ranks != nullptr) {
    writer.Numbers(4, request.ranks, request.rank_count);
  }
  writer.Number(5, OperationNumber(request.operation));
  writer.Bytes(6, Writer().Number(1, request.bytes).text());
  writer.Number(7, static_cast<uint64_t>(request.type)).Number(9, request.width);
  writer.Number(15, request.carried != 0 ? 1 : 0).Number(16, request.max_trees);
  return writer.Bytes(17, View(request.application)).text();
}

bool DecodeCarriage(std::string_view message, TreeAnswer& tree) {
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) tree.key = in.bytes();
    if (in.field() == 2) tree.segment_bytes = static_cast<uint32_t>(in.number());
    if (in.field() == 3) tree.window = static_cast<uint32_t>(in.number());
    if (in.field() == 6) tree.switch_addresses.emplace_back(in.bytes());
    if (in.field() == 7) tree.operations = in.number();
    if (in.field() == 8) tree.types = in.number();
    return true;
  });
}

// One of an operation or a way that a later release knows is left out.
bool DecodeWayTime(std::string_view message, std::vector<coppice_way_time>& known) {
  coppice_way_time time = {};
  uint64_t operation = 0, way = 0;
  const bool is_good = ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) operation = in.number();
    if (in.field() == 2) time.length_bits = static_cast<uint32_t>(in.number());
    if (in.field() == 3) way = in.number();
    if (in.field() == 4) time.us = in.real();
    if (in.field() == 5) time.spread = in.real();
    if (in.field() == 6) time.runs = static_cast<uint32_t>(in.number());
    return true;
  });
  if (!is_good) return false;
  if (operation > OperationNumber(COPPICE_OPERATION_ALLREDUCE)) return true;
  if (way < COPPICE_WAY_NATIVE || way > COPPICE_WAY_FOREST) return true;
  if (!(time.us > 0) || !(time.spread >= 0) || time.length_bits > 64) return true;
  const bool is_allreduce = operation == OperationNumber(COPPICE_OPERATION_ALLREDUCE);
  time.operation =
      is_allreduce ? COPPICE_OPERATION_ALLREDUCE : static_cast<coppice_operation>(operation);
  time.way = static_cast<coppice_way>(way);
  known.push_back(time);
  return true;
}

bool DecodeTree(std::string_view message, TreeAnswer& tree) {
  return ForEachField(message, [&](Reader& in) {
    const uint32_t number = static_cast<uint32_t>(in.number());
    const uint32_t field = in.field();
    if (field == 1) tree.id = IdOf(in.bytes());
    if (field == 3) tree.type = number;
    if (field == 5) tree.width = number;
    if (field == 8) tree.ranks = number;
    if (field == 14) tree.reason = in.bytes();
    if (field == 17) tree.revision = number;
    if (field == 19) tree.root = number;
    if (field == 29) tree.partition = number;
    if (field == 12) return DecodePrediction(in.bytes(), tree.predicted_us);
    if (field == 26) return DecodeCarriage(in.bytes(), tree);
    if (field == 27) return DecodeForestTree(in.bytes(), tree.forest.emplace_back());
    if (field == 28) return DecodeWayTime(in.bytes(), tree.known);
    return field != 20 || DecodeNodes(in.bytes(), tree);
  });
}

bool IsWhole(const TreeAnswer& tree) {
  const size_t count = tree.parents.size();
  if (tree.ranks == 0 || tree.ranks > count) return false;
  if (!tree.order.empty() && !HasOrder(tree)) return false;
  if (!tree.key.empty() &&
      (tree.key.size() != COPPICE_KEY_BYTES || tree.segment_bytes == 0 || tree.window == 0 ||
       tree.switch_addresses.size() != count - tree.ranks)) {
    return false;
  }
  return AllLeadTo(tree.root, tree.parents) && (tree.forest.empty() || IsForest(tree));
}

std::string EncodeWatch(uint64_t job, std::string_view resume_token) {
  return Writer().Bytes(1, std::to_string(job)).Bytes(2, resume_token).text();
}

bool DecodeChange(std::string_view message, ChangeAnswer& change) {
  change = ChangeAnswer();
  return ForEachField(message, [&](Reader& in) {
    if (in.field() == 1) change.kind = static_cast<uint32_t>(in.number());
    if (in.field() == 2) change.resume_token = in.bytes();
    if (in.field() == 4) change.reason = in.bytes();
    if (in.field() != 3) return true;
    TreeAnswer tree;
    const bool is_good = DecodeTree(in.bytes(), tree);
    change.tree = tree.id;
    change.revision = tree.revision;
    return is_good;
  });
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
  return Writer()
      .Bytes(1, task.text())
      .Bytes(2, View(request.algorithm))
      .Bytes(3, Milliseconds(request.budget_ms))
      .Number(4, request.seed)
      .text();
}

std::string EncodePattern(const coppice_pattern& pattern) {
  return Writer().Bytes(1, View(pattern.name)).Element(2, Pairs(pattern)).text();
}

bool DecodeOrder(std::string_view message, OrderAnswer& order) {
  return ForEachField(
      message, [&](Reader& in) { return in.field() != 2 || DecodeResult(in.bytes(), order); });
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

namespace coppice::wire {
namespace {

constexpr uint32_t kKindBits = 3;
constexpr uint32_t kVarintKind = 0, kFixed64Kind = 1, kBytesKind = 2;
constexpr int kMaxVarintBits = 64;

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value > 0x7f; value >>= 7) ++size;
  return size;
}

}  // namespace

void Writer::Varint(uint64_t value) {
  for (; value > 0x7f; value >>= 7) text_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  text_.push_back(static_cast<char>(value));
}

Writer& Writer::Number(uint32_t field, uint64_t value) {
  if (value == 0) return *this;
  Varint(field << kKindBits | kVarintKind);
  Varint(value);
  return *this;
}

Writer& Writer::Bytes(uint32_t field, std::string_view value) {
  return value.empty() ? *this : Element(field, value);
}

Writer& Writer::Element(uint32_t field, std::string_view value) {
  Varint(field << kKindBits | kBytesKind);
  Varint(value.size());
  text_.append(value);
  return *this;
}

Writer& Writer::Numbers(uint32_t field, const uint32_t* values, size_t count) {
  if (count == 0) return *this;
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += VarintSize(values[i]);
  Varint(field << kKindBits | kBytesKind);
  Varint(size);
  for (size_t i = 0; i < count; ++i) Varint(values[i]);
  return *this;
}

Writer& Writer::Reals(uint32_t field, const double* values, size_t count) {
  if (count == 0) return *this;
  Varint(field << kKindBits | kBytesKind);
  Varint(count * sizeof(double));
  for (size_t i = 0; i < count; ++i) Fixed(values[i]);
  return *this;
}

Writer& Writer::Real(uint32_t field, double value) {
  if (value == 0) return *this;
  Varint(field << kKindBits | kFixed64Kind);
  Fixed(value);
  return *this;
}

void Writer::Fixed(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  for (int shift = 0; shift < 64; shift += 8) text_.push_back(static_cast<char>(bits >> shift));
}

bool Reader::Stop() {
  ok_ = false;
  rest_ = bytes_ = {};
  return false;
}

size_t Reader::CountVarints(std::string_view bytes) {
  const auto is_last = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  return static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), is_last));
}

bool Reader::TakeVarint(std::string_view& from, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < kMaxVarintBits; shift += 7) {
    if (from.empty()) return Stop();
    const uint64_t byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return Stop();
}

bool Reader::TakeFixed(size_t size) {
  if (rest_.size() < size) return Stop();
  number_ = 0;
  for (size_t i = 0; i < size; ++i) {
    number_ |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  }
  rest_.remove_prefix(size);
  return true;
}

bool Reader::Next() {
  number_ = 0;
  bytes_ = {};
  uint64_t tag = 0;
  if (rest_.empty() || !TakeVarint(rest_, tag)) return false;
  field_ = static_cast<uint32_t>(tag >> kKindBits);
  kind_ = tag & ((1u << kKindBits) - 1);
  if (tag >> 32 != 0 || field_ == 0) return Stop();
  switch (kind_) {
    case kVarint:
      return TakeVarint(rest_, number_);
    case kFixed64:
      return TakeFixed(8);
    case kFixed32:
      return TakeFixed(4);
    case kBytes: {
      uint64_t size = 0;
      if (!TakeVarint(rest_, size)) return false;
      if (size > rest_.size()) return Stop();
      bytes_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
    default:
      return Stop();
  }
}

double Reader::real() const {
  double value = 0;
  if (kind_ == kFixed64) std::memcpy(&value, &number_, sizeof value);
  return value;
}

}  // namespace coppice::wire
