#include "client/connection.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace coppice::connection_test {
namespace {

TEST(CheckServer, TakesTheTwoFormsOnly) {
  for (const char* good : {"unix:/run/x.sock", "unix:x", "host:1", "10.0.0.1:65535", "[::1]:50"}) {
    EXPECT_TRUE(CheckServer(good).ok()) << good;
  }
  for (const char* bad : {"", "unix:", "host", ":50", "host:", "host:0", "host:65536", "host:-1",
                          "http://host:80", "/run/x.sock"}) {
    const absl::Status status = CheckServer(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_TRUE(absl::StrContains(status.message(), bad)) << status;
  }
}

TEST(Credentials, NeedAnAuthorityAndPairs) {
  EXPECT_TRUE(CredentialsFor("host:1", {}).ok());
  EXPECT_TRUE(CredentialsFor("unix:x", {.ca = "", .cert = "mine", .key = ""}).ok());
  for (const TlsOptions& tls :
       {TlsOptions{"", "mine", "key"}, TlsOptions{"ca", "mine", ""}, TlsOptions{"ca", "", "key"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CredentialsFor("host:1", tls).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      CredentialsFor("host:1", {.ca = "", .cert = "", .key = "", .munge = "default"}).status()));
  const absl::Status missing = CredentialsFor("host:1", {"/nonexistent/ca.pem", "", ""}).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_TRUE(absl::StrContains(missing.message(), "/nonexistent/ca.pem")) << missing;
}

TEST(Connection, NamesTheServerThatDoesNotAnswer) {
  Connection connection("unix:/nonexistent/coppiced.sock");
  int begun = 0, ended = 0;
  connection.OnWait([&](bool waits) { waits ? ++begun : ++ended; });
  v1::GetJobRequest request;
  const auto job = connection.Call(&JobsStub::GetJob, request).status();
  const auto lease = connection.KeepAlive("1").status();
  for (const absl::Status& status : {job, lease}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "unix:/nonexistent/coppiced.sock")) << status;
  }
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace coppice::connection_test
