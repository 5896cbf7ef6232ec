#include "daemon/rpc/message_cost.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// As deep as protobuf itself reads.
constexpr int kDeepest = 100;
constexpr size_t kAllocation = 16;          // what malloc adds, at most, to one of its blocks
constexpr size_t kPointer = sizeof(void*);  // of an element, in its array
constexpr size_t kInString = 15;            // bytes that a std::string holds without a block

size_t CostOfString(size_t length) {
  return sizeof(std::string) + kAllocation + (length > kInString ? length + 1 + kAllocation : 0);
}

// Of an element of a list of numbers.
size_t CostOfNumber(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
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

WireFormatLite::WireType WireTypeOf(const FieldDescriptor* field) {
  return WireFormatLite::WireTypeForFieldType(
      static_cast<WireFormatLite::FieldType>(field->type()));
}

}  // namespace

struct MessageCost::Type {
  struct Field {
    const FieldDescriptor* descriptor = nullptr;
    const Type* message = nullptr;  // null: it is none
  };
  const Descriptor* descriptor = nullptr;
  size_t empty = 0;  // an object without any field set
  absl::flat_hash_map<int, Field> fields;
};

namespace {

// One look at one wire form.
template <class Type>
class Walk {
 public:
  Walk(CodedInputStream* wire, size_t most) : wire_(*wire), most_(most) {}

  size_t cost() const { return cost_; }

  // Up to the end of the stream or its limit.
  absl::Status Message(const Type& type, int depth) {
    Add(type.empty);
    while (cost_ <= most_) {
      const uint32_t tag = wire_.ReadTag();
      if (tag == 0) {
        return wire_.ConsumedEntireMessage() ? absl::OkStatus() : Malformed(type, nullptr);
      }
      if (WireFormatLite::GetTagFieldNumber(tag) == 0) return Malformed(type, nullptr);
      const auto found = type.fields.find(WireFormatLite::GetTagFieldNumber(tag));
      const auto* const field = found == type.fields.end() ? nullptr : &found->second;
      RETURN_IF_ERROR(Field(type, field, tag, depth));
    }
    return absl::OkStatus();
  }

 private:
  void Add(size_t bytes) { cost_ += bytes; }

  absl::Status Malformed(const Type& type, const FieldDescriptor* field) const {
    return absl::InvalidArgumentError(absl::StrCat(
        field == nullptr ? type.descriptor->name()
                         : absl::StrCat(type.descriptor->name(), ".", field->name()),
        ": the request is not what this service reads; is the client another release?"));
  }

  absl::Status Field(const Type& type, const typename Type::Field* field, uint32_t tag, int depth) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    if (wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      // No length is believed that the request does not have.
      if (!wire_.ReadVarint32(&length) || length > INT32_MAX) {
        return Malformed(type, field == nullptr ? nullptr : field->descriptor);
      }
      return Delimited(type, field, static_cast<int>(length), depth);
    }
    // A number alone. Of a group, or of a number of another kind, protobuf keeps the bytes.
    const bool is_known = field != nullptr && WireTypeOf(field->descriptor) == wire_type;
    const bool is_element = is_known && field->descriptor->is_repeated();
    if (is_element) Add(CostOfNumber(field->descriptor));
    const int from = wire_.CurrentPosition();
    wire_.SetRecursionLimit(kDeepest - depth);
    if (!WireFormatLite::SkipField(&wire_, tag)) return Malformed(type, nullptr);
    // Each field of what is kept costs more than its bytes.
    if (!is_known) Add(kUnknown * (static_cast<size_t>(wire_.CurrentPosition() - from) + 1));
    return absl::OkStatus();
  }

