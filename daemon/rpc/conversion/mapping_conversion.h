// coppice.v1 messages of the Mapping service <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_MAPPING_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_MAPPING_CONVERSION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coppice/v1/mapping.pb.h"
#include "coppice/v1/placements.pb.h"
#include "daemon/manager/mapping/rank_mapper.h"
#include "daemon/mapping/algorithm.h"
#include "db/store.h"

namespace coppice {

// The pattern that is given in full, as lists or as a file. INVALID_ARGUMENT, naming the field:
// lists of different lengths, or as Pattern::Make; as ReadPattern.
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::MappingTask& task);
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PutPatternRequest& request);
absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PlacementTraffic& traffic);

// INVALID_ARGUMENT: there is no such format (lists them). Empty: none is asked for.
absl::StatusOr<std::optional<LaunchFormat>> EmitOf(const std::string& emit);

// Without the pattern if it is a stored one. INVALID_ARGUMENT, naming the field: neither a job nor
// hosts, or both; not exactly one pattern; more than one kind of distance; a value that is unknown
// or out of range.
absl::StatusOr<MappingTask> FromProto(const v1::MappingTask& task);
absl::StatusOr<MapRanksArgs> FromProto(const v1::MapRanksRequest& request);

// How much memory FromProto and PatternOf take beside the message, from above.
size_t ReadingBytes(const v1::MappingTask& task);
size_t ReadingBytes(const v1::PutPatternRequest& request);
size_t ReadingBytes(const v1::PlacementTraffic& traffic);

void ToProto(const MappingView& view, v1::MappingResult& message);
void ToProto(const EvaluationView& view, v1::MappingEvaluation& message);
void ToProto(const ProblemView& view, v1::MappingProblem& message);
void ToProto(const OrderRecord& order, v1::StoredOrder& message);
void ToProto(const MappingAlgorithm& algorithm, v1::Algorithm& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_MAPPING_CONVERSION_H_
