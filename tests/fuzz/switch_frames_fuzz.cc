// What arrives at a switch: any cut of any stream gives the same frames or is refused, a frame that
// is read is written back the same, and whatever children, a parent or the daemon say, entries stay
// within their memory and their windows.
//
// The input is a stream of frames, each after a byte that says whose it is; frames are mended so
// that most get as far as an entry.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "agents/links/frame.h"
#include "agents/switch/entry_table.h"

namespace {

using coppice::FrameHeader;
using coppice::FrameParser;

constexpr uint32_t kMaxPayload = 256;

void Require(bool is_so) {
  if (!is_so) std::abort();
}

// The frames of a stream that comes in parts of so many bytes.
std::vector<std::pair<FrameHeader, std::string>> CutStream(std::string_view stream, size_t part,
                                                           bool* is_malformed) {
  FrameParser parser(kMaxPayload);
  std::vector<std::pair<FrameHeader, std::string>> frames;
  while (!stream.empty()) {
    const auto room = parser.Room();
    Require(!room.empty());
    const size_t taken = std::min({part, room.size(), stream.size()});
    std::memcpy(room.data(), stream.data(), taken);
    parser.Filled(taken);
    stream.remove_prefix(taken);
    FrameHeader header;
    std::string_view payload;
    auto state = parser.Next(&header, &payload);
    for (; state == FrameParser::State::kFrame; state = parser.Next(&header, &payload)) {
      frames.emplace_back(header, payload);
    }
    Require(parser.capacity() <= coppice::kHeaderBytes + kMaxPayload + 64);
    *is_malformed = state == FrameParser::State::kMalformed;
    if (*is_malformed) break;
  }
  return frames;
}

class Switch {
 public:
  Switch() : table_(Limits()) {}

  // `who`: a child, the parent, a stranger or the daemon, of one of four trees.
  void Take(uint8_t who, FrameHeader header, std::string_view payload) {
    const uint64_t tree = 1 + who % 4;
    if (who % 16 < 12) {  // mended: a frame that fits by its tree
      header.group.tree = tree;
      header.group.revision %= 3;
      header.child %= 5;
      header.sequence %= 8;
      header.segment %= 4;
    }
    coppice::Entry* const entry = table_.Find(header.group.tree);
    switch (who / 16 % 6) {
      case 0:
        Install(header);
        break;
      case 1:
        Hello(header, payload);
        break;
      case 2:
        if (entry != nullptr) Check(*entry, entry->TakeResult(header, payload));
        break;
      case 3:
        who % 5 == 0 ? (void)table_.Remove(header.group) : Lose(entry);
        break;
      default:
        if (entry != nullptr) Check(*entry, entry->Contribute(header.child, header, payload));
    }
    CheckTable();
  }

 private:
  static coppice::TableLimits Limits() {
    coppice::TableLimits limits;
    limits.entries = 3;
    limits.children = 4;
    limits.segment_bytes = kMaxPayload;
    limits.window = 3;
    limits.memory_bytes = 4'000;
    return limits;
  }

  void Install(const FrameHeader& header) {
    coppice::EntrySpec spec;
    spec.group = header.group;
    spec.children = header.child;
    spec.segment_bytes = 8 * (1 + header.segment);
    spec.window = static_cast<uint32_t>(header.sequence);
    if (header.wants_result) spec.parent = coppice::EntryParent{"10.0.0.1:1", "", header.segment};
    if (!table_.Install(spec).ok()) return;
    // Its children come at once, so that frames get further.
    for (uint32_t child = 0; child + (header.length % 2) < spec.children; ++child) {
      (void)table_.Find(spec.group.tree)->Connect(child, 0);
    }
  }

  void Hello(const FrameHeader& header, std::string_view payload) {
    coppice::LinkKey key{};
    std::copy_n(payload.begin(), std::min(payload.size(), key.size()), key.begin());
    (void)table_.Admit(header, key);
  }

  static void Lose(coppice::Entry* entry) {
    if (entry != nullptr) entry->Lose();
  }

  static void Check(coppice::Entry& entry, const coppice::Entry::Answer& answer) {
    const coppice::EntrySpec& spec = entry.spec();
    if (answer.refusal != coppice::Refusal::kNone) {
      Require(!answer.up && !answer.down);
      entry.Break();
      return;
    }
    if (answer.up) Require(spec.parent && answer.up->payload->size() <= spec.segment_bytes);
    if (!answer.down) return;
    Require(answer.down->payload->size() <= spec.segment_bytes);
    Require(answer.down->wants.size() == spec.children);
  }

  void CheckTable() {
    Require(table_.size() <= table_.limits().entries);
    Require(table_.memory_bytes() <= table_.limits().memory_bytes);
    for (const coppice::Group& group : table_.Groups()) {
      const coppice::Entry& entry = *table_.Find(group.tree);
      Require(entry.held_bytes() <= entry.spec().MemoryBytes());
      Require(entry.segments_under_way() <= entry.spec().window);
    }
  }

  coppice::EntryTable table_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool is_malformed = false, is_malformed_too = false;
  const auto whole = CutStream(stream, size, &is_malformed);
  Require(whole == CutStream(stream, size_t{1} + data[0] % 64, &is_malformed_too));
  Require(is_malformed == is_malformed_too);
  for (const auto& [header, payload] : whole) {
    FrameHeader again;
    const auto bytes = coppice::EncodeHeader(header);
    Require(coppice::DecodeHeader({bytes.data(), bytes.size()}, &again) && again == header);
    (void)coppice::RefusalName(coppice::ParseRefusal(payload));
  }
  // Once more, with a magic and a kind for each, so that chance need not find them.
  Switch subject;
  for (size_t at = 0; at + 1 + coppice::kHeaderBytes <= stream.size();) {
    const auto who = static_cast<uint8_t>(stream[at++]);
    std::string bytes = stream.substr(at, coppice::kHeaderBytes);
    at += coppice::kHeaderBytes;
    bytes.replace(0, 6, std::string("CPSW\x01\x04", 6));
    bytes[6] = static_cast<char>(static_cast<uint8_t>(bytes[6]) % 12 | (bytes[6] & 0x40));
    bytes[7] = static_cast<char>(static_cast<uint8_t>(bytes[7]) % 14);
    bytes[37] = bytes[38] = bytes[39] = 0;
    FrameHeader header;
    Require(coppice::DecodeHeader(bytes, &header));
    const size_t length = std::min<size_t>(header.length, stream.size() - at);
    subject.Take(who, header, std::string_view(stream).substr(at, length));
    at += length;
  }
  return 0;
}
