// The words of the command line for the proto's enums and times, and their inverse.
#ifndef COPPICE_CLIENT_CLI_WORDS_H_
#define COPPICE_CLIENT_CLI_WORDS_H_

#include <optional>
#include <string>

#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/types.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace coppice {

std::string Word(v1::Operation operation);  // "allreduce"
std::string Word(v1::TreeType type);        // "I", "II"
std::string Word(v1::TreeBuilder builder);  // "hierarchical"
std::string Word(v1::RouteKind kind);       // "forwarding tables"
std::string Word(v1::JobState state);       // "active"

std::optional<v1::Operation> OperationNamed(const std::string& word);
std::optional<v1::TreeType> TypeNamed(const std::string& word);        // auto, 1, 2
std::optional<v1::TreeBuilder> BuilderNamed(const std::string& word);  // auto, kary, ...

// "2026-01-31T12:00:00Z"
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_WORDS_H_
