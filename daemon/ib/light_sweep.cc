#include "daemon/ib/light_sweep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// As in a full sweep: requests under way to one switch, and silences in a row to give it up.
constexpr uint32_t kPerSwitch = 4;
constexpr int kSilencesToGiveUp = 3;
// For who was silent already; with the engine's defaults 0.4 s.
constexpr int kAttemptsOfSilent = 2;
// Links to the silent that are tried again in one sweep.
constexpr size_t kMaxSilentEnds = 64;

// Full sweeps ask NVIDIA's nodes whether QDR is FDR10, light sweeps do not.
LinkRate AsPortInfoSays(LinkRate rate) {
  if (rate.speed == LaneSpeed::kFdr10) rate.speed = LaneSpeed::kQdr;
  return rate;
}

}  // namespace

absl::StatusOr<LightSweepResult> LightSweeper::Sweep() {
  RETURN_IF_ERROR(AskLocalPort());
  progress_.resize(swept_.switches.size());
  behind_.resize(swept_.switches.size());
  for (uint32_t index = 0; index < swept_.switches.size(); ++index) {
    const uint32_t before = swept_.switches[index].before;
    if (before != SweptSwitch::kNone) behind_[before].push_back(index);
  }
  for (uint32_t index = 0; index < swept_.switches.size(); ++index) {
    if (swept_.switches[index].before == SweptSwitch::kNone) Begin(index);
  }
  AskSilentEnds();
  RETURN_IF_ERROR(engine_.Run([this](const MadRequest& request, const MadOutcome& outcome) {
    OnOutcome(request, outcome);
  }));
  const bool one_answers = std::any_of(progress_.begin(), progress_.end(),
                                       [](const Progress& p) { return p.has_answered; });
  const bool one_did = std::any_of(swept_.switches.begin(), swept_.switches.end(),
                                   [](const SweptSwitch& then) { return !then.was_silent; });
  if (one_did && !one_answers) {
    return absl::UnavailableError(absl::StrCat("no switch answers any more: ", result_.what,
                                               "; check the cable of the local port"));
  }
  return std::move(result_);
}

// An adapter's own port before all others: without it every switch is silent.
absl::Status LightSweeper::AskLocalPort() {
  if (swept_.local_is_switch) return absl::OkStatus();
  MadRequest request;
  request.attribute = MadAttribute::kPortInfo;
  request.modifier = swept_.local_port.value();
  engine_.Submit(request);
  RETURN_IF_ERROR(
      engine_.Run([this](const MadRequest&, const MadOutcome& outcome) { OnLocalPort(outcome); }));
  return local_fault_;
}

void LightSweeper::OnLocalPort(const MadOutcome& outcome) {
  if (outcome.kind != MadOutcome::Kind::kAnswered) {
    local_fault_ = absl::UnavailableError("the local port does not say how it is; sweep again");
    return;
  }
  const PortInfoRecord now = DecodePortInfo(outcome.data);
  if (!now.link_up) {
    local_fault_ = absl::UnavailableError(absl::StrCat(
        "the local port's link is down; check the cable of port ", swept_.local_port.value()));
  } else if (now.lid != swept_.local_lid || now.lmc != swept_.local_lmc) {
    Change(absl::StrCat("the local port has LID ", now.lid.value(), ", it had ",
                        swept_.local_lid.value()));
  } else if (now.subnet_manager_lid != swept_.local_subnet_manager_lid) {
    Change(absl::StrCat("the local port's subnet manager has LID ", now.subnet_manager_lid.value(),
                        ", it had ", swept_.local_subnet_manager_lid.value()));
  }
}

void LightSweeper::OnOutcome(const MadRequest& request, const MadOutcome& outcome) {
  if (request.attribute == MadAttribute::kNodeInfo) {
    OnSilentEnd(request, outcome);
  } else {
    OnPort(request, outcome);
  }
}

void LightSweeper::Begin(uint32_t index) {
  const SweptSwitch& then = swept_.switches[index];
  MadRequest request{then.route, MadAttribute::kPortInfo, 0, index};
  if (then.was_silent) {
    request.max_attempts = kAttemptsOfSilent;
    BeginBehind(index);  // it let others' packets pass then
  }
  engine_.Submit(std::move(request));
}

void LightSweeper::BeginBehind(uint32_t index) {
  for (const uint32_t next : std::exchange(behind_[index], {})) Begin(next);
}

void LightSweeper::AskNextPort(uint32_t index) {
  Progress& progress = progress_[index];
  const SweptSwitch& then = swept_.switches[index];
  if (progress.next_port >= then.ports.size() || progress.is_given_up) return;
  engine_.Submit({then.route, MadAttribute::kPortInfo, progress.next_port++, index});
}

