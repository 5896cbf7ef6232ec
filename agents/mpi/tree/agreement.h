// When a tree that carries data breaks, some members may have the result of the collective under
// way and others not. All members agree here how each collective ends, along the tree or natively:
// the last that anyone has ended along the tree ends so at all, and from the next one on all go
// natively.
//
//    member 0 (it coordinates, and is a member itself)          member m
//
//       whole                                                 whole
//         |          <------------ broken ------------          |  leaves the tree
//       asking       ------------- ask -------------->        told
//         |          <------------ answer: d ----------         |
//         |                                                   answered
//      [fetching]    ------------- fetch S ---------->          |    only if member 0 lacks S
//         |          <------------ result of S --------         |
//      natively      -- S is the last [, its result] ->      natively
//
// Why it is enough to ask for the last one: a result exists only when all members have contributed,
// and a member enters n + 1 only when it has ended n. So if d is the highest number that anyone has
// ended, S, all have ended S - 1 at least and have entered S. Whoever has been asked takes nothing
// from the tree any more, so that its answer stays true; and who has ended S keeps the result until
// it has ended S + 1, which nobody does along the tree after that.
//
// A plain value: no socket, no clock, no thread, no MPI; events in, actions out. What a message
// says is not trusted: one that cannot be true ends the agreement, naming its sender.
//
// Whoever enters none any more, as its communicator ends, answers until all have left: another may
// still be in S. Member 0 hears of it from each, and goes when all have; with it go the others.
//
// Who cannot be reached or does not answer is dead or cut off, and nobody can go on without it. A
// member in a collective then has to end the job; one that is elsewhere says so only when it enters
// the next, as it may be at its end with all its collectives done.
#ifndef COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_
#define COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/links/frame.h"

namespace coppice::mpi {

struct AgreementMessage {
  // Numbers on the wire; never given to something else.
  enum class Kind : uint8_t {
    kBroken = 1,  // to member 0
    kAsk,         // from member 0: leave the tree, and say what you have ended
    kAnswer,      // to member 0; number: the last that was ended along the tree
    kFetch,       // from member 0; number: of the result that is asked for
    kResult,      // to member 0; number, result
    kDecision,    // from member 0; number: the last along the tree; result: for who lacks it
    kLost,        // from member 0; member: nobody can go on without it
    kLeft,        // to member 0: will enter none any more
  };
  static constexpr size_t kKinds = 9;  // 0 is none

  Kind kind = Kind::kBroken;
  uint32_t member = 0;
  uint64_t number = 0;
  SharedBytes result;  // null: none
};

// A message in the payloads of frames, as many as it takes.
std::vector<SharedBytes> PayloadsOf(const AgreementMessage& message);

// Puts messages together again.
class AgreementReader final {
 public:
  enum class State { kNeedsMore, kMessage, kMalformed };

  // Results are at most so long.
  explicit AgreementReader(uint64_t max_result) : max_result_(max_result) {}

  // The next payload. kMalformed stays. Memory grows with what has come, not with what is said.
  State Take(std::string_view payload, AgreementMessage* message);

 private:
  State Begin(std::string_view payload);

  const uint64_t max_result_;
  AgreementMessage message_;
  std::string result_;
  uint64_t awaited_ = 0;  // bytes of the result
  bool is_begun_ = false;
  bool is_malformed_ = false;
};

struct AgreementAction {
  enum class Kind {
    kSend,        // message, to members
    kContribute,  // to the collective that was entered, along the tree
    kLeaveTree,   // take nothing from it and give it nothing from now on
    kComplete,    // the collective that was entered has this result
    kGoNatively,  // the collective that was entered, and all that follow
    kAbort,       // the job cannot go on without this member
    kEnd,         // nobody needs this member's answers any more; nothing follows
  };
  Kind kind = Kind::kSend;
  std::vector<uint32_t> to;
  AgreementMessage message;
  SharedBytes result;
  uint32_t member = 0;
};
using AgreementActions = std::vector<AgreementAction>;

class Agreement final {
 public:
  enum class Phase : uint8_t {
    kWhole,     // the tree is in use
    kTold,      // not member 0: has left the tree and said so
    kAnswered,  // not member 0: waits for the decision
    kAsking,    // member 0: waits for answers
    kFetching,  // member 0: waits for a result
    kNatively,  // decided
    kFailed,    // `lost` is gone
  };
  static constexpr size_t kPhases = 7;

