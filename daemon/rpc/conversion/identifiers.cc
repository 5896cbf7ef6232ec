#include "daemon/rpc/conversion/identifiers.h"

#include <charconv>
#include <cstdlib>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr int64_t kMaxDurationSeconds = 315'576'000'000;  // google/protobuf/duration.proto
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr size_t kDefaultPage = 1000;
constexpr size_t kMaxPageItems = 10000;
constexpr size_t kQuotedBytes = 64;  // of a bad text, in a message

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text.substr(0, kQuotedBytes), text.size() > kQuotedBytes ? "..." : "",
                      "\"");
}

absl::Status BadToken(absl::string_view token) {
  return absl::InvalidArgumentError(absl::StrCat("page_token ", Quoted(token),
                                                 " is not one that this listing answered: "
                                                 "leave it empty to list from the start"));
}

}  // namespace

absl::StatusOr<int64_t> ParseId(absl::string_view text, absl::string_view what) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " id ", Quoted(text), " is not a number from 1 on: give the id of an answer"));
  }
  return id;
}

absl::StatusOr<Guid> ParseGuid(absl::string_view text) {
  const absl::string_view digits = absl::StripPrefix(text, "0x");
  uint64_t guid = 0;
  // Each of them: SimpleHexAtoi would also take a sign, blanks, and a second 0x.
  const bool is_hex = std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
  if (digits.size() != 16 || !is_hex || !absl::SimpleHexAtoi(digits, &guid)) {
    return absl::InvalidArgumentError(absl::StrCat("GUID ", Quoted(text), " is not 16 hex digits"));
  }
  return Guid(guid);
}

absl::Status UnknownEnumerator(absl::string_view field, int value,
                               const google::protobuf::EnumDescriptor& type) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": there is no ", value, "; give a value of ", type.full_name()));
}

absl::StatusOr<PartitionNum> ParsePartitionNum(uint32_t number) {
  constexpr uint32_t kLast = 0x7fff;
  if (number <= kLast) return PartitionNum(static_cast<uint16_t>(number));
  return BadField("partition",
                  absl::StrCat(number, " is none: give 1 to ", kLast, ", or 0 to have it chosen"));
}

absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& duration,
                                         absl::string_view field) {
  if (std::abs(duration.nanos()) >= kNanosPerSecond || duration.seconds() > kMaxDurationSeconds ||
      duration.seconds() < -kMaxDurationSeconds) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", duration.seconds(), " s and ", duration.nanos(),
                     " ns is not a duration: give seconds and less than 1000000000 ns"));
  }
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::StatusOr<absl::Time> FromProto(const google::protobuf::Timestamp& time,
                                     absl::string_view field) {
  // The range that google.protobuf.Timestamp states: years 1 to 9999.
  constexpr int64_t kFirst = -62'135'596'800, kLast = 253'402'300'799;
  const bool is_good = time.seconds() >= kFirst && time.seconds() <= kLast && time.nanos() >= 0 &&
                       time.nanos() < 1'000'000'000;
  if (!is_good) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", time.seconds(), " s ", time.nanos(), " ns is no time"));
  }
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

google::protobuf::Duration ToDuration(absl::Duration duration) {
  google::protobuf::Duration converted;
  absl::Duration rest;
  converted.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  converted.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return converted;
}

absl::StatusOr<size_t> PageSize(int32_t requested) {
  if (requested < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size ", requested, " is negative: give 0 (the default) to 10000"));
  }
  return requested == 0 ? kDefaultPage : std::min<size_t>(requested, kMaxPageItems);
}

absl::StatusOr<int64_t> ParseIdToken(absl::string_view token) {
  if (token.empty()) return 0;
  const absl::StatusOr<int64_t> id = ParseId(token, "token");
  if (!id.ok()) return BadToken(token);
  return *id;
}

absl::StatusOr<uint32_t> ParseFabricToken(absl::string_view token, uint64_t version) {
  if (token.empty()) return 0;
  const size_t dot = token.find('.');
  uint64_t token_version = 0;
  uint32_t position = 0;
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(token.substr(0, dot), &token_version) ||
      !absl::SimpleAtoi(token.substr(dot + 1), &position)) {
    return BadToken(token);
  }
  if (token_version != version) {
    return absl::AbortedError(absl::StrCat("the fabric moved from version ", token_version, " to ",
                                           version, " while it was listed: list from the start"));
  }
  return position;
}

std::string FabricToken(uint64_t version, uint32_t position) {
  return absl::StrCat(version, ".", position);
}

}  // namespace coppice
