// The agreement, explored whole: three members, two collectives and their end, a tree that may
// break at every step and gives its results to any of them, messages in order on each link and in
// any order between links, and at most one member killed, or one link cut, at every step.
#include "agents/mpi/tree/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <unordered_map>

#include "tests/support/tier.h"

namespace coppice::mpi::agreement_test {
namespace {

using Kind = AgreementMessage::Kind;
using Phase = Agreement::Phase;
using Wait = Agreement::Wait;

// What somebody does wrong.
enum class Fault {
  kNone,
  kDoesNotFreeze,       // member 2 answers, and goes on along the tree
  kLeastInsteadOfMost,  // the coordinator takes the least answer for the last number
  kDecidesEarly,        // with the first answer
  kWrongResult,         // the one before is handed on
  kDoesNotWait,         // member 2 goes natively as soon as it has answered
  kNoWord,              // who sees the break does not say so
  kForgetsOne,          // the decision is not sent to member 2
  kHandsOnNothing,      // to who lacks the last result: a decision without it
  kGivesUpAtBreak,      // member 1 is in n when the tree breaks, and does n natively
  kEndsAtOnce,          // member 1 answers no more when it has left
  kNeverLeaves,         // member 2 does not say that it has left
};

SharedBytes ResultOf(uint64_t number) {
  static const std::array<SharedBytes, 4> kResults = {
      std::make_shared<const std::string>("0"), std::make_shared<const std::string>("1"),
      std::make_shared<const std::string>("2"), std::make_shared<const std::string>("3")};
  return kResults[number];
}

constexpr uint32_t kMembers = 3;
constexpr uint64_t kCollectives = 2;
enum class Way : char { kNotYet = '-', kTree = 't', kNatively = 'n' };
// What goes wrong besides the tree; once.
enum class Harm : char { kNone, kKilled, kKilledSilently, kCut };

struct Member {
  Agreement machine;
  std::array<Way, kCollectives + 1> ways{Way::kNotYet, Way::kNotYet, Way::kNotYet};
  uint64_t ended = 0;        // collectives
  uint64_t contributed = 0;  // the last, along the tree
  uint64_t natively = 0;     // the last that it entered so
  bool is_in = false;
  bool is_dead = false;
  bool is_on_tree = true;
  bool has_ended = false;  // answers no more
};

// Between member 0 and another one.
struct Wire {
  std::vector<AgreementMessage> up, down;
  bool is_cut = false;
  bool is_closed = false;  // by who has ended: what it said before arrives
  bool is_seen_above = false, is_seen_below = false;
};

struct World {
  std::vector<Member> members;
  std::array<Wire, kMembers> wires;  // by member; the first is none
  uint64_t made = 0;                 // results at the tree's root
  bool is_broken = false;
  bool is_aborted = false;
  Harm harm = Harm::kNone;
  std::string wrong;  // what must not be

  World() {
    for (uint32_t i = 0; i < kMembers; ++i) members.push_back({Agreement(i, kMembers)});
  }
};

void AppendMessage(const AgreementMessage& message, std::string* text) {
  *text += static_cast<char>('A' + static_cast<int>(message.kind));
  *text += static_cast<char>('0' + message.number);
  *text += static_cast<char>('0' + message.member);
  *text += message.result ? message.result->front() : ' ';
}

// Equal for worlds that are.
std::string TextOf(const World& world) {
  std::string text;
  text.reserve(160);
  const auto add = [&text](auto number) {
    text += static_cast<char>('0' + static_cast<int>(number));
  };
  for (const Member& member : world.members) {
    const Agreement::State& state = member.machine.state();
    for (const Way way : member.ways) text += static_cast<char>(way);
    add(member.ended), add(member.contributed), add(member.natively);
    add(member.is_in | member.is_dead << 1 | member.is_on_tree << 2 | state.is_in << 3 |
        member.has_ended << 4 | state.has_left << 5);
    add(state.phase), add(state.finished), add(state.source), add(state.lost);
    text += state.result ? state.result->front() : ' ';
    for (const bool gone : state.gone) add(gone);
    for (const auto& answer : state.answers) add(answer ? *answer + 1 : 0);
    for (const bool left : state.left) add(left);
  }
  for (const Wire& wire : world.wires) {
    add(wire.is_cut | wire.is_seen_above << 1 | wire.is_seen_below << 2 | wire.is_closed << 3);
    for (const auto& message : wire.up) AppendMessage(message, &text);
    text += '|';
    for (const auto& message : wire.down) AppendMessage(message, &text);
    text += '|';
  }
  add(world.made), add(world.is_broken | world.is_aborted << 1), add(world.harm);
  return text;
}

class Explorer {
 public:
  Explorer(Fault fault, bool may_harm) : fault_(fault), may_harm_(may_harm) {}

