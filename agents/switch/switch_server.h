// What a switch says and hears: accepts members and the switches below, connects each entry to its
// parent, and carries frames between them and the entries.
//
//    members, switches below == LinkListener -> Link ---+
//                                                       +--- Entry of EntryTable
//    the switch above ==================== ParentLink --+
//
// One thread, that of the io_context; one frame of each link a turn. Whoever is refused is told
// why, and counted by the reason; of those that belong to no tree there is a bounded number
// (link_listener.h), and of each link a bounded buffer and queue (link.h).
#ifndef COPPICE_AGENTS_SWITCH_SWITCH_SERVER_H_
#define COPPICE_AGENTS_SWITCH_SWITCH_SERVER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/links/link_listener.h"
#include "agents/switch/entry_table.h"
#include "agents/switch/parent_link.h"

namespace coppice {

// Since the start.
struct ServerNumbers {
  EntryCounters counters;
  std::map<std::string, uint64_t> refusals;  // by RefusalName
  uint64_t broken = 0;                       // trees that lost a child or the parent
};

// Belongs to the thread of its io_context, which outlives it.
class SwitchServer final {
 public:
  struct Options {
    std::string listen = "0.0.0.0:18516";
    TableLimits limits;
    LinkListener::Options strangers;
    // Who takes nothing of what is sent to it for so long breaks its tree.
    std::chrono::milliseconds stall{5'000};
    // An entry that its parent has not let in for so long since it was installed breaks: whoever
    // goes down in between would be waited for without an end.
    std::chrono::milliseconds welcome_within{30'000};
  };

  // INVALID_ARGUMENT: `listen` is no address. UNAVAILABLE: it cannot be listened at, or no
  // descriptor is left.
  static absl::StatusOr<std::unique_ptr<SwitchServer>> Listen(asio::io_context* io,
                                                              const Options& options);
  ~SwitchServer();
  SwitchServer(const SwitchServer&) = delete;
  SwitchServer& operator=(const SwitchServer&) = delete;

  // Errors as EntryTable::Install. Who is connected at a lower revision is refused from then on.
  absl::Status Install(const EntrySpec& spec);
  void Remove(const Group& group);
  // Removes all but these.
  void Keep(std::span<const Group> groups);

  // Called when a tree has broken; not within a call of the above.
  void OnBroken(std::function<void(const Group& group)> on_broken) {
    on_broken_ = std::move(on_broken);
  }

  const EntryTable& table() const { return table_; }
  ServerNumbers Numbers() const;
  size_t strangers() const { return listener_->strangers(); }
  uint16_t port() const { return listener_->port(); }

 private:
  // The links of an entry.
  struct Wires {
    std::vector<std::shared_ptr<Link>> children;  // by number; null: not connected
    std::shared_ptr<ParentLink> parent;           // null: none, or gone
  };

  SwitchServer(asio::io_context* io, const Options& options);

  void OnHello(const std::shared_ptr<Link>& link, const FrameHeader& hello, const LinkKey& key);
  void OnChild(const Group& group, uint32_t child, const FrameHeader& header,
               std::string_view payload);
  void OnChildEnd(const Group& group, uint32_t child, LinkEnd end);
  void OnResult(const Group& group, const FrameHeader& header, std::string_view payload);
  void OnParentLost(const Group& group);
  void PassDown(Wires& wires, const Entry::Down& down);

  // Tells the child why, and breaks its tree.
  void RefuseChild(const Group& group, uint32_t child, Refusal refusal);
  void Break(const Group& group);
  void TellBroken(const Group& group);
  // Ends all links of an entry with a last word.
  void Unwire(uint64_t tree, Refusal refusal);
  // Lets the parent see the end of the link, without a word.
  void LeaveParent(Wires& wires);
  void Count(Refusal refusal) { ++refusals_[refusal]; }
  void LookForStalls();

  asio::io_context* const io_;
  const std::chrono::milliseconds stall_, welcome_within_;
  EntryTable table_;
  std::map<uint64_t, Wires> wires_;  // by tree, of all entries
  std::unique_ptr<LinkListener> listener_;
  asio::steady_timer stall_timer_;
  std::function<void(const Group& group)> on_broken_;
  std::map<Refusal, uint64_t> refusals_;
  uint64_t broken_ = 0;
  // Gone with the server: what asio calls later looks here first.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_SWITCH_SERVER_H_
