// The file behind a topology text, read from front to back in blocks. Refuses what is no fabric
// file before it reads a byte: folders, devices, gigabytes. Knows no syntax.
#ifndef COPPICE_DAEMON_FABRIC_TOPOLOGY_FILE_H_
#define COPPICE_DAEMON_FABRIC_TOPOLOGY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coppice {

// The largest file read, 1 GiB: about ten times a fabric of 131,072 endpoints.
inline constexpr uint64_t kMaxFabricFileBytes = uint64_t{1} << 30;

// Owns the descriptor. Not thread-safe.
class TopologyFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: as the system says; INVALID_ARGUMENT: no regular
  // file, or one over the limit. Every message names the path.
  static absl::StatusOr<TopologyFile> Open(const std::string& path);

  TopologyFile(TopologyFile&& other) noexcept;
  TopologyFile& operator=(TopologyFile&&) = delete;
  ~TopologyFile();

  const std::string& path() const { return path_; }

  // Reads up to `size` bytes into `buffer`; 0 at the end. What is appended to the file after Open
  // is not read. UNAVAILABLE: it cannot be read.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);
  // Back to the first byte.
  void Rewind() { offset_ = 0; }

 private:
  TopologyFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  uint64_t size_;
  uint64_t offset_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TOPOLOGY_FILE_H_
