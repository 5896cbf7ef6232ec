#include "daemon/manager/switches/installation.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <future>

#include "absl/strings/str_cat.h"
#include "daemon/manager/event_kinds.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr size_t kMaxSwitchWords = 300;  // bytes of a switch's words that are passed on
constexpr size_t kMaxNamedGroups = 5;    // in one event
constexpr size_t kMaxReasons = 64;       // of refusals, that a report may tell
constexpr size_t kMaxReasonBytes = 100;  // of one
constexpr char kHasGone[] = "its agent went away";

// What a switch says, for people.
std::string ShownWords(absl::string_view words) {
  return ShownText(CutText(words, kMaxSwitchWords));
}

// Those that are kept and listed; those that look alike are one.
std::map<std::string, uint64_t> ShownReasons(const std::map<std::string, uint64_t>& refusals) {
  std::map<std::string, uint64_t> shown;
  for (const auto& [reason, count] : refusals) {
    if (shown.size() == kMaxReasons) break;
    shown[ShownText(CutText(reason, kMaxReasonBytes))] += count;
  }
  return shown;
}

std::string SwitchObject(Guid guid) { return absl::StrCat("switch:", ToString(guid)); }

}  // namespace

absl::Status InstallerIsClosed() {
  return absl::UnavailableError("daemon: it is shutting down; ask again when it is back");
}

absl::StatusOr<std::string> NewInstallKey() {
  std::string key(CarriageRecord::kKeyBytes, '\0');
  // Up to 256 bytes come whole (getrandom(2)), unless a signal comes first.
  ssize_t got = -1;
  do {
    got = getrandom(key.data(), key.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(key.size())) return key;
  return absl::InternalError("the system gives no random numbers for a tree's key; see getrandom");
}

void SwitchInstaller::Run(Actions& actions) {
  for (const std::function<void()>& action : actions) action();
}

void SwitchInstaller::Start() {
  {
    std::lock_guard lock(mutex_);
    closed_ = false;
  }
  timer_.Start([this] { Loop(); });
}

void SwitchInstaller::Stop() {
  timer_.Stop();
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    while (!installations_.empty()) {
      Fail(InstallationPtr(installations_.begin()->second), {}, InstallerIsClosed(), actions);
    }
  }
  Run(actions);
}

void SwitchInstaller::Loop() {
  for (;;) {
    const absl::Duration wait = std::min(Expire(), kMaxWait);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                      [this] { return timer_.stopping() || woken_; });
    woken_ = false;
    if (timer_.stopping()) return;
  }
}

absl::Duration SwitchInstaller::Expire() {
  Actions actions;
  absl::Duration next = absl::InfiniteDuration();
  {
    std::lock_guard lock(mutex_);
    const absl::Duration now = clock_->Monotonic();
    while (!installations_.empty()) {
      const InstallationPtr installation = installations_.begin()->second;
      if (installation->until > now) {
        next = installation->until - now;
        break;
      }
      std::vector<RefusingSwitch> late;
      std::set<Guid> named;
      for (const TaskKey& key : installation->tasks) {
        const auto found = tasks_.find(key);
        if (found == tasks_.end() || !named.insert(found->second.guid).second) continue;
        const Task& task = found->second;
        late.push_back({task.guid, absl::StrCat("it did not answer within ",
                                                absl::FormatDuration(kAnswerWithin))});
        TellEvent("switch.refused", task.guid,
                  absl::StrCat(ToString(task.group), ": ", late.back().words), actions);
      }
      Fail(installation, std::move(late), absl::AbortedError("switches did not answer"), actions);
    }
    std::vector<TreeId> lost;
    for (; !again_.empty(); again_.pop_front()) {
      if (again_.front().first > now) {
        next = std::min(next, again_.front().first - now);
        break;
      }
      const auto found = tasks_.find(again_.front().second);
      if (found == tasks_.end()) continue;
      const Task task = std::move(found->second);
      tasks_.erase(found);
      if (!table_.Holds(task.guid, task.group)) continue;
      const std::string words =
          absl::StrCat("it did not take it again within ", absl::FormatDuration(kAnswerWithin));
      TellEvent("switch.refused", task.guid, absl::StrCat(ToString(task.group), ": ", words),
                actions);
      Lose(task.group, absl::StrCat("switch ", ToString(task.guid), ": ", words), lost);
    }
    for (const Guid guid : table_.GiveUp(now, next)) {
      for (const SwitchGroup& group : table_.HeldBy(guid)) {
        Lose(group,
             absl::StrCat("switch ", ToString(guid), ", which carries it, does not speak any more"),
             lost);
      }
    }
    TellLost(std::move(lost), actions);
    Append(flaps_.End(clock_->Now(), now), actions);
    if (!flaps_.IsAtRest()) next = std::min(next, FlapFilter::kWithin);
  }
  Run(actions);
  return next;
}

