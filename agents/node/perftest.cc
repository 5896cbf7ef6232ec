#include "agents/node/perftest.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agents/node/program_run.h"

namespace coppice {
namespace {

using Kind = PingPongWord::Kind;

// Neither program takes fewer (-n of its --help).
constexpr uint32_t kMinIterations = 5;
// And nobody waits for more: perftest keeps numbers of each.
constexpr uint64_t kMaxIterations = 10'000'000;
// Messages of a transfer: the longest that need little of the memory that a user may have locked.
constexpr uint32_t kMaxMessageBytes = 1u << 20;

PerftestProgram LatencyProgram(const PingPongNumbers& numbers) {
  return {"ib_write_lat", PingPongNumbers::kPingBytes, std::max(numbers.pings, kMinIterations), {}};
}

// Without a peak (-N), of which it would keep each message's times.
PerftestProgram BandwidthProgram(const PingPongNumbers& numbers) {
  const uint32_t bytes = std::min(numbers.transfer_bytes, kMaxMessageBytes);
  const uint64_t pieces = (uint64_t{numbers.transfer_bytes} + bytes - 1) / bytes;
  const uint64_t all =
      std::clamp<uint64_t>(pieces * numbers.transfers, kMinIterations, kMaxIterations);
  return {"ib_write_bw", bytes, static_cast<uint32_t>(all), {"-N", "--report_gbits"}};
}

bool IsPrefix(const std::string& text) {
  return text.size() == 16 && absl::c_all_of(text, absl::ascii_isxdigit);
}

// Each side tells the other its subnet, or why it has no port.
absl::StatusOr<InfinibandPort> Meet(MeasuringSocket& socket, const PortChoice& choice,
                                    bool is_active) {
  absl::StatusOr<InfinibandPort> mine = FindPort(choice);
  const absl::Status said = mine.ok() ? SendWord(socket, Kind::kOffer, mine->subnet_prefix)
                                      : SendWord(socket, Kind::kRefuse, mine.status().message());
  if (!said.ok()) return said;
  const absl::StatusOr<PingPongWord> theirs = ReceiveWord(socket);
  if (!theirs.ok()) return theirs.status();
  if (theirs->kind != Kind::kRefuse && theirs->kind != Kind::kOffer) return OutOfOrder();
  if (!mine.ok()) return absl::FailedPreconditionError(mine.status().message());
  if (theirs->kind == Kind::kRefuse) return RefusedByPeer(*theirs);
  if (!IsPrefix(theirs->text)) {
    return absl::InvalidArgumentError("the peer names no subnet of InfiniBand");
  }
  if (theirs->text != mine->subnet_prefix) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the two are on different subnets, ", is_active ? mine->subnet_prefix : theirs->text,
        " and ", is_active ? theirs->text : mine->subnet_prefix));
  }
  return mine;
}

using Parse = absl::StatusOr<Spread> (*)(absl::string_view output, uint32_t bytes);

absl::StatusOr<Spread> Run(MeasuringSocket& socket, const InfinibandPort& port, bool is_active,
                           const PerftestProgram& program, Parse parse) {
  ProgramRun run(socket, program, port, is_active);
  absl::Status status = run.RunToEnd();
  absl::StatusOr<Spread> spread = Spread();
  if (status.ok() && is_active) {
    spread = parse(run.output(), program.bytes);
    if (!spread.ok()) status = run.Failed(spread.status().message());
  }
  if (absl::IsFailedPrecondition(status) && !run.is_refused()) {
    if (absl::Status said = SendWord(socket, Kind::kRefuse, status.message()); !said.ok()) {
      return said;
    }
  }
  if (status.ok()) status = SendWord(socket, Kind::kEnd);
  if (status.ok()) status = run.AwaitPeer();
  if (!status.ok()) return status;
  return spread;
}

// One side of a measurement. FAILED_PRECONDITION: both sides know that verbs failed.
absl::StatusOr<PingPongFigures> Measure(MeasuringSocket& socket, const PortChoice& choice,
                                        const PingPongNumbers& numbers, bool is_active) {
  const absl::StatusOr<InfinibandPort> port = Meet(socket, choice, is_active);
  if (!port.ok()) return port.status();
  PingPongFigures figures;
  figures.transport = PingPongTransport::kVerbs;
  const auto in_partition = [&](PerftestProgram program) {
    if (port->key_index) {
      program.options.push_back(absl::StrCat("--pkey_index=", *port->key_index));
    }
    return program;
  };
  const auto latency =
      Run(socket, *port, is_active, in_partition(LatencyProgram(numbers)), ParseLatencyReport);
  if (!latency.ok()) return latency.status();
  figures.latency_us = *latency;
  if (numbers.transfers == 0) return figures;
  const auto bandwidth =
      Run(socket, *port, is_active, in_partition(BandwidthProgram(numbers)), ParseBandwidthReport);
  if (!bandwidth.ok()) return bandwidth.status();
  figures.bandwidth_gbps = *bandwidth;
  return figures;
}

using Words = std::vector<absl::string_view>;