  absl::Status Delimited(const Type& type, const typename Type::Field* field, int length,
                         int depth) {
    const FieldDescriptor* const known = field == nullptr ? nullptr : field->descriptor;
    if (known != nullptr && field->message != nullptr &&
        known->type() == FieldDescriptor::TYPE_MESSAGE) {
      if (depth + 1 >= kDeepest) return Malformed(type, known);
      Add(kAllocation + kPointer);
      const CodedInputStream::Limit limit = wire_.PushLimit(length);
      // A limit beyond the end of what holds it is drawn in: then its bytes are missing.
      if (wire_.BytesUntilLimit() != length) return Malformed(type, known);
      RETURN_IF_ERROR(Message(*field->message, depth + 1));
      if (cost_ > most_) return absl::OkStatus();
      if (wire_.BytesUntilLimit() != 0) return Malformed(type, known);
      wire_.PopLimit(limit);
      return absl::OkStatus();
    }
    const bool is_text = known != nullptr && (known->type() == FieldDescriptor::TYPE_STRING ||
                                              known->type() == FieldDescriptor::TYPE_BYTES);
    if (is_text) {
      Add(kPointer + CostOfString(static_cast<size_t>(length)));
      return known->type() == FieldDescriptor::TYPE_STRING ? Text(type, known, length)
                                                           : Skip(type, known, length);
    }
    if (known != nullptr && known->is_packable()) return Packed(type, known, length);
    Add(kUnknown * (static_cast<size_t>(length) + 1));
    return Skip(type, known, length);
  }

  absl::Status Skip(const Type& type, const FieldDescriptor* field, int length) {
    return wire_.Skip(length) ? absl::OkStatus() : Malformed(type, field);
  }

  absl::Status Text(const Type& type, const FieldDescriptor* field, int length) {
    const void* data = nullptr;
    int size = 0;
    bool is_valid = false;
    if (length == 0) return absl::OkStatus();
    if (wire_.GetDirectBufferPointer(&data, &size) && size >= length) {
      is_valid = google::protobuf::internal::IsStructurallyValidUTF8(static_cast<const char*>(data),
                                                                     length);
      if (!wire_.Skip(length)) return Malformed(type, field);
    } else {
      if (!wire_.ReadString(&text_, length)) return Malformed(type, field);
      is_valid = google::protobuf::internal::IsStructurallyValidUTF8(text_.data(), length);
    }
    if (is_valid) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(type.descriptor->name(), ".", field->name(),
                                                   ": it is not UTF-8; give names in UTF-8"));
  }

  absl::Status Packed(const Type& type, const FieldDescriptor* field, int length) {
    const size_t each = CostOfNumber(field);
    const auto wire_type = WireTypeOf(field);
    if (wire_type != WireFormatLite::WIRETYPE_VARINT) {
      const int width = wire_type == WireFormatLite::WIRETYPE_FIXED64 ? 8 : 4;
      if (length % width != 0) return Malformed(type, field);
      Add(each * static_cast<size_t>(length / width));
      return Skip(type, field, length);
    }
    // Each number's last byte is the one below 128, at most the tenth.
    size_t numbers = 0;
    int run = 0;
    for (int left = length; left > 0;) {
      const void* data = nullptr;
      int size = 0;
      if (!wire_.GetDirectBufferPointer(&data, &size)) return Malformed(type, field);
      size = std::min(size, left);
      for (int i = 0; i < size; ++i) {
        if (static_cast<const uint8_t*>(data)[i] < 0x80) {
          ++numbers;
          run = 0;
        } else if (++run >= kLongestVarint) {
          return Malformed(type, field);
        }
      }
      if (!wire_.Skip(size)) return Malformed(type, field);
      left -= size;
    }
    if (run != 0) return Malformed(type, field);
    Add(each * numbers);
    return absl::OkStatus();
  }

  static constexpr size_t kUnknown = 48;  // an entry of the set of unknown fields
  static constexpr int kLongestVarint = 10;

  CodedInputStream& wire_;
  const size_t most_;
  size_t cost_ = 0;
  std::string text_;  // that lies in several pieces
};

}  // namespace

MessageCost::MessageCost(const Descriptor* type) : root_(Add(type)) {}

MessageCost::~MessageCost() = default;

const MessageCost::Type* MessageCost::Add(const Descriptor* descriptor) {
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
    type->fields[field->number()] = {field, message == nullptr ? nullptr : Add(message)};
  }
  return type;
}

absl::StatusOr<size_t> MessageCost::Of(google::protobuf::io::ZeroCopyInputStream* wire,
                                       size_t most) const {
  CodedInputStream coded(wire);
  coded.SetTotalBytesLimit(INT32_MAX);
  Walk<Type> walk(&coded, most);
  RETURN_IF_ERROR(walk.Message(*root_, 0));
  return walk.cost();
}

}  // namespace coppice
