// A folder of InfiniBand devices laid out as /sys/class/infiniband, as far as the agent reads it.
#ifndef COPPICE_TESTS_UNIT_AGENTS_NODE_DEVICE_FOLDER_H_
#define COPPICE_TESTS_UNIT_AGENTS_NODE_DEVICE_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace coppice {

struct DevicePort {
  std::string device = "mlx5_0";
  int number = 1;
  std::string guid = "0000:0000:0000:0001";  // as in a GID
  std::string state = "4: ACTIVE";
  std::string layer = "InfiniBand";
  std::string prefix = "fe80:0000:0000:0000";
  std::vector<std::string> keys = {"0xffff"};
};

class DeviceFolder final {
 public:
  DeviceFolder() {
    char name[] = "/tmp/coppice-devices-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~DeviceFolder() { std::filesystem::remove_all(path_); }
  DeviceFolder(const DeviceFolder&) = delete;

  const std::string& path() const { return path_; }
  // Adds it, or puts it in the place of what it was.
  void Put(const DevicePort& port) const {
    const auto folder =
        std::filesystem::path(path_) / port.device / "ports" / std::to_string(port.number);
    std::filesystem::create_directories(folder / "gids");
    std::ofstream(folder / "link_layer") << port.layer << "\n";
    std::ofstream(folder / "state") << port.state << "\n";
    std::filesystem::create_directories(folder / "pkeys");
    for (size_t i = 0; i < port.keys.size(); ++i) {
      std::ofstream(folder / "pkeys" / std::to_string(i)) << port.keys[i] << "\n";
    }
    std::ofstream(folder / "gids" / "0") << port.prefix << ":" << port.guid << "\n";
  }
  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry);
    }
  }

 private:
  std::string path_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_AGENTS_NODE_DEVICE_FOLDER_H_
