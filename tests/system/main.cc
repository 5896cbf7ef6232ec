// Every system test is a process of its own on a simulated subnet of its own, so they may run side
// by side. The program starts itself again under the simulator's preload; nothing has to be set in
// the environment. By hand, pick one test: --gtest_filter=LiveDiscovery.GraphEqualsIbnetdiscover
#include <gtest/gtest.h>

#include "tests/support/ibsim.h"

int main(int argc, char** argv) {
  coppice::UsePreload(argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
