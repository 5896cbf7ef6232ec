#include "tests/unit/proto/request_check_properties.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "coppice/v1/trees.pb.h"
#include "proto/request_check.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kUnbounded = size_t{1} << 50;
constexpr size_t kLittle = 1000;

const std::vector<std::unique_ptr<Message>>& Requests() {
  static const auto* const requests = [] {
    auto* const made = new std::vector<std::unique_ptr<Message>>;
    made->push_back(std::make_unique<v1::RegisterJobRequest>());
    made->push_back(std::make_unique<v1::CreateTreeRequest>());
    made->push_back(std::make_unique<v1::BatchCreateTreesRequest>());
    made->push_back(std::make_unique<v1::AdvisePlacementRequest>());
    made->push_back(std::make_unique<v1::MapRanksRequest>());
    made->push_back(std::make_unique<v1::PutPatternRequest>());
    return made;
  }();
  return *requests;
}

// A text of the message, or of those in it, that is not plain; empty: all are.
std::string Fault(const Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string fault;
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        fault = TextFault(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                               : reflection.GetString(message, field));
      } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        fault = Fault(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                           : reflection.GetMessage(message, field));
      }
      if (!fault.empty()) return absl::StrCat(field->full_name(), " ", fault);
    }
  }
  return "";
}

}  // namespace

std::string BrokenByCheck(absl::string_view wire, int piece) {
  const google::protobuf::LogSilencer quiet;  // of what protobuf refuses
  for (const auto& prototype : Requests()) {
    const RequestCheck check(prototype->GetDescriptor());
    const auto of = [&](size_t most) {
      google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()),
                                                    piece);
      return check.CostOf(&stream, most);
    };
    const absl::StatusOr<size_t> all = of(kUnbounded), little = of(kLittle);
    const std::unique_ptr<Message> message(prototype->New());
    const bool is_read = message->ParseFromArray(wire.data(), static_cast<int>(wire.size()));
    const std::string& name = prototype->GetDescriptor()->name();
    const std::string fault = is_read ? Fault(*message) : "";
    // A text that another one replaces is checked, and gone from the message: so what is refused
    // for a text may hold plain ones only, unless nothing is gone.
    const bool is_all_there = is_read && message->SerializeAsString() == wire;
    const bool is_for_a_text =
        !all.ok() && !absl::StrContains(all.status().message(), "the request is not");
    if (is_read && !all.ok() && (!is_for_a_text || (is_all_there && fault.empty()))) {
      return absl::StrCat(name, " is refused: ", all.status().ToString());
    }
    if (!all.ok()) continue;
    if (!fault.empty()) return absl::StrCat(name, " passes: ", fault);
    // Lists grow by doubling, and are counted without what they have to spare.
    if (message->SpaceUsedLong() > 2 * *all + wire.size()) {
      return absl::StrCat(name, " takes ", message->SpaceUsedLong(), " and was thought to take ",
                          *all);
    }
    if (*all > kLittle && (!little.ok() || *little <= kLittle)) {
      return absl::StrCat(name, " of ", *all, " is not found to be above ", kLittle);
    }
  }
  return "";
}

}  // namespace coppice
