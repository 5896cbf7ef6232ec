// Every method, in every role, over every way of coming, on a real server: who is refused and who
// is not. What is expected is written here a second time, not read from the table.
#include "daemon/rpc/calls/access_table.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "coppice/v1/switches.grpc.pb.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "tests/unit/rpc/certificates.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/scripted_agent.h"
#include "tests/unit/rpc/users.h"

namespace coppice::access_table_test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// Who may call what: r readers, t users without a name (TCP without TLS), u users, a agents in
// their own name, o administrators.
constexpr char kExpected[] = R"(
Admin/GetStatus                  rtuao
Admin/Reload                         o
Admin/GetQuota                   rtuao
Admin/ListQuotas                     o
Admin/SetQuota                       o
Admin/ListDeeds                      o
Admin/ListAccounts               rtuao
Admin/ImportAccounts                 o
Admin/SetTenant                      o
Admin/CreateReservation              o
Admin/ListReservations           rtuao
Admin/DeleteReservation              o
Agents/Connect                      ao
Agents/ListAgents                rtuao
Agents/MeasureDistances              o
Agents/ListDistances             rtuao
Fabric/GetFabric                 rtuao
Fabric/ListPartitions            rtuao
Fabric/ListSwitches              rtuao
Fabric/ListLinks                 rtuao
Fabric/ListNodes                 rtuao
Fabric/GetRoute                  rtuao
Fabric/Sweep                         o
Fabric/GetTypeTable              rtuao
Fabric/Calibrate                     o
Fabric/ResetCalibration              o
Fabric/ListEvents                rtuao
Fabric/WatchEvents               rtuao
Fabric/ListPortCounters          rtuao
Fabric/GetPortHistory            rtuao
Fabric/ExportTopology            rtuao
Jobs/RegisterJob                  tu o
Jobs/GetJob                      rtuao
Jobs/ListJobs                    rtuao
Jobs/KeepAlive                    tu o
Jobs/EndJob                       tu o
Mapping/MapRanks                   u o
Mapping/EvaluateMapping            u o
Mapping/GetMappingProblem          u o
Mapping/PutOrder                  tu o
Mapping/GetOrder                 rtuao
Mapping/PutPattern                tu o
Mapping/GetPattern               rtuao
Mapping/ListPatterns             rtuao
Mapping/DeletePattern             tu o
Mapping/ListAlgorithms           rtuao
Placements/CreatePlacement         u o
Placements/BatchCreatePlacements   u o
Placements/AdvisePlacement         u o
Placements/GetPlacement          rtuao
Placements/ListPlacements        rtuao
Placements/RenewPlacement         tu o
Placements/StartPlacement         tu o
Placements/ReleasePlacement       tu o
Placements/GetNodeDistances      rtuao
Switches/Connect                    ao
Switches/ListSwitchAgents        rtuao
Trees/CreateTree                  tu o
Trees/AdviseTree                   u o
Trees/BatchCreateTrees             u o
Trees/WatchTrees                 rtuao
Trees/GetTree                    rtuao
Trees/ListTrees                  rtuao
Trees/ReleaseTree                 tu o
grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo     o
)";

// Method -> letters.
std::map<std::string, std::string> Expected() {
  std::map<std::string, std::string> expected;
  for (const absl::string_view line : absl::StrSplit(kExpected, '\n', absl::SkipWhitespace())) {
    const size_t space = line.find(' ');
    std::string letters(line.substr(space));
    letters.erase(std::remove(letters.begin(), letters.end(), ' '), letters.end());
    const absl::string_view method = line.substr(0, space);
    expected[absl::StrCat(method.find('.') == method.npos ? "/coppice.v1." : "/", method)] =
        letters;
  }
  return expected;
}

// Of every service that is linked in.
std::set<std::string> MethodsOfServices() {
  std::set<std::string> methods;
  for (const char* const name :
       {"coppice.v1.Admin", "coppice.v1.Agents", "coppice.v1.Fabric", "coppice.v1.Jobs",
        "coppice.v1.Mapping", "coppice.v1.Placements", "coppice.v1.Switches", "coppice.v1.Trees",
        "grpc.reflection.v1alpha.ServerReflection"}) {
    const auto* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    EXPECT_NE(service, nullptr) << name;
    for (int i = 0; service != nullptr && i < service->method_count(); ++i) {
      methods.insert(absl::StrCat("/", name, "/", service->method(i)->name()));
    }
  }
  return methods;
}

