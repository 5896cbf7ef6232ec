#include "daemon/ib/counter_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// Switches that are read at a time: the engine's usual window, with one request for each.
constexpr uint32_t kOpenSwitches = 64;
constexpr int kSilencesToGiveUp = 3;
// For who was silent at the last reading, and for all once so many are silent now: with the
// engine's defaults 0.4 s each instead of 3.3 s.
constexpr int kAttemptsOfSilent = 2;
constexpr uint32_t kManySilent = 64;

// Status of an answer, IBA vol. 1, 13.4.7: code 2 method, 3 attribute not supported.
bool IsUnsupported(uint16_t status) {
  const int code = status >> 2 & 7;
  return code == 2 || code == 3;
}

std::string Of(MadAttribute attribute, PortNum port) {
  return absl::StrCat(ToString(attribute), " of port ", port.value());
}

}  // namespace

absl::StatusOr<CounterSweep> CounterReader::Read() {
  progress_.resize(swept_.switches.size());
  OpenMore();
  RETURN_IF_ERROR(engine_.Run([this](const MadRequest& request, const MadOutcome& outcome) {
    OnOutcome(request, outcome);
    OpenMore();
  }));
  return std::move(result_);
}

void CounterReader::OpenMore() {
  while (open_ < kOpenSwitches && next_switch_ < progress_.size()) Open(next_switch_++);
}

void CounterReader::Open(uint32_t index) {
  const SweptSwitch& target = swept_.switches[index];
  if (target.counters_lid == Lid(0)) {
    return Note(index, "no LID of its own; is there a subnet manager?");
  }
  if (!one_answered_ && silent_ >= kManySilent) {
    return Note(index,
                "not asked, as no switch answers performance management; check that the subnet "
                "manager has routed the subnet");
  }
  PerformanceAgent& agent = agents_[target.guid];
  if (agent.lid != target.counters_lid) {
    agent = PerformanceAgent();
    agent.lid = target.counters_lid;
  }
  Progress& progress = progress_[index];
  progress.abilities = agent.abilities;
  progress.lanes.resize(kLanes);
  if (!agent.is_known) {
    ++open_;
    Ask(index, 0, MadAttribute::kPerformanceClassPortInfo, 0);
  } else if (StartLane(index, 0)) {
    ++open_;
  }
}

void CounterReader::OnOutcome(const MadRequest& request, const MadOutcome& outcome) {
  const uint32_t index = request.subject / kLanes, lane = request.subject % kLanes;
  Progress& progress = progress_[index];
  --progress.under_way;
  if (outcome.kind != MadOutcome::Kind::kUnanswered) {
    progress.silences = 0;
    progress.has_answered = one_answered_ = true;
    agents_[swept_.switches[index].guid].was_silent = false;
  }
  if (request.attribute == MadAttribute::kPerformanceClassPortInfo) {
    OnClassPortInfo(index, outcome);
  } else if (!OnCounters(index, lane, request.attribute, outcome)) {
    progress.lanes[lane].is_busy = false;
  }
  for (uint32_t i = 0; i < kLanes && progress.has_answered; ++i) {
    if (!progress.lanes[i].is_busy && !StartLane(index, i)) break;
  }
  if (progress.under_way > 0) return;
  progress.lanes = std::vector<Lane>();
  --open_;
}

// Every node has to have the attribute; without it nothing extended is expected.
void CounterReader::OnClassPortInfo(uint32_t index, const MadOutcome& outcome) {
  if (outcome.kind == MadOutcome::Kind::kUnanswered) {
    OnSilence(index, std::string(ToString(MadAttribute::kPerformanceClassPortInfo)));
    return;
  }
  PerformanceAgent& agent = agents_[swept_.switches[index].guid];
  agent.is_known = true;
  if (outcome.kind == MadOutcome::Kind::kAnswered) {
    agent.abilities = DecodeCounterAbilities(outcome.data);
  }
  progress_[index].abilities = agent.abilities;
}

