// The Switches service: coppice/v1/switches.proto over the manager's switches. Status codes are
// stated there.
#include "coppice/v1/switches.pb.h"
#include "daemon/manager/switches/switches.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/service.h"

namespace coppice {
namespace {

// A value that this daemon does not know is one of a newer switch, and nothing to refuse it for.
template <class Values>
uint64_t BitsOf(const Values& values) {
  uint64_t bits = 0;
  for (const int value : values) {
    if (value > 0 && value < 64) bits |= uint64_t{1} << value;
  }
  return bits;
}

template <class Wire, class Add>
void AddBits(uint64_t bits, const Add& add) {
  for (int value = 1; value < 64; ++value) {
    if ((bits >> value & 1) != 0) add(static_cast<Wire>(value));
  }
}

SwitchGroup GroupFrom(const v1::Group& group) {
  return {TreeId(static_cast<int64_t>(group.tree())), group.revision()};
}

void ToProto(const SwitchGroup& group, v1::Group& message) {
  message.set_tree(static_cast<uint64_t>(group.tree.value()));
  message.set_revision(group.revision);
}

void ToProto(const SwitchEntry& entry, v1::Entry& message) {
  ToProto(entry.group, *message.mutable_group());
  message.set_key(entry.key);
  message.set_children(entry.children);
  message.set_parent_address(entry.parent_address);
  if (entry.parent != Guid(0)) message.set_parent_guid(ToString(entry.parent));
  message.set_number_at_parent(entry.number_at_parent);
  message.set_segment_bytes(entry.segment_bytes);
  message.set_window(entry.window);
}

}  // namespace

void ToProto(const SwitchView& view, v1::SwitchAgent& message) {
  v1::SwitchHello& hello = *message.mutable_hello();
  hello.set_switch_guid(ToString(view.hello.guid));
  hello.set_address(view.hello.address);
  hello.set_version(view.hello.version);
  const SwitchAbilities& abilities = view.hello.abilities;
  v1::SwitchAbilities& able = *hello.mutable_abilities();
  able.set_entries(abilities.entries);
  able.set_children(abilities.children);
  AddBits<v1::ReductionOperation>(abilities.operations,
                                  [&](auto value) { able.add_operations(value); });
  AddBits<v1::ElementType>(abilities.types, [&](auto value) { able.add_types(value); });
  able.set_segment_bytes(abilities.segment_bytes);
  able.set_window(abilities.window);
  able.set_memory_bytes(abilities.memory_bytes);
  message.set_connected(view.connected);
  *message.mutable_since() = ToTimestamp(view.since);
  v1::SwitchReport& report = *message.mutable_last_report();
  report.set_entries_used(view.report.entries_used);
  report.set_memory_used_bytes(view.report.memory_used_bytes);
  v1::SwitchCounters& counters = *report.mutable_counters();
  counters.set_collectives(view.report.collectives);
  counters.set_segments_up(view.report.segments_up);
  counters.set_segments_down(view.report.segments_down);
  counters.set_bytes_up(view.report.bytes_up);
  counters.set_bytes_down(view.report.bytes_down);
  for (const auto& [reason, count] : view.report.refusals) {
    (*counters.mutable_refusals())[reason] = count;
  }
  counters.set_broken(view.report.broken_count);
}

absl::StatusOr<SwitchHello> FromProto(const v1::SwitchHello& message) {
  SwitchHello hello;
  const absl::StatusOr<Guid> guid = ParseGuid(message.switch_guid());
  if (!guid.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("hello.switch_guid: ", guid.status().message()));
  }
  hello.guid = *guid;
  hello.address = message.address();
  hello.version = message.version();
  const v1::SwitchAbilities& able = message.abilities();
  hello.abilities = {able.entries(),       able.children(),      BitsOf(able.operations()),
                     BitsOf(able.types()), able.segment_bytes(), able.window(),
                     able.memory_bytes()};
  for (const v1::Group& group : message.groups()) hello.groups.push_back(GroupFrom(group));
  return hello;
}

