// How a step of libcoppice ended: a code of coppice.h and words for people. Used instead of
// Abseil's status, which libcoppice does not carry into other people's programs.
#ifndef COPPICE_CLIENT_LIBRARY_OUTCOME_H_
#define COPPICE_CLIENT_LIBRARY_OUTCOME_H_

#include <chrono>
#include <string>

#include "client/library/coppice.h"

namespace coppice {

struct Outcome {
  coppice_status code = COPPICE_OK;
  std::string message;

  bool ok() const { return code == COPPICE_OK; }
};

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime After(uint32_t milliseconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_OUTCOME_H_
