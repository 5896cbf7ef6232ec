#include "daemon/manager/load/error_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {

bool IsRising(const PortInterval& interval, double threshold) {
  if (interval.error(ErrorCount::kLinkDowned) > 0) return true;
  if (interval.error(ErrorCount::kLinkRecoveries) > 0) return true;
  const uint64_t errors = interval.error(ErrorCount::kSymbolErrors) +
                          interval.error(ErrorCount::kReceiveErrors) +
                          interval.error(ErrorCount::kSendDiscards);
  const double minutes = absl::ToDoubleMinutes(interval.length);
  return errors > 0 && minutes > 0 && static_cast<double>(errors) >= threshold * minutes;
}

std::optional<ErrorWatch::Told> ErrorWatch::Take(const PortInterval& interval, bool is_rising,
                                                 absl::Duration now) {
  const bool begins = is_rising && !rising_;
  if (begins) {
    rising_ = true;
    told_ = now - interval.length;
  }
  if (!rising_) return std::nullopt;
  for (size_t i = 0; i < kErrorCounts; ++i) errors_[i] += interval.errors[i];
  if (is_rising) last_rise_ = now;
  const bool is_over = now - last_rise_ >= kErrorsAreOver;
  const bool is_due = is_rising && now - told_ >= kTellErrorsEvery;
  if (!begins && !is_over && !is_due) return std::nullopt;
  Told told{is_over, std::exchange(errors_, {}), now - told_};
  told_ = now;
  rising_ = !is_over;
  return told;
}

std::string ErrorsInWords(const std::array<uint64_t, kErrorCounts>& errors) {
  std::string words;
  for (size_t i = 0; i < kErrorCounts; ++i) {
    if (errors[i] == 0) continue;
    absl::StrAppend(&words, words.empty() ? "" : ", ", NameOf(static_cast<ErrorCount>(i)), " +",
                    errors[i]);
  }
  return words.empty() ? "none" : words;
}

}  // namespace coppice
