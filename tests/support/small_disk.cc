#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace coppice {
namespace {

constexpr char kSize[] = "size=32m";
constexpr char kFiller[] = "/filler";

bool MountOwn(const std::string& path) {
  return unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("coppice-test", path.c_str(), "tmpfs", 0, kSize) == 0;
}

}  // namespace

SmallDisk::SmallDisk() : is_real_(MountOwn(scratch_.path())) { getrlimit(RLIMIT_FSIZE, &before_); }

SmallDisk::~SmallDisk() {
  Free();
  if (is_real_) umount2(path().c_str(), MNT_DETACH);
}

void SmallDisk::Fill() {
  if (!is_real_) {
    signal(SIGXFSZ, SIG_IGN);
    uintmax_t largest = 0;
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      largest = std::max(largest, file.file_size());
    }
    rlimit limit = before_;
    limit.rlim_cur = largest;
    setrlimit(RLIMIT_FSIZE, &limit);
    return;
  }
  const int filler =
      open((path() + kFiller).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (write(filler, block.data(), block.size()) > 0) {
  }
  close(filler);
}

void SmallDisk::Free() {
  if (is_real_) {
    unlink((path() + kFiller).c_str());
  } else {
    setrlimit(RLIMIT_FSIZE, &before_);
  }
}

}  // namespace coppice
