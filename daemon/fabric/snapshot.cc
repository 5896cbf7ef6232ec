#include "daemon/fabric/snapshot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {
LinkLoad::LinkLoad(absl::Span<const float> utilisation) {
  std::vector<uint32_t> pages((utilisation.size() + kPageChannels - 1) / kPageChannels);
  std::iota(pages.begin(), pages.end(), 0U);
  *this = LinkLoad().With(utilisation.size(), pages, [&](size_t first, absl::Span<float> values) {
    const absl::Span<const float> part = utilisation.subspan(first, values.size());
    std::copy(part.begin(), part.end(), values.begin());
  });
}

LinkLoad LinkLoad::With(size_t channels, absl::Span<const uint32_t> pages,
                        absl::FunctionRef<void(size_t, absl::Span<float>)> fill) const {
  LinkLoad load = *this;
  load.size_ = channels;
  load.pages_.resize((channels + kPageChannels - 1) / kPageChannels);
  for (const uint32_t p : pages) {
    auto page = std::make_shared<Page>();
    const size_t first = p * kPageChannels;
    const size_t count = std::min(kPageChannels, channels - first);
    fill(first, absl::MakeSpan(page->values).first(count));
    page->greatest =
        *std::max_element(page->values.begin(), page->values.begin() + static_cast<int64_t>(count));
    load.pages_[p] = page->greatest > 0 ? std::move(page) : nullptr;
  }
  load.FindGreatest();
  return load;
}

void LinkLoad::FindGreatest() {
  greatest_ = 0;
  for (const std::shared_ptr<const Page>& page : pages_) {
    if (page != nullptr) greatest_ = std::max(greatest_, page->greatest);
  }
}

absl::StatusOr<std::shared_ptr<const Snapshot>> MakeSnapshot(
    std::shared_ptr<const Fabric> fabric, std::shared_ptr<const ForwardingTables> tables) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabric = fabric;
  if (tables == nullptr) {
    snapshot->routes = Routes::ShortestPaths(fabric);
  } else {
    ASSIGN_OR_RETURN(snapshot->routes, Routes::FromTables(fabric, std::move(tables)));
  }
  snapshot->hierarchy = DeriveHierarchy(*fabric);
  snapshot->load = std::make_shared<const LinkLoad>();
  return snapshot;
}

}  // namespace coppice
