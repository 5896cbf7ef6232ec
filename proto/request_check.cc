#include "proto/request_check.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_buffer_reader.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/message_log.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr size_t kMaxTold = 64;  // bytes of a text that an error repeats
constexpr int kMaxDepth = 100;   // as the parser has it
constexpr int kMaxVarintBytes = 10;
constexpr size_t kAllocation = 16;          // what malloc adds, at most, to one of its blocks
constexpr size_t kPointer = sizeof(void*);  // of an element, in its array
constexpr size_t kInString = 15;            // bytes that a std::string holds without a block
constexpr size_t kUnknown = 48;             // an entry of the set of unknown fields

size_t CostOfString(size_t length) {
  return sizeof(std::string) + kAllocation + (length > kInString ? length + 1 + kAllocation : 0);
}

// Of an element of a list of numbers.
size_t CostOfNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    default:
      return 4;
  }
}

WireFormatLite::WireType WireTypeOf(const FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
}

// Whole texts, which have lines.
TextLines LinesOf(const FieldDescriptor& field) {
  return field.full_name() == "coppice.v1.CalibrateRequest.samples_csv" ? TextLines::kMany
                                                                        : TextLines::kOne;
}

thread_local absl::Status refusal_of_thread;  // kept for TakeRefusal

}  // namespace

struct RequestCheck::Field {
  const FieldDescriptor* descriptor = nullptr;
  const Type* message = nullptr;  // null: it is none
  TextLines lines = TextLines::kOne;
};

struct RequestCheck::Type {
  const Descriptor* descriptor = nullptr;
  size_t empty = 0;  // an object without any field set
  absl::flat_hash_map<int, Field> fields;
};

// One look at one wire form. What returns false has found a fault, which status() tells.
class RequestCheck::Walk {
 public:
  Walk(CodedInputStream& wire, size_t most) : wire_(wire), most_(most) {}

  size_t cost() const { return cost_; }

  absl::Status status(const Type& type) const {
    const std::string fault =
        is_malformed_ ? absl::StrCat("the request is not the ", type.descriptor->name(),
                                     " that this service reads; is the client another release?")
                      : fault_;
    return absl::InvalidArgumentError(path_.empty() ? fault : absl::StrCat(path_, ": ", fault));
  }