// --- Connections ---

absl::Status SwitchInstaller::CheckPlace(Guid guid, const std::string& identity) const {
  std::lock_guard lock(mutex_);
  const SwitchTable::Switch* const present = table_.Find(guid);
  if (present == nullptr || present->identity == identity) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "switch ", ToString(guid), " has an agent, which came as ", ShownWords(present->identity),
      ", and you come as ", ShownWords(identity), ": stop that one, or come as it does"));
}

SwitchInstaller::Connected SwitchInstaller::Connect(SwitchHello hello, SwitchLink link,
                                                    std::string identity) {
  const Guid guid = hello.guid;
  std::vector<SwitchGroup> holds = std::move(hello.groups);
  std::sort(holds.begin(), holds.end());
  Connected connected;
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    const SwitchTable::Switch* const known = table_.Known(guid);
    const bool has_moved =
        known != nullptr && !known->hello.address.empty() && known->hello.address != hello.address;
    TellChange("switch.connected", guid,
               absl::StrCat("its agent ", hello.version, hello.version.empty() ? "" : " ", "at ",
                            hello.address, " has ", hello.abilities.entries, " entries of ",
                            hello.abilities.children, " children, and holds ", holds.size()),
               actions);
    const SwitchTable::Entered entered =
        table_.Enter(std::move(hello), std::make_shared<SwitchLink>(std::move(link)), clock_->Now(),
                     std::move(identity));
    connected.session = entered.session;
    if (entered.replaced != 0) {
      Leave(guid, entered.replaced, actions);
      actions.push_back([old = entered.old_link, guid] {
        old->end(absl::AbortedError(absl::StrCat("another agent has connected for switch ",
                                                 ToString(guid), "; let one run for each switch")));
      });
    }
    connected.keep = table_.HeldBy(guid);
    SendLacking(guid, holds);
    woken_ = true;
    changed_.notify_all();
    SendToChildrenOf(guid);
    std::vector<TreeId> lost;
    for (const SwitchGroup& group : connected.keep) {
      const CarriedTree& tree = *table_.FindHeld(group);
      const bool is_parent = std::any_of(tree.entries.begin(), tree.entries.end(),
                                         [&](const CarriedEntry& e) { return e.parent == guid; });
      // Its children connect to where it was.
      if (has_moved && is_parent) {
        Lose(group, absl::StrCat("switch ", ToString(guid), " listens at another address"), lost);
      }
    }
    TellLost(std::move(lost), actions);
  }
  Run(actions);
  return connected;
}

void SwitchInstaller::Leave(Guid guid, SwitchSession session, Actions& actions) {
  std::erase_if(tasks_, [&](const auto& task) {
    return task.first.first == session && task.second.installation == nullptr;
  });
  for (auto waiting = waiting_for_parent_.begin(); waiting != waiting_for_parent_.end();) {
    std::erase_if(waiting->second, [&](const auto& child) { return child.first == guid; });
    waiting = waiting->second.empty() ? waiting_for_parent_.erase(waiting) : std::next(waiting);
  }
  for (auto next = installations_.begin(); next != installations_.end();) {
    const InstallationPtr installation = (next++)->second;
    if (!installation->switches.contains(guid)) continue;
    Fail(installation, {{guid, kHasGone, true}}, absl::AbortedError("a switch's agent went away"),
         actions);
  }
}

std::optional<Guid> SwitchInstaller::Disconnect(SwitchSession session) {
  Actions actions;
  std::optional<Guid> gone;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    gone = table_.Leave(session, clock_->Now(), clock_->Monotonic(), kPatience);
    if (!gone) return std::nullopt;
    Leave(*gone, session, actions);
    const size_t held = table_.HeldBy(*gone).size();
    TellChange(
        "switch.disconnected", *gone,
        absl::StrCat("its agent has gone; ", held, held == 1 ? " tree waits " : " trees wait ",
                     absl::FormatDuration(kPatience), " for it"),
        actions);
    woken_ = true;
    changed_.notify_all();
  }
  Run(actions);
  return gone;
}

std::optional<Guid> SwitchInstaller::GuidOf(SwitchSession session) const {
  std::lock_guard lock(mutex_);
  const SwitchTable::Switch* const one = closed_ ? nullptr : table_.Find(session);
  return one == nullptr ? std::nullopt : std::optional(one->hello.guid);
}

