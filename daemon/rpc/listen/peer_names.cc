#include "daemon/rpc/listen/peer_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr size_t kNetworkBytes = 8;

std::string NetworkText(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

std::string NetworkText(in6_addr address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr within{};
    std::memcpy(&within, address.s6_addr + sizeof(address) - sizeof(within), sizeof(within));
    return NetworkText(within);
  }
  std::fill(address.s6_addr + kNetworkBytes, address.s6_addr + sizeof(address), 0);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return absl::StrCat(text, "/64");
}

}  // namespace

std::string NetworkOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return NetworkText(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  if (address.ss_family == AF_INET6) {
    return NetworkText(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  return "";
}

std::string NetworkOf(absl::string_view connection) {
  absl::string_view host = connection.substr(0, connection.rfind(':'));
  if (absl::ConsumePrefix(&host, "ipv4:")) return std::string(host);
  if (!absl::ConsumePrefix(&host, "ipv6:")) return std::string(host);
  // In brackets, which gRPC writes as in a URI.
  for (const absl::string_view bracket : {"%5B", "["}) absl::ConsumePrefix(&host, bracket);
  for (const absl::string_view bracket : {"%5D", "]"}) absl::ConsumeSuffix(&host, bracket);
  const std::string text(host.substr(0, host.find('%')));  // without a zone
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1 ? NetworkText(address) : text;
}

}  // namespace coppice
