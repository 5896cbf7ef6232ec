// The wiring of extended generalised fat trees, shared by the xgft model and the k-ary form of the
// fat-tree model.
#ifndef COPPICE_DAEMON_FABRIC_MODELS_XGFT_H_
#define COPPICE_DAEMON_FABRIC_MODELS_XGFT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/models/model.h"

namespace coppice {

// XGFT(h; m1..mh; w1..wh), see xgft.cc. Each of `rails` planes has its own switches; a host has one
// adapter in every plane, with w1 ports on as many leaf switches. Both vectors have h >= 1 entries.
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateXgft(const std::vector<uint64_t>& children,
                                                           const std::vector<uint64_t>& parents,
                                                           uint32_t rails,
                                                           const ModelArguments& arguments);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_MODELS_XGFT_H_
