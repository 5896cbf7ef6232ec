#include "client/cli/output.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "coppice/v1/agents.pb.h"
#include "coppice/v1/fabric.pb.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

bool fails_in_json = false;  // of this invocation

using Json = nlohmann::ordered_json;

// Whether it names an object: "" is the name of none.
bool IsId(const google::protobuf::FieldDescriptor& field) {
  return field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING &&
         !field.is_repeated() &&
         (field.name() == "id" || absl::EndsWith(field.name(), "_id") ||
          absl::EndsWith(field.name(), "guid"));
}

// Adds what `message` may have and has not, which protobuf's JSON leaves out, as null: a program
// that reads 0 or nothing could not tell it from a figure, or from a field that there is not. An id
// that is not known is null as well.
void AddNulls(const google::protobuf::Message& message, Json& json) {
  if (!json.is_object()) return;  // a time, say, which JSON has as a text
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = type.field(i);
    if (field->is_map() || field->real_containing_oneof() != nullptr) continue;
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated()) {
      for (int k = 0; is_message && k < reflection.FieldSize(message, field); ++k) {
        AddNulls(reflection.GetRepeatedMessage(message, field, k),
                 json[field->name()][static_cast<size_t>(k)]);
      }
    } else if (field->has_presence() && !reflection.HasField(message, field)) {
      json[field->name()] = nullptr;
    } else if (IsId(*field)) {
      if (reflection.GetString(message, field).empty()) json[field->name()] = nullptr;
    } else if (is_message) {
      AddNulls(reflection.GetMessage(message, field), json[field->name()]);
    }
  }
}

bool Put(std::streambuf& target, absl::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return target.sputn(text.data(), size) == size;
}

// How many bytes at the end of `text` may be the beginning of a character.
size_t BegunBytes(absl::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[text.size() - n]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return n < wanted ? n : 0;
  }
  return 0;
}

}  // namespace

Json JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails for a Timestamp or Duration out of range only, which no server of ours sends.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) text = "{}";
  Json json = Json::parse(text);
  AddNulls(message, json);
  return json;
}

void Table::Print(std::ostream& out) const {
  const bool is_for_people = IsForPeople();
  bool is_heading = is_for_people;
  for (const std::string& line : Lines(is_for_people)) {
    if (is_heading) ShownStream::Control(out, "\033[1m");
    out << line;
    if (is_heading) ShownStream::Control(out, "\033[0m");
    is_heading = false;
    out << "\n";
  }
}

std::string Folded(absl::string_view text, size_t indent) {
  return IsForPeople() ? Wrapped(text, indent) : std::string(text);
}

void PrintField(std::ostream& out, absl::string_view name, absl::string_view text) {
  constexpr size_t kIndent = 11;
  out << absl::StrFormat("%-10s ", name) << Folded(text, kIndent) << "\n";
}

void PrintJson(std::ostream& out, const google::protobuf::Message& message) {
  out << JsonOf(message).dump(1) << "\n";
}

void PrintJsonLine(std::ostream& out, const google::protobuf::Message& message) {
  out << JsonOf(message).dump() << "\n";
}

void FailInJson() { fails_in_json = true; }

int Fail(const absl::Status& status) {
  if (fails_in_json) {
    const Json error = {{"error",
                         {{"code", absl::StatusCodeToString(status.code())},
                          {"message", std::string(status.message())}}}};
    // A message may quote what is not UTF-8.
    std::cerr << error.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    std::cerr << ErrorLine(status) << "\n";
  }
  return ExitStatusOf(status);
}

std::string ManagerText(const v1::FabricSummary& fabric) {
  if (!fabric.has_subnet_manager()) return "; no subnet manager has assigned LIDs";
  if (fabric.subnet_manager_silent()) return "; the subnet manager does not answer";
  return absl::StartsWith(fabric.source(), "umad") ? "; the subnet manager answers" : "";
}

std::string Counted(uint64_t count, absl::string_view noun, absl::string_view plural) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : plural);
}

double Seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
}

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

ShownStream::~ShownStream() {
  Put(*target_, ShownText(begun_));
  target_->pubsync();
  out_.rdbuf(target_);
}

void ShownStream::Control(std::ostream& out, absl::string_view sequence) {
  auto* const shown = dynamic_cast<ShownStream*>(out.rdbuf());
  Put(shown != nullptr ? *shown->target_ : *out.rdbuf(), sequence);
}

bool ShownStream::Write(absl::string_view text) {
  std::string whole;
  if (!begun_.empty()) {
    whole = absl::StrCat(std::exchange(begun_, ""), text);
    text = whole;
  }
  const size_t begun = BegunBytes(text);
  begun_ = std::string(text.substr(text.size() - begun));
  return Put(*target_, ShownText(text.substr(0, text.size() - begun), TextLines::kMany));
}

int ShownStream::overflow(int c) {
  if (c == traits_type::eof()) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return Write({&one, 1}) ? c : traits_type::eof();
}

std::streamsize ShownStream::xsputn(const char* text, std::streamsize size) {
  return Write({text, static_cast<size_t>(size)}) ? size : 0;
}

int ShownStream::sync() { return target_->pubsync(); }

void ShowProgress(absl::string_view line) {
  if (isatty(STDERR_FILENO) == 0) return;
  ShownStream::Control(std::cerr, "\r\033[K");
  std::cerr << line << std::flush;
}

}  // namespace coppice
