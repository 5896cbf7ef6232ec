#include "daemon/manager/requests.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "daemon/base/fingerprint.h"

namespace coppice {
namespace {

absl::Status CheckName(const std::string& request_id) {
  RETURN_IF_ERROR(CheckLength("request_id", request_id, kMaxRequestIdBytes));
  if (!ParseBatchTreeName(request_id)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "request_id: ", request_id,
      " ends in # and a number, as only the trees of a batch are named; take a name that ends "
      "otherwise"));
}

absl::Status TooManyRanks() {
  return absl::InvalidArgumentError(absl::StrCat("batch: its communicators hold more than ",
                                                 kMaxBatchRanks,
                                                 " ranks together; split it into several batches"));
}

absl::Status CheckGrid(const ProcessGrid& grid, size_t order_size) {
  if (grid.sizes.empty() || grid.sizes.size() > kMaxGridAxes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grid: ", grid.sizes.size(), " axes are given, 1 to ", kMaxGridAxes, " are possible"));
  }
  if (grid.axes.size() > grid.sizes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("axes: ", grid.axes.size(),
                                                   " are named of a grid of ", grid.sizes.size(),
                                                   "; name each once, or none for all"));
  }
  for (const uint32_t axis : grid.axes) {
    if (axis < grid.sizes.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("axes: there is no axis ", axis, "; the ",
                                                   grid.sizes.size(), " axes are numbered from 0"));
  }
  uint64_t cells = 1;
  for (const uint32_t size : grid.sizes) {
    if (size == 0) {
      return absl::InvalidArgumentError("grid: an axis has size 0; give at least 1");
    }
    cells *= size;
    if (cells > kMaxBatchRanks) return TooManyRanks();
  }
  const size_t axes = grid.axes.empty() ? grid.sizes.size() : grid.axes.size();
  if (cells * axes > kMaxBatchRanks) return TooManyRanks();
  if (order_size != 0 && order_size != cells) {
    return absl::InvalidArgumentError(absl::StrCat("rank order: names ", order_size,
                                                   " ranks for a grid of ", cells,
                                                   " processes; give one for each, or none"));
  }
  return absl::OkStatus();
}

absl::Status CheckLists(const std::vector<std::vector<uint32_t>>& communicators) {
  if (communicators.empty()) {
    return absl::InvalidArgumentError("batch: it is empty; give a grid or communicators");
  }
  uint64_t ranks = 0;
  for (size_t c = 0; c < communicators.size(); ++c) {
    if (communicators[c].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("communicators[", c, "]: has no ranks; name at least one"));
    }
    ranks += communicators[c].size();
  }
  return ranks > kMaxBatchRanks ? TooManyRanks() : absl::OkStatus();
}

// GridLines speaks of members: here they are the job's ranks.
absl::Status ListLines(uint32_t job_ranks, CreateBatchArgs& args) {
  std::vector<uint64_t> marks;
  RETURN_IF_ERROR(Annotate(CheckRanks(args.rank_order, job_ranks, marks), "grid.rank_order"));
  std::vector<EndpointIndex> cells(args.rank_order.begin(), args.rank_order.end());
  if (cells.empty()) {
    cells.reserve(job_ranks);
    for (uint32_t rank = 0; rank < job_ranks; ++rank) cells.emplace_back(rank);
  }
  absl::StatusOr<std::vector<BatchCommunicator>> lines = GridLines(*args.grid, cells);
  if (!lines.ok()) {
    return Annotate(lines.status(), absl::StrCat("grid over the job's ", job_ranks, " ranks"));
  }
  args.communicators.reserve(lines->size());
  for (BatchCommunicator& line : *lines) {
    std::vector<uint32_t>& ranks = args.communicators.emplace_back();
    ranks.reserve(line.members.size());
    for (const EndpointIndex rank : line.members) ranks.push_back(rank.value());
    line.members = {};
  }
  return absl::OkStatus();
}

void AddRanks(const std::vector<uint32_t>& ranks, Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{ranks.size()});
  for (const uint32_t rank : ranks) fingerprint.Add(uint64_t{rank});
}

}  // namespace

std::string FirstOf(absl::Span<const std::string> names, size_t most) {
  std::string text = absl::StrJoin(names.subspan(0, most), ", ");
  if (names.size() > most) absl::StrAppend(&text, " and ", names.size() - most, " more");
  return text;
}

absl::Status CheckActive(const JobRecord& job) {
  if (job.state == JobState::kActive) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", job.id.value(), job.state == JobState::kEnded ? " has ended" : "'s lease has expired",
      "; register a new job"));
}

absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", text.size(), " bytes are over the limit of ", limit));
}

absl::Status CheckTreeRequest(const CreateTreeArgs& args) {
  RETURN_IF_ERROR(CheckName(args.request_id));
  return CheckSpec(args);
}