  // All that is remembered; public for who explores all states.
  struct State {
    Phase phase = Phase::kWhole;
    bool is_in = false;                            // entered finished + 1, which is not ended
    uint64_t awaited_bytes = 0;                    // of its result
    uint64_t finished = 0;                         // the last that was ended along the tree
    SharedBytes result;                            // of it
    std::vector<bool> gone;                        // by member: its link
    std::vector<std::optional<uint64_t>> answers;  // member 0's, by member
    uint32_t source = 0;                           // of the result that is fetched
    uint32_t lost = 0;                             // without whom nobody can go on
    bool has_left = false;                         // enters none any more
    std::vector<bool> left;                        // member 0's, by member
  };
  // What PatienceOver would end; the time starts anew when it changes.
  enum class Wait { kNothing, kResult, kAgreement };

  // Member `self` of `members`, of which there is at least one.
  Agreement(uint32_t self, uint32_t members);
  Agreement(uint32_t self, State state) : self_(self), state_(std::move(state)) {}

  // The program enters the next collective, whose result has so many bytes. One at a time: not
  // before what was entered last has ended.
  [[nodiscard]] AgreementActions Enter(uint64_t result_bytes);
  // Of the collective that was entered, from the tree. A wrong length breaks the tree.
  [[nodiscard]] AgreementActions ResultCame(SharedBytes result);
  [[nodiscard]] AgreementActions TreeBroke();
  // The program enters none any more; once, and in none. kEnd comes when all members have left, or
  // when the agreement is over.
  [[nodiscard]] AgreementActions Leave();
  // From who is connected as that member.
  [[nodiscard]] AgreementActions MessageFrom(uint32_t member, const AgreementMessage& message);
  // The link to that member ended: for member 0 any other one, else member 0.
  [[nodiscard]] AgreementActions LinkGone(uint32_t member);
  [[nodiscard]] AgreementActions PatienceOver();

  Wait wait() const;
  const State& state() const { return state_; }

 private:
  // What a message does in a phase; null: it is ignored.
  using Handler = void (Agreement::*)(uint32_t from, const AgreementMessage& message);
  static const Handler kHandlers[kPhases][AgreementMessage::kKinds];

  bool Coordinates() const { return self_ == 0; }
  AgreementActions Take();
  void Do(AgreementAction::Kind kind) { actions_.emplace_back().kind = kind; }
  void Send(std::vector<uint32_t> to, AgreementMessage message);
  void Complete(SharedBytes result);
  void GoNatively(uint64_t last, SharedBytes result);
  void Break();
  void Fail(uint32_t member);
  void Decide();
  void EndIfLeft();
  void HandOn(const SharedBytes& result);

  void Refuse(uint32_t from, const AgreementMessage& message);
  void TakeBroken(uint32_t from, const AgreementMessage& message);
  void TakeAsk(uint32_t from, const AgreementMessage& message);
  void TakeAnswer(uint32_t from, const AgreementMessage& message);
  void TakeFetch(uint32_t from, const AgreementMessage& message);
  void TakeResult(uint32_t from, const AgreementMessage& message);
  void TakeDecision(uint32_t from, const AgreementMessage& message);
  void TakeLost(uint32_t from, const AgreementMessage& message);
  void TakeLeft(uint32_t from, const AgreementMessage& message);

  uint32_t self_;
  State state_;
  AgreementActions actions_;  // of the event under way
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_AGREEMENT_H_
