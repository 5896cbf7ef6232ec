// Fabrics of texts in memory.
#ifndef COPPICE_TESTS_SUPPORT_FABRIC_TEXT_H_
#define COPPICE_TESTS_SUPPORT_FABRIC_TEXT_H_

#include <memory>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {

inline absl::StatusOr<std::shared_ptr<const Fabric>> ReadFabricText(absl::string_view text,
                                                                    absl::string_view origin) {
  std::istringstream in{std::string(text)};
  return ReadFabric(in, origin);
}

// By the reader of one format: ReadIbnetdiscover or another.
template <class Reader>
absl::StatusOr<std::shared_ptr<const Fabric>> ReadTextBy(const Reader& reader,
                                                         absl::string_view text,
                                                         absl::string_view origin) {
  std::istringstream in{std::string(text)};
  TopologyLines lines(in, origin);
  return reader(lines);
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_FABRIC_TEXT_H_
