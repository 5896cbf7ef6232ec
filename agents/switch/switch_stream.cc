#include "agents/switch/switch_stream.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds kFirstStreamPause{200}, kMaxStreamPause{5'000};
// Where trying again soon cannot help: a daemon of another release, another process for this
// switch.
constexpr Milliseconds kHopelessPause{30'000};
// gRPC answers a cancel at once; longer than this something is wrong with it.
constexpr std::chrono::seconds kStreamPatience{5};
// A daemon that does not read gets no more reports until it does.
constexpr size_t kMaxUnsentReports = 4;
// A message has 64 KiB at most (proto/request_check.h); the rest comes with the next report.
constexpr size_t kMaxBrokenTold = 1'000;

Group FromProto(const v1::Group& group) { return {group.tree(), group.revision()}; }

void Fill(const Group& group, v1::Group* out) {
  out->set_tree(group.tree);
  out->set_revision(group.revision);
}

}  // namespace

absl::StatusOr<EntrySpec> ToEntrySpec(const v1::Entry& entry) {
  if (entry.key().size() != kKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("key: has ", entry.key().size(), " bytes, not 16"));
  }
  EntrySpec spec;
  spec.group = FromProto(entry.group());
  std::copy(entry.key().begin(), entry.key().end(), spec.key.begin());
  spec.children = entry.children();
  spec.segment_bytes = entry.segment_bytes();
  spec.window = entry.window();
  if (!entry.parent_address().empty()) {
    spec.parent =
        EntryParent{entry.parent_address(), entry.parent_guid(), entry.number_at_parent()};
  }
  return spec;
}

v1::Entry ToProto(const EntrySpec& spec) {
  v1::Entry entry;
  Fill(spec.group, entry.mutable_group());
  entry.set_key(spec.key.data(), spec.key.size());
  entry.set_children(spec.children);
  entry.set_segment_bytes(spec.segment_bytes);
  entry.set_window(spec.window);
  if (spec.parent) {
    entry.set_parent_address(spec.parent->address);
    entry.set_parent_guid(spec.parent->guid);
    entry.set_number_at_parent(spec.parent->number);
  }
  return entry;
}

v1::SwitchAbilities AbilitiesOf(const TableLimits& limits) {
  v1::SwitchAbilities abilities;
  abilities.set_entries(limits.entries);
  abilities.set_children(limits.children);
  abilities.set_segment_bytes(limits.segment_bytes);
  abilities.set_window(limits.window);
  abilities.set_memory_bytes(limits.memory_bytes);
  for (int operation = 1; operation <= kLastOperation; ++operation) {
    abilities.add_operations(static_cast<v1::ReductionOperation>(operation));
  }
  for (int type = 1; type <= kLastElementType; ++type) {
    abilities.add_types(static_cast<v1::ElementType>(type));
  }
  return abilities;
}

v1::SwitchReport ReportOf(const SwitchServer& server, const std::vector<Group>& broken) {
  v1::SwitchReport report;
  const ServerNumbers numbers = server.Numbers();
  report.set_entries_used(static_cast<uint32_t>(server.table().size()));
  report.set_memory_used_bytes(server.table().memory_bytes());
  v1::SwitchCounters& counters = *report.mutable_counters();
  counters.set_collectives(numbers.counters.collectives);
  counters.set_segments_up(numbers.counters.segments_up);
  counters.set_segments_down(numbers.counters.segments_down);
  counters.set_bytes_up(numbers.counters.bytes_up);
  counters.set_bytes_down(numbers.counters.bytes_down);
  for (const auto& [reason, count] : numbers.refusals)
    (*counters.mutable_refusals())[reason] = count;
  counters.set_broken(numbers.broken);
  for (const Group& group : broken) Fill(group, report.add_broken());
  return report;
}

std::shared_ptr<SwitchCall> SwitchCall::Start(asio::io_context* io,
                                              v1::Switches::StubInterface* stub,
                                              bool waits_for_daemon, const v1::SwitchMessage& hello,
                                              Events events, std::shared_ptr<void> token) {
  std::shared_ptr<SwitchCall> call(new SwitchCall(io, std::move(events), std::move(token)));
  call->self_ = call;
  call->context_.set_wait_for_ready(waits_for_daemon);
  stub->async()->Connect(&call->context_, call.get());
  call->AddHold();  // reads and writes are begun outside of reactions, too
  call->Send(hello);
  call->StartRead(&call->task_);
  call->StartCall();
  return call;
}

void SwitchCall::Send(const v1::SwitchMessage& message) {
  if (is_over_) return;
  unsent_.push_back(message);
  if (unsent_.size() == 1) StartWrite(&unsent_.front());
}

void SwitchCall::OnWriteDone(bool ok) {
  asio::post(*io_, [self = self_, ok] {
    self->unsent_.pop_front();
    if (!ok) {
      self->unsent_.clear();
      self->context_.TryCancel();
    } else if (!self->unsent_.empty() && !self->is_over_) {
      self->StartWrite(&self->unsent_.front());
    }
  });
}

void SwitchCall::OnReadDone(bool ok) {
  asio::post(*io_, [self = self_, ok] {
    if (!ok) {
      self->is_over_ = true;
      self->RemoveHold();
      return;
    }
    const v1::SwitchTask task = self->task_;
    self->StartRead(&self->task_);
    const auto on_task = self->events_.on_task;  // may be abandoned by what it calls
    if (on_task) on_task(task);
  });
}

