// Connections to a Unix socket as other users of this machine, without leaving the process.
#ifndef COPPICE_TESTS_UNIT_RPC_USERS_H_
#define COPPICE_TESTS_UNIT_RPC_USERS_H_

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <string>

namespace coppice {

// Of every Debian: base-passwd. Neither is in a group of the other.
inline constexpr uid_t kDaemonUser = 1;
inline constexpr uid_t kBinUser = 2;
inline constexpr uid_t kNamelessUser = 54321;

// Whether this process may connect as other users. Fails the test if it may not: the tests are
// promised root.
bool MayActAsOthers();

// A connected socket of user `uid`; -1, and the test fails, if it cannot be. `address`:
// "unix:PATH".
int ConnectAs(uid_t uid, const std::string& address);

// A channel over such a socket. It does not connect again.
std::shared_ptr<grpc::Channel> ChannelOf(int fd);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_USERS_H_
