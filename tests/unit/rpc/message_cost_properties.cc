#include "tests/unit/rpc/message_cost_properties.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "coppice/v1/trees.pb.h"
#include "daemon/rpc/message_cost.h"

namespace coppice {
namespace {

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

}  // namespace

std::string BrokenByCost(absl::string_view wire, int piece) {
  const google::protobuf::LogSilencer quiet;  // of what protobuf refuses
  for (const auto& prototype : Requests()) {
    const MessageCost cost(prototype->GetDescriptor());
    const auto of = [&](size_t most) {
      google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()),
                                                    piece);
      return cost.Of(&stream, most);
    };
    const absl::StatusOr<size_t> all = of(kUnbounded), little = of(kLittle);
    const std::unique_ptr<Message> message(prototype->New());
    const bool is_read = message->ParseFromArray(wire.data(), static_cast<int>(wire.size()));
    const std::string& name = prototype->GetDescriptor()->name();
    if (is_read && !all.ok()) return absl::StrCat(name, " is refused: ", all.status().ToString());
    // Lists grow by doubling, and are counted without what they have to spare.
    if (all.ok() && message->SpaceUsedLong() > 2 * *all + wire.size()) {
      return absl::StrCat(name, " takes ", message->SpaceUsedLong(), " and was thought to take ",
                          *all);
    }
    if (all.ok() && *all > kLittle && (!little.ok() || *little <= kLittle)) {
      return absl::StrCat(name, " of ", *all, " is not found to be above ", kLittle);
    }
  }
  return "";
}

}  // namespace coppice
