// The fixture of the system tests: a generated fabric under ibsim, with or without OpenSM, and this
// process on one of its hosts.
#ifndef COPPICE_TESTS_SYSTEM_LIVE_SUBNET_H_
#define COPPICE_TESTS_SYSTEM_LIVE_SUBNET_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "daemon/ib/umad_subnet_port.h"
#include "tests/support/ibsim.h"

namespace coppice {

// The 512 ports of 32 leaf and 16 spine switches of Chen 2024, and 8,192 ports on 832 switches.
inline constexpr char kSmallFabric[] = "fat-tree(leaves=32,spines=16,hosts-per-leaf=16)";
inline constexpr char kLargeFabric[] =
    "fat-tree(supernodes=16,leaves=32,spines=16,hosts-per-leaf=16,tops=64)";

class LiveSubnet : public testing::Test {
 protected:
  // Starts ibsim on the fabric and OpenSM with that routing (empty: none), joins it at the first
  // host and makes port_. To be called through ASSERT_NO_FATAL_FAILURE.
  void Start(const std::string& model, const std::string& routing);
  void Start(const Fabric& fabric, const std::string& routing);

  // A complete sweep; fails the test otherwise.
  SweepResult SweepOrFail(bool read_forwarding_tables = true);

  std::unique_ptr<IbsimSubnet> subnet_;
  std::unique_ptr<UmadSubnetPort> port_;  // goes before the subnet
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_LIVE_SUBNET_H_