// True if the lane goes on with another request about the same port.
bool CounterReader::OnCounters(uint32_t index, uint32_t lane, MadAttribute attribute,
                               const MadOutcome& outcome) {
  const CounterAbilities& abilities = progress_[index].abilities;
  CounterReading& reading = progress_[index].lanes[lane].reading;
  if (outcome.kind == MadOutcome::Kind::kUnanswered) {
    OnSilence(index, Of(attribute, reading.port));
    return false;
  }
  if (outcome.kind == MadOutcome::Kind::kRefused) {
    return OnRefusal(index, lane, attribute, outcome.status);
  }
  if (DecodePortSelect(outcome.data) != reading.port) {
    Note(index, absl::StrCat(Of(attribute, reading.port), ": the answer is about port ",
                             DecodePortSelect(outcome.data).value()));
    return false;
  }
  if (attribute == MadAttribute::kPortCountersExtended) {
    DecodePortCountersExtended(outcome.data, abilities, reading.values);
    reading.is_extended = true;
    reading.when = clock_.Monotonic();
    if (!abilities.extended_errors) {
      Ask(index, lane, MadAttribute::kPortCounters, reading.port.value());
      return true;
    }
  } else {
    DecodePortErrors(outcome.data, abilities, reading.values);
    if (!reading.is_extended) {
      DecodePortData(outcome.data, reading.values);
      reading.when = clock_.Monotonic();
    }
  }
  result_.readings.push_back(reading);
  return false;
}

// A node that offers what it does not have is read without it from now on.
bool CounterReader::OnRefusal(uint32_t index, uint32_t lane, MadAttribute attribute,
                              uint16_t status) {
  const PortNum port = progress_[index].lanes[lane].reading.port;
  if (attribute == MadAttribute::kPortCountersExtended && IsUnsupported(status)) {
    CounterAbilities& abilities = progress_[index].abilities;
    abilities.extended_data = abilities.extended_errors = false;
    agents_[swept_.switches[index].guid].abilities = abilities;
    Ask(index, lane, MadAttribute::kPortCounters, port.value());
    return true;
  }
  Note(index, absl::StrCat(Of(attribute, port), ": refused with status 0x", absl::Hex(status)));
  return false;
}

void CounterReader::OnSilence(uint32_t index, std::string what) {
  Progress& progress = progress_[index];
  if (!progress.has_answered) {
    ++silent_;
    PerformanceAgent& agent = agents_[swept_.switches[index].guid];
    agent.was_silent = true;
    agent.is_known = false;
  }
  if (++progress.silences >= kSilencesToGiveUp || !progress.has_answered) {
    if (std::exchange(progress.is_given_up, true)) return;
    absl::StrAppend(&what, "; the node was asked no more");
  }
  Note(index, std::move(what));
}

// False: no port is left to be read.
bool CounterReader::StartLane(uint32_t index, uint32_t lane) {
  Progress& progress = progress_[index];
  const SweptSwitch& target = swept_.switches[index];
  while (progress.next_port < target.ports.size() && !target.ports[progress.next_port].is_cabled) {
    ++progress.next_port;
  }
  if (progress.next_port >= target.ports.size() || progress.is_given_up) return false;
  const uint32_t port = progress.next_port++;
  progress.lanes[lane].is_busy = true;
  progress.lanes[lane].reading = CounterReading();
  progress.lanes[lane].reading.node = target.guid;
  progress.lanes[lane].reading.port = PortNum(static_cast<uint8_t>(port));
  Ask(index, lane,
      progress.abilities.extended_data ? MadAttribute::kPortCountersExtended
                                       : MadAttribute::kPortCounters,
      port);
  return true;
}

void CounterReader::Ask(uint32_t index, uint32_t lane, MadAttribute attribute, uint32_t port) {
  const SweptSwitch& target = swept_.switches[index];
  MadRequest request;
  request.attribute = attribute;
  request.modifier = port;
  request.subject = index * kLanes + lane;
  request.lid = target.counters_lid;
  const bool is_doubtful = agents_[target.guid].was_silent || silent_ >= kManySilent;
  if (is_doubtful && !progress_[index].has_answered) request.max_attempts = kAttemptsOfSilent;
  ++progress_[index].under_way;
  engine_.Submit(std::move(request));
}

void CounterReader::Note(uint32_t index, std::string what) {
  const SweptSwitch& target = swept_.switches[index];
  result_.unanswered.push_back(target.Unanswered(absl::StrCat(target.Name(), ": ", what)));
}

}  // namespace coppice