  struct Found {
    size_t states = 0, steps = 0, ends = 0;
    std::string wrong;                   // the first, by the fewest steps
    bool does_end = false;               // no way leads back to where it was
    std::set<std::string> ends_by_ways;  // "tt tt tn": of members that live
  };

  Found Run() {
    Keep(World(), nullptr);
    while (!frontier_.empty() && found_.wrong.empty()) {
      const World world = std::move(frontier_.front().first);
      const uint32_t number = frontier_.front().second;
      frontier_.pop_front();
      from_ = number;
      const size_t before = found_.steps;
      Protocol(world);
      if (found_.steps == before) End(world);
      Environment(world);
    }
    found_.states = numbers_.size();
    found_.does_end = found_.wrong.empty() && HasNoCircle();
    return std::move(found_);
  }

 private:
  void Keep(World world, const World* before) {
    if (before != nullptr) ++found_.steps;
    if (!world.wrong.empty()) {
      if (found_.wrong.empty()) found_.wrong = world.wrong;
      return;
    }
    const auto [place, is_new] = numbers_.emplace(TextOf(world), numbers_.size());
    if (before != nullptr) edges_.emplace_back(from_, place->second);
    if (is_new) frontier_.emplace_back(std::move(world), place->second);
  }

  // One step more, by what `change` does to a copy.
  template <class Change>
  void Step(const World& world, const Change& change) {
    World next = world;
    change(next);
    Keep(std::move(next), &world);
  }

  // All that members do, and that goes on by itself.
  void Protocol(const World& world) {
    for (uint32_t i = 0; i < kMembers; ++i) {
      const Member& member = world.members[i];
      if (member.is_dead || member.has_ended) continue;
      if (!member.is_in && member.ended < kCollectives) {
        Step(world, [&](World& next) { Enter(next, i); });
      }
      if (member.ended == kCollectives && !member.machine.state().has_left) {
        Step(world, [&](World& next) { Leave(next, i); });
      }
      TreeSteps(world, i);
      WireSteps(world, i);
      if (member.machine.wait() == Wait::kAgreement && world.harm == Harm::kKilledSilently) {
        Step(world, [&](World& next) { Act(next, i, next.members[i].machine.PatienceOver()); });
      }
      if (member.is_in && member.natively == member.ended + 1 && AllAreNatively(world, i)) {
        Step(world, [&](World& next) { EndOne(next, i, Way::kNatively); });
      }
    }
    bool have_all = !world.is_broken;
    for (const Member& member : world.members) have_all &= member.contributed > world.made;
    if (have_all) Step(world, [](World& next) { ++next.made; });
  }

  void TreeSteps(const World& world, uint32_t i) {
    const Member& member = world.members[i];
    if (!member.is_on_tree) return;
    if (member.is_in && member.contributed == member.ended + 1 && world.made > member.ended) {
      Step(world, [&](World& next) {
        Act(next, i, next.members[i].machine.ResultCame(ResultOf(member.ended + 1)));
      });
    }
    if (world.is_broken) Step(world, [&](World& next) { SeeBreak(next, i); });
    if (member.machine.wait() == Wait::kResult) {
      Step(world, [&](World& next) { Act(next, i, next.members[i].machine.PatienceOver()); });
    }
  }