void SwitchInstaller::SendLacking(Guid guid, const std::vector<SwitchGroup>& holds) {
  for (const SwitchGroup& group : table_.HeldBy(guid)) {
    if (std::binary_search(holds.begin(), holds.end(), group)) continue;
    // It gave this one away for a later one, which it keeps; it would refuse to go back.
    bool has_later = false;
    for (auto later = std::upper_bound(holds.begin(), holds.end(), group);
         later != holds.end() && later->tree == group.tree; ++later) {
      has_later |= table_.Holds(guid, *later);
    }
    if (has_later) continue;
    const std::optional<SwitchEntry> entry = table_.EntryOf(group, guid);
    if (entry) {
      Send(*table_.Find(guid), *entry, nullptr);
      continue;
    }
    for (const CarriedEntry& held : table_.FindHeld(group)->entries) {
      if (held.guid == guid) waiting_for_parent_[held.parent].insert({guid, group});
    }
  }
}

void SwitchInstaller::SendToChildrenOf(Guid guid) {
  const auto waiting = waiting_for_parent_.extract(guid);
  if (waiting.empty()) return;
  for (const auto& [child, group] : waiting.mapped()) {
    SwitchTable::Switch* const one = table_.Find(child);
    const std::optional<SwitchEntry> entry = table_.EntryOf(group, child);
    // One that has gone says what it lacks when it comes back.
    if (one != nullptr && entry) Send(*one, *entry, nullptr);
  }
}

void SwitchInstaller::Send(SwitchTable::Switch& one, const SwitchEntry& entry,
                           InstallationPtr installation) {
  const uint64_t id = ++one.last_task;
  if (installation == nullptr) {
    again_.emplace_back(clock_->Monotonic() + kAnswerWithin, TaskKey{one.session, id});
  } else {
    installation->tasks.emplace_back(one.session, id);
  }
  tasks_[{one.session, id}] = {entry.group, one.hello.guid, std::move(installation)};
  one.link->install(id, entry);
}

absl::Status SwitchInstaller::TakeResult(SwitchSession session, uint64_t id,
                                         const std::string& error) {
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    const SwitchTable::Switch* const one = table_.Find(session);
    if (one == nullptr) return absl::OkStatus();  // replaced meanwhile
    if (id == 0 || id > one->last_task) {
      return absl::InvalidArgumentError(
          absl::StrCat("installed.id: ", id, " is no task that this switch was given"));
    }
    const auto found = tasks_.find({session, id});
    if (found == tasks_.end()) return absl::OkStatus();  // too late
    const Task task = std::move(found->second);
    tasks_.erase(found);
    if (error.empty()) {
      ++numbers_.installs;
      if (task.installation != nullptr && --task.installation->unanswered == 0) {
        Finish(task.installation, {}, actions);
      }
    } else {
      ++numbers_.refusals;
      const std::string words = ShownWords(error);
      // Of a group that is gone it is nobody's loss that it was refused.
      const bool is_held = table_.Holds(task.guid, task.group);
      if (is_held) {
        TellEvent("switch.refused", task.guid, absl::StrCat(ToString(task.group), ": ", words),
                  actions);
      }
      if (task.installation != nullptr) {
        Fail(task.installation, {{task.guid, words}}, absl::AbortedError("a switch refused"),
             actions);
      } else if (is_held) {
        std::vector<TreeId> lost;
        Lose(task.group,
             absl::StrCat("switch ", ToString(task.guid), " did not take it again: ", words), lost);
        TellLost(std::move(lost), actions);
      }
    }
  }
  Run(actions);
  return absl::OkStatus();
}

void SwitchInstaller::TakeReport(SwitchSession session, SwitchReport report) {
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    SwitchTable::Switch* const one = table_.Find(session);
    if (one == nullptr) return;
    const Guid guid = one->hello.guid;
    std::vector<TreeId> lost;
    std::string names;
    size_t count = 0;
    for (const SwitchGroup& group : std::exchange(report.broken, {})) {
      // What is on its way, or gone, is nobody's loss; and each is told once.
      if (!table_.Holds(guid, group) || lost_.contains(group)) continue;
      if (++count <= kMaxNamedGroups) {
        absl::StrAppend(&names, count > 1 ? ", " : "", ToString(group));
      }
      Lose(group, absl::StrCat("it broke at switch ", ToString(guid)), lost);
    }
    if (count > 0) {
      TellEvent("group.broken", guid,
                absl::StrCat(count, count == 1 ? " group" : " groups",
                             " lost a member or a switch: ", names,
                             count > kMaxNamedGroups ? ", ..." : ""),
                actions);
    }
    report.refusals = ShownReasons(report.refusals);
    one->report = std::move(report);
    TellLost(std::move(lost), actions);
  }
  Run(actions);
}