// The request that ends at once or brings a first answer at once, whatever the fabric holds.
std::string RequestOf(const std::string& method) {
  if (method != "/coppice.v1.Fabric/WatchEvents") return "";
  v1::WatchEventsRequest request;
  request.set_after_id(0);
  return request.SerializeAsString();
}

// A call as bytes: of any method, with one request; over at its first answer or its end.
class OneCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  static grpc::Status Make(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const std::string& user) {
    grpc::GenericStub stub(channel);
    OneCall call;
    const std::string request = RequestOf(method);
    const grpc::Slice slice(request);
    call.request_ = grpc::ByteBuffer(&slice, 1);
    Loopback::SetDeadline(call.context_);
    if (!user.empty()) call.context_.AddMetadata("coppice-user", user);
    stub.PrepareBidiStreamingCall(&call.context_, method, {}, &call);
    call.StartWriteLast(&call.request_, {});
    call.StartRead(&call.answer_);
    call.StartCall();
    call.done_.WaitForNotification();
    return call.has_answer_ ? grpc::Status::OK : call.status_;
  }

  void OnReadDone(bool ok) override {
    has_answer_ = ok;
    if (ok) context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, answer_;
  bool has_answer_ = false;
  grpc::Status status_;
  absl::Notification done_;
};

class AccessTableTest : public ::testing::Test {
 protected:
  AccessTableTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    const Certificate server = authority_.Sign("server", "DNS:daemon.example");
    Write("server.pem", server.certificate);
    Write("server.key", server.key);
    Write("ca.pem", authority_.certificate());
  }
  ~AccessTableTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(absl::StrCat(folder_, "/", name)) << text;
  }
  RpcServerOptions Server() const {
    RpcServerOptions server;
    server.listen = {absl::StrCat("unix:", folder_, "/s")};
    server.socket_mode = 0666;
    server.admin_group = "bin";
    server.tls_administrators = {"ops"};
    server.agents.certificates = {"agent-{host}", "{host}.nodes.example"};
    server.agents.users = {"54321"};
    server.agents.own_host = "n7";
    return server;
  }
  RpcServerOptions Tls(bool open_reading) const {
    RpcServerOptions server = Server();
    server.listen.push_back("127.0.0.1:0");
    server.tls = TlsFiles{.certificate = folder_ + "/server.pem",
                          .key = folder_ + "/server.key",
                          .client_ca = folder_ + "/ca.pem",
                          .open_reading = open_reading};
    return server;
  }
  std::shared_ptr<grpc::Channel> Unix(Loopback& loopback, uid_t uid) {
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    return ChannelOf(ConnectAs(uid, loopback.server().addresses()[0]));
  }
  std::shared_ptr<grpc::Channel> Tcp(Loopback& loopback, const Certificate& shown = {}) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.certificate();
    options.pem_cert_chain = shown.certificate;
    options.pem_private_key = shown.key;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("daemon.example");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(loopback.server().addresses()[1],
                                     grpc::SslCredentials(options), arguments);
  }
  // `letter`: what those who come so are, of kExpected; '-': nobody.
  // Connect heeds no name: it is left out where an agent names a user.
  void ExpectRole(char letter, const std::shared_ptr<grpc::Channel>& channel,
                  const std::string& user = "") {
    for (const auto& [method, letters] : Expected()) {
      if (letter == 'u' && !user.empty() && absl::EndsWith(method, "/Connect")) continue;
      const grpc::Status status = OneCall::Make(channel, method, user);
      const bool is_refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
      SCOPED_TRACE(absl::StrCat(method, ": ", status.error_code(), " ", status.error_message()));
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
      if (letter == '-') {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      } else {
        EXPECT_EQ(is_refused, letters.find(letter) == std::string::npos);
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      }
    }
  }
  // As whom somebody registers a job.
  static absl::StatusOr<std::string> Owner(const std::shared_ptr<grpc::Channel>& channel,
                                           const std::string& user = "") {
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    if (!user.empty()) context.AddMetadata("coppice-user", user);
    v1::RegisterJobRequest request;
    request.set_all_endpoints(true);
    v1::Job job;
    const absl::Status status =
        Loopback::ToAbsl(v1::Jobs::NewStub(channel)->RegisterJob(&context, request, &job));
    if (!status.ok()) return status;
    return job.owner();
  }

  std::string folder_ = "/tmp/coppice-access-XXXXXX";
  Authority authority_;
};

