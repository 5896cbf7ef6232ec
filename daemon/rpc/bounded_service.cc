// A service whose calls are admitted before anything of their requests is read: the one place in
// front of all handlers, which know nothing of it.
//
//   headers --> whose? --Admission--> read --> too large? what would it take? --> handler
//                          |                     |                                  |
//                          +-RESOURCE_EXHAUSTED--+             answer, held until it is read
//
// A stream of requests is admitted so, too; each of its messages is bounded as it comes
// (proto/request_check.h). Why every method is registered as a dialogue: README.md. Uses
// grpc::internal as generated code does (rpc_service_method.h, server_callback_handlers.h).
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/listen/connections.h"
#include "daemon/rpc/listen/unix_users.h"
#include "daemon/rpc/service.h"
#include "proto/request_check.h"

namespace coppice {
namespace {

// Whose call it is, as far as bounds go. Of whom somebody else says that the call is his, has
// bounds of his own for each who says so: nobody takes another's places by naming him. Readers
// without a name are told apart by address, by network over IPv6, and have one bound together as
// those of an agent have.
Caller CallerOf(Peer peer) {
  if (peer.user == kAnonymous) {
    return {absl::StrCat(kAnonymous, " at ", NetworkOf(peer.origin)), kAnonymous, false, true};
  }
  if (peer.user == peer.caller) return {std::move(peer.user), "", peer.is_administrator, false};
  return {std::move(peer.user), std::move(peer.caller), peer.is_administrator, peer.is_by_agent};
}

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

// Of most methods.
constexpr size_t kSmallRequest = 1 << 20;
// A message and what is made of it for the manager.
constexpr int64_t kCopies = 2;
// An answer as an object, and as gRPC sends it.
constexpr int64_t kAnswerCopies = 3;

// An operation of a call that receives one message, and leaves it as it came: one of the parts of
// grpc::internal::CallOpSet.
class ReceiveBytes {
 public:
  ReceiveBytes() = default;
  ReceiveBytes(const ReceiveBytes&) = delete;
  ReceiveBytes& operator=(const ReceiveBytes&) = delete;
  ~ReceiveBytes() {
    if (bytes_ != nullptr) grpc_byte_buffer_destroy(bytes_);
  }

  // Null: none came.
  grpc_byte_buffer* bytes() const { return bytes_; }
  grpc_byte_buffer* TakeBytes() { return std::exchange(bytes_, nullptr); }

 protected:
  void AddOp(grpc_op* ops, size_t* count) {
    grpc_op& op = ops[(*count)++];
    op.op = GRPC_OP_RECV_MESSAGE;
    op.flags = 0;
    op.reserved = nullptr;
    op.data.recv_message.recv_message = &bytes_;
  }
  void FinishOp(bool*) {}
  void SetInterceptionHookPoint(grpc::internal::InterceptorBatchMethodsImpl*) {}
  void SetFinishInterceptionHookPoint(grpc::internal::InterceptorBatchMethodsImpl*) {}
  void SetHijackingState(grpc::internal::InterceptorBatchMethodsImpl*) {}

 private:
  grpc_byte_buffer* bytes_ = nullptr;
};

// The pieces of a message as they came. Copies none.
class PiecesStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PiecesStream(grpc_byte_buffer* bytes) {
    is_good_ = grpc_byte_buffer_reader_init(&reader_, bytes) != 0;
  }
  ~PiecesStream() override {
    if (is_good_) grpc_byte_buffer_reader_destroy(&reader_);
  }

  bool Next(const void** data, int* size) override {
    if (left_ == 0) {
      if (!is_good_ || grpc_byte_buffer_reader_peek(&reader_, &piece_) == 0) return false;
      left_ = static_cast<int>(GRPC_SLICE_LENGTH(*piece_));
    }
    *data = GRPC_SLICE_END_PTR(*piece_) - left_;
    *size = left_;
    read_ += left_;
    left_ = 0;
    return true;
  }
  void BackUp(int count) override {
    left_ = count;
    read_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return true;
  }
  int64_t ByteCount() const override { return read_; }