// --- Trees ---

CarriageOffer SwitchInstaller::OfferFor(const TreeRecord& record) const {
  CarriageOffer offer;
  if (record.switches.empty()) return offer;
  std::vector<SwitchAbilities> abilities;
  {
    std::lock_guard lock(mutex_);
    if (table_.connected_count() == 0) return offer;
    for (const TreeSwitchRecord& serving : record.switches) {
      if (const SwitchTable::Switch* const one = table_.Find(serving.guid)) {
        abilities.push_back(one->hello.abilities);
      } else if (offer.silent.empty()) {
        offer.silent = absl::StrCat("switch ", ToString(serving.guid));
      }
    }
  }
  if (abilities.empty()) return offer;
  offer.speak = CarriageOffer::Speak::kSome;
  if (!offer.silent.empty()) return offer;
  const std::optional<CarriedTree> tree = CarriedTreeOf(record);
  if (!tree) return {};
  offer.speak = CarriageOffer::Speak::kAll;
  offer.terms = TermsFor(*tree, abilities);
  return offer;
}

std::optional<InstallOutcome> SwitchInstaller::WhyNot(const std::vector<CarriedTree>& trees) const {
  if (closed_) return InstallOutcome{InstallerIsClosed(), {}};
  for (const CarriedTree& tree : trees) {
    for (const CarriedEntry& entry : tree.entries) {
      if (table_.Find(entry.guid) != nullptr) continue;
      return InstallOutcome{absl::AbortedError("a switch's agent went away"),
                            {{entry.guid, kHasGone, true}}};
    }
  }
  return std::nullopt;
}

void SwitchInstaller::Install(std::vector<CarriedTree> trees, Done done) {
  if (trees.empty()) return done({});
  std::unique_lock lock(mutex_);
  // Nothing was sent: what their switches hold of earlier revisions they still do.
  if (std::optional<InstallOutcome> refused = WhyNot(trees)) {
    lock.unlock();
    return done(*std::move(refused));
  }
  auto installation = std::make_shared<Installation>();
  installation->number = ++last_installation_;
  installation->done = std::move(done);
  installation->until = clock_->Monotonic() + kAnswerWithin;
  // Counted before the first is sent: who answers at once must not end it.
  for (const CarriedTree& tree : trees) {
    installation->groups.push_back(tree.group);
    installation->unanswered += tree.entries.size();
    for (const CarriedEntry& entry : tree.entries) installation->switches.insert(entry.guid);
    table_.Hold(tree);
  }
  installations_.emplace(installation->number, installation);
  for (const CarriedTree& tree : trees) {
    for (const CarriedEntry& entry : tree.entries) {
      Send(*table_.Find(entry.guid), *table_.EntryOf(tree.group, entry.guid), installation);
    }
  }
  // With others under way the timer wakes for them, and they are due before this one.
  if (installations_.size() == 1) {
    woken_ = true;
    changed_.notify_all();
  }
}

InstallOutcome SwitchInstaller::InstallAndWait(std::vector<CarriedTree> trees) {
  std::promise<InstallOutcome> outcome;
  Install(std::move(trees), [&](InstallOutcome given) { outcome.set_value(std::move(given)); });
  return outcome.get_future().get();
}

void SwitchInstaller::Finish(const InstallationPtr& installation, InstallOutcome outcome,
                             Actions& actions) {
  installations_.erase(installation->number);
  for (const TaskKey& key : installation->tasks) tasks_.erase(key);
  // Copied into a std::function: what is called once lives in the installation.
  actions.push_back([installation, outcome = std::move(outcome)] { installation->done(outcome); });
}

void SwitchInstaller::Fail(const InstallationPtr& installation,
                           std::vector<RefusingSwitch> refusing, const absl::Status& status,
                           Actions& actions) {
  for (const SwitchGroup& group : installation->groups) RemoveLocked(group);
  Finish(installation, {status, std::move(refusing)}, actions);
}

void SwitchInstaller::Remove(const SwitchGroup& group) {
  std::lock_guard lock(mutex_);
  RemoveLocked(group);
}

void SwitchInstaller::Abandon(const SwitchGroup& group) {
  std::lock_guard lock(mutex_);
  if (table_.FindHeld(group) == nullptr) return;
  const auto found = lost_.find(group);
  std::string why = found == lost_.end() ? "its switches left it" : std::move(found->second);
  RemoveLocked(group);
  lost_.emplace(group, std::move(why));
}

