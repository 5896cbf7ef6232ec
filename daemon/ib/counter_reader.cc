// Reads what the cabled ports of all switches have counted, by performance management packets to
// the switches' LIDs.
//
//    switch: ClassPortInfo --answered--> 4 lanes, each:  next port -> PortCountersExtended
//            (once, then known)                                          |  (nodes that have it)
//                                                                        v
//                                           one CounterReading <-- PortCounters
//                                                                     (nodes that need it)
//
// Only so many switches are open at a time as the window has places, and a switch's first request
// goes alone, so that a silent switch costs one place for the patience of one request.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {
namespace {

// With the engine's defaults 0.85 s for a switch's first request, and again the same, 1.7 s for one
// that has just answered another, 0.4 s for who was given up at the last reading, and 0.15 s for
// the first request to each switch once so many are silent now.
constexpr int kAttempts = 3;
constexpr int kAttemptsOfHeard = 4;
constexpr int kAttemptsOfGivenUp = 2;
constexpr int kAttemptsOfMany = 1;
constexpr uint32_t kManySilent = 64;

// Status of an answer, IBA vol. 1, 13.4.7: code 2 method, 3 attribute not supported.
bool IsUnsupported(uint16_t status) {
  const int code = status >> 2 & 7;
  return code == 2 || code == 3;
}

// Code bit 1 of the same: another node, or another queue pair, serves this class.
bool IsRedirected(const MadOutcome& outcome) {
  return outcome.kind == MadOutcome::Kind::kRefused && (outcome.status & 2) != 0;
}

std::string WhyNoLid(const SweptSwitch& target) {
  if (!target.ports[0].answered) return "its LID is not known, as PortInfo of port 0 was not told";
  if (target.ports[0].lid == Lid(0)) return "no LID of its own; is there a subnet manager?";
  return absl::StrCat("LID ", target.ports[0].lid.value(),
                      " is no unicast LID or also another port's; the subnet manager assigns LIDs "
                      "once");
}

std::string Of(MadAttribute attribute, PortNum port) {
  return absl::StrCat(ToString(attribute), " of port ", port.value());
}

class CounterReader {
 public:
  CounterReader(MadEngine& engine, const Clock& clock, const SweptSubnet& swept,
                PerformanceAgents& agents)
      : engine_(engine), clock_(clock), swept_(swept), agents_(agents) {}

  absl::StatusOr<CounterSweep> Read() {
    progress_.resize(swept_.switches.size());
    OpenMore();
    RETURN_IF_ERROR(engine_.Run([this](const MadRequest& request, const MadOutcome& outcome) {
      OnOutcome(request, outcome);
      OpenMore();
    }));
    return std::move(result_);
  }

 private:
  PerformanceAgent& Agent(uint32_t index) { return agents_[swept_.switches[index].guid()]; }

  void OpenMore() {
    const auto places = static_cast<uint32_t>(engine_.window());
    while (open_ < places && next_switch_ < progress_.size()) Open(next_switch_++);
  }

  void Open(uint32_t index) {
    const SweptSwitch& target = swept_.switches[index];
    if (target.counters_lid == Lid(0)) return Note(index, WhyNoLid(target));
    if (!one_answered_ && silent_ >= kManySilent) {
      return Note(index,
                  "not asked, as no switch answers performance management; check that the subnet "
                  "manager has routed the subnet");
    }
    PerformanceAgent& agent = Agent(index);
    if (agent.lid != target.counters_lid) {
      agent = PerformanceAgent();
      agent.lid = target.counters_lid;
    }
    Progress& progress = progress_[index];
    progress.lanes.resize(kLanes);
    if (!agent.is_known) {
      ++open_;
      Ask(index, 0, MadAttribute::kPerformanceClassPortInfo, 0);
    } else if (StartLane(index, 0)) {
      ++open_;
    }
  }

