// Turns what a user types behind --fabric, or an administrator into the configuration, into a
// fabric. Knows files and models; a live subnet (umad) is daemon/ib's.
#ifndef COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_
#define COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// Loads `spec`:
//   file:PATH          ibnetdiscover's text in either form or an ibsim net file, told apart by
//                      content
//   model:NAME(ARGS)   a generated fabric (models/model.h)
// A file is read line by line: loading takes less than twice the memory of the fabric.
// INVALID_ARGUMENT: neither of the two, a malformed text or a file over the limit, naming the
// object; NOT_FOUND: no such file; PERMISSION_DENIED, UNAVAILABLE: it cannot be read.
absl::StatusOr<std::shared_ptr<const Fabric>> LoadFabric(absl::string_view spec);

// INVALID_ARGUMENT if `spec` is neither file:... nor model:...; looks at the prefix only.
absl::Status CheckFabricSpec(absl::string_view spec);

// The text of any of the formats; `origin` names it in messages. INVALID_ARGUMENT as above.
absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabric(std::istream& text,
                                                         absl::string_view origin);

// A fabric from a file or a model behind the seam of a live subnet. `spec` as LoadFabric takes it.
// Every sweep reads a file afresh, so that a changed file is a changed subnet; a result never has
// forwarding tables, and MAD counts are 0.
class OfflineSubnetPort final : public SubnetPort {
 public:
  // INVALID_ARGUMENT: neither file:... nor model:... . The file is not opened yet.
  static absl::StatusOr<std::unique_ptr<OfflineSubnetPort>> Create(absl::string_view spec);

  std::string Describe() const override { return spec_; }
  // Status codes as LoadFabric's.
  absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) override;
  // Changed: the file's size or time of modification is not what it was. A model never changes.
  // NOT_FOUND: the file is gone.
  absl::StatusOr<LightSweepResult> LightSweep() override;
  // Always UNIMPLEMENTED.
  absl::StatusOr<CounterSweep> ReadCounters() override;

 private:
  explicit OfflineSubnetPort(absl::string_view spec) : spec_(spec) {}

  // Of the file; of a model always the same.
  struct Stamp {
    std::filesystem::file_time_type modified;
    std::uintmax_t bytes = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  absl::StatusOr<Stamp> ReadStamp() const;

  const std::string spec_;
  std::optional<Stamp> swept_;  // as the last sweep found it
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FABRIC_SOURCE_H_
