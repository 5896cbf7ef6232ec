#include "daemon/manager/store_calls.h"

#include <algorithm>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/text/log.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

DeedPtr DeedIn(const Mutation& mutation) {
  return std::visit(
      [](const auto& what) -> DeedPtr {
        if constexpr (requires { what.deed; }) return what.deed;
        return nullptr;
      },
      mutation);
}

constexpr size_t kMaxObjectBytes = 256;
constexpr char kSeveral[] = "*";  // can be no user's name

bool IsDenial(absl::StatusCode code) {
  return code == absl::StatusCode::kPermissionDenied || code == absl::StatusCode::kUnauthenticated;
}

// Without the port, which is another for each connection.
std::string HostOf(const std::string& origin) { return origin.substr(0, origin.rfind(':')); }

// As it is, or in quotes if a reader of key=value could mistake it.
std::string Value(absl::string_view text) {
  const bool is_word = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '=' && c != '\\';
  });
  if (is_word) return std::string(text);
  return absl::StrCat("\"", ShownText(absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}})),
                      "\"");
}

}  // namespace

void StoreCalls::Submit(Mutation mutation, Store::Done done) {
  {
    std::lock_guard lock(mu_);
    ++waiting_;
  }
  DeedPtr deed = on_deed_ == nullptr ? nullptr : DeedIn(mutation);
  store_->Submit(std::move(mutation), [this, deed = std::move(deed),
                                       callback = std::move(done)](absl::Status status) mutable {
    if (deed != nullptr && status.ok()) on_deed_(*deed);
    {
      // What the callback holds goes before it counts as answered.
      Store::Done last = std::move(callback);
      std::move(last)(std::move(status));
    }
    End();
  });
}

void StoreCalls::AwaitAll() {
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return waiting_ == 0; });
}

void StoreCalls::End() {
  // Notified under the lock: the waiter may destroy this as soon as it can take it.
  std::lock_guard lock(mu_);
  if (--waiting_ == 0) idle_.notify_all();
}

// The deed's, begun anew if it is over; where there are too many kinds, that of several.
FoldedDeeds::Period& FoldedDeeds::PeriodOf(DeedRecord& deed, std::vector<DeedRecord>& told) {
  Kind kind{deed.caller, deed.user, HostOf(deed.origin), deed.method, deed.outcome};
  auto found = periods_.find(kind);
  if (found == periods_.end() && periods_.size() >= kMaxKinds) {
    TakeDue(deed.time, told);
    if (periods_.size() >= kMaxKinds) {
      deed.caller = deed.user = deed.origin = deed.object = kSeveral;
      kind = {kSeveral, kSeveral, kSeveral, deed.method, deed.outcome};
      found = periods_.find(kind);
    }
  }
  if (found == periods_.end()) return periods_[std::move(kind)] = Period{deed.time, 0, {}};
  Period& period = found->second;
  if (absl::AbsDuration(deed.time - period.begin) >= kPeriod) {
    if (!period.counted.method.empty()) told.push_back(std::move(period.counted));
    period = Period{deed.time, 0, {}};
  }
  return period;
}

void FoldedDeeds::Add(DeedRecord deed, std::vector<DeedRecord>& told) {
  deed.first = std::min(deed.first, deed.time);
  Period& period = PeriodOf(deed, told);
  if (period.told < singly_) {
    ++period.told;
    told.push_back(std::move(deed));
    return;
  }
  if (!period.counted.method.empty()) {
    deed.count += period.counted.count;
    deed.first = std::min(deed.first, period.counted.first);
  }
  period.counted = std::move(deed);
}

void FoldedDeeds::TakeDue(absl::Time now, std::vector<DeedRecord>& told) {
  for (auto it = periods_.begin(); it != periods_.end();) {
    Period& period = it->second;
    const auto here = it++;
    if (absl::AbsDuration(now - period.begin) < kPeriod) continue;
    if (!period.counted.method.empty()) told.push_back(std::move(period.counted));
    periods_.erase(here);
  }
}

std::string LineOf(const DeedRecord& deed) {
  return absl::StrCat("user=", Value(deed.user), " caller=", Value(deed.caller),
                      " origin=", Value(deed.origin), " method=", Value(deed.method),
                      " object=", Value(deed.object), " outcome=", Value(deed.outcome),
                      " count=", deed.count);
}

void DeedLog::Log(const std::vector<DeedRecord>& lines) {
  for (const DeedRecord& deed : lines) {
    if (deed.share == DeedShare::kDenial) {
      spdlog::warn("deed {}", LineOf(deed));
    } else {
      spdlog::info("deed {}", LineOf(deed));
    }
  }
}

void DeedLog::Told(const DeedRecord& deed) {
  std::vector<DeedRecord> lines;
  {
    absl::MutexLock lock(&mutex_);
    lines_.Add(deed, lines);
  }
  Log(lines);
}

void DeedLog::Note(const Actor& actor, absl::string_view object, absl::StatusCode code) {
  const DeedPtr made = DeedOf(actor, std::string(CutText(object, kMaxObjectBytes)), clock_->Now());
  if (made == nullptr) return;
  DeedRecord deed = *made;
  deed.outcome = absl::StatusCodeToString(code);
  std::vector<DeedRecord> told;
  if (IsDenial(code)) {
    deed.share = DeedShare::kDenial;
    absl::MutexLock lock(&mutex_);
    noted_.Add(std::move(deed), told);
  } else {
    told.push_back(std::move(deed));
  }
  Keep(std::move(told));
}

void DeedLog::Keep(std::vector<DeedRecord> deeds) {
  if (deeds.empty()) return;
  for (const DeedRecord& deed : deeds) Told(deed);
  const size_t count = deeds.size();
  calls_->Submit(AppendDeeds{std::move(deeds)}, [count](const absl::Status& status) {
    if (!status.ok()) spdlog::warn("{} deeds are lost: {}", count, status.ToString());
  });
}

void DeedLog::FlushDue(absl::Time now) {
  std::vector<DeedRecord> noted, lines;
  {
    absl::MutexLock lock(&mutex_);
    noted_.TakeDue(now, noted);
    lines_.TakeDue(now, lines);
  }
  Log(lines);
  Keep(std::move(noted));
}

void DeedLog::Flush() {
  std::vector<DeedRecord> noted;
  {
    absl::MutexLock lock(&mutex_);
    noted_.TakeAll(noted);
  }
  Keep(std::move(noted));
  // The store takes mutations in order: behind this one everything is there. What it refuses was
  // told where it was noted.
  (void)calls_->store().Apply(AppendDeeds{});
}

}  // namespace coppice
