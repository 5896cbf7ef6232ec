// A member of a tree that switches carry (agents/switch/README.md): gives its part of each
// collective to the entry of its leaf switch and takes the result from there; and when the tree
// breaks, agrees with all members how the last one ends (agreement.h).
//
//    program's thread          progress thread
//      Carry  ----------->   Agreement   <== link ==> member 0, or all others (who is member 0)
//       waits                    |
//      result <-----------  segments, a window of them  <== link ==> the entry of the leaf switch
//
// The progress thread answers for this member wherever the program is. It calls no MPI, and nothing
// here ends the program: who is needed and gone is named by Carry, in the program's thread.
#ifndef COPPICE_AGENTS_MPI_TREE_SWITCH_TREE_H_
#define COPPICE_AGENTS_MPI_TREE_SWITCH_TREE_H_

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agents/links/link.h"
#include "agents/links/link_listener.h"
#include "agents/mpi/tree/agreement.h"

namespace coppice::mpi {

struct SwitchTreeOptions {
  // As the tree was granted.
  Group group;
  LinkKey key{};
  std::string leaf_address;  // of the switch: "10.0.0.7:18516"
  uint32_t child = 0;        // this member's number there
  uint32_t segment_bytes = 0;
  uint32_t window = 0;

  uint32_t self = 0;  // of `members`; 0 coordinates
  uint32_t members = 1;
  std::string listen = "0.0.0.0:0";  // of member 0, for the others

  uint64_t max_bytes = uint64_t{64} << 20U;  // of a collective
  std::chrono::milliseconds join_within{10'000};
  // For a result; and, when the tree broke, for what the progress threads of others say, without
  // one of which the job is at its end. A connection that ends is seen at once, within half a
  // minute if its host died without a word: this is for what else goes wrong. Members that compute
  // may well be late, and so may processes that are stopped.
  std::chrono::milliseconds patience{300'000};
  // Called again and again while Join or Carry waits, in the program's thread: what other members
  // need first may be under way in it. Empty: nothing is.
  std::function<void()> go_on_meanwhile;
};

struct SwitchCollective {
  uint64_t number = 0;  // in this tree: 1, 2, ...; the same at all members
  ReductionOperation operation = ReductionOperation::kNone;
  ElementType type = ElementType::kNone;
  // Of the result, the same at all members; 0: a Barrier.
  uint64_t bytes = 0;
  // As long, or empty at those that take what another member gives.
  std::string_view data;
};

struct Carried {
  enum class How {
    kAlongTree,  // result
    kNatively,   // this one and all that follow, at all members
    kLost,       // the job cannot go on without member `lost`
    kMisused,    // not the next one, or none that a tree could carry: nothing was done
  };
  How how = How::kMisused;
  SharedBytes result;
  uint32_t lost = 0;
  bool is_handed_on = false;  // the result, by a member, as the tree broke
};

// One program's thread at a time calls it.
class SwitchTree final {
 public:
  // Null: `trouble` says why; of the segment, the window, where member 0 listens, or its
  // descriptors: it has one for each of the others, and takes no more than half of RLIMIT_NOFILE.
  static std::unique_ptr<SwitchTree> Open(const SwitchTreeOptions& options, std::string* trouble);
  // When all members are out of their last Carry, which HasEnded says, too: nobody answers for this
  // one any more.
  ~SwitchTree();
  SwitchTree(const SwitchTree&) = delete;
  SwitchTree& operator=(const SwitchTree&) = delete;

  // Of member 0: where it listens, until all have joined.
  uint16_t port() const { return listener_ == nullptr ? 0 : listener_->port(); }
  // And by which address the others reach it: that of its own by which it reaches its leaf switch,
  // as members and switches share a network. Empty: there is no way to the switch.
  std::string coordinator() const;

  // Connects to the leaf switch and to member 0, or waits for all others; within join_within.
  // False: `trouble` says why. The tree is used if it is true at all members.
  bool Join(const std::string& coordinator, std::string* trouble);

  // After Join at all members. Returns when the collective has ended along the tree, is to be
  // carried out natively, or cannot end.
  Carried Carry(const SwitchCollective& collective);

  // After the last Carry, once. It answers for this member until no other needs it.
  void Leave();
  // Since Leave: nobody needs it any more, and all that it said is on its way.
  bool HasEnded() const;

  // Why the tree is not used any more; empty: it is, or others saw why.
  std::string trouble() const;

 private:
  using Clock = std::chrono::steady_clock;
  // To the leaf switch.
  struct Leaf {
    std::optional<asio::ip::tcp::socket> socket;  // while it connects
    std::shared_ptr<Link> link;                   // null: not yet, or left
    bool is_welcome = false;
  };
  // To another member: of member 0 to each, else to member 0.
  struct Peer {
    std::shared_ptr<Link> link;
    std::optional<AgreementReader> reader;
    bool is_welcome = false;  // once
  };

  explicit SwitchTree(const SwitchTreeOptions& options);
  bool Listen(std::string* trouble);
  // In the program's thread.
  void WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_there);

  void ConnectLeaf();
  void ConnectCoordinator(const std::string& address);
  void OnHello(const std::shared_ptr<Link>& link, const FrameHeader& hello, const LinkKey& key);
  void LookIfJoined();
  void FailToJoin(const std::string& why);

  void OnLeafFrame(const FrameHeader& header, std::string_view payload);
  void OnResult(const FrameHeader& header, std::string_view payload);
  void BreakTree(std::string_view why);
  void OnPeerFrame(uint32_t member, const FrameHeader& header, std::string_view payload);
  void LosePeer(uint32_t member);
  Link::Events PeerEvents(uint32_t member);

  void Begin(const SwitchCollective* collective);
  void Contribute();
  uint64_t SegmentAt(uint64_t number) const;  // its first byte
  void Act(const AgreementActions& actions);
  void Send(const AgreementAction& action);
  void End(Carried carried);
  void Part();
  void LookAtClock();
  FrameHeader OwnHeader(FrameKind kind) const;

  const SwitchTreeOptions options_;
  const uint64_t segment_bytes_;  // of whole elements of any type
  asio::io_context io_;

  // Of the progress thread.
  std::unique_ptr<LinkListener> listener_;
  Leaf leaf_;
  std::optional<asio::ip::tcp::socket> coordinator_socket_;  // while it connects
  std::vector<Peer> peers_;                                  // by member
  Agreement agreement_;
  const SwitchCollective* current_ = nullptr;  // which the program waits for
  uint64_t segments_ = 0, sent_ = 0, received_ = 0;
  std::string result_;
  asio::steady_timer timer_;
  Agreement::Phase phase_ = Agreement::Phase::kWhole;
  Clock::time_point waits_since_;
  bool was_late_ = false;  // at the last look

  // Of the program's thread.
  uint64_t next_ = 1;
  bool is_natively_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Carried> carried_;  // by mutex_, as all that follow
  std::optional<bool> is_joined_;
  std::string trouble_;
  bool has_parted_ = false;
  std::vector<std::weak_ptr<Link>> parting_;  // what they still send

  std::thread thread_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_SWITCH_TREE_H_
