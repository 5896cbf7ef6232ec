// How long a search may go on, and who wants to hear of it: the one door through which clocks and
// callers reach an algorithm.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_

#include <functional>
#include <utility>

#include "daemon/mapping/places.h"

namespace coppice {

// Both functions may be called by several threads at once.
class SearchControl final {
 public:
  using Stopped = std::function<bool()>;
  using Offered = std::function<void(const Mapping&)>;

  // A search that ends by itself and tells nobody.
  SearchControl() = default;
  SearchControl(Stopped stopped, Offered offered)
      : stopped_(std::move(stopped)), offered_(std::move(offered)) {}

  // The budget is spent or the caller has cancelled: hand back the best so far, soon. Stays true
  // once it is. About 30 ns with a clock behind it: ask every few microseconds of work.
  bool stopped() const { return stopped_ && stopped_(); }

  // A new best that is worth keeping if the search is stopped from now on. Admissible.
  void Offer(const Mapping& mapping) const {
    if (offered_) offered_(mapping);
  }

 private:
  Stopped stopped_;
  Offered offered_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CONTROL_H_