SwitchReport FromProto(const v1::SwitchReport& message) {
  const v1::SwitchCounters& counters = message.counters();
  SwitchReport report;
  report.entries_used = message.entries_used();
  report.memory_used_bytes = message.memory_used_bytes();
  report.collectives = counters.collectives();
  report.segments_up = counters.segments_up();
  report.segments_down = counters.segments_down();
  report.bytes_up = counters.bytes_up();
  report.bytes_down = counters.bytes_down();
  report.refusals.insert(counters.refusals().begin(), counters.refusals().end());
  report.broken_count = counters.broken();
  for (const v1::Group& group : message.broken()) report.broken.push_back(GroupFrom(group));
  return report;
}

// The stream of one switch, without a thread: reads one message, has a worker handle it, reads the
// next. A worker, as a hello waits for the store.
//
//   hello --switches: Connect--> welcome     switches: install, remove --> queue --> one write at a
//   result, report --> switches              time; end (another agent) --> ABORTED
//
// The switch has gone when the stream is done, for whatever reason.
class SwitchStream final
    : public ServedStream<grpc::ServerBidiReactor<v1::SwitchMessage, v1::SwitchTask>>,
      public std::enable_shared_from_this<SwitchStream> {
 public:
  // Tasks that a switch may leave unread: twice what its table can be filled and emptied with.
  static constexpr size_t kMaxQueued = 4 * kMaxSwitchEntries;

  SwitchStream(OpenStreams* streams, Switches* switches, WorkerPool* workers, std::string version,
               std::string identity)
      : ServedStream(streams, "switch"),
        switches_(switches),
        workers_(workers),
        line_(absl::StrCat("switch of ", bounds_->caller())),
        version_(std::move(version)),
        identity_(std::move(identity)) {}

  absl::Status Read() {
    std::lock_guard lock(mutex_);
    if (!is_over()) StartRead(&message_);
    return absl::OkStatus();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(TakeRefusal());  // OK: the switch has said its last
    workers_->Submit(
        [self = shared_from_this()] {
          const absl::Status status = self->Take();
          self->message_ = {};  // the next may be long in coming
          if (!status.ok()) return self->End(status);
          (void)self->Read();
        },
        line_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return End(Gone());
    std::lock_guard lock(mutex_);
    queue_.pop_front();
    is_writing_ = !queue_.empty() && !is_over();
    if (is_writing_) StartWrite(&queue_.front());
  }
  // It may wait for the hello of another, which waits for the store: not on a thread of gRPC, and
  // in the caller's line, so that many that go at once leave workers to others.
  void OnDone() override {
    SwitchSession session = 0;
    {
      std::lock_guard lock(mutex_);
      session = session_;
    }
    if (session != 0) {
      workers_->Submit([switches = switches_, session] { switches->Disconnect(session); }, line_);
    }
    ServedStream::OnDone();
  }

 private:
  // Queues a task; ends the stream if too many wait. With the installer's lock held, which is why
  // nobody is called back.
  void Send(v1::SwitchTask task) {
    std::lock_guard lock(mutex_);
    if (is_over()) return;
    if (queue_.size() >= kMaxQueued) {
      return EndLocked(absl::ResourceExhaustedError(absl::StrCat(
          object_, " has not read its last ", kMaxQueued, " tasks; connect again, and read them")));
    }
    // The welcome is the first, though there may be installs between it and the hello.
    const bool is_welcome = task.has_welcome();
    is_welcomed_ |= is_welcome;
    queue_.insert(is_welcome ? queue_.begin() : queue_.end(), std::move(task));
    if (is_welcomed_ && !std::exchange(is_writing_, true)) StartWrite(&queue_.front());
  }

  absl::Status Take() {
    SwitchSession session = 0;
    {
      std::lock_guard lock(mutex_);
      session = session_;
    }
    if (message_.has_hello() != (session == 0)) {
      return absl::InvalidArgumentError(
          session == 0 ? "message: the first is to be a hello; say which switch you are"
                       : "hello: a second one; connect again instead");
    }
    if (session == 0) return TakeHello();
    if (message_.has_installed()) {
      const v1::InstallResult& result = message_.installed();
      return switches_->TakeResult(session, result.id(), result.error());
    }
    if (!message_.has_report()) {
      return absl::InvalidArgumentError("message: it is empty, or newer than this daemon");
    }
    switches_->TakeReport(session, FromProto(message_.report()));
    return absl::OkStatus();
  }

  // Calls `use` with the stream, unless that has gone, and what it is given.
  template <class Use>
  auto IfThere(Use use) {
    return [self = weak_from_this(), use](const auto&... given) {
      if (const std::shared_ptr<SwitchStream> stream = self.lock()) use(*stream, given...);
    };
  }

  SwitchLink LinkOf() {
    SwitchLink link;
    link.install = IfThere([](SwitchStream& stream, uint64_t id, const SwitchEntry& entry) {
      v1::SwitchTask task;
      task.mutable_install()->set_id(id);
      ToProto(entry, *task.mutable_install()->mutable_entry());
      stream.Send(std::move(task));
    });
    link.remove = IfThere([](SwitchStream& stream, const SwitchGroup& group) {
      v1::SwitchTask task;
      ToProto(group, *task.mutable_remove());
      stream.Send(std::move(task));
    });
    link.end =
        IfThere([](SwitchStream& stream, const absl::Status& status) { stream.End(status); });
    return link;
  }

  absl::Status TakeHello() {
    ASSIGN_OR_RETURN(SwitchHello hello, FromProto(message_.hello()));
    const std::string object = absl::StrCat("switch:", ToString(hello.guid));
    ASSIGN_OR_RETURN(const Switches::Connected connected,
                     switches_->Connect(std::move(hello), LinkOf(), identity_));
    bool is_late = false;
    {
      std::lock_guard lock(mutex_);
      session_ = connected.session;
      object_ = object;
      is_late = is_over();  // meanwhile, maybe without a session to give up
    }
    if (is_late) switches_->Disconnect(connected.session);
    v1::SwitchTask task;
    v1::SwitchWelcome& welcome = *task.mutable_welcome();
    welcome.set_switch_name(connected.name);
    welcome.set_daemon_version(version_);
    for (const SwitchGroup& group : connected.keep) ToProto(group, *welcome.add_keep());
    Send(std::move(task));
    return absl::OkStatus();
  }

  Switches* const switches_;
  WorkerPool* const workers_;
  // For turns at the workers: who asks for thousands of trees must not have his own switches late.
  const std::string line_;
  const std::string version_;
  const std::string identity_;  // as whom it came
  v1::SwitchMessage message_;   // gRPC's while it reads
  // Guarded by mutex_.
  SwitchSession session_ = 0;         // 0: no hello yet
  std::deque<v1::SwitchTask> queue_;  // the first is gRPC's while it writes
  bool is_welcomed_ = false;
  bool is_writing_ = false;
};

class SwitchesService final : public Service {
 public:
  explicit SwitchesService(const ServiceParts& parts)
      : Service("coppice.v1.Switches", parts),
        version_(parts.options->version),
        streams_(CountStreams("Connect")) {
    Dialogue("Connect", &SwitchesService::Connect, "switches");
    Unary("ListSwitchAgents", &SwitchesService::ListSwitchAgents, "switches", {.pool = workers_});
  }

  void CloseStreams() override {
    manager_->switches().Stop();  // first: trees are not to be mended for these ends
    streams_.Close();
  }

 private:
  grpc::ServerBidiReactor<v1::SwitchMessage, v1::SwitchTask>* Connect(
      const absl::StatusOr<Peer>& peer) {
    const auto stream =
        std::make_shared<SwitchStream>(&streams_, &manager_->switches(), workers_, version_,
                                       peer.ok() ? peer->user : std::string());
    return streams_.Open(stream, peer.status(), [&] { return stream->Read(); });
  }

  absl::Status ListSwitchAgents(const v1::ListSwitchAgentsRequest& request,
                                v1::ListSwitchAgentsResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    Guid after(0);
    if (!request.page_token().empty()) {
      const absl::StatusOr<Guid> token = ParseGuid(request.page_token());
      if (!token.ok()) {
        return BadField("page_token", "it is none of this listing; begin without one");
      }
      after = *token;
    }
    response.set_next_page_token(FillPage(
        manager_->switches().List(after, size + 1), size, response.mutable_switches(),
        [](const SwitchView& view, v1::SwitchAgent& message) { ToProto(view, message); },
        [](const SwitchView& last) { return ToString(last.hello.guid); }));
    return absl::OkStatus();
  }

  const std::string version_;
  OpenStreams streams_;
};

std::unique_ptr<Service> MakeSwitchesService(const ServiceParts& parts) {
  return std::make_unique<SwitchesService>(parts);
}

}  // namespace coppice