TEST_F(AccessTableTest, KnowsEveryMethod) {
  std::set<std::string> expected, known;
  for (const auto& [method, letters] : Expected()) expected.insert(method);
  for (const MethodAccess& access : AccessTable()) {
    if (!absl::StartsWith(access.method, "/grpc.health.")) known.emplace(access.method);
  }
  EXPECT_THAT(expected, UnorderedElementsAreArray(MethodsOfServices()));
  EXPECT_THAT(known, UnorderedElementsAreArray(MethodsOfServices()));
  EXPECT_EQ(FindAccess("/coppice.v1.Jobs/Jump"), nullptr);
}

TEST_F(AccessTableTest, AtTheUnixSocket) {
  if (!MayActAsOthers()) GTEST_FAIL();
  Loopback loopback({.server = Server()});
  const auto root = Unix(loopback, 0), admin = Unix(loopback, kBinUser),
             user = Unix(loopback, kDaemonUser), agent = Unix(loopback, kNamelessUser);
  ExpectRole('o', root);  // the daemon's own user, too
  ExpectRole('o', admin);
  ExpectRole('u', user);
  ExpectRole('a', agent);
  // In the name of somebody else.
  ExpectRole('o', root, "0");
  ExpectRole('o', admin, "root");
  // Who connected is an administrator, and so may be an agent, whomever the call is for.
  EXPECT_EQ(*Owner(root, "daemon"), "daemon");
  ExpectRole('r', user, "daemon");
  for (const char* const name : {"1", "daemon", "2", "bin", "0", "root", "known-to-the-node"}) {
    SCOPED_TRACE(name);
    ExpectRole('u', agent, name);
  }
  EXPECT_EQ(*Owner(agent, "1"), "daemon");
  EXPECT_EQ(*Owner(agent, "0"), "root@n7");
  EXPECT_EQ(*Owner(agent, "root"), "root@n7");
  EXPECT_EQ(Owner(agent, "root@n7").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(Owner(agent).status().message()), HasSubstr("name one (coppice-user)"));
}

// Whatever the method, and once.
TEST_F(AccessTableTest, EveryDenialIsNoted) {
  if (!MayActAsOthers()) GTEST_FAIL();
  const struct {
    uid_t uid;
    const char* user;
    char letter;
    const char* noted_for;
  } kCallers[] = {{kDaemonUser, "", 'u', "daemon"},
                  {kDaemonUser, "bin", 'r', "daemon"},
                  {kNamelessUser, "", 'a', "54321"},
                  {kNamelessUser, "2", 'u', "bin"}};
  for (const auto& caller : kCallers) {
    Loopback loopback({.server = Server()});
    const auto channel = Unix(loopback, caller.uid);
    std::map<std::string, uint32_t> expected, noted;
    for (const auto& [method, letters] : Expected()) {
      // Heeds no name: it asks who connected.
      const bool is_connect = absl::EndsWith(method, "/Connect");
      const char letter = is_connect && caller.uid == kNamelessUser ? 'a' : caller.letter;
      const std::vector<std::string> parts = absl::StrSplit(method, absl::ByAnyChar("./"));
      const std::string name = absl::StrCat(parts[parts.size() - 2], ".", parts[parts.size() - 1]);
      if (letters.find(letter) == std::string::npos) expected[name] = 1;
      (void)OneCall::Make(channel, method, caller.user);
    }
    loopback.manager().deeds().Flush();
    const auto deeds = loopback.manager().Deeds({.only_denials = true});
    ASSERT_TRUE(deeds.ok());
    for (const DeedRecord& deed : *deeds) {
      noted[deed.method] += deed.count;
      EXPECT_EQ(deed.user, caller.noted_for) << deed.method;
      EXPECT_EQ(deed.origin, absl::StrCat("uid:", caller.uid)) << deed.method;
      EXPECT_EQ(deed.outcome, "PERMISSION_DENIED");
    }
    EXPECT_GT(expected.size(), 5u);
    EXPECT_EQ(noted, expected) << caller.letter;
  }
}