  void WireSteps(const World& world, uint32_t i) {
    for (uint32_t below = 1; below < kMembers; ++below) {
      if (i != 0 && i != below) continue;
      const Wire& wire = world.wires[below];
      if (i == 0 ? wire.is_seen_above : wire.is_seen_below) continue;
      if (!(i == 0 ? wire.up : wire.down).empty()) {
        Step(world, [&](World& next) { TakeMessage(next, i, below); });
      }
      const bool is_read = (i == 0 ? wire.up : wire.down).empty();
      if ((wire.is_cut && world.harm != Harm::kKilledSilently) || (wire.is_closed && is_read)) {
        Step(world, [&](World& next) {
          (i == 0 ? next.wires[below].is_seen_above : next.wires[below].is_seen_below) = true;
          (i == 0 ? next.wires[below].up : next.wires[below].down).clear();
          Act(next, i, next.members[i].machine.LinkGone(i == 0 ? below : 0));
        });
      }
    }
  }

  // What may go wrong at any time.
  void Environment(const World& world) {
    if (!world.is_broken) Step(world, [](World& next) { next.is_broken = true; });
    if (!may_harm_ || world.harm != Harm::kNone || world.is_aborted) return;
    for (uint32_t i = 0; i < kMembers; ++i) {
      for (const Harm harm : {Harm::kKilled, Harm::kKilledSilently}) {
        Step(world, [&](World& next) {
          next.harm = harm;
          Die(next, i);
        });
      }
      if (i == 0) continue;
      Step(world, [&](World& next) {
        next.harm = Harm::kCut;
        next.wires[i].is_cut = true;
      });
    }
  }

  static void Die(World& world, uint32_t i) {
    if (world.members[i].has_ended) return;
    world.members[i].is_dead = true;
    for (uint32_t below = 1; below < kMembers; ++below) {
      if (i != 0 && i != below) continue;
      Wire& wire = world.wires[below];
      wire.is_cut = true;
      (i == 0 ? wire.is_seen_above : wire.is_seen_below) = true;
      (i == 0 ? wire.up : wire.down).clear();
    }
  }

  void Enter(World& world, uint32_t i) {
    Member& member = world.members[i];
    member.is_in = true;
    Act(world, i, member.machine.Enter(1));
  }

  void Leave(World& world, uint32_t i) {
    const AgreementActions actions = world.members[i].machine.Leave();
    if (fault_ == Fault::kEndsAtOnce && i == 1) return Part(world, i);
    if (fault_ != Fault::kNeverLeaves || i != 2) Act(world, i, actions);
  }

  // Its links are closed, and carry what it has said.
  static void Part(World& world, uint32_t i) {
    world.members[i].has_ended = true;
    for (uint32_t below = 1; below < kMembers; ++below) {
      if (i != 0 && i != below) continue;
      Wire& wire = world.wires[below];
      wire.is_closed = true;
      (i == 0 ? wire.is_seen_above : wire.is_seen_below) = true;
      (i == 0 ? wire.up : wire.down).clear();
    }
  }

  void SeeBreak(World& world, uint32_t i) {
    Member& member = world.members[i];
    const bool gives_up = fault_ == Fault::kGivesUpAtBreak && i == 1 && member.is_in;
    AgreementActions actions = member.machine.TreeBroke();
    member.is_on_tree = false;
    Act(world, i, actions);
    if (gives_up && member.is_in) GoNatively(world, i);
  }

  void TakeMessage(World& world, uint32_t i, uint32_t below) {
    auto& queue = i == 0 ? world.wires[below].up : world.wires[below].down;
    AgreementMessage message = queue.front();
    queue.erase(queue.begin());
    Member& member = world.members[i];
    Agreement::State state = member.machine.state();
    if (fault_ == Fault::kDecidesEarly && message.kind == Kind::kAnswer) {
      for (auto& answer : state.answers) answer = answer.value_or(state.finished);
      state.answers[below].reset();
      member.machine = Agreement(i, state);
    }
    const bool is_late = fault_ == Fault::kDecidesEarly && message.kind == Kind::kAnswer &&
                         state.phase != Phase::kAsking;
    if (is_late) return;
    const bool keeps_on = fault_ == Fault::kDoesNotFreeze && i == 2 && message.kind == Kind::kAsk &&
                          state.phase == Phase::kWhole;
    if (fault_ == Fault::kDoesNotFreeze && i == 2 && message.kind != Kind::kAsk) {
      state.phase = Phase::kAnswered;
      member.machine = Agreement(i, state);
    }
    AgreementActions actions = member.machine.MessageFrom(i == 0 ? below : 0, message);
    if (keeps_on) {
      std::erase_if(actions, [](const AgreementAction& action) {
        return action.kind == AgreementAction::Kind::kLeaveTree;
      });
      member.machine = Agreement(i, state);
    }
    Act(world, i, actions);
    const bool runs_ahead =
        fault_ == Fault::kDoesNotWait && i == 2 && message.kind == Kind::kAsk && member.is_in;
    if (runs_ahead) GoNatively(world, i);
  }

