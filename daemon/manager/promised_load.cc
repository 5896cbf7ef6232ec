#include "daemon/manager/promised_load.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/tree/even_routes.h"

namespace coppice {

std::vector<ChannelPromise> PromiseOf(const Snapshot& snapshot, const CostProfile& profile,
                                      double duty, const MessageBytes& bytes, double total_us,
                                      absl::Span<const ChannelUse> uses) {
  std::vector<ChannelPromise> promise;
  if (duty <= 0 || total_us <= 0) return promise;
  promise.reserve(uses.size());
  for (const ChannelUse& use : uses) {
    const double gbps = KnownCapacity(snapshot, profile, use.channel);
    if (gbps <= 0) continue;
    const double sent_gbps = (use.up * bytes.up + use.down * bytes.down) * 8e-3 / total_us;
    const double parts = std::ceil(duty * sent_gbps / gbps * kWholeChannel);
    if (parts < 1) continue;
    const double most = std::numeric_limits<uint32_t>::max();
    promise.push_back({use.channel, static_cast<uint32_t>(std::min(parts, most))});
  }
  return promise;
}

void PromisedLoad::Rebase(const Snapshot& snapshot) {
  measured_ = current_ = snapshot.load;
  const size_t channels = snapshot.fabric->channel_count();
  parts_.assign(channels, 0);
  promised_ = 0;
  stale_.clear();
  is_stale_.assign(channels / LinkLoad::kPageChannels + 1, false);
  promised_in_.assign(is_stale_.size(), 0);
}

void PromisedLoad::SetMeasured(std::shared_ptr<const LinkLoad> measured) {
  measured_ = current_ = std::move(measured);
  // Pages without promises are those of the measured load; only the others are made again.
  for (uint32_t page = 0; page < promised_in_.size(); ++page) {
    if (promised_in_[page] != 0) MarkStale(page);
  }
}

void PromisedLoad::Move(ChannelIndex channel, uint64_t difference) {
  uint64_t& parts = parts_[channel.value()];
  const uint32_t page = channel.value() / LinkLoad::kPageChannels;
  const int before = parts != 0 ? 1 : 0;
  parts += difference;
  const int after = parts != 0 ? 1 : 0;
  promised_ += static_cast<size_t>(after - before);
  promised_in_[page] += static_cast<uint32_t>(after - before);
  MarkStale(page);
}

void PromisedLoad::MarkStale(uint32_t page) {
  if (is_stale_[page]) return;
  is_stale_[page] = true;
  stale_.push_back(page);
}

void PromisedLoad::Add(absl::Span<const ChannelPromise> promise) {
  for (const ChannelPromise& p : promise) Move(p.channel, p.parts);
}

void PromisedLoad::Remove(absl::Span<const ChannelPromise> promise) {
  for (const ChannelPromise& p : promise) Move(p.channel, -uint64_t{p.parts});
}

std::shared_ptr<const LinkLoad> PromisedLoad::Current() {
  if (stale_.empty()) return current_;
  const auto fill = [this](size_t first, absl::Span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double promised = static_cast<double>(parts_[first + i]) / kWholeChannel;
      const double measured = measured_->empty() ? 0 : (*measured_)[first + i];
      values[i] = static_cast<float>(std::min(measured + promised, 1.0));
    }
  };
  current_ = promised_ == 0
                 ? measured_
                 : std::make_shared<const LinkLoad>(current_->With(parts_.size(), stale_, fill));
  // From here on current_ may be measured_ itself, which is right in every page.
  for (const uint32_t page : stale_) is_stale_[page] = false;
  stale_.clear();
  return current_;
}

}  // namespace coppice
