#include "proto/request_check.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_buffer_reader.h>

#include <climits>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr size_t kMostTold = 64;     // bytes of a text that an error repeats
constexpr int kDeepest = 100;        // as the parser has it
constexpr int kMostBytes = INT_MAX;  // the server bounds what comes

// Whole texts, which have lines.
bool HasLines(const FieldDescriptor& field) {
  return field.full_name() == "coppice.v1.CalibrateRequest.samples_csv";
}

class RequestCheck {
 public:
  explicit RequestCheck(CodedInputStream& wire) : wire_(wire) {}

  // False: a text is at fault, or the wire form is; fault() tells.
  bool Check(const Descriptor& type, int depth) {
    if (depth > kDeepest) return false;
    const FieldDescriptor* last = nullptr;
    int64_t index = 0;  // of the field's values one after another
    while (const uint32_t tag = wire_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const bool is_delimited =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const FieldDescriptor* const field = is_delimited ? type.FindFieldByNumber(number) : nullptr;
      index = field == last ? index + 1 : 0;
      last = field;
      bool is_good = false;
      if (field != nullptr && field->type() == FieldDescriptor::TYPE_STRING) {
        is_good = CheckText(*field);
      } else if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
        is_good = CheckMessage(*field, depth);
      } else {
        is_good = WireFormatLite::SkipField(&wire_, tag);
      }
      if (!is_good) return field != nullptr && NameField(*field, index);
    }
    return true;
  }

  const std::string& field() const { return field_; }
  const std::string& fault() const { return fault_; }

 private:
  bool CheckText(const FieldDescriptor& field) {
    uint32_t size = 0;
    if (!wire_.ReadVarint32(&size) || size > uint32_t{kMostBytes}) return false;
    if (!wire_.ReadString(&text_, static_cast<int>(size))) return false;
    fault_ = TextFault(text_, HasLines(field) ? TextLines::kMany : TextLines::kOne);
    if (fault_.empty()) return true;
    absl::StrAppend(&fault_, ": \"", ShownText(CutText(text_, kMostTold)), "\"",
                    text_.size() > kMostTold ? "..." : "");
    return false;
  }

  bool CheckMessage(const FieldDescriptor& field, int depth) {
    uint32_t size = 0;
    if (!wire_.ReadVarint32(&size) || size > uint32_t{kMostBytes}) return false;
    const CodedInputStream::Limit limit = wire_.PushLimit(static_cast<int>(size));
    const bool is_good = Check(*field.message_type(), depth + 1) && wire_.BytesUntilLimit() == 0;
    wire_.PopLimit(limit);
    return is_good;
  }

  // Puts the field before those within it. Always false.
  bool NameField(const FieldDescriptor& field, int64_t index) {
    if (fault_.empty()) return false;
    const std::string within = std::exchange(field_, field.name());
    if (field.is_repeated() && !field.is_map()) absl::StrAppend(&field_, "[", index, "]");
    if (!within.empty()) absl::StrAppend(&field_, ".", within);
    return false;
  }

  CodedInputStream& wire_;
  std::string text_;   // the one that is being looked at; its memory is used again
  std::string field_;  // at fault
  std::string fault_;
};

absl::Status& Refusal() {
  thread_local absl::Status refusal;
  return refusal;
}

}  // namespace

absl::Status CheckRequest(const Descriptor& type, google::protobuf::io::ZeroCopyInputStream& wire) {
  CodedInputStream coded(&wire);
  coded.SetTotalBytesLimit(kMostBytes);
  RequestCheck check(coded);
  if (check.Check(type, 0) || check.fault().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(check.field(), ": ", check.fault()));
}

bool IsStreamed(const Descriptor& type) {
  for (int s = 0; s < type.file()->service_count(); ++s) {
    const google::protobuf::ServiceDescriptor& service = *type.file()->service(s);
    for (int m = 0; m < service.method_count(); ++m) {
      const google::protobuf::MethodDescriptor& method = *service.method(m);
      if (method.client_streaming() && method.input_type() == &type) return true;
    }
  }
  return false;
}

absl::Status TakeRefusal() { return std::exchange(Refusal(), absl::OkStatus()); }

bool PassesRequestCheck(const Descriptor& type, grpc::ByteBuffer* wire) {
  absl::Status& refusal = Refusal();
  refusal = absl::OkStatus();
  if (wire == nullptr) return true;
  if (const size_t size = wire->Length(); size > kMostStreamedBytes) {
    refusal = absl::ResourceExhaustedError(absl::StrCat(type.name(), ": this message has ", size,
                                                        " bytes, and the most is ",
                                                        kMostStreamedBytes, "; say less at once"));
    return false;
  }
  grpc::ProtoBufferReader reader(wire);
  if (!reader.status().ok()) return true;  // as the parser will find, too
  refusal = CheckRequest(type, reader);
  return refusal.ok();
}

void RefuseMalformed(const Descriptor& type) {
  Refusal() = absl::InvalidArgumentError(absl::StrCat("the request is no ", type.full_name()));
}

void SilenceMessageLog() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace coppice