void LightSweeper::OnPort(const MadRequest& request, const MadOutcome& outcome) {
  const uint32_t index = request.subject, port = request.modifier;
  Progress& progress = progress_[index];
  if (outcome.kind == MadOutcome::Kind::kUnanswered) {
    OnSilence(index, port);
    if (port == 0 && !progress.has_answered) return;  // the rest is not asked
  } else {
    progress.silences = 0;
    const bool is_first = !std::exchange(progress.has_answered, true);
    if (is_first) {
      BeginBehind(index);
      for (uint32_t i = 1; i < kPerSwitch; ++i) AskNextPort(index);
    }
  }
  AskNextPort(index);
  if (outcome.kind == MadOutcome::Kind::kAnswered) {
    OnPortInfo(index, port, DecodePortInfo(outcome.data));
  } else if (outcome.kind == MadOutcome::Kind::kRefused &&
             swept_.switches[index].ports[port].answered) {
    Change(absl::StrCat(swept_.switches[index].Name(), " port ", port,
                        ": the switch says that it has no such port"));
  }
}

void LightSweeper::OnPortInfo(uint32_t index, uint32_t port, const PortInfoRecord& now) {
  const SweptSwitch& then = swept_.switches[index];
  const SweptPort& known = then.ports[port];
  if (then.was_silent) return Change(absl::StrCat(then.Name(), " answers again"));
  if (port == 0 && known.answered) return CompareAddresses(then, now);
  const LinkRate rate = AsPortInfoSays(known.rate);
  if (known.answered && now.link_up == known.link_up && now.rate == rate) return;
  const std::string name = absl::StrCat(then.Name(), " port ", port);
  if (!known.answered) {
    Change(absl::StrCat(name, ": the port answers again"));
  } else if (now.link_up != known.link_up) {
    Change(absl::StrCat(name, ": the link is ", now.link_up ? "up" : "down"));
  } else {
    Change(absl::StrCat(name, ": the link runs at ", ToString(now.rate), ", it ran at ",
                        ToString(rate)));
  }
}

void LightSweeper::CompareAddresses(const SweptSwitch& then, const PortInfoRecord& now) {
  if (now.lid != then.lid) {
    Change(
        absl::StrCat(then.Name(), ": it has LID ", now.lid.value(), ", it had ", then.lid.value()));
  } else if (now.lmc != then.lmc) {
    Change(absl::StrCat(then.Name(), ": it has LMC ", now.lmc, ", it had ", then.lmc));
  } else if (now.subnet_manager_lid != then.subnet_manager_lid) {
    Change(absl::StrCat(then.Name(), ": its subnet manager has LID ",
                        now.subnet_manager_lid.value(), ", it had ",
                        then.subnet_manager_lid.value()));
  }
}

// One port's silence is a packet lost too often; a switch's is a change.
void LightSweeper::OnSilence(uint32_t index, uint32_t port) {
  Progress& progress = progress_[index];
  const SweptSwitch& then = swept_.switches[index];
  const bool is_lost = port == 0 && !progress.has_answered;
  std::string what = absl::StrCat(then.Name(), ": PortInfo of port ", port);
  if (++progress.silences >= kSilencesToGiveUp || is_lost) {
    if (std::exchange(progress.is_given_up, true)) return;
    absl::StrAppend(&what, "; the node was asked no more");
    if (!then.was_silent) Change(absl::StrCat(then.Name(), " does not answer any more"));
  }
  result_.unanswered.push_back(then.Unanswered(std::move(what)));
}

void LightSweeper::AskSilentEnds() {
  const size_t count = std::min(kMaxSilentEnds, swept_.silent_ends.size());
  for (uint32_t i = 0; i < count; ++i) {
    MadRequest request{swept_.silent_ends[i].route, MadAttribute::kNodeInfo, 0, i};
    request.max_attempts = kAttemptsOfSilent;
    engine_.Submit(std::move(request));
  }
}

void LightSweeper::OnSilentEnd(const MadRequest& request, const MadOutcome& outcome) {
  const SilentEnd& end = swept_.silent_ends[request.subject];
  const bool at_switch = end.at != SweptSwitch::kNone;
  const std::string place = absl::StrCat(
      at_switch ? swept_.switches[end.at].Name() : "the local adapter", " port ", end.port.value());
  if (outcome.kind != MadOutcome::Kind::kUnanswered) {
    return Change(absl::StrCat(place, ": the node at the other end answers now"));
  }
  result_.unanswered.push_back({ToString(end.route),
                                at_switch ? swept_.switches[end.at].guid : Guid(0), end.port,
                                absl::StrCat("NodeInfo behind ", place)});
}

void LightSweeper::Change(absl::string_view what) {
  if (std::exchange(result_.has_changed, true)) return;
  result_.what = std::string(what);
}

}  // namespace coppice
