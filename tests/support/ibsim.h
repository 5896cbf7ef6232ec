// A simulated InfiniBand subnet for a test: ibsim on a net file, with a socket name and a scratch
// directory of its own, and OpenSM where one is wanted. Everything is gone when the object is.
//
//   ASSERT: absl::StatusOr<std::unique_ptr<IbsimSubnet>> subnet = IbsimSubnet::Start(net);
//   (*subnet)->RunSubnetManager("ftree");      LIDs and forwarding tables are there
//   (*subnet)->Console("Unlink \"S5\"[1]");    a cable fails
//   (*subnet)->Run({"ibnetdiscover"});         any libibumad program, on the subnet
//
// A process under the preload speaks to one ibsim in its life and keeps the socket name that it
// found in its environment at its first use of libibumad; a forked child must exec. So a test that
// opens a port itself calls UsePreload first in main and Attach before the first use, one test a
// process, which is what ctest does with discovered tests.
#ifndef COPPICE_TESTS_SUPPORT_IBSIM_H_
#define COPPICE_TESTS_SUPPORT_IBSIM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/child_process.h"

namespace coppice {

class IbsimSubnet {
 public:
  // Starts ibsim on the text of a net file and waits until it is ready. `host`: the node that
  // programs run on; empty: the first of the file. INTERNAL: ibsim did not become ready; the
  // message holds what it printed.
  static absl::StatusOr<std::unique_ptr<IbsimSubnet>> Start(const std::string& net,
                                                            const std::string& host);
  ~IbsimSubnet();

  // Runs OpenSM once, with the routing engine of that name ("ftree", "minhop", ...) and that text
  // as its partitions.conf; empty: all ports are full members of the default partition.
  absl::Status RunSubnetManager(const std::string& routing, const std::string& partitions = "");

  // Runs a program on the subnet, in the scratch directory, and returns its standard output.
  absl::StatusOr<std::string> Run(std::vector<std::string> arguments,
                                  absl::Duration limit = absl::Seconds(120));

  // Gives ibsim a command and returns what it printed up to its next prompt. INVALID_ARGUMENT: it
  // complained.
  absl::StatusOr<std::string> Console(const std::string& command);

  // Stops and continues ibsim itself: no packet is answered in between.
  void Freeze();
  void Thaw();

  // What a program needs in its environment to live on the subnet.
  std::vector<std::pair<std::string, std::string>> Environment() const;

  // Puts this very process on the subnet: environment and working directory. Once a process, before
  // the first use of libibumad. FAILED_PRECONDITION: no preload, or attached already.
  absl::Status Attach();

  const std::string& directory() const { return scratch_.path(); }

  // Path of the preload, from the linker's directories. NOT_FOUND: the package is not installed.
  static absl::StatusOr<std::string> PreloadPath();

 private:
  IbsimSubnet() = default;

  ScratchDirectory scratch_;
  std::string socket_name_, host_, preload_;
  std::unique_ptr<ChildProcess> ibsim_;
  int prompts_ = 0;       // printed so far
  int programs_run_ = 0;  // numbers their output files
};

// Runs this program again under the preload if it is not already, with at most 1,024 open files:
// the preload takes all higher descriptors for its own. To be called first in main; prints and
// exits if there is no preload.
void UsePreload(char** arguments);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_IBSIM_H_