  static void GoNatively(World& world, uint32_t i) {
    world.members[i].natively = world.members[i].ended + 1;
  }

  void Act(World& world, uint32_t i, const AgreementActions& actions) {
    Member& member = world.members[i];
    for (const AgreementAction& action : actions) {
      switch (action.kind) {
        case AgreementAction::Kind::kSend:
          Send(world, i, action);
          break;
        case AgreementAction::Kind::kContribute:
          member.contributed = member.ended + 1;
          break;
        case AgreementAction::Kind::kLeaveTree:
          member.is_on_tree = false;
          break;
        case AgreementAction::Kind::kComplete:
          if (*action.result != *ResultOf(member.ended + 1)) world.wrong = "wrong result";
          EndOne(world, i, Way::kTree);
          break;
        case AgreementAction::Kind::kGoNatively:
          GoNatively(world, i);
          break;
        case AgreementAction::Kind::kAbort:
          if (world.harm == Harm::kNone) world.wrong = "aborts, and nobody is gone";
          if (!IsToBlame(world, action.member)) world.wrong = "names one that is there";
          world.is_aborted = true;
          Die(world, i);
          break;
        case AgreementAction::Kind::kEnd:
          Part(world, i);
          break;
      }
    }
  }

  // Patience may end with one that is only slow.
  static bool IsToBlame(const World& world, uint32_t named) {
    if (world.harm == Harm::kKilled) return world.members[named].is_dead;
    if (world.harm == Harm::kCut) return named == 0 || world.wires[named].is_cut;
    return true;
  }

  void Send(World& world, uint32_t i, const AgreementAction& action) {
    AgreementMessage message = action.message;
    if (fault_ == Fault::kNoWord && message.kind == Kind::kBroken) return;
    if (message.kind == Kind::kDecision) Spoil(world, &message);
    for (const uint32_t to : action.to) {
      if (fault_ == Fault::kForgetsOne && message.kind == Kind::kDecision && to == 2) continue;
      Wire& wire = world.wires[i == 0 ? to : i];
      // Nobody reads there any more.
      if (i == 0 ? wire.is_seen_below : wire.is_seen_above) continue;
      (i == 0 ? wire.down : wire.up).push_back(message);
    }
  }

  void Spoil(const World& world, AgreementMessage* decision) {
    const auto& answers = world.members[0].machine.state().answers;
    const auto least = **std::min_element(answers.begin(), answers.end());
    if (fault_ == Fault::kLeastInsteadOfMost) {
      decision->number = least;
      decision->result = nullptr;
    }
    if (decision->result == nullptr) return;
    if (fault_ == Fault::kWrongResult) decision->result = ResultOf(decision->number - 1);
    if (fault_ == Fault::kHandsOnNothing) decision->result = nullptr;
  }

  static void EndOne(World& world, uint32_t i, Way way) {
    Member& member = world.members[i];
    const uint64_t number = ++member.ended;
    member.is_in = false;
    member.ways[number] = way;
    for (const Member& other : world.members) {
      const bool is_same = other.ways[number] == Way::kNotYet || other.ways[number] == way;
      if (!is_same) world.wrong = "one collective ended in two ways";
    }
  }

  // A native collective ends when all are in it.
  static bool AllAreNatively(const World& world, uint32_t i) {
    for (const Member& member : world.members) {
      if (member.natively < world.members[i].natively) return false;
      if (member.is_dead && member.ended < world.members[i].natively) return false;
    }
    return true;
  }

