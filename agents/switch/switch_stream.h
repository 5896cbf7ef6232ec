// The switch's one stream to the daemon, Switches.Connect: says where it stands and what it can do,
// installs and removes entries as it is told, and reports what it did. The stream is made again
// when it ends, after a pause that grows; the entries stay meanwhile, and work.
//
//   hello (what is held) -->
//                        <-- welcome (what shall be held): the rest goes
//                        <-- install, remove
//   result, report       -->
#ifndef COPPICE_AGENTS_SWITCH_SWITCH_STREAM_H_
#define COPPICE_AGENTS_SWITCH_SWITCH_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/switch/switch_server.h"
#include "client/library/retry_pause.h"
#include "coppice/v1/switches.grpc.pb.h"

namespace coppice {

// Of a message of the daemon's. INVALID_ARGUMENT: a key of another length than 16 bytes.
absl::StatusOr<EntrySpec> ToEntrySpec(const v1::Entry& entry);
v1::Entry ToProto(const EntrySpec& spec);
// What this program can combine, within these limits.
v1::SwitchAbilities AbilitiesOf(const TableLimits& limits);
v1::SwitchReport ReportOf(const SwitchServer& server, const std::vector<Group>& broken);

// One call of Connect, from its start to its end. Belongs to the io_context's thread; gRPC's
// threads only post to it. It keeps itself until gRPC is done with it.
class SwitchCall final : public grpc::ClientBidiReactor<v1::SwitchMessage, v1::SwitchTask> {
 public:
  struct Events {
    std::function<void(const v1::SwitchTask& task)> on_task;
    std::function<void(const grpc::Status& status)> on_end;  // last
  };

  // `token` is held until gRPC is done with the call.
  static std::shared_ptr<SwitchCall> Start(asio::io_context* io, v1::Switches::StubInterface* stub,
                                           bool waits_for_daemon, const v1::SwitchMessage& hello,
                                           Events events, std::shared_ptr<void> token);

  void Send(const v1::SwitchMessage& message);
  size_t unsent() const { return unsent_.size(); }
  // No more events; ends it at the daemon.
  void Abandon();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  SwitchCall(asio::io_context* io, Events events, std::shared_ptr<void> token)
      : io_(io), token_(std::move(token)), events_(std::move(events)) {}

  asio::io_context* const io_;
  const std::shared_ptr<void> token_;
  grpc::ClientContext context_;
  Events events_;
  std::shared_ptr<SwitchCall> self_;  // until OnDone
  v1::SwitchTask task_;
  std::deque<v1::SwitchMessage> unsent_;  // the first is being written
  bool is_over_ = false;
};

// Belongs to the io_context's thread.
class SwitchStream final {
 public:
  struct Options {
    std::string guid;     // of the switch where it stands, 16 hex digits
    std::string address;  // where members and other switches reach it
    std::string version;
    std::string daemon;  // for messages
    std::chrono::milliseconds report_every{10'000};
  };

  // All outlive it.
  SwitchStream(asio::io_context* io, SwitchServer* server,
               const std::shared_ptr<grpc::Channel>& channel, Options options);
  // Runs the io_context until gRPC has let go, or for a few seconds.
  ~SwitchStream();
  SwitchStream(const SwitchStream&) = delete;
  SwitchStream& operator=(const SwitchStream&) = delete;

  // Once.
  void Begin();
  // Whether the daemon has taken the hello.
  bool is_welcome() const { return is_welcome_; }

 private:
  void OnTask(const v1::SwitchTask& task);
  void OnEnd(const grpc::Status& status);
  void Install(const v1::InstallEntry& task);
  void Report(const std::vector<Group>& broken);
  void ReportLater();

  asio::io_context* const io_;
  SwitchServer* const server_;
  const Options options_;
  const std::unique_ptr<v1::Switches::StubInterface> stub_;
  const std::shared_ptr<void> token_ = std::make_shared<int>();
  RetryPause pause_;
  asio::steady_timer retry_;
  asio::steady_timer report_;
  std::shared_ptr<SwitchCall> call_;
  std::string last_error_;
  bool is_welcome_ = false;
  // The first call does not wait for a connection: gRPC tells its reason in a call's error only.
  bool waits_for_daemon_ = false;
  // Gone with the stream: what asio calls later looks here first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_SWITCH_SWITCH_STREAM_H_