  void OnOutcome(const MadRequest& request, const MadOutcome& outcome) {
    const uint32_t index = request.subject / kLanes, lane = request.subject % kLanes;
    Progress& progress = progress_[index];
    --progress.under_way;
    progress.waited += outcome.waited;
    if (outcome.is_unanswered() && TakeSecondChance(index)) {
      return Ask(index, lane, request.attribute, request.modifier);
    }
    if (!outcome.is_unanswered()) {
      progress.silences = 0;
      progress.has_answered = one_answered_ = true;
    }
    if (request.attribute == MadAttribute::kPerformanceClassPortInfo) {
      if (OnClassPortInfo(index, outcome)) return;
    } else if (!OnCounters(index, lane, request.attribute, outcome)) {
      progress.lanes[lane].is_busy = false;
    }
    if (progress.has_answered && progress.waited > 2 * kLanes * engine_.Patience(kAttempts)) {
      GiveUp(index, "it answers too slowly");
    }
    for (uint32_t i = 0; i < kLanes && progress.has_answered; ++i) {
      if (!progress.lanes[i].is_busy && !StartLane(index, i)) break;
    }
    if (progress.under_way > 0) return;
    Agent(index).was_given_up = progress.is_given_up;
    progress.lanes = std::vector<Lane>();
    --open_;
  }

  // A switch that answered at the last reading is not given up for one request, which may have been
  // lost each time.
  bool TakeSecondChance(uint32_t index) {
    Progress& progress = progress_[index];
    const bool was_given_up = Agent(index).was_given_up;
    if (progress.has_answered || was_given_up || silent_ >= kManySilent) return false;
    if (std::exchange(progress.has_second_chance, true)) return false;
    ++silent_;
    return true;
  }

  // Every node has to have the attribute; without it nothing extended is expected. Any other
  // refusal may be an accident: the switch is read without, and asked again at the next reading.
  bool OnClassPortInfo(uint32_t index, const MadOutcome& outcome) {
    if (outcome.is_unanswered()) {
      OnSilence(index, std::string(ToString(MadAttribute::kPerformanceClassPortInfo)));
      return false;
    }
    if (IsRedirected(outcome)) return FollowRedirection(index, outcome);
    PerformanceAgent& agent = Agent(index);
    agent.is_known = outcome.is_answered() || IsUnsupported(outcome.status);
    if (outcome.is_answered()) {
      agent.abilities = DecodeCounterAbilities(outcome.data);
    }
    return false;
  }

  // Once: who is sent on from there is read nowhere. Until the next full sweep counters are read
  // where it led.
  bool FollowRedirection(uint32_t index, const MadOutcome& outcome) {
    PerformanceAgent& agent = Agent(index);
    const Redirection to = DecodeRedirection(outcome.data);
    if (agent.served_at == Lid(0) && to.IsToLid()) {
      agent.served_at = to.lid;
      Ask(index, 0, MadAttribute::kPerformanceClassPortInfo, 0);
      return true;
    }
    agent.served_at = Lid(0);
    if (!std::exchange(progress_[index].is_given_up, true)) {
      Note(index,
           absl::StrCat("its performance management is redirected to LID ", to.lid.value(),
                        ", queue pair ", to.queue_pair,
                        ", which is not followed: let the switch answer for itself"),
           /*is_silent=*/false);
    }
    return false;
  }