  // Nothing goes on by itself: all is done, or MPI ends the job.
  void End(const World& world) {
    ++found_.ends;
    bool is_anyone_dead = false;
    for (const Member& member : world.members) is_anyone_dead |= member.is_dead;
    std::string ways;
    for (const Member& member : world.members) {
      if (member.is_dead) continue;
      for (uint64_t number = 1; number <= kCollectives; ++number) {
        ways += static_cast<char>(member.ways[number]);
      }
      ways += ' ';
      const bool is_left_alone = !member.has_ended && world.harm == Harm::kNone;
      if (is_left_alone && !world.is_aborted) found_.wrong = "is kept for ever";
      if (member.ended == kCollectives || world.is_aborted) continue;
      const bool is_in_mpi = member.natively == member.ended + 1;
      if (!(is_in_mpi && is_anyone_dead)) found_.wrong = "hangs";
    }
    found_.ends_by_ways.insert(ways);
  }

  bool HasNoCircle() const {
    std::vector<uint32_t> incoming(numbers_.size()), first(numbers_.size() + 1);
    for (const auto& [from, to] : edges_) {
      ++incoming[to];
      ++first[from + 1];
    }
    for (size_t i = 0; i < numbers_.size(); ++i) first[i + 1] += first[i];
    std::vector<uint32_t> targets(edges_.size()), filled(first.begin(), first.end() - 1);
    for (const auto& [from, to] : edges_) targets[filled[from]++] = to;
    std::vector<uint32_t> ready;
    for (uint32_t i = 0; i < incoming.size(); ++i) {
      if (incoming[i] == 0) ready.push_back(i);
    }
    size_t left = numbers_.size();
    while (!ready.empty()) {
      const uint32_t state = ready.back();
      ready.pop_back();
      --left;
      for (uint32_t at = first[state]; at < first[state + 1]; ++at) {
        if (--incoming[targets[at]] == 0) ready.push_back(targets[at]);
      }
    }
    return left == 0;
  }

