// A directory on a disk that a test fills and frees again: a small tmpfs of this process's own
// where it may mount (as root), gone with the process; elsewhere a limit on the size of files,
// which the kernel enforces in the same way but names differently.
#ifndef COPPICE_TESTS_SUPPORT_SMALL_DISK_H_
#define COPPICE_TESTS_SUPPORT_SMALL_DISK_H_

#include <sys/resource.h>

#include <string>

#include "tests/support/child_process.h"

namespace coppice {

// To be made before the process has threads that shall see it.
class SmallDisk {
 public:
  SmallDisk();
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return scratch_.path(); }
  // Whether writes fail for lack of space (ENOSPC), not for the size of a file (EFBIG).
  bool is_real() const { return is_real_; }

  // From now on no file on it can grow; and again they can.
  void Fill();
  void Free();

 private:
  ScratchDirectory scratch_;
  bool is_real_ = false;
  rlimit before_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_SMALL_DISK_H_
