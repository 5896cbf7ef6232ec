#include "client/cli/distance_matrix.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

using HostPair = std::pair<std::string, std::string>;

// Seconds.
double TimeOfByte(const v1::MeasuredDistance& distance, double message_bytes) {
  const double gap = 8 / (distance.bandwidth_gbps() * 1e9);
  return message_bytes > 0 ? gap + distance.latency_us() * 1e-6 / message_bytes : gap;
}

std::vector<std::string> FirstNamed(const std::vector<std::string>& members) {
  std::set<std::string> seen;
  std::vector<std::string> rows;
  for (const std::string& member : members) {
    if (seen.insert(member).second) rows.push_back(member);
  }
  return rows;
}

}  // namespace

std::string HostOfMember(absl::string_view member) {
  return std::string(member.substr(0, member.find('/')));
}

absl::StatusOr<std::string> DistanceMatrixText(const std::vector<std::string>& members,
                                               const v1::ListDistancesResponse& distances,
                                               double message_bytes) {
  const std::vector<std::string> rows = FirstNamed(members);
  if (rows.empty()) {
    return absl::InvalidArgumentError("a matrix of no hosts; measure some, or name others");
  }
  std::map<HostPair, double> times;
  double least = std::numeric_limits<double>::infinity();
  for (const v1::MeasuredDistance& distance : distances.distances()) {
    const double time = TimeOfByte(distance, message_bytes);
    times[{distance.from(), distance.to()}] = times[{distance.to(), distance.from()}] = time;
    least = std::min(least, time);
  }
  std::string text = "# places in this order:";
  for (const std::string& row : rows) absl::StrAppend(&text, " ", row);
  absl::StrAppend(&text, "\n", rows.size(), "\n");
  for (const std::string& row : rows) {
    const char* separator = "";
    for (const std::string& column : rows) {
      const HostPair pair{HostOfMember(row), HostOfMember(column)};
      const auto time = times.find(pair);
      if (pair.first != pair.second && time == times.end()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the distance between ", pair.first, " and ", pair.second, " was not measured"));
      }
      const double value = pair.first == pair.second ? 0.0 : time->second / least;
      absl::StrAppendFormat(&text, "%s%.6g", separator, value);
      separator = " ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace coppice
