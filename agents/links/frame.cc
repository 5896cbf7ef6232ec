#include "agents/links/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace coppice {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are combined as they are on the wire");

constexpr uint32_t kMagic = 0x57535043;  // "CPSW"
constexpr uint8_t kVersion = 1;
// Of the byte of the operation.
constexpr uint8_t kWantsResult = 0x40, kOperationBits = 0x3f, kUnusedBits = 0x80;
// Bytes of the buffer are counted in these, so that a stranger's is one of 64.
constexpr size_t kRoomUnit = 64;

template <class Number>
void Put(Number number, size_t at, std::array<char, kHeaderBytes>& bytes) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

template <class Number>
Number Get(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

constexpr std::string_view kRefusalNames[] = {"none",
                                              "malformed frame",
                                              "no hello",
                                              "too many strangers",
                                              "no such tree",
                                              "stale revision",
                                              "wrong key",
                                              "no such child",
                                              "child is taken",
                                              "no such operation",
                                              "type of the operation",
                                              "length of the segment",
                                              "another collective",
                                              "sent twice",
                                              "out of turn",
                                              "outside the window",
                                              "two payloads",
                                              "broken tree",
                                              "does not read",
                                              "tree was removed"};
static_assert(std::size(kRefusalNames) == kLastRefusal + 1);

}  // namespace

std::array<char, kHeaderBytes> EncodeHeader(const FrameHeader& header) {
  std::array<char, kHeaderBytes> bytes;
  const uint8_t operation = static_cast<uint8_t>(header.operation);
  Put(kMagic, 0, bytes);
  Put(kVersion, 4, bytes);
  Put(static_cast<uint8_t>(header.kind), 5, bytes);
  Put(static_cast<uint8_t>(operation | (header.wants_result ? kWantsResult : 0)), 6, bytes);
  Put(static_cast<uint8_t>(header.type), 7, bytes);
  Put(header.group.tree, 8, bytes);
  Put(header.group.revision, 16, bytes);
  Put(header.child, 20, bytes);
  Put(header.sequence, 24, bytes);
  Put(header.segment, 32, bytes);
  Put(header.length, 36, bytes);
  return bytes;
}

bool DecodeHeader(std::string_view bytes, FrameHeader* header) {
  const auto kind = Get<uint8_t>(bytes, 5), operation = Get<uint8_t>(bytes, 6),
             type = Get<uint8_t>(bytes, 7);
  if (Get<uint32_t>(bytes, 0) != kMagic || Get<uint8_t>(bytes, 4) != kVersion || kind == 0 ||
      kind > kLastFrameKind || (operation & kUnusedBits) != 0 ||
      (operation & kOperationBits) > kLastOperation || type > kLastElementType) {
    return false;
  }
  header->kind = static_cast<FrameKind>(kind);
  header->operation = static_cast<ReductionOperation>(operation & kOperationBits);
  header->wants_result = (operation & kWantsResult) != 0;
  header->type = static_cast<ElementType>(type);
  header->group = {Get<uint64_t>(bytes, 8), Get<uint32_t>(bytes, 16)};
  header->child = Get<uint32_t>(bytes, 20);
  header->sequence = Get<uint64_t>(bytes, 24);
  header->segment = Get<uint32_t>(bytes, 32);
  header->length = Get<uint32_t>(bytes, 36);
  return header->length <= kMaxPayloadBytes;
}

std::string_view RefusalName(Refusal refusal) {
  const auto number = static_cast<uint32_t>(refusal);
  return number <= kLastRefusal ? kRefusalNames[number] : "unknown reason";
}

std::string RefusalPayload(Refusal refusal, std::string_view text) {
  const auto number = static_cast<uint32_t>(refusal);
  std::string payload(reinterpret_cast<const char*>(&number), sizeof number);
  return payload.append(text.substr(0, kMaxRefusalText));
}

Refusal ParseRefusal(std::string_view payload) {
  if (payload.size() < sizeof(uint32_t)) return Refusal::kMalformed;
  const auto number = Get<uint32_t>(payload, 0);
  return number == 0 || number > kLastRefusal ? Refusal::kMalformed : static_cast<Refusal>(number);
}

std::span<char> FrameParser::Room() {
  const size_t wanted = (kHeaderBytes + max_payload_ + kRoomUnit - 1) / kRoomUnit * kRoomUnit;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  return std::span<char>(buffer_).subspan(end_);
}

FrameParser::State FrameParser::Next(FrameHeader* header, std::string_view* payload) {
  const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
  if (bytes.size() < kHeaderBytes) return State::kNeedsMore;
  if (!DecodeHeader(bytes, header) || header->length > max_payload_) return State::kMalformed;
  if (bytes.size() < kHeaderBytes + header->length) return State::kNeedsMore;
  *payload = bytes.substr(kHeaderBytes, header->length);
  begin_ += kHeaderBytes + header->length;
  return State::kFrame;
}

}  // namespace coppice