  // Up to the end of the stream or its limit, or until it costs too much.
  bool Message(const Type& type, int depth) {
    cost_ += type.empty;
    const Field* field = nullptr;
    int last = 0;       // its number
    int64_t index = 0;  // of the field's values one after another
    while (cost_ <= most_) {
      const uint32_t tag = wire_.ReadTag();
      if (tag == 0) return wire_.ConsumedEntireMessage() || Malformed();
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number == 0) return Malformed();
      index = number == last ? index + 1 : 0;
      if (number != last) {
        const auto found = type.fields.find(number);
        field = found == type.fields.end() ? nullptr : &found->second;
        last = number;
      }
      if (!Value(field, tag, depth)) return NameField(field, index);
      if (field != nullptr && field->descriptor->type() == FieldDescriptor::TYPE_STRING &&
          WireTypeOf(*field->descriptor) == WireFormatLite::GetTagWireType(tag)) {
        index += PlainTexts(tag);
      }
    }
    return true;
  }

 private:
  // Steps over more texts of one field, of which a list may have a million, while they are short,
  // printable and lie in one piece: how many. Any other is left where it is.
  int64_t PlainTexts(uint32_t tag) {
    const void* data = nullptr;
    int size = 0;
    const bool is_one_byte = tag < 0x80;  // its form on the wire
    if (!is_one_byte || !wire_.GetDirectBufferPointer(&data, &size)) return 0;
    absl::string_view rest(static_cast<const char*>(data), static_cast<size_t>(size));
    int64_t count = 0;
    while (rest.size() >= 2 && static_cast<unsigned char>(rest[0]) == tag && cost_ <= most_) {
      const auto length = static_cast<unsigned char>(rest[1]);
      if (length >= 0x80 || rest.size() - 2 < length) break;
      if (PrintableBytes(rest.substr(2, length)) < length) break;
      cost_ += kPointer + CostOfString(length);
      rest.remove_prefix(2 + size_t{length});
      ++count;
    }
    wire_.Skip(size - static_cast<int>(rest.size()));
    return count;
  }

  bool Value(const Field* field, uint32_t tag, int depth) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    if (wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      // No length is believed that the request does not have.
      if (!wire_.ReadVarint32(&length) || length > uint32_t{INT_MAX}) return Malformed();
      return Delimited(field, static_cast<int>(length), depth);
    }
    // A number alone. Of a group, or of a number of another kind, protobuf keeps the bytes.
    const bool is_known = field != nullptr && WireTypeOf(*field->descriptor) == wire_type;
    const bool is_element = is_known && field->descriptor->is_repeated();
    if (is_element) cost_ += CostOfNumber(*field->descriptor);
    const int from = wire_.CurrentPosition();
    wire_.SetRecursionLimit(kMaxDepth - depth);
    if (!WireFormatLite::SkipField(&wire_, tag)) return Malformed();
    // Each field of what is kept costs more than its bytes.
    if (!is_known) cost_ += kUnknown * (static_cast<size_t>(wire_.CurrentPosition() - from) + 1);
    return true;
  }

  bool Delimited(const Field* field, int length, int depth) {
    const size_t bytes = static_cast<size_t>(length);
    if (field != nullptr) {
      const FieldDescriptor& known = *field->descriptor;
      switch (known.type()) {
        case FieldDescriptor::TYPE_MESSAGE:
          cost_ += kAllocation + kPointer;
          return Within(*field->message, length, depth + 1);
        case FieldDescriptor::TYPE_STRING:
          cost_ += kPointer + CostOfString(bytes);
          return Text(length, field->lines);
        case FieldDescriptor::TYPE_BYTES:
          cost_ += kPointer + CostOfString(bytes);
          return Skip(length);
        default:
          if (known.is_packable()) return Packed(known, length);
      }
    }
    cost_ += kUnknown * (bytes + 1);
    return Skip(length);
  }

  bool Within(const Type& type, int length, int depth) {
    if (depth >= kMaxDepth) return Malformed();
    const CodedInputStream::Limit limit = wire_.PushLimit(length);
    // A limit beyond the end of what holds it is drawn in: then its bytes are missing.
    if (wire_.BytesUntilLimit() != length) return Malformed();
    if (!Message(type, depth)) return false;
    if (cost_ > most_) return true;
    if (wire_.BytesUntilLimit() != 0) return Malformed();
    wire_.PopLimit(limit);
    return true;
  }

  bool Skip(int length) { return wire_.Skip(length) || Malformed(); }

  bool Text(int length, TextLines lines) {
    if (length == 0) return true;
    const void* data = nullptr;
    int size = 0;
    if (wire_.GetDirectBufferPointer(&data, &size) && size >= length) {
      const absl::string_view text(static_cast<const char*>(data), static_cast<size_t>(length));
      return IsPlainText(text, lines) && Skip(length);
    }
    if (!wire_.ReadString(&text_, length)) return Malformed();
    return IsPlainText(text_, lines);
  }

  bool IsPlainText(absl::string_view text, TextLines lines) {
    if (PrintableBytes(text) == text.size()) return true;
    std::string fault = TextFault(text, lines);
    if (fault.empty()) return true;
    fault_ = std::move(fault);
    absl::StrAppend(&fault_, ": \"", ShownText(CutText(text, kMaxTold)), "\"",
                    text.size() > kMaxTold ? "..." : "");
    return false;
  }

  bool Packed(const FieldDescriptor& field, int length) {
    const size_t each = CostOfNumber(field);
    const auto wire_type = WireTypeOf(field);
    if (wire_type != WireFormatLite::WIRETYPE_VARINT) {
      const int width = wire_type == WireFormatLite::WIRETYPE_FIXED64 ? 8 : 4;
      if (length % width != 0) return Malformed();
      cost_ += each * static_cast<size_t>(length / width);
      return Skip(length);
    }
    // Each number's last byte is the one below 128, at most the tenth.
    size_t numbers = 0;
    int run = 0;
    for (int left = length; left > 0;) {
      const void* data = nullptr;
      int size = 0;
      if (!wire_.GetDirectBufferPointer(&data, &size)) return Malformed();
      size = std::min(size, left);
      for (int i = 0; i < size; ++i) {
        if (static_cast<const uint8_t*>(data)[i] < 0x80) {
          ++numbers;
          run = 0;
        } else if (++run >= kMaxVarintBytes) {
          return Malformed();
        }
      }
      if (!wire_.Skip(size)) return Malformed();
      left -= size;
    }
    cost_ += each * numbers;
    return run == 0 || Malformed();
  }

  // Both always false.
  bool Malformed() {
    is_malformed_ = true;
    return false;
  }
  // Puts the field before those within it.
  bool NameField(const Field* field, int64_t index) {
    if (field == nullptr) return false;
    const FieldDescriptor& named = *field->descriptor;
    const std::string within = std::exchange(path_, named.name());
    if (named.is_repeated() && !named.is_map()) absl::StrAppend(&path_, "[", index, "]");
    if (!within.empty()) absl::StrAppend(&path_, ".", within);
    return false;
  }

  CodedInputStream& wire_;
  const size_t most_;
  size_t cost_ = 0;
  std::string text_;   // one that lies in several pieces; its memory is used again
  std::string path_;   // of the field at fault
  std::string fault_;  // of a text
  bool is_malformed_ = false;
};