  // True if the lane goes on with another request about the same port.
  bool OnCounters(uint32_t index, uint32_t lane, MadAttribute attribute,
                  const MadOutcome& outcome) {
    const CounterAbilities abilities = Agent(index).abilities;
    CounterReading& reading = progress_[index].lanes[lane].reading;
    if (outcome.is_unanswered()) {
      OnSilence(index, Of(attribute, reading.port));
      return false;
    }
    if (outcome.kind == MadOutcome::Kind::kRefused) {
      return OnRefusal(index, lane, attribute, outcome.status);
    }
    if (DecodePortSelect(outcome.data) != reading.port) {
      Note(index,
           absl::StrCat(Of(attribute, reading.port), ": the answer is about port ",
                        DecodePortSelect(outcome.data).value()),
           /*is_silent=*/false);
      return false;
    }
    if (attribute == MadAttribute::kPortCountersExtended) {
      DecodePortCountersExtended(outcome.data, abilities, reading.values);
      reading.is_extended = true;
      reading.has_extended_errors = abilities.extended_errors;
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

  // A port that does not have what its node offers is read without it from now on.
  bool OnRefusal(uint32_t index, uint32_t lane, MadAttribute attribute, uint16_t status) {
    const PortNum port = progress_[index].lanes[lane].reading.port;
    if (attribute == MadAttribute::kPortCountersExtended && IsUnsupported(status)) {
      Agent(index).without_extended.set(port.value());
      Ask(index, lane, MadAttribute::kPortCounters, port.value());
      return true;
    }
    Note(index, absl::StrCat(Of(attribute, port), ": refused with status 0x", absl::Hex(status)),
         /*is_silent=*/false);
    return false;
  }

  void OnSilence(uint32_t index, std::string what) {
    Progress& progress = progress_[index];
    if (!progress.has_answered) {
      if (!progress.has_second_chance) ++silent_;
      Agent(index).is_known = false;
    }
    if (++progress.silences >= kSilencesToGiveUp || !progress.has_answered) {
      return GiveUp(index, std::move(what));
    }
    Note(index, std::move(what));
  }

  void GiveUp(uint32_t index, std::string what) {
    if (std::exchange(progress_[index].is_given_up, true)) return;
    Note(index, absl::StrCat(what, "; the node was asked no more"));
  }

  // False: no port is left to be read.
  bool StartLane(uint32_t index, uint32_t lane) {
    Progress& progress = progress_[index];
    const SweptSwitch& target = swept_.switches[index];
    while (progress.next_port < target.ports.size() &&
           !target.ports[progress.next_port].is_cabled()) {
      ++progress.next_port;
    }
    if (progress.next_port >= target.ports.size() || progress.is_given_up) return false;
    const uint32_t port = progress.next_port++;
    progress.lanes[lane].is_busy = true;
    progress.lanes[lane].reading = CounterReading();
    progress.lanes[lane].reading.node = target.guid();
    progress.lanes[lane].reading.port = PortNum(static_cast<uint8_t>(port));
    const bool is_extended =
        Agent(index).abilities.extended_data && !Agent(index).without_extended.test(port);
    Ask(index, lane,
        is_extended ? MadAttribute::kPortCountersExtended : MadAttribute::kPortCounters, port);
    return true;
  }

  void Ask(uint32_t index, uint32_t lane, MadAttribute attribute, uint32_t port) {
    const SweptSwitch& target = swept_.switches[index];
    MadRequest request;
    request.attribute = attribute;
    request.modifier = port;
    request.subject = index * kLanes + lane;
    const Lid served_at = Agent(index).served_at;
    request.lid = served_at != Lid(0) ? served_at : target.counters_lid;
    const bool was_heard = progress_[index].has_answered;
    request.max_attempts = was_heard ? kAttemptsOfHeard : kAttempts;
    if (Agent(index).was_given_up) request.max_attempts = kAttemptsOfGivenUp;
    if (!was_heard && silent_ >= kManySilent) request.max_attempts = kAttemptsOfMany;
    ++progress_[index].under_way;
    engine_.Submit(std::move(request));
  }

  void Note(uint32_t index, std::string what, bool is_silent = true) {
    const SweptSwitch& target = swept_.switches[index];
    UnansweredNode entry = target.Unanswered(what);
    entry.node = target.guid();
    entry.is_silent = is_silent;
    result_.unanswered.push_back(std::move(entry));
  }

  static constexpr uint32_t kLanes = 4;

  // One port on its way.
  struct Lane {
    bool is_busy = false;
    CounterReading reading;
  };
  struct Progress {
    uint32_t next_port = 1;
    uint32_t under_way = 0;  // requests
    int silences = 0;        // in a row
    absl::Duration waited;   // sum over all requests
    bool has_answered = false;
    bool has_second_chance = false;
    bool is_given_up = false;
    std::vector<Lane> lanes;  // kLanes while the switch is open, else none
  };

  MadEngine& engine_;
  const Clock& clock_;
  const SweptSubnet& swept_;
  PerformanceAgents& agents_;
  CounterSweep result_;
  std::vector<Progress> progress_;  // [switch]
  uint32_t next_switch_ = 0;
  uint32_t open_ = 0;    // switches
  uint32_t silent_ = 0;  // switches, some of which may have answered later
  bool one_answered_ = false;
};

}  // namespace

void RenewAgents(const SweptSubnet& swept, PerformanceAgents& agents) {
  PerformanceAgents renewed;
  for (const SweptSwitch& target : swept.switches) {
    const auto found = agents.find(target.guid());
    if (found == agents.end()) continue;
    PerformanceAgent& agent = renewed[target.guid()];
    agent.lid = found->second.lid;
    agent.was_given_up = found->second.was_given_up;
  }
  agents = std::move(renewed);
}

absl::StatusOr<CounterSweep> ReadCounters(MadEngine& engine, const Clock& clock,
                                          const SweptSubnet& swept, PerformanceAgents& agents) {
  return CounterReader(engine, clock, swept, agents).Read();
}

}  // namespace coppice
