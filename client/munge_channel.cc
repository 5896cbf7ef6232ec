#include "client/munge_channel.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {
namespace {

// The daemon reads the first credential that a connection brings. One that it could not read, since
// munged was away, is not offered until it expires.
constexpr std::chrono::seconds kOfferedFor{60};

// gRPC asks it for what each call brings. A connection is known by its context, of which gRPC makes
// one for each (grpc_auth_context); holding it keeps its address from becoming another's.
class CredentialSource final {
 public:
  explicit CredentialSource(Munge munge) : munge_(std::move(munge)) {}
  ~CredentialSource() { grpc_auth_metadata_context_reset(&connection_); }
  CredentialSource(const CredentialSource&) = delete;
  CredentialSource& operator=(const CredentialSource&) = delete;

  // Belongs to gRPC, which deletes it after the last call.
  static grpc_metadata_credentials_plugin PluginOf(CredentialSource* source) {
    grpc_metadata_credentials_plugin plugin{};
    plugin.get_metadata = [](void* state, grpc_auth_metadata_context context,
                             grpc_credentials_plugin_metadata_cb done, void* tag,
                             grpc_metadata* metadata, size_t* count, grpc_status_code* status,
                             const char** /*error*/) {
      auto& self = *static_cast<CredentialSource*>(state);
      if (!self.Offer(context, metadata[0])) return self.Wait(&context, {done, tag}), 0;
      *count = 1;
      *status = GRPC_STATUS_OK;
      return 1;
    };
    plugin.destroy = [](void* state) { delete static_cast<CredentialSource*>(state); };
    plugin.state = source;
    plugin.type = "munge";
    return plugin;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    grpc_credentials_plugin_metadata_cb done;
    void* tag;
  };

  static grpc_metadata MetadataOf(const std::string& credential) {
    grpc_metadata metadata{};
    metadata.key = grpc_slice_from_static_string(kMungeMetadata);
    metadata.value = grpc_slice_from_copied_buffer(credential.data(), credential.size());
    return metadata;
  }

  static std::string FingerprintOn(const grpc_auth_metadata_context& connection) {
    grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(
        connection.channel_auth_context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
    const grpc_auth_property* const pem = grpc_auth_property_iterator_next(&found);
    return pem == nullptr ? "" : FingerprintOf({pem->value, pem->value_length});
  }

  // False: there is none for that connection yet.
  bool Offer(const grpc_auth_metadata_context& context, grpc_metadata& metadata) {
    const std::lock_guard lock(mu_);
    if (context.channel_auth_context != connection_.channel_auth_context || credential_.empty() ||
        Clock::now() - made_ > kOfferedFor) {
      return false;
    }
    metadata = MetadataOf(credential_);
    return true;
  }

  void Wait(grpc_auth_metadata_context* context, Waiter waiter) {
    {
      const std::lock_guard lock(mu_);
      std::vector<Waiter>& waiters = waiters_[context->channel_auth_context];
      waiters.push_back(waiter);
      if (waiters.size() > 1) return;
    }
    grpc_auth_metadata_context held{};
    grpc_auth_metadata_context_copy(context, &held);
    // Each waiter holds what holds this: so it is there until the last one has been told.
    std::thread([this, held] { Make(held); }).detach();
  }

  void Make(grpc_auth_metadata_context connection) {
    const absl::StatusOr<std::string> made = MakeCredential(munge_, FingerprintOn(connection));
    std::vector<Waiter> waiters;
    {
      const std::lock_guard lock(mu_);
      waiters = std::move(waiters_.extract(connection.channel_auth_context).mapped());
      if (made.ok()) {
        std::swap(connection_, connection);
        credential_ = *made;
        made_ = Clock::now();
      }
    }
    grpc_auth_metadata_context_reset(&connection);
    for (const Waiter& waiter : waiters) {  // the last of them may delete this
      if (!made.ok()) {
        const std::string words(made.status().message());
        waiter.done(waiter.tag, nullptr, 0, GRPC_STATUS_UNAVAILABLE, words.c_str());
        continue;
      }
      const grpc_metadata metadata = MetadataOf(*made);
      waiter.done(waiter.tag, &metadata, 1, GRPC_STATUS_OK, nullptr);
      grpc_slice_unref(metadata.value);
    }
  }

  const Munge munge_;
  std::mutex mu_;
  // Guarded by mu_.
  std::map<const grpc_auth_context*, std::vector<Waiter>> waiters_;  // by connection
  grpc_auth_metadata_context connection_{};  // that the credential was made for
  std::string credential_;
  Clock::time_point made_;
};

// TLS and the source together. Of C's API, since C++'s shows a source no connection.
class MungeChannelCredentials final : public grpc::ChannelCredentials {
 public:
  MungeChannelCredentials(const std::string& roots, const Munge& munge) {
    grpc_channel_credentials* const tls =
        grpc_ssl_credentials_create(roots.c_str(), nullptr, nullptr, nullptr);
    grpc_call_credentials* const source = grpc_metadata_credentials_create_from_plugin(
        CredentialSource::PluginOf(new CredentialSource(munge)), GRPC_PRIVACY_AND_INTEGRITY,
        nullptr);
    credentials_ = grpc_composite_channel_credentials_create(tls, source, nullptr);
    grpc_call_credentials_release(source);
    grpc_channel_credentials_release(tls);
  }
  ~MungeChannelCredentials() override { grpc_channel_credentials_release(credentials_); }

 private:
  grpc::SecureChannelCredentials* AsSecureCredentials() override { return nullptr; }
  std::shared_ptr<grpc::Channel> CreateChannelImpl(const std::string& target,
                                                   const grpc::ChannelArguments& args) override {
    grpc_channel_args in_c{};
    args.SetChannelArgs(&in_c);
    return grpc::CreateChannelInternal("", grpc_channel_create(target.c_str(), credentials_, &in_c),
                                       {});
  }

  grpc_channel_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MungeCredentials(const std::string& roots,
                                                           const Munge& munge) {
  return std::make_shared<MungeChannelCredentials>(roots, munge);
}

}  // namespace coppice
