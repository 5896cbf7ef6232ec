// A switch's agent as a test plays it: over a real stream, with answers that the test thinks of.
#ifndef COPPICE_TESTS_UNIT_RPC_SCRIPTED_SWITCH_H_
#define COPPICE_TESTS_UNIT_RPC_SCRIPTED_SWITCH_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "coppice/v1/switches.grpc.pb.h"
#include "proto/status_conversion.h"

namespace coppice {

inline v1::SwitchMessage SwitchHelloOf(const std::string& guid, uint32_t entries = 4) {
  v1::SwitchMessage message;
  v1::SwitchHello& hello = *message.mutable_hello();
  hello.set_switch_guid(guid);
  hello.set_address("10.0.0.7:18516");
  hello.set_version("test");
  v1::SwitchAbilities& able = *hello.mutable_abilities();
  able.set_entries(entries);
  able.set_children(16);
  able.add_operations(v1::REDUCTION_OPERATION_SUM);
  able.add_operations(v1::REDUCTION_OPERATION_TAKE);
  able.add_types(v1::ELEMENT_TYPE_DOUBLE);
  able.set_segment_bytes(8192);
  able.set_window(4);
  able.set_memory_bytes(64 << 20);
  return message;
}

inline v1::SwitchMessage InstalledOf(uint64_t id, const std::string& error = "") {
  v1::SwitchMessage message;
  message.mutable_installed()->set_id(id);
  message.mutable_installed()->set_error(error);
  return message;
}

// One stream, step by step.
class SwitchCall final {
 public:
  explicit SwitchCall(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Switches::NewStub(channel)), stream_(stub_->Connect(&context_)) {}

  // False: the stream is over.
  bool Say(const v1::SwitchMessage& message) { return stream_->Write(message); }
  // None: the stream is over.
  std::optional<v1::SwitchTask> Hear() {
    v1::SwitchTask task;
    if (!stream_->Read(&task)) return std::nullopt;
    return task;
  }
  void SayNoMore() { stream_->WritesDone(); }
  void Vanish() { context_.TryCancel(); }
  // Reads what is left, then waits for the end.
  absl::Status End() {
    while (Hear().has_value()) {
    }
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<v1::Switches::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SwitchMessage, v1::SwitchTask>> stream_;
};

// Connects, does what it is told and answers as `policy` has it, until it is destroyed.
class ScriptedSwitch final {
 public:
  // What it says to an entry: empty, it is installed; nullopt: nothing.
  using Policy = std::function<std::optional<std::string>(const v1::Entry&)>;

  ScriptedSwitch(const std::shared_ptr<grpc::Channel>& channel, const v1::SwitchMessage& hello,
                 Policy policy = nullptr)
      : call_(channel), policy_(std::move(policy)) {
    call_.Say(hello);
    const std::optional<v1::SwitchTask> welcome = call_.Hear();
    if (!welcome.has_value() || !welcome->has_welcome()) {
      ADD_FAILURE() << hello.hello().switch_guid() << " is not welcome: " << call_.End();
      return;
    }
    welcome_ = welcome->welcome();
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedSwitch() {
    call_.Vanish();
    if (thread_.joinable()) thread_.join();
  }

  const v1::SwitchWelcome& welcome() const { return welcome_; }
  bool Say(const v1::SwitchMessage& message) { return call_.Say(message); }
  void Vanish() { call_.Vanish(); }
  // By tree.
  std::map<uint64_t, v1::Entry> held() const {
    std::lock_guard lock(mu_);
    return held_;
  }
  int installs() const {
    std::lock_guard lock(mu_);
    return installs_;
  }

 private:
  void Run() {
    while (const std::optional<v1::SwitchTask> task = call_.Hear()) {
      std::optional<std::string> words;
      {
        std::lock_guard lock(mu_);
        if (task->has_remove()) {
          const auto held = held_.find(task->remove().tree());
          if (held != held_.end() && held->second.group().revision() == task->remove().revision()) {
            held_.erase(held);
          }
          continue;
        }
        ++installs_;
        const v1::Entry& entry = task->install().entry();
        words = policy_ ? policy_(entry) : "";
        if (words == "") held_[entry.group().tree()] = entry;
      }
      if (words) call_.Say(InstalledOf(task->install().id(), *words));
    }
  }

  SwitchCall call_;
  const Policy policy_;
  v1::SwitchWelcome welcome_;
  mutable std::mutex mu_;
  std::map<uint64_t, v1::Entry> held_;  // guarded by mu_
  int installs_ = 0;                    // guarded by mu_
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_SCRIPTED_SWITCH_H_