 private:
  grpc_byte_buffer_reader reader_;
  bool is_good_ = false;
  grpc_slice* piece_ = nullptr;
  int left_ = 0;  // at its end, not handed out
  int64_t read_ = 0;
};

// Ends a call that no handler sees.
class Refusal final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

struct Method {
  std::string name;  // "Trees.CreateTree", for errors
  const Service::Method& inner;
  Admission::Kind kind = Admission::Kind::kCall;
  size_t most_request_bytes = 0;
  std::unique_ptr<const RequestCheck> check = nullptr;  // a dialogue
  const Bounds* bounds = nullptr;
};

absl::Status TooLarge(const Method& method, absl::string_view what, size_t most) {
  return absl::ResourceExhaustedError(absl::StrCat(method.name, ": this request ", what,
                                                   ", and the most is ", most,
                                                   " bytes; ask "
                                                   "for less at once"));
}

// From the headers of a call until gRPC has forgotten it.
class BoundedCall final : public AdmittedCall, public CallUnderWay {
 public:
  BoundedCall(const Method* method, const MethodHandler::HandlerParameter& parameter)
      : method_(*method),
        call_(*parameter.call),
        context_(static_cast<grpc::CallbackServerContext*>(parameter.server_context)),
        requester_(parameter.call_requester) {
    grpc_call_ref(call_.call());
  }
  ~BoundedCall() override {
    received_tag_.Clear();
    grpc_call_unref(call_.call());
  }

  void Arrive() {
    self_ = std::static_pointer_cast<BoundedCall>(shared_from_this());
    method_.bounds->peers->Learn(*context_, [this](const absl::Status& status) { Admit(status); });
  }

  const std::string& caller() const override { return caller_; }

  absl::Status CanAnswer() override {
    return WithRetry(method_.bounds->admission->CanAnswer(*this));
  }
  absl::Status HoldAnswer() override {
    if (answer_ == nullptr) return absl::OkStatus();
    const size_t bytes = answer_->ByteSizeLong();
    const absl::Status status = HoldMessage(bytes);
    if (!status.ok()) {
      const std::unique_ptr<Message> empty(answer_->New());
      answer_->GetReflection()->Swap(answer_, empty.get());
    }
    return status;
  }
  absl::Status HoldMessage(size_t bytes) override {
    return WithRetry(method_.bounds->admission->HoldAnswer(
        *this, kAnswerCopies * static_cast<int64_t>(bytes),
        method_.inner.traits.is_change ? Admission::Answer::kKept : Admission::Answer::kRefused));
  }

 private:
  // `learnt`: whether who connected is known as far as he said so.
  void Admit(const absl::Status& learnt) {
    Peer peer = method_.bounds->peers->Identify(*context_);
    refusal_ = learnt.ok() ? std::move(peer.refusal) : learnt;
    descriptor_ = peer.descriptor;
    const Caller caller = CallerOf(std::move(peer));
    caller_ = caller.Key();
    if (descriptor_.has_value()) method_.bounds->connections->CallBegins(*descriptor_);
    // All is set by now: from here on another thread may start it.
    const auto verdict = method_.bounds->admission->Arrive(self_, caller, method_.kind);
    if (!verdict.ok()) return Refuse(ToWire(WithRetry(verdict.status()), "call"));
    if (*verdict == Admission::Verdict::kStart) Start();
  }
  void Start() override {
    if (!refusal_.ok()) return Refuse(ToWire(refusal_, "call"));
    if (method_.kind == Admission::Kind::kDialogue) return Run(nullptr, nullptr);
    // Not inline: what runs then takes locks that this thread may have.
    received_tag_.Set(
        call_.call(), [this](bool) { Received(); }, &receive_, /*can_inline=*/false);
    receive_.set_core_cq_tag(&received_tag_);
    call_.PerformOps(&receive_);
  }
  // Has no place for details: the words say that it may be tried again.
  void Abort(const absl::Status& why) override {
    grpc_call_cancel_with_status(call_.call(), static_cast<grpc_status_code>(why.code()),
                                 std::string(why.message()).c_str(), nullptr);
  }

  void Received() {
    const std::shared_ptr<BoundedCall> held = self_;  // it may be over before we are
    method_.bounds->admission->Read(*this);
    if (receive_.bytes() == nullptr) {
      return Refuse({grpc::StatusCode::CANCELLED, "the client sent no request"});
    }
    if (const absl::Status status = Weigh(); !status.ok()) {
      return Refuse(ToWire(status, "call"));
    }
    grpc::Status status;
    void* holder = nullptr;
    void* const request =
        method_.inner.handler->Deserialize(call_.call(), receive_.TakeBytes(), &status, &holder);
    if (method_.inner.answer_of != nullptr && holder != nullptr) {
      answer_ = method_.inner.answer_of(holder);
    }
    Run(request, holder, status);
  }

