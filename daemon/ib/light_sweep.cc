// One PortInfo for every port of every switch and one NodeInfo for each switch, over the routes
// that the full sweep found. README.md says what shows so, what does not, and why.
//
//    local port ok? --> first switch: port 0 --answered--> who? ports 1, 2, 3, ...   4 at a time
//                                                                |
//                      the port to the next switch is up --------+--> that switch: port 0 --> ...
//
//    all heard, no change --> who was silent at the full sweep, some of them each time
//
// A switch that falls silent while its links stay up is looked at twice, the first time in short:
//
//    port 0? --2 attempts--> silent --> port 0? and who?, all attempts each --> both silent: change
//       |                                  +-- one answers --> as if nothing had been
//       +-- answered --> ports 1, 2, 3, ...
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {
namespace {

// As in a full sweep: requests under way to one switch.
constexpr uint32_t kPerSwitch = 4;
// For the first look, and for whom no answer is expected, or not soon; with the engine's defaults
// 0.4 s.
constexpr int kLessAttempts = 2;
// Answers that needed more attempts than kManyAttempts, until a switch counts as slow.
constexpr int kManyAttempts = 3;
constexpr int kSlowAnswers = 2;
// Of those who were silent already, how many are asked in one sweep, and at a time.
constexpr uint32_t kSilentInAll = 32;
constexpr uint32_t kSilentAtATime = 16;

// Full sweeps ask NVIDIA's nodes whether QDR is FDR10, light sweeps do not.
LinkRate AsPortInfoSays(LinkRate rate) {
  if (rate.speed == LaneSpeed::kFdr10) rate.speed = LaneSpeed::kQdr;
  return rate;
}

class LightSweeper {
 public:
  LightSweeper(MadEngine& engine, const SweptSubnet& swept, uint32_t turn)
      : engine_(engine), swept_(swept), turn_(turn) {}

  absl::StatusOr<LightSweepResult> Sweep() {
    RETURN_IF_ERROR(AskLocalPort());
    if (!result_.has_changed) RETURN_IF_ERROR(Walk());
    if (!result_.has_changed) RETURN_IF_ERROR(AskSilent());
    return std::move(result_);
  }

  bool lids_are_doubtful() const { return lids_are_doubtful_; }

 private:
  absl::Status Walk() {
    progress_.resize(swept_.switches.size());
    for (uint32_t index = 0; index < swept_.switches.size(); ++index) {
      progress_[index].route = swept_.switches[index].route;
      progress_[index].is_up.resize(swept_.switches[index].ports.size());
      if (swept_.switches[index].is_first) Begin(index, /*is_doubtful=*/false);
    }
    do {
      RETURN_IF_ERROR(engine_.Run([this](const MadRequest& request, const MadOutcome& outcome) {
        OnAnswer(request, outcome);
      }));
    } while (BeginByOtherWays());
    const bool one_answers =
        absl::c_any_of(progress_, [](const Progress& p) { return p.has_answered; });
    if (one_answers || !result_.has_changed) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("no switch answers any more: ", result_.what,
                                               "; check the cable of the local port"));
  }

  // An adapter's own port before all others: without it every switch is silent.
  absl::Status AskLocalPort() {
    if (swept_.local.info.is_switch()) return absl::OkStatus();
    MadRequest request;
    request.attribute = MadAttribute::kPortInfo;
    request.modifier = swept_.local.info.local_port.value();
    engine_.Submit(request);
    RETURN_IF_ERROR(engine_.Run(
        [this](const MadRequest&, const MadOutcome& outcome) { OnLocalPort(outcome); }));
    return local_fault_;
  }

  void OnLocalPort(const MadOutcome& outcome) {
    if (!outcome.is_answered()) {
      local_fault_ = absl::UnavailableError("the local port does not say how it is; sweep again");
      return;
    }
    const PortInfoRecord now = DecodePortInfo(outcome.data);
    if (!now.link_up) {
      local_fault_ = absl::UnavailableError(
          absl::StrCat("the local port's link is down; check the cable of port ",
                       swept_.local.info.local_port.value()));
      return;
    }
    CompareAddresses("the local port has", "the local port's", swept_.local.local_port(), now);
  }

  void Begin(uint32_t index, bool is_doubtful) {
    if (std::exchange(progress_[index].has_begun, true)) return;
    const SweptSwitch& then = swept_.switches[index];
    if (then.was_silent) {
      silent_switches_.push_back(index);
      return;
    }
    const auto first =
        absl::c_find_if(then.ports, [](const FoundPort& port) { return port.answered; });
    Progress& progress = progress_[index];
    progress.first_port = static_cast<uint32_t>(first - then.ports.begin());
    progress.is_doubtful = progress.is_slow = is_doubtful;
    engine_.Submit({progress.route, MadAttribute::kPortInfo, progress.first_port, index, Lid(0),
                    kLessAttempts});
  }

  // Switches that nobody led to, because a link on the way is lost, by a neighbour that answers
  // over a link that is up. False: there are none, or enough is known.
  bool BeginByOtherWays() {
    bool has_begun = false;
    if (result_.links.empty() || lids_are_doubtful_) return has_begun;
    for (uint32_t index = 0; index < swept_.switches.size(); ++index) {
      if (progress_[index].has_begun) continue;
      for (const FoundPort& port : swept_.switches[index].ports) {
        if (!port.is_cabled() || swept_.switch_of[port.peer] == SweptSwitch::kNone) continue;
        const Progress& neighbour = progress_[swept_.switch_of[port.peer]];
        if (!neighbour.is_up[port.peer_port.value()]) continue;
        if (neighbour.route.hop_count == DirectedRoute::kMaxHops) continue;
        progress_[index].route = neighbour.route.Then(port.peer_port);
        Begin(index, /*is_doubtful=*/false);
        has_begun = true;
        break;
      }
    }
    return has_begun;
  }

  // Two questions with the whole patience, and before others: enough to know that somebody is gone
  // is enough to end.
  void LookAgain(uint32_t index) {
    Progress& progress = progress_[index];
    const DirectedRoute& route = progress.route;
    progress.is_second_look = true;
    progress.has_answered = progress.is_first_port_silent = progress.is_name_silent = false;
    engine_.SubmitFirst({route, MadAttribute::kNodeInfo, 0, index});
    engine_.SubmitFirst({route, MadAttribute::kPortInfo, progress.first_port, index});
  }

  // It lives: who it is, unless that is asked already, and what its ports are.
  void OnSignOfLife(uint32_t index) {
    Progress& progress = progress_[index];
    if (std::exchange(progress.has_answered, true)) return;
    if (!progress.is_second_look) {
      engine_.Submit({progress.route, MadAttribute::kNodeInfo, 0, index, Lid(0), kLessAttempts});
    }
    for (uint32_t i = 2; i < kPerSwitch; ++i) AskNextPort(index);
    if (!progress.is_first_port_silent) return;
    AskNextPort(index);  // in its stead
    NoteSilence(index, progress.first_port);
    FollowCable(index, progress.first_port, MadOutcome());
  }

  // Silence of a switch of which nothing is heard, at the first look or at the second one.
  void OnNoSign(const MadRequest& request) {
    const uint32_t index = request.subject;
    Progress& progress = progress_[index];
    if (!progress.is_doubtful) {
      if (!progress.is_second_look) return LookAgain(index);
      const bool is_port = request.attribute == MadAttribute::kPortInfo;
      (is_port ? progress.is_first_port_silent : progress.is_name_silent) = true;
      if (!progress.is_first_port_silent || !progress.is_name_silent) return;
    }
    GiveUp(index, absl::StrCat("PortInfo of port ", progress.first_port));
    if (progress.is_doubtful) return;
    ChangeOfNode(swept_.switches[index].Name(), " does not answer any more");
  }

  // Ports that did not answer then are asked, too, until some of them are silent again.
  void AskNextPort(uint32_t index) {
    Progress& progress = progress_[index];
    const SweptSwitch& then = swept_.switches[index];
    const auto is_left_out = [&](uint32_t port) {
      return port == progress.first_port ||
             (!then.ports[port].answered && progress.expected_silences >= kSilencesToGiveUp);
    };
    while (progress.next_port < then.ports.size() && is_left_out(progress.next_port)) {
      ++progress.next_port;
    }
    if (progress.next_port >= then.ports.size() || progress.is_given_up) return;
    const uint32_t port = progress.next_port++;
    MadRequest request{progress.route, MadAttribute::kPortInfo, port, index};
    if (progress.is_slow || !then.ports[port].answered) request.max_attempts = kLessAttempts;
    engine_.Submit(std::move(request));
  }

  void OnAnswer(const MadRequest& request, const MadOutcome& outcome) {
    const uint32_t index = request.subject;
    const bool is_silent = outcome.is_unanswered();
    progress_[index].waited += outcome.waited;
    const bool is_other_port = request.attribute == MadAttribute::kPortInfo &&
                               request.modifier != progress_[index].first_port;
    if (is_silent && !is_other_port && !progress_[index].has_answered) return OnNoSign(request);
    if (!is_silent) OnSignOfLife(index);
    if (request.attribute == MadAttribute::kNodeInfo) {
      AskNextPort(index);
      OnIdentity(index, outcome);
    } else {
      OnPort(request, outcome);
    }
  }

  // Nothing is made of silence: the ports tell that better.
  void OnIdentity(uint32_t index, const MadOutcome& outcome) {
    if (!outcome.is_answered()) return;
    const absl::StatusOr<NodeInfoRecord> now = DecodeNodeInfo(outcome.data);
    const SweptSwitch& then = swept_.switches[index];
    if (!now.ok() || now->node_guid == then.guid()) return;
    ChangeOfNode(then.Name(), ": node ", ToString(now->node_guid), " is in its place, it was ",
                 ToString(then.guid()));
  }

  void OnPort(const MadRequest& request, const MadOutcome& outcome) {
    const uint32_t index = request.subject, port = request.modifier;
    const SweptSwitch& then = swept_.switches[index];
    Progress& progress = progress_[index];
    const bool is_silent = outcome.is_unanswered();
    if (is_silent) {
      OnSilence(request);
    } else {
      progress.silences = 0;
      if (outcome.waited > engine_.Patience(kManyAttempts) &&
          ++progress.slow_answers >= kSlowAnswers) {
        progress.is_slow = true;
      }
    }
    if (progress.waited > 2 * kPerSwitch * engine_.Patience())
      GiveUp(index, "it answers too slowly");
    AskNextPort(index);
    FollowCable(index, port, outcome);
    if (outcome.is_answered()) {
      OnPortInfo(index, port, DecodePortInfo(outcome.data));
    } else if (!is_silent && then.ports[port].answered) {
      ChangeOfNode(then.Name(), " port ", port, ": the switch says that it has no such port");
    }
  }

  // To the switch behind; a port that does not say how it is may still let packets pass.
  void FollowCable(uint32_t index, uint32_t port, const MadOutcome& outcome) {
    const uint32_t next = swept_.switches[index].ports[port].leads_to;
    if (next == FoundPort::kNoPeer) return;
    const bool is_silent = outcome.is_unanswered();
    const bool is_up = outcome.is_answered() && DecodePortInfo(outcome.data).link_up;
    if (is_silent || is_up) Begin(next, /*is_doubtful=*/is_silent || progress_[index].is_slow);
  }

  void OnPortInfo(uint32_t index, uint32_t port, const PortInfoRecord& now) {
    const SweptSwitch& then = swept_.switches[index];
    const FoundPort& known = then.ports[port];
    progress_[index].is_up[port] = now.link_up;
    if (port == 0 && known.answered) {
      return CompareAddresses(then.Name() + ": it has", then.Name() + ": its", known, now);
    }
    const LinkRate rate = AsPortInfoSays(known.rate);
    if (known.answered && now.link_up == known.link_up && now.rate == rate) return;
    const std::string name = absl::StrCat(then.Name(), " port ", port);
    if (!known.answered) {
      ChangeOfLink(name, ": the port answers again");
    } else if (now.link_up != known.link_up) {
      result_.links.push_back({then.guid(), PortNum(static_cast<uint8_t>(port)), now.link_up});
      Change(name, ": the link is ", now.link_up ? "up" : "down");
    } else {
      ChangeOfLink(name, ": the link runs at ", ToString(now.rate), ", it ran at ", ToString(rate));
    }
  }

  // `has`: "the local port has"; `its`: "the local port's".
  void CompareAddresses(const std::string& has, const std::string& its, const FoundPort& then,
                        const PortInfoRecord& now) {
    const auto compare = [&](const std::string& what, int is, int was) {
      if (is != was) ChangeOfNode(what, is, ", it had ", was);
    };
    compare(has + " LID ", now.lid.value(), then.lid.value());
    compare(has + " LMC ", now.lmc, then.lmc);
    compare(its + " subnet manager has LID ", now.subnet_manager_lid.value(),
            then.subnet_manager_lid.value());
  }

  // Of a switch that has answered. One port's silence is a packet lost too often; that of several
  // in a row may be the switch's.
  void OnSilence(const MadRequest& request) {
    const uint32_t index = request.subject, port = request.modifier;
    Progress& progress = progress_[index];
    const SweptSwitch& then = swept_.switches[index];
    if (!then.ports[port].answered) {
      ++progress.expected_silences;
    } else if (++progress.silences >= kSilencesToGiveUp) {
      const bool is_first = !progress.is_given_up;
      GiveUp(index, absl::StrCat("PortInfo of port ", port));
      if (is_first && request.max_attempts == 0) LookAgain(index);
      return;
    }
    NoteSilence(index, port);
  }

  void NoteSilence(uint32_t index, uint32_t port) {
    const SweptSwitch& then = swept_.switches[index];
    result_.unanswered.push_back(then.Unanswered(absl::StrCat("PortInfo of port ", port)));
  }

  // What the ports not yet asked lead to is asked in doubt: it is not this switch that is missed.
  void GiveUp(uint32_t index, std::string what) {
    Progress& progress = progress_[index];
    const SweptSwitch& then = swept_.switches[index];
    if (std::exchange(progress.is_given_up, true)) return;
    result_.unanswered.push_back(
        then.Unanswered(absl::StrCat(what, "; the node was asked no more")));
    if (!progress.has_answered) return;  // nor is who is behind it
    for (; progress.next_port < then.ports.size(); ++progress.next_port) {
      const uint32_t next = then.ports[progress.next_port].leads_to;
      if (next == FoundPort::kNoPeer || progress.next_port == progress.first_port) continue;
      Begin(next, /*is_doubtful=*/true);
    }
  }

  // Subjects: the silent ends, then the switches that told nothing.
  absl::Status AskSilent() {
    const auto ends = static_cast<uint32_t>(swept_.silent_ends.size());
    const auto all = ends + static_cast<uint32_t>(silent_switches_.size());
    const uint32_t count = std::min(kSilentInAll, all);
    absl::c_sort(silent_switches_);  // the same order each time
    uint32_t asked = 0;
    const auto ask_next = [&] {
      if (asked >= count) return;
      const auto subject = static_cast<uint32_t>((uint64_t{turn_} * kSilentInAll + asked++) % all);
      MadRequest request;
      request.subject = subject;
      request.max_attempts = kLessAttempts;
      if (subject < ends) {
        request.route = swept_.silent_ends[subject].route;
      } else {
        request.route = swept_.switches[silent_switches_[subject - ends]].route;
        request.attribute = MadAttribute::kPortInfo;
      }
      engine_.Submit(std::move(request));
    };
    for (uint32_t i = 0; i < kSilentAtATime; ++i) ask_next();
    return engine_.Run([&](const MadRequest& request, const MadOutcome& outcome) {
      OnSilent(request, outcome);
      ask_next();
    });
  }

  void OnSilent(const MadRequest& request, const MadOutcome& outcome) {
    const size_t ends = swept_.silent_ends.size();
    if (request.subject >= ends) {
      const SweptSwitch& then = swept_.switches[silent_switches_[request.subject - ends]];
      if (outcome.is_unanswered()) {
        result_.unanswered.push_back(then.Unanswered("PortInfo of port 0"));
      } else if (outcome.is_answered()) {
        ChangeOfNode(then.Name(), " answers again");
      }
      return;
    }
    const SilentEnd& end = swept_.silent_ends[request.subject];
    const bool at_switch = end.at != SweptSwitch::kNone;
    const std::string place =
        absl::StrCat(at_switch ? swept_.switches[end.at].Name() : "the local adapter", " port ",
                     end.port.value());
    if (!outcome.is_unanswered()) {
      return ChangeOfNode(place, ": the node at the other end answers now");
    }
    result_.unanswered.push_back({ToString(end.route),
                                  at_switch ? swept_.switches[end.at].guid() : Guid(0), end.port,
                                  absl::StrCat("NodeInfo behind ", place)});
  }

  template <class... What>
  void ChangeOfNode(const What&... what) {
    lids_are_doubtful_ = true;
    engine_.Abandon();
    ChangeOfLink(what...);
  }

  // Other than that it is up or down.
  template <class... What>
  void ChangeOfLink(const What&... what) {
    result_.has_only_links = false;
    Change(what...);
  }

  template <class... What>
  void Change(const What&... what) {
    if (!std::exchange(result_.has_changed, true)) result_.what = absl::StrCat(what...);
  }

  struct Progress {
    bool has_begun = false;
    uint32_t first_port = 0;  // asked alone, before all others
    uint32_t next_port = 0;
    int silences = 0;  // in a row, of ports that answered then
    int expected_silences = 0;
    absl::Duration waited;  // sum over all requests
    bool has_answered = false;
    int slow_answers = 0;
    bool is_doubtful = false;  // whether the way there is open was not told
    bool is_slow = false;
    bool is_given_up = false;
    bool is_second_look = false;
    bool is_first_port_silent = false, is_name_silent = false;  // at the second look
    DirectedRoute route;      // as the full sweep went, unless a link on that way is lost
    std::vector<bool> is_up;  // [port] as it said now
  };

  MadEngine& engine_;
  const SweptSubnet& swept_;
  const uint32_t turn_;
  LightSweepResult result_;
  bool lids_are_doubtful_ = false;
  absl::Status local_fault_;
  std::vector<Progress> progress_;         // [switch]
  std::vector<uint32_t> silent_switches_;  // switch; told nothing then
};

}  // namespace

absl::StatusOr<LightSweepResult> SweepLightly(MadEngine& engine, const SweptSubnet& swept,
                                              uint32_t turn, bool& lids_are_doubtful) {
  LightSweeper sweeper(engine, swept, turn);
  absl::StatusOr<LightSweepResult> result = sweeper.Sweep();
  if (sweeper.lids_are_doubtful()) lids_are_doubtful = true;
  return result;
}

}  // namespace coppice
