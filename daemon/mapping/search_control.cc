#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

class Alone final : public SearchTeam {
 public:
  uint32_t process() const override { return 0; }
  uint32_t process_count() const override { return 1; }
  absl::StatusOr<bool> Any(bool mine) override { return mine; }
  absl::Status ShareBest(DenseSolution&) override { return absl::OkStatus(); }
  absl::Status PassOn(DenseSolution&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<DenseSolution>> Gather(std::vector<DenseSolution> mine) override {
    return mine;
  }
  absl::StatusOr<std::vector<DenseSolution>> Scatter(std::vector<DenseSolution> all,
                                                     uint32_t) override {
    return all;
  }
};

}  // namespace

SearchTeam& SearchAlone() {
  static auto* const alone = new Alone();
  return *alone;
}

}  // namespace coppice