TEST_F(AccessTableTest, NodesRootIsRootWhereTheSiteSaysSo) {
  if (!MayActAsOthers()) GTEST_FAIL();
  RpcServerOptions server = Server();
  server.agents.trust_root = true;
  Loopback loopback({.server = server});
  const auto agent = Unix(loopback, kNamelessUser);
  EXPECT_EQ(*Owner(agent, "0"), "root");
  for (const char* const name : {"0", "bin"}) {
    EXPECT_TRUE(OneCall::Make(agent, "/coppice.v1.Fabric/Sweep", name).ok()) << name;
  }
  EXPECT_FALSE(OneCall::Make(agent, "/coppice.v1.Fabric/Sweep", "1").ok());
}

TEST_F(AccessTableTest, OverTls) {
  Loopback loopback({.server = Tls(false)});
  ExpectRole('o', Tcp(loopback, authority_.Sign("ops")));
  ExpectRole('u', Tcp(loopback, authority_.Sign("alice")));
  const auto agent = Tcp(loopback, authority_.Sign("agent-n1"));
  ExpectRole('a', agent);
  ExpectRole('u', agent, "1");
  ExpectRole('u', agent, "0");
  ExpectRole('a', Tcp(loopback, authority_.Sign("n2", "DNS:n2.nodes.example")));
  ExpectRole('-', Tcp(loopback));
  Authority stranger;
  ExpectRole('-', Tcp(loopback, stranger.Sign("ops")));
  // A name that no terminal may be shown owns nothing.
  for (const char* const name : {"ali\x1b[2Jce", "alice\nroot",
                                 "ali\xe2\x80\xae"
                                 "ce"}) {
    const auto unnamed = Tcp(loopback, authority_.Sign(name));
    ExpectRole('r', unnamed);
    EXPECT_THAT(std::string(Owner(unnamed).status().message()),
                HasSubstr("the common name of your certificate holds"));
  }
  EXPECT_EQ(*Owner(Tcp(loopback, authority_.Sign("alice"))), "tls:alice");
  EXPECT_EQ(*Owner(agent, "1"), "daemon");
  EXPECT_EQ(*Owner(agent, "0"), "root@n1");
  EXPECT_EQ(*Owner(Tcp(loopback, authority_.Sign("ops")), "0"), "root");
  // Where the host's name should be is none, or none that could be a host's.
  for (const char* const name : {"agent-", "agent-a b", ".nodes.example"}) {
    ExpectRole('u', Tcp(loopback, authority_.Sign(name)));
  }
}

// Any of its names may be what a rule names; it is called by the first.
TEST_F(AccessTableTest, CertificatesOfSeveralNames) {
  Loopback loopback({.server = Tls(false)});
  for (const char* const names : {"DNS:ops", "email:ops", "URI:ops", "DNS:x.example,DNS:ops"}) {
    SCOPED_TRACE(names);
    const auto both = Tcp(loopback, authority_.Sign("ada", names));
    EXPECT_TRUE(OneCall::Make(both, "/coppice.v1.Fabric/Sweep", "").ok());
    EXPECT_EQ(*Owner(both), "tls:ada");
    EXPECT_TRUE(
        OneCall::Make(Tcp(loopback, authority_.Sign("", names)), "/coppice.v1.Fabric/Sweep", "")
            .ok());
  }
  const struct {
    const char* alternative;
    const char* owner;
  } kNames[] = {{"DNS:ada.example", "tls:ada.example"},
                {"DNS:n.example,URI:spiffe://site/ada,email:ada@example", "tls:spiffe://site/ada"},
                {"DNS:n.example,email:ada@example", "tls:ada@example"},
                {"DNS:a.example,DNS:b.example", "tls:a.example"}};
  for (const auto& [alternative, owner] : kNames) {
    const auto channel = Tcp(loopback, authority_.Sign("", alternative));
    EXPECT_EQ(*Owner(channel), owner) << alternative;
    EXPECT_FALSE(OneCall::Make(channel, "/coppice.v1.Fabric/Sweep", "").ok()) << alternative;
  }
  ExpectRole('a', Tcp(loopback, authority_.Sign("", "DNS:a.example,DNS:n3.nodes.example")));
  // An address is no name, and one name is not part of another.
  EXPECT_EQ(Owner(Tcp(loopback, authority_.Sign("", "IP:10.0.0.1"))).status().code(),
            absl::StatusCode::kPermissionDenied);
  ExpectRole('u', Tcp(loopback, authority_.Sign("", "DNS:ops.example")));
}