RequestCheck::RequestCheck(const Descriptor* type) : root_(Add(type)) {}

RequestCheck::~RequestCheck() = default;

const Descriptor& RequestCheck::type() const { return *root_->descriptor; }

const RequestCheck::Type* RequestCheck::Add(const Descriptor* descriptor) {
  std::unique_ptr<Type>& place = types_[descriptor];
  if (place != nullptr) return place.get();
  place = std::make_unique<Type>();
  Type* const type = place.get();  // `place` itself moves when others are added
  type->descriptor = descriptor;
  type->empty = google::protobuf::MessageFactory::generated_factory()
                    ->GetPrototype(descriptor)
                    ->SpaceUsedLong();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* const field = descriptor->field(i);
    const Descriptor* const message = field->message_type();
    type->fields[field->number()] = {field, message == nullptr ? nullptr : Add(message),
                                     LinesOf(*field)};
  }
  return type;
}

absl::StatusOr<size_t> RequestCheck::CostOf(google::protobuf::io::ZeroCopyInputStream* wire,
                                            size_t most) const {
  CodedInputStream coded(wire);
  coded.SetTotalBytesLimit(INT_MAX);  // the server bounds what comes
  Walk walk(coded, most);
  if (!walk.Message(*root_, 0)) return walk.status(*root_);
  return walk.cost();
}

std::unique_ptr<const RequestCheck> CheckOfStreamed(const Descriptor& type) {
  for (int s = 0; s < type.file()->service_count(); ++s) {
    const google::protobuf::ServiceDescriptor& service = *type.file()->service(s);
    for (int m = 0; m < service.method_count(); ++m) {
      const google::protobuf::MethodDescriptor& method = *service.method(m);
      if (method.client_streaming() && method.input_type() == &type) {
        return std::make_unique<const RequestCheck>(&type);
      }
    }
  }
  return nullptr;
}

absl::Status TakeRefusal() { return std::exchange(refusal_of_thread, absl::OkStatus()); }

bool PassesRequestCheck(const RequestCheck& check, grpc::ByteBuffer* wire) {
  absl::Status& refusal = refusal_of_thread;
  refusal = absl::OkStatus();
  if (wire == nullptr) return true;
  if (const size_t size = wire->Length(); size > kMaxStreamedBytes) {
    refusal = absl::ResourceExhaustedError(absl::StrCat(check.type().name(), ": this message has ",
                                                        size, " bytes, and the most is ",
                                                        kMaxStreamedBytes, "; say less at once"));
    return false;
  }
  grpc::ProtoBufferReader reader(wire);
  if (!reader.status().ok()) return true;  // as the parser will find, too
  refusal = check.CostOf(&reader, SIZE_MAX).status();
  return refusal.ok();
}

void RefuseMalformed(const Descriptor& type) {
  refusal_of_thread =
      absl::InvalidArgumentError(absl::StrCat("the request is no ", type.full_name()));
}

void SilenceMessageLog() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace coppice
