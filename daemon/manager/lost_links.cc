#include "daemon/manager/lost_links.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr size_t kMostNamed = 32;  // in one message; the rest is a number

std::vector<int64_t> Sorted(const std::vector<int64_t>& ids) {
  std::vector<int64_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

bool Holds(const std::vector<int64_t>& sorted, int64_t id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

std::vector<TreeId> TreesWithLostLinks(absl::Span<const std::shared_ptr<const TreeRecord>> trees,
                                       const std::vector<int64_t>* before,
                                       const std::vector<int64_t>& present) {
  const std::vector<int64_t> now = Sorted(present);
  const std::vector<int64_t> then = before == nullptr ? std::vector<int64_t>() : Sorted(*before);
  std::vector<TreeId> found;
  for (const std::shared_ptr<const TreeRecord>& tree : trees) {
    const bool lost = std::any_of(tree->links.begin(), tree->links.end(), [&](int64_t id) {
      return !Holds(now, id) && (before == nullptr || Holds(then, id));
    });
    if (lost) found.push_back(tree->id);
  }
  return found;
}

std::string LostLinksMessage(absl::Span<const TreeId> trees) {
  std::string message = absl::StrCat(
      trees.size(), trees.size() == 1
                        ? " granted tree crosses links that are gone, and keeps its entries: "
                        : " granted trees cross links that are gone, and keep their entries: ");
  for (size_t i = 0; i < trees.size() && i < kMostNamed; ++i) {
    absl::StrAppend(&message, i > 0 ? ", " : "", trees[i].value());
  }
  if (trees.size() > kMostNamed) absl::StrAppend(&message, ", ...");
  return absl::StrCat(message, "; release them and create them anew, or bring the links back");
}

}  // namespace coppice