TEST_F(AccessTableTest, RevokedCertificates) {
  RpcServerOptions server = Tls(true);
  server.tls.client_crl = folder_ + "/crl.pem";
  const Certificate early = authority_.Sign("early"), late = authority_.Sign("ops");
  const auto put = [this](const std::string& text) {
    Write("next", text);
    std::filesystem::rename(folder_ + "/next", folder_ + "/crl.pem");
  };
  put(authority_.Revoke(early.certificate));
  Loopback loopback({.server = server});
  const std::string kStatus = "/coppice.v1.Admin/GetStatus";
  const auto code = [&](const std::shared_ptr<grpc::Channel>& channel) {
    return OneCall::Make(channel, kStatus, "").error_code();
  };
  EXPECT_EQ(code(Tcp(loopback, early)), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(OneCall::Make(Tcp(loopback, early), kStatus, "").error_message(),
              HasSubstr("your certificate was revoked"));
  const auto channel = Tcp(loopback, late);
  EXPECT_EQ(code(channel), grpc::StatusCode::OK);
  // For connections that there are, too.
  put(authority_.Revoke(late.certificate));
  while (code(channel) == grpc::StatusCode::OK) continue;
  EXPECT_EQ(code(channel), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(Tcp(loopback, early)), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(Tcp(loopback, authority_.Sign("ops"))), grpc::StatusCode::OK);
}

TEST_F(AccessTableTest, ListsOfRevokedCertificatesThatDoNotFitChangeNothing) {
  const std::string first = authority_.Sign("ada").certificate,
                    second = authority_.Sign("bob").certificate;
  TlsFiles files{.client_ca = folder_ + "/ca.pem", .client_crl = folder_ + "/crl.pem"};
  Authority stranger;
  Revocations revocations(files);
  EXPECT_FALSE(revocations.HasAny(first)) << "there is no list yet";
  Write("crl.pem", authority_.Revoke(first));
  revocations.Look();
  for (const std::string& text : {std::string(), stranger.Revoke(second), std::string("x")}) {
    Write("crl.pem", text);
    revocations.Look();
    EXPECT_TRUE(revocations.HasAny(first)) << text;
    EXPECT_TRUE(revocations.HasAny(second + first)) << "its chain counts, too";
    EXPECT_FALSE(revocations.HasAny(second)) << text;
  }
  std::filesystem::remove(files.client_crl);
  revocations.Look();
  EXPECT_TRUE(revocations.HasAny(first));
  Write("crl.pem", authority_.Revoke(second));
  revocations.Look();
  EXPECT_TRUE(revocations.HasAny(second));
  EXPECT_FALSE(revocations.HasAny(authority_.Sign("eve").certificate));
}

TEST_F(AccessTableTest, ListsOfRevokedCertificatesThatDoNotFitAreNamed) {
  Authority other;
  const std::string certificate = authority_.Sign("ada").certificate;
  const std::string good = authority_.Revoke(certificate),
                    both = authority_.certificate() + other.certificate();
  EXPECT_EQ(ReadRevocations("f", good, authority_.certificate())->size(), 1u);
  // Of an authority that has a new key and the same name.
  const std::string another = authority_.Sign("bob").certificate;
  EXPECT_EQ(ReadRevocations("f", good + other.Revoke(another), both)->size(), 2u);
  EXPECT_EQ(ReadRevocations("f", Authority().Revoke(""), both).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::pair<std::string, const char*> kBad[] = {
      {"", "file f: is not, or not all of it, revocation lists"},
      {certificate, "file f: is not, or not all of it, revocation lists"},
      {good + good.substr(0, good.size() / 2), "file f: is not, or not all of it"},
      {other.Revoke(""), "file f: holds a revocation list that no authority"},
      {authority_.Revoke("", -1), "file f: its revocation list was to be replaced by"},
      {authority_.Revoke("", 1, true), "file f: tells the difference from an earlier"}};
  for (const auto& [text, words] : kBad) {
    EXPECT_THAT(
        std::string(ReadRevocations("f", text, authority_.certificate()).status().message()),
        HasSubstr(words));
  }
}

TEST_F(AccessTableTest, OverTlsWithOpenReading) {
  Loopback loopback({.server = Tls(true)});
  ExpectRole('r', Tcp(loopback));
  ExpectRole('u', Tcp(loopback, authority_.Sign("alice")));
  ExpectRole('a', Tcp(loopback, authority_.Sign("agent-n1")));
  Authority stranger;
  ExpectRole('-', Tcp(loopback, stranger.Sign("ops")));
}

TEST_F(AccessTableTest, OverTcpWithoutTls) {
  RpcServerOptions server = Server();
  server.listen.push_back("127.0.0.1:0");
  server.insecure_tcp = true;
  Loopback loopback({.server = server});
  const auto channel = loopback.Connect(1);
  ExpectRole('t', channel);
  ExpectRole('r', channel, "daemon");
  EXPECT_EQ(*Owner(channel), "anonymous");
  EXPECT_THAT(OneCall::Make(channel, "/coppice.v1.Mapping/MapRanks", "").error_message(),
              HasSubstr("Mapping.MapRanks may take much of what all callers share, processors and "
                        "memory, and so takes a name: connect to"));
}

// --- Which agent is whose ---

TEST_F(AccessTableTest, AnAgentIsTheAgentOfItsHostAlone) {
  Loopback loopback({.server = Tls(false)});
  const auto view = loopback.manager().fabric();
  const Fabric& fabric = *view->snapshot->fabric;
  const std::string own(fabric.host_name(HostIndex(0))), other(fabric.host_name(HostIndex(1)));
  const auto channel = Tcp(loopback, authority_.Sign("agent-" + own));
  v1::AgentMessage by_port = Hello("whatever");
  by_port.mutable_hello()->add_port_guids(ToString(fabric.endpoint(EndpointIndex(1)).port_guid));
  for (const v1::AgentMessage& claim : {Hello(other), by_port}) {
    AgentCall call(channel);
    call.Say(claim);
    const absl::Status status = call.End();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(other));
  }
  loopback.manager().deeds().Flush();
  const auto deeds = loopback.manager().Deeds({.method_prefix = "Agents.Connect"});
  ASSERT_FALSE(deeds->empty()) << "whose node was taken over";
  EXPECT_EQ(deeds->front().user, "tls:agent-" + own);
  EXPECT_EQ(deeds->front().object, "host:" + other);
  EXPECT_EQ(deeds->front().outcome, "PERMISSION_DENIED");
  AgentCall call(channel);
  call.Say(Hello(own));
  EXPECT_TRUE(call.Hear().has_value());
  // By a name with the domain, too.
  AgentCall full(Tcp(loopback, authority_.Sign("agent-" + other + ".cluster.example")));
  full.Say(Hello(other));
  EXPECT_TRUE(full.Hear().has_value());
  EXPECT_EQ(loopback.meter().connected(), 2u);
}

TEST_F(AccessTableTest, AConnectedAgentIsReplacedByItselfOnly) {
  Loopback loopback({.server = Tls(false)});
  const auto view = loopback.manager().fabric();
  const std::string host(view->snapshot->fabric->host_name(HostIndex(0)));
  const auto own = Tcp(loopback, authority_.Sign("agent-" + host));
  AgentCall first(own);
  first.Say(Hello(host));
  ASSERT_TRUE(first.Hear().has_value());
  AgentCall rogue(Tcp(loopback, authority_.Sign(host, "DNS:" + host + ".nodes.example")));
  rogue.Say(Hello(host));
  const absl::Status refused = rogue.End();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tls:agent-" + host));
  AgentCall again(own);
  again.Say(Hello(host));
  ASSERT_TRUE(again.Hear().has_value());
  EXPECT_EQ(first.End().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace coppice::access_table_test