  // Whether there is room for the request.
  absl::Status Weigh() {
    const Bounds& bounds = *method_.bounds;
    const size_t size = grpc_byte_buffer_length(receive_.bytes());
    if (size > method_.most_request_bytes) {
      return TooLarge(method_, absl::StrCat("has ", size, " bytes"), method_.most_request_bytes);
    }
    PiecesStream pieces(receive_.bytes());
    const size_t most = bounds.most_request_memory;
    const absl::StatusOr<size_t> cost = method_.check->CostOf(&pieces, most);
    if (!cost.ok()) return cost.status();
    const size_t all = size + kCopies * *cost;
    if (all > most) return TooLarge(method_, "takes more memory than any may", most);
    return WithRetry(bounds.admission->TakeRequest(*this, static_cast<int64_t>(all)));
  }

  void Run(void* request, void* holder, const grpc::Status& status = {}) {
    const std::shared_ptr<CallUnderWay> shared = self_;
    const CallUnderWay::Scope scope(&shared);
    method_.inner.handler->RunHandler(
        {&call_, context_, request, status, holder, [this] { Over(); }});
  }

  void Refuse(const grpc::Status& status) {
    grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer> refuse(
        [&status](grpc::CallbackServerContext*) { return new Refusal(status); });
    refuse.RunHandler({&call_, context_, nullptr, {}, nullptr, [this] { Over(); }});
  }

  void Over() {
    const std::shared_ptr<BoundedCall> last = std::move(self_);
    method_.bounds->admission->Leave(*this);
    if (descriptor_.has_value()) method_.bounds->connections->CallEnds(*descriptor_);
    requester_();  // the context is gone from here on, and so may be the server
  }

  const Method& method_;
  grpc::internal::Call call_;
  grpc::CallbackServerContext* const context_;
  const std::function<void()> requester_;
  std::string caller_;
  std::optional<int> descriptor_;
  absl::Status refusal_;               // of one that is refused in its turn
  std::shared_ptr<BoundedCall> self_;  // gRPC's share
  grpc::internal::CallOpSet<ReceiveBytes> receive_;
  grpc::internal::CallbackWithSuccessTag received_tag_;
  Message* answer_ = nullptr;
};

class BoundedHandler final : public MethodHandler {
 public:
  explicit BoundedHandler(Method method) : method_(std::move(method)) {}

  void RunHandler(const HandlerParameter& parameter) override {
    std::make_shared<BoundedCall>(&method_, parameter)->Arrive();
  }

 private:
  const Method method_;
};

Admission::Kind KindOf(const MethodDescriptor& method) {
  if (method.client_streaming()) return Admission::Kind::kDialogue;
  return method.server_streaming() ? Admission::Kind::kStream : Admission::Kind::kCall;
}

class BoundedService final : public grpc::Service {
 public:
  BoundedService(const coppice::Service& service, const Bounds* bounds) {
    const google::protobuf::ServiceDescriptor& descriptor =
        *google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service.name());
    for (const coppice::Service::Method& inner : service.methods()) {
      const MethodDescriptor& described = *descriptor.FindMethodByName(inner.name);
      Method method{.name = absl::StrCat(descriptor.name(), ".", inner.name), .inner = inner};
      method.kind = KindOf(described);
      method.bounds = bounds;
      if (method.kind != Admission::Kind::kDialogue) {
        method.check = std::make_unique<const RequestCheck>(described.input_type());
      }
      method.most_request_bytes = inner.traits.is_bulk
                                      ? bounds->most_request_bytes
                                      : std::min(kSmallRequest, bounds->most_request_bytes);
      names_.push_back(absl::StrCat("/", service.name(), "/", inner.name));
      // A dialogue, as gRPC sees it: it hands over the call without its request.
      auto* const made = new RpcServiceMethod(names_.back().c_str(), RpcMethod::BIDI_STREAMING,
                                              new BoundedHandler(std::move(method)));
      made->SetServerApiType(RpcServiceMethod::ApiType::CALL_BACK);
      AddMethod(made);
    }
  }

 private:
  std::deque<std::string> names_;  // gRPC keeps pointers
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBoundedService(const Service& service, const Bounds* bounds) {
  return std::make_unique<BoundedService>(service, bounds);
}

}  // namespace coppice