  const Fault fault_;
  const bool may_harm_;
  Found found_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::deque<std::pair<World, uint32_t>> frontier_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
  uint32_t from_ = 0;
};

// Without harm all members end all collectives, and nobody aborts.
TEST(Agreement, EveryWayEndsAndAllMembersEndTheSameWay) {
  const Explorer::Found found = Explorer(Fault::kNone, false).Run();
  std::cout << found.states << " states, " << found.steps << " steps, " << found.ends << " ends\n";
  EXPECT_EQ(found.wrong, "");
  EXPECT_TRUE(found.does_end);
  EXPECT_GE(found.states, 15'000);
  EXPECT_THAT(found.ends_by_ways, testing::ElementsAre("nn nn nn ", "tn tn tn ", "tt tt tt "));
}

TEST(Agreement, WithAMemberKilledOrALinkCutAtAnyStepNobodyHangsOrEndsAnotherWay) {
  const Explorer::Found found = Explorer(Fault::kNone, true).Run();
  std::cout << found.states << " states, " << found.steps << " steps, " << found.ends << " ends\n";
  EXPECT_EQ(found.wrong, "");
  EXPECT_TRUE(found.does_end);
  EXPECT_GE(found.states, 300'000);
}

// The exploration would find it.
TEST(Agreement, EachFaultIsFound) {
  const std::map<Fault, std::string> kFaults = {
      {Fault::kDoesNotFreeze, "aborts, and nobody is gone"},
      {Fault::kLeastInsteadOfMost, "aborts, and nobody is gone"},
      {Fault::kDecidesEarly, "aborts, and nobody is gone"},
      {Fault::kWrongResult, "wrong result"},
      {Fault::kDoesNotWait, "one collective ended in two ways"},
      {Fault::kNoWord, "hangs"},
      {Fault::kForgetsOne, "hangs"},
      {Fault::kHandsOnNothing, "aborts, and nobody is gone"},
      {Fault::kGivesUpAtBreak, "one collective ended in two ways"},
      {Fault::kEndsAtOnce, "aborts, and nobody is gone"},
      {Fault::kNeverLeaves, "is kept for ever"}};
  for (const auto& [fault, wrong] : kFaults) {
    EXPECT_EQ(Explorer(fault, false).Run().wrong, wrong) << "fault " << static_cast<int>(fault);
  }
}

// --- one event at a time -----------------------------------------------------------------------

using ActionKind = AgreementAction::Kind;

std::vector<ActionKind> KindsOf(const AgreementActions& actions) {
  std::vector<ActionKind> kinds;
  for (const AgreementAction& action : actions) kinds.push_back(action.kind);
  return kinds;
}

AgreementMessage Message(Kind kind, uint64_t number = 0, SharedBytes result = nullptr) {
  return {kind, 0, number, std::move(result)};
}

TEST(Agreement, WhoIsAloneDecidesAtOnce) {
  Agreement alone(0, 1);
  EXPECT_THAT(KindsOf(alone.Enter(1)), testing::ElementsAre(ActionKind::kContribute));
  EXPECT_THAT(KindsOf(alone.TreeBroke()),
              testing::ElementsAre(ActionKind::kLeaveTree, ActionKind::kGoNatively));
  EXPECT_THAT(KindsOf(alone.Enter(1)), testing::ElementsAre(ActionKind::kGoNatively));
}

TEST(Agreement, AResultOfAnotherLengthBreaksTheTree) {
  Agreement member(1, 3);
  EXPECT_THAT(KindsOf(member.Enter(2)), testing::ElementsAre(ActionKind::kContribute));
  EXPECT_THAT(KindsOf(member.ResultCame(ResultOf(1))),
              testing::ElementsAre(ActionKind::kLeaveTree, ActionKind::kSend));
  EXPECT_EQ(member.state().phase, Phase::kTold);
}

TEST(Agreement, WhoIsElsewhereAbortsOnlyWhenItEntersTheNext) {
  Agreement member(1, 3);
  AgreementMessage lost = Message(Kind::kLost);
  lost.member = 2;
  EXPECT_THAT(KindsOf(member.MessageFrom(0, lost)), testing::ElementsAre(ActionKind::kLeaveTree));
  const AgreementActions actions = member.Enter(1);
  ASSERT_THAT(KindsOf(actions), testing::ElementsAre(ActionKind::kAbort));
  EXPECT_EQ(actions[0].member, 2);
}

// Answers further apart than one, an answer nobody can have, and a result that was not asked for.
TEST(Agreement, WhatCannotBeTrueNamesWhoSaysIt) {
  for (const auto& [number, blamed] : std::map<uint64_t, uint32_t>{{1, 2}, {2, 2}, {9, 2}}) {
    Agreement coordinator(0, 3);
    static_cast<void>(coordinator.TreeBroke());
    static_cast<void>(coordinator.MessageFrom(1, Message(Kind::kAnswer, 0)));
    static_cast<void>(coordinator.MessageFrom(2, Message(Kind::kAnswer, number)));
    EXPECT_EQ(coordinator.state().phase, Phase::kFailed) << number;
    EXPECT_EQ(coordinator.state().lost, blamed) << number;
  }
  Agreement member(1, 3);
  static_cast<void>(member.Enter(1));
  static_cast<void>(member.MessageFrom(0, Message(Kind::kAsk)));
  EXPECT_THAT(KindsOf(member.MessageFrom(0, Message(Kind::kDecision, 1))),
              testing::ElementsAre(ActionKind::kAbort));
}

// Every kind in every phase, from where it may not come and where it may: nothing is done twice,
// and whoever is blamed is a member.
TEST(Agreement, RandomMessagesLeadToNoStateThatIsNone) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 100'000 : 5'000); ++round) {
    const auto self = static_cast<uint32_t>(random() % kMembers);
    Agreement member(self, kMembers);
    bool is_in = false;
    for (int event = 0; event < 12; ++event) {
      AgreementMessage message = Message(static_cast<Kind>(1 + random() % 8), random() % 3,
                                         random() % 2 == 0 ? nullptr : ResultOf(random() % 3));
      message.member = static_cast<uint32_t>(random() % 5);
      AgreementActions actions;
      switch (random() % 6) {
        case 0:
          if (is_in) break;
          is_in = true;
          actions = member.Enter(1);
          break;
        case 1:
          actions = member.ResultCame(ResultOf(1));
          break;
        case 2:
          actions = random() % 2 == 0 ? member.TreeBroke() : member.PatienceOver();
          break;
        default:
          actions = member.MessageFrom(static_cast<uint32_t>(random() % kMembers), message);
      }
      int ends = 0;
      for (const AgreementAction& action : actions) {
        ends += action.kind == ActionKind::kComplete || action.kind == ActionKind::kGoNatively ||
                action.kind == ActionKind::kAbort;
      }
      ASSERT_LE(ends, is_in ? 1 : 0);
      if (ends == 1) is_in = false;
      ASSERT_EQ(member.state().is_in, is_in);
      ASSERT_LT(member.state().lost, kMembers);
    }
  }
}

// --- messages as bytes -------------------------------------------------------------------------

AgreementMessage ReadBack(const AgreementMessage& message, uint64_t max_result) {
  AgreementReader reader(max_result);
  AgreementMessage read;
  const std::vector<SharedBytes> payloads = PayloadsOf(message);
  for (size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_LE(payloads[i]->size(), kMaxPayloadBytes);
    EXPECT_EQ(reader.Take(*payloads[i], &read), i + 1 < payloads.size()
                                                    ? AgreementReader::State::kNeedsMore
                                                    : AgreementReader::State::kMessage);
  }
  return read;
}

TEST(AgreementReader, PutsMessagesOfAnyLengthTogether) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{kMaxPayloadBytes} - 24,
                             size_t{kMaxPayloadBytes} - 23, size_t{3} * kMaxPayloadBytes}) {
    std::string result(bytes, 'r');
    for (size_t i = 0; i < bytes; ++i) result[i] = static_cast<char>(i * 7 + i / 251);
    const AgreementMessage read =
        ReadBack(Message(Kind::kResult, 7, std::make_shared<const std::string>(result)), bytes);
    EXPECT_EQ(read.kind, Kind::kResult);
    EXPECT_EQ(read.number, 7);
    ASSERT_NE(read.result, nullptr);
    EXPECT_EQ(*read.result, result);
  }
  AgreementMessage lost = Message(Kind::kLost);
  lost.member = 17;
  EXPECT_EQ(ReadBack(lost, 0).member, 17);
  EXPECT_EQ(ReadBack(Message(Kind::kDecision), 0).result, nullptr);
}