void SwitchInstaller::RemoveLocked(const SwitchGroup& group) {
  lost_.erase(group);
  const std::optional<CarriedTree> tree = table_.Drop(group);
  if (!tree) return;
  std::set<Guid> have_later;
  for (const SwitchGroup& other : table_.RevisionsOf(group.tree)) {
    if (other.revision > group.revision) {
      for (const CarriedEntry& entry : table_.FindHeld(other)->entries) {
        have_later.insert(entry.guid);
      }
      continue;
    }
    // Not told: whoever installs a revision knows how that ended, and judges the tree again.
    std::vector<TreeId> untold;
    Lose(other,
         absl::StrCat("its switches began revision ", group.revision, ", which was given up"),
         untold);
  }
  for (const CarriedEntry& entry : tree->entries) {
    const auto waiting = waiting_for_parent_.find(entry.parent);
    if (waiting != waiting_for_parent_.end()) {
      waiting->second.erase({entry.guid, group});
      if (waiting->second.empty()) waiting_for_parent_.erase(waiting);
    }
    const SwitchTable::Switch* const one = table_.Find(entry.guid);
    if (one != nullptr && !have_later.contains(entry.guid)) one->link->remove(group);
  }
}

void SwitchInstaller::Restore(CarriedTree tree) {
  std::lock_guard lock(mutex_);
  for (const CarriedEntry& entry : tree.entries) {
    table_.Expect(entry.guid, clock_->Now(), clock_->Monotonic(), kRestartPatience);
  }
  table_.Hold(std::move(tree));
}

void SwitchInstaller::Lose(const SwitchGroup& group, std::string why, std::vector<TreeId>& lost) {
  if (closed_ || !lost_.try_emplace(group, std::move(why)).second) return;
  lost.push_back(group.tree);
}

void SwitchInstaller::TellLost(std::vector<TreeId> lost, Actions& actions) {
  if (lost.empty() || on_lost_ == nullptr) return;
  actions.push_back([this, lost = std::move(lost)] { on_lost_(lost); });
}

void SwitchInstaller::TellEvent(absl::string_view kind, Guid guid, std::string message,
                                Actions& actions) {
  Append({EventOf(kind, clock_->Now(), SwitchObject(guid), std::move(message))}, actions);
}

void SwitchInstaller::TellChange(absl::string_view kind, Guid guid, std::string message,
                                 Actions& actions) {
  Append(flaps_.Pass({EventOf(kind, clock_->Now(), SwitchObject(guid), std::move(message))},
                     clock_->Monotonic()),
         actions);
}

void SwitchInstaller::Append(std::vector<EventRecord> events, Actions& actions) {
  if (events_ == nullptr || events.empty()) return;
  actions.push_back([this, events = std::move(events)] { events_->Append(events); });
}

std::optional<std::string> SwitchInstaller::WhyLost(const TreeRecord& record) const {
  if (record.carriage.key.empty()) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = lost_.find({record.id, record.revision});
  if (found == lost_.end()) return std::nullopt;
  return found->second;
}

bool SwitchInstaller::LacksSwitch(const TreeRecord& record) const {
  if (record.carriage.key.empty()) return false;
  std::lock_guard lock(mutex_);
  return std::any_of(record.switches.begin(), record.switches.end(), [&](const auto& serving) {
    const SwitchTable::Switch* const one = table_.Known(serving.guid);
    return one != nullptr && one->session == 0 && !one->is_given_up;
  });
}

bool SwitchInstaller::HasGivenUp(Guid guid) const {
  std::lock_guard lock(mutex_);
  const SwitchTable::Switch* const one = table_.Known(guid);
  return one != nullptr && one->session == 0 && one->is_given_up;
}

bool SwitchInstaller::HasLost(const TreeRecord& record) const {
  std::lock_guard lock(mutex_);
  return std::any_of(record.switches.begin(), record.switches.end(), [&](const auto& serving) {
    const SwitchTable::Switch* const one = table_.Known(serving.guid);
    return one != nullptr && one->session == 0;
  });
}

std::optional<SwitchHello> SwitchInstaller::HelloOf(Guid guid) const {
  std::lock_guard lock(mutex_);
  const SwitchTable::Switch* const one = table_.Find(guid);
  return one == nullptr ? std::nullopt : std::optional(one->hello);
}

std::vector<SwitchView> SwitchInstaller::List(Guid after, size_t limit) const {
  std::lock_guard lock(mutex_);
  return table_.List(after, limit);
}

SwitchNumbers SwitchInstaller::numbers() const {
  std::lock_guard lock(mutex_);
  SwitchNumbers numbers = numbers_;
  numbers.connected = table_.connected_count();
  return numbers;
}

}  // namespace coppice