uint64_t FingerprintOf(const CreateTreeArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add(uint64_t{args.ranks.size()});
  for (size_t i = 0; i + 1 < args.ranks.size(); i += 2) {
    fingerprint.Add(uint64_t{args.ranks[i]} << 32 | args.ranks[i + 1]);
  }
  if (args.ranks.size() % 2 == 1) fingerprint.Add(uint64_t{args.ranks.back()});
  AddTo(fingerprint, static_cast<const TreeSpec&>(args));
  return fingerprint.value();
}

absl::Status CheckRanks(const std::vector<uint32_t>& ranks, uint32_t job_ranks,
                        std::vector<uint64_t>& marks) {
  marks.resize((size_t{job_ranks} + 63) / 64);
  absl::Status status;
  size_t marked = 0;
  for (; marked < ranks.size(); ++marked) {
    const uint32_t rank = ranks[marked];
    if (rank >= job_ranks) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "ranks: rank ", rank, " is not in the job, which has ranks 0 to ", job_ranks - 1));
      break;
    }
    uint64_t& word = marks[rank / 64];
    const uint64_t bit = uint64_t{1} << (rank % 64);
    if ((word & bit) != 0) {
      status = absl::InvalidArgumentError(absl::StrCat("ranks: rank ", rank, " is named twice"));
      break;
    }
    word |= bit;
  }
  for (size_t i = 0; i < marked; ++i) marks[ranks[i] / 64] = 0;
  return status;
}

absl::Status CheckBatchRequest(const CreateBatchArgs& args) {
  RETURN_IF_ERROR(CheckName(args.request_id));
  RETURN_IF_ERROR(CheckMix(args));
  if (args.compare && !args.validate_only) {
    return absl::InvalidArgumentError(
        "compare: only of a plan that takes nothing; set validate_only, too");
  }
  if (!args.grid) {
    if (!args.rank_order.empty()) {
      return absl::InvalidArgumentError("rank order: is given without a grid");
    }
    return CheckLists(args.communicators);
  }
  if (!args.communicators.empty()) {
    return absl::InvalidArgumentError(
        "grid and communicators are both given: a batch is either the lines of a grid or a list");
  }
  return CheckGrid(*args.grid, args.rank_order.size());
}

uint64_t CommunicatorCount(const CreateBatchArgs& args) {
  if (!args.grid) return args.communicators.size();
  const std::vector<uint32_t>& sizes = args.grid->sizes;
  uint64_t cells = 1, lines = 0;
  for (const uint32_t size : sizes) cells *= size;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::vector<uint32_t>& axes = args.grid->axes;
    const bool named = axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (named) lines += cells / sizes[axis];
  }
  return lines;
}

absl::Status ListCommunicators(uint32_t job_ranks, CreateBatchArgs& args) {
  if (args.grid) return ListLines(job_ranks, args);
  std::vector<uint64_t> marks;
  for (size_t c = 0; c < args.communicators.size(); ++c) {
    const absl::Status status = CheckRanks(args.communicators[c], job_ranks, marks);
    if (!status.ok()) return Annotate(status, absl::StrCat("communicators[", c, "]"));
  }
  return absl::OkStatus();
}

uint64_t FingerprintOf(const CreateBatchArgs& args) {
  Fingerprint fingerprint;
  fingerprint.Add(uint64_t{args.grid.has_value()});
  if (args.grid) {
    AddRanks(args.grid->sizes, fingerprint);
    AddRanks(args.grid->axes, fingerprint);
    fingerprint.Add(static_cast<uint64_t>(args.grid->order));
  }
  AddRanks(args.rank_order, fingerprint);
  fingerprint.Add(uint64_t{args.communicators.size()});
  for (const std::vector<uint32_t>& ranks : args.communicators) AddRanks(ranks, fingerprint);
  AddTo(fingerprint, static_cast<const CollectiveMix&>(args));
  fingerprint.Add(uint64_t{args.largest_part}).Add(uint64_t{args.accept_type1});
  // Batches that were granted before there were goals keep their fingerprints.
  if (args.goal != BatchGoal::kBoth) fingerprint.Add(static_cast<uint64_t>(args.goal));
  return fingerprint.value();
}

std::string BatchTreeName(absl::string_view batch, uint32_t communicator) {
  return batch.empty() ? "" : absl::StrCat(batch, "#", communicator);
}

std::optional<BatchTreeNameParts> ParseBatchTreeName(absl::string_view name) {
  const size_t mark = name.rfind('#');
  if (mark == absl::string_view::npos || mark == 0) return std::nullopt;
  const absl::string_view digits = name.substr(mark + 1);
  BatchTreeNameParts parts{name.substr(0, mark), 0};
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_number || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  if (!absl::SimpleAtoi(digits, &parts.communicator)) return std::nullopt;
  return parts;
}

std::optional<BatchTreeNameParts> BatchPartOf(const TreeRecord& record) {
  return record.lacks_spec ? std::nullopt : ParseBatchTreeName(record.request_id);
}

}  // namespace coppice