constexpr absl::string_view kLatencyHeading =
    "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec]";
constexpr absl::string_view kBandwidthHeading =
    "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]";
// Places in the rows.
constexpr size_t kBytes = 0, kIterations = 1, kTypical = 4, kDeviation = 6, kLatencyColumns = 7;
constexpr size_t kAverage = 3, kBandwidthColumns = 5;
// Beyond that no fabric measures: an hour, and a Pbit/s.
constexpr double kMax = 3.6e9;
constexpr size_t kLastLines = 3, kMaxWords = 200;

absl::Status NoReport(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("gave a report that ", what));
}

Words WordsOf(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

// The words of the one row under the heading.
absl::StatusOr<Words> FindRow(absl::string_view output, absl::string_view heading) {
  bool is_headed = false;
  Words row;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    Words words = WordsOf(line);
    if (words.empty()) continue;
    if (words[0] == "#bytes") {
      if (is_headed || !absl::StartsWith(absl::StrJoin(words, " "), heading)) {
        return NoReport("has another heading than this release of the agent knows");
      }
      is_headed = true;
    } else if (is_headed && absl::ascii_isdigit(static_cast<unsigned char>(words[0][0]))) {
      if (!row.empty()) return NoReport("has a second row");
      row = std::move(words);
    }
  }
  if (row.empty()) return NoReport("has no row of figures");
  return row;
}

bool ReadFigure(absl::string_view word, double least, double& figure) {
  const bool is_number =
      absl::c_all_of(word, [](unsigned char c) { return absl::ascii_isdigit(c) || c == '.'; });
  return is_number && absl::SimpleAtod(word, &figure) && std::isfinite(figure) && figure >= least &&
         figure <= kMax;
}

absl::StatusOr<Spread> ParseRow(absl::string_view output, absl::string_view heading, size_t columns,
                                uint32_t bytes, size_t mean, size_t deviation) {
  const absl::StatusOr<Words> row = FindRow(output, heading);
  if (!row.ok()) return row.status();
  uint32_t row_bytes = 0;
  Spread spread;
  if (row->size() < columns) return NoReport("has a row that is cut off");
  if (!absl::SimpleAtoi((*row)[kBytes], &row_bytes) || row_bytes != bytes) {
    return NoReport(absl::StrCat("is not of ", bytes, " bytes"));
  }
  if (!absl::SimpleAtoi((*row)[kIterations], &spread.samples) || spread.samples == 0) {
    return NoReport("has no number of iterations");
  }
  // A figure is printed with two digits after the point.
  if (!ReadFigure((*row)[mean], 0.005, spread.mean) ||
      (deviation != 0 && !ReadFigure((*row)[deviation], 0, spread.deviation))) {
    return NoReport("has a figure that is none");
  }
  return spread;
}

}  // namespace

absl::StatusOr<PingPongFigures> MeasureOverVerbs(MeasuringSocket& socket, const PortChoice& choice,
                                                 const PingPongNumbers& numbers) {
  return Measure(socket, choice, numbers, /*is_active=*/true);
}

absl::Status TurnToTcp(MeasuringSocket& socket) {
  if (absl::Status said = SendWord(socket, Kind::kTcp); !said.ok()) return said;
  for (;;) {
    // What the peer said before it heard that.
    const absl::StatusOr<PingPongWord> word = ReceiveWord(socket);
    if (!word.ok()) return word.status();
    if (word->kind == Kind::kTcp) return absl::OkStatus();
  }
}

absl::StatusOr<bool> AnswerOverVerbs(MeasuringSocket& socket, const PortChoice& choice,
                                     const PingPongNumbers& numbers) {
  const absl::Status failed = Measure(socket, choice, numbers, /*is_active=*/false).status();
  if (failed.ok()) return true;
  if (!absl::IsFailedPrecondition(failed)) return failed;
  for (;;) {
    const absl::StatusOr<PingPongWord> word = ReceiveWord(socket);
    if (absl::IsUnavailable(word.status())) return failed;  // it broke off
    if (!word.ok()) return word.status();
    if (word->kind == Kind::kTcp) break;
  }
  if (absl::Status said = SendWord(socket, Kind::kTcp); !said.ok()) return said;
  return false;
}

absl::StatusOr<Spread> ParseLatencyReport(absl::string_view output, uint32_t bytes) {
  return ParseRow(output, kLatencyHeading, kLatencyColumns, bytes, kTypical, kDeviation);
}

absl::StatusOr<Spread> ParseBandwidthReport(absl::string_view output, uint32_t bytes) {
  return ParseRow(output, kBandwidthHeading, kBandwidthColumns, bytes, kAverage, 0);
}

std::string LastWords(absl::string_view output) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    std::string text(absl::StripAsciiWhitespace(line));
    absl::c_replace_if(
        text, [](unsigned char c) { return !absl::ascii_isprint(c); }, ' ');
    if (absl::c_any_of(text, absl::ascii_isalpha)) lines.push_back(text);
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return absl::StrJoin(lines, "; ").substr(0, kMaxWords);
}

}  // namespace coppice