TEST(AgreementReader, RefusesWhatIsNoMessage) {
  const std::string good =
      *PayloadsOf(Message(Kind::kResult, 7, std::make_shared<const std::string>("abc")))[0];
  AgreementMessage read;
  EXPECT_EQ(AgreementReader(3).Take(good, &read), AgreementReader::State::kMessage);
  EXPECT_EQ(AgreementReader(2).Take(good, &read), AgreementReader::State::kMalformed);
  const auto with = [&good](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  const std::vector<std::string> bad = {
      "",         good.substr(0, 23), good.substr(0, 26), good + "d", with(0, 0),
      with(0, 8), with(1, 0),         with(1, 2),         with(2, 1), with(4, 1),
      with(8, 0), with(16, 4),        with(23, 1),        with(0, 3)};
  for (size_t i = 0; i < bad.size(); ++i) {
    AgreementReader reader(100);
    EXPECT_EQ(reader.Take(bad[i], &read), AgreementReader::State::kMalformed) << i;
    EXPECT_EQ(reader.Take(good, &read), AgreementReader::State::kMalformed) << "stays, " << i;
  }
}

TEST(AgreementReader, RandomBytesAreRefusedOrAreWhatTheyWouldBeWrittenAs) {
  std::mt19937_64 random(TestSeed());
  int messages = 0;
  for (int round = 0; round < (FullTier() ? 1'000'000 : 50'000); ++round) {
    std::string bytes(24 + random() % 3, '\0');
    for (const size_t at : {0, 1, 4, 8, 16}) bytes[at] = static_cast<char>(random() % 9);
    if (random() % 4 == 0) bytes[random() % bytes.size()] = static_cast<char>(random());
    AgreementReader reader(8);
    AgreementMessage read;
    if (reader.Take(bytes, &read) != AgreementReader::State::kMessage) continue;
    ++messages;
    ASSERT_EQ(*PayloadsOf(read)[0], bytes);
  }
  EXPECT_GT(messages, 10);
}

}  // namespace
}  // namespace coppice::mpi::agreement_test