void SwitchCall::OnDone(const grpc::Status& status) {
  asio::post(*io_, [self = std::move(self_), status] {
    const Events events = std::exchange(self->events_, {});
    if (events.on_end) events.on_end(status);
  });
}

void SwitchCall::Abandon() {
  events_ = {};
  context_.TryCancel();
}

SwitchStream::SwitchStream(asio::io_context* io, SwitchServer* server,
                           const std::shared_ptr<grpc::Channel>& channel, Options options)
    : io_(io),
      server_(server),
      options_(std::move(options)),
      stub_(v1::Switches::NewStub(channel)),
      pause_(kFirstStreamPause, kMaxStreamPause, std::hash<std::string>()(options_.guid)),
      retry_(*io),
      report_(*io) {
  server_->OnBroken([this](const Group& group) {
    spdlog::warn("{} is broken: a child or its parent is gone, or was refused", Describe(group));
    if (is_welcome_) Report({group});
  });
}

SwitchStream::~SwitchStream() {
  server_->OnBroken(nullptr);
  alive_.reset();
  retry_.cancel();
  report_.cancel();
  if (call_ != nullptr) std::exchange(call_, nullptr)->Abandon();
  const auto until = std::chrono::steady_clock::now() + kStreamPatience;
  io_->restart();
  while (token_.use_count() > 1 && std::chrono::steady_clock::now() < until) {
    // Work may be gone already, and gRPC's last post still be on its way.
    if (io_->run_one_for(Milliseconds(10)) == 0) io_->restart();
  }
}

void SwitchStream::Begin() {
  v1::SwitchMessage message;
  v1::SwitchHello& hello = *message.mutable_hello();
  hello.set_switch_guid(options_.guid);
  hello.set_address(options_.address);
  hello.set_version(options_.version);
  *hello.mutable_abilities() = AbilitiesOf(server_->table().limits());
  for (const Group& group : server_->table().Groups()) Fill(group, hello.add_groups());
  call_ = SwitchCall::Start(io_, stub_.get(), waits_for_daemon_, message,
                            {[this](const v1::SwitchTask& task) { OnTask(task); },
                             [this](const grpc::Status& status) { OnEnd(status); }},
                            token_);
}

void SwitchStream::OnTask(const v1::SwitchTask& task) {
  if (task.has_welcome()) {
    pause_.Reset();
    is_welcome_ = true;
    last_error_.clear();
    spdlog::info("daemon {} at {} takes this for switch {}",
                 ShownText(task.welcome().daemon_version()), options_.daemon,
                 ShownText(task.welcome().switch_name()));
    std::vector<Group> keep;
    for (const v1::Group& group : task.welcome().keep()) keep.push_back(FromProto(group));
    server_->Keep(keep);
    // This daemon may not have heard of them.
    Report(server_->table().Broken());
    ReportLater();
  } else if (task.has_install()) {
    Install(task.install());
  } else if (task.has_remove()) {
    server_->Remove(FromProto(task.remove()));
  }
}

void SwitchStream::Install(const v1::InstallEntry& task) {
  const absl::StatusOr<EntrySpec> spec = ToEntrySpec(task.entry());
  const absl::Status status = spec.ok() ? server_->Install(*spec) : spec.status();
  v1::SwitchMessage message;
  message.mutable_installed()->set_id(task.id());
  message.mutable_installed()->set_error(std::string(status.message()));
  if (!status.ok()) {
    spdlog::warn("{} is not installed: {}", Describe(FromProto(task.entry().group())),
                 std::string(status.message()));
  }
  call_->Send(message);
}

void SwitchStream::Report(const std::vector<Group>& broken) {
  if (call_ == nullptr) return;
  size_t told = 0;
  do {
    const size_t count = std::min(broken.size() - told, kMaxBrokenTold);
    const auto first = broken.begin() + static_cast<std::ptrdiff_t>(told);
    v1::SwitchMessage message;
    *message.mutable_report() =
        ReportOf(*server_, {first, first + static_cast<std::ptrdiff_t>(count)});
    call_->Send(message);
    told += count;
  } while (told < broken.size());
}

void SwitchStream::ReportLater() {
  report_.expires_after(options_.report_every);
  report_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code& error) {
    if (error || alive.expired() || call_ == nullptr || !is_welcome_) return;
    if (call_->unsent() < kMaxUnsentReports) Report({});
    ReportLater();
  });
}

void SwitchStream::OnEnd(const grpc::Status& status) {
  call_.reset();
  is_welcome_ = false;
  report_.cancel();
  waits_for_daemon_ = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  const std::string error = status.ok() ? "it ended the call" : ShownText(status.error_message());
  if (error != last_error_) {
    spdlog::warn("daemon at {}: does not take this switch now: {}; it is tried again",
                 options_.daemon, error);
    last_error_ = error;
  }
  const bool is_hopeless = status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                           status.error_code() == grpc::StatusCode::ABORTED ||
                           status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                           status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
  retry_.expires_after(is_hopeless ? kHopelessPause : pause_.Next());
  retry_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const std::error_code& error_code) {
    if (!error_code && !alive.expired()) Begin();
  });
}

}  // namespace coppice
