// Fabric.WatchEvents over a real server: from now on, resuming, filters as the listing has them,
// slow and many watchers, shutdown and cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/rpc/loopback.h"

namespace coppice::watch_events_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::WatchEventsRequest After(std::optional<int64_t> id, const std::string& kind = "",
                             const std::string& object = "", const std::string& severity = "") {
  v1::WatchEventsRequest request;
  if (id) request.set_after_id(*id);
  request.set_kind_prefix(kind);
  request.set_object(object);
  request.set_min_severity(severity);
  return request;
}

// One watching client.
class EventsWatcher {
 public:
  explicit EventsWatcher(Loopback& loopback, const v1::WatchEventsRequest& request) {
    Loopback::SetDeadline(context_);
    reader_ = loopback.fabric().WatchEvents(&context_, request);
  }
  void AwaitBegin() { reader_->WaitForInitialMetadata(); }
  // The next event as "7 job.ended"; or how it ended.
  std::string Next() {
    if (!reader_->Read(&last_)) return "end: " + Finish().ToString();
    return std::to_string(last_.id()) + " " + last_.kind();
  }
  std::vector<std::string> Next(int count) {
    std::vector<std::string> events;
    for (; count > 0; --count) events.push_back(Next());
    return events;
  }
  absl::Status Finish() {
    v1::Event ignored;
    while (reader_->Read(&ignored)) {
    }
    return Loopback::ToAbsl(reader_->Finish());
  }
  const v1::Event& last() const { return last_; }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader_;
  v1::Event last_;
};

class WatchEventsTest : public testing::Test {
 protected:
  // All that is kept, by pages of `page_size`.
  std::vector<v1::Event> List(v1::ListEventsRequest request = {}, int page_size = 0) {
    std::vector<v1::Event> all;
    request.set_page_size(page_size);
    do {
      const auto page = loopback_.Call(loopback_.fabric(), &v1::Fabric::Stub::ListEvents, request);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      all.insert(all.end(), page->events().begin(), page->events().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return all;
  }
  void End(const std::string& job) {
    v1::EndJobRequest request;
    request.set_id(job);
    EXPECT_TRUE(loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::EndJob, request).ok());
  }
  // Until the event of the first sweep, which nobody awaits, is there.
  int64_t FirstId() {
    EventsWatcher watcher(loopback_, After(0));
    EXPECT_THAT(watcher.Next(), HasSubstr("sweep.done"));
    watcher.Cancel();
    watcher.Finish().IgnoreError();
    return watcher.last().id();
  }

  Loopback loopback_;
};

TEST_F(WatchEventsTest, FromTheOldestFromAnIdAndFromNow) {
  const int64_t first = FirstId();
  ASSERT_EQ(1, first);
  EventsWatcher now(loopback_, After(std::nullopt));
  now.AwaitBegin();
  std::string job = loopback_.RegisterAll();
  EXPECT_EQ("2 job.registered", now.Next());
  End(job);
  EXPECT_EQ("3 job.ended", now.Next());
  EXPECT_EQ("job:" + job, now.last().object());
  EXPECT_EQ("info", now.last().severity());
  EXPECT_NE("", now.last().message());
  EXPECT_GT(now.last().time().seconds(), 0);
  EventsWatcher all(loopback_, After(0)), later(loopback_, After(2));
  EXPECT_THAT(all.Next(3), ElementsAre("1 sweep.done", "2 job.registered", "3 job.ended"));
  EXPECT_EQ("3 job.ended", later.Next());
  job = loopback_.RegisterAll();
  for (EventsWatcher* watcher : {&now, &all, &later})
    EXPECT_EQ("4 job.registered", watcher->Next());
}

TEST_F(WatchEventsTest, BadRequestsSayWhatIsWrong) {
  FirstId();
  EXPECT_TRUE(absl::IsInvalidArgument(EventsWatcher(loopback_, After(-1)).Finish()));
  const absl::Status severity = EventsWatcher(loopback_, After(0, "", "", "loud")).Finish();
  EXPECT_TRUE(absl::IsInvalidArgument(severity));
  EXPECT_THAT(std::string(severity.message()), HasSubstr("loud"));
  const absl::Status unborn = EventsWatcher(loopback_, After(77)).Finish();
  EXPECT_TRUE(absl::IsOutOfRange(unborn));
  EXPECT_THAT(std::string(unborn.message()), HasSubstr("newest event is 1"));
}

TEST_F(WatchEventsTest, FiltersAreThoseOfTheListing) {
  FirstId();
  std::string job;
  for (int i = 0; i < 6; ++i) {
    job = loopback_.RegisterAll();
    if (i % 2 == 0) End(job);
  }
  loopback_.clock().Advance(absl::Hours(1));
  loopback_.manager().ExpireLeases();  // three, as warnings
  EventsWatcher(loopback_, After(0, "job.expired")).Next(3);
  for (const auto& [kind, object, severity] :
       std::vector<std::array<std::string, 3>>{{"", "", ""},
                                               {"job.", "", ""},
                                               {"job.registered", "", ""},
                                               {"", "job:" + job, ""},
                                               {"", "", "warning"},
                                               {"job.e", "job:" + job, "info"}}) {
    v1::ListEventsRequest request;
    request.set_kind_prefix(kind);
    request.set_object(object);
    request.set_min_severity(severity);
    const std::vector<v1::Event> listed = List(request);
    ASSERT_FALSE(listed.empty());
    ASSERT_EQ(listed.size(), List(request, 2).size());
    EventsWatcher watcher(loopback_, After(0, kind, object, severity));
    for (const v1::Event& event : listed) {
      EXPECT_EQ(std::to_string(event.id()) + " " + event.kind(), watcher.Next());
      EXPECT_EQ(event.SerializeAsString(), watcher.last().SerializeAsString());
    }
  }
}

TEST_F(WatchEventsTest, SlowWatcherHoldsNobodyUpAndMissesNothing) {
  constexpr int kJobs = 400;
  FirstId();
  EventsWatcher slow(loopback_, After(0)), quick(loopback_, After(1));
  for (int i = 0; i < kJobs; ++i) {
    loopback_.RegisterAll();
    ASSERT_EQ(std::to_string(i + 2) + " job.registered", quick.Next());
  }
  EXPECT_EQ("1 sweep.done", slow.Next());
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_EQ(std::to_string(i + 2) + " job.registered", slow.Next());
  }
}

TEST_F(WatchEventsTest, ManyWatchersSeeEverything) {
  constexpr int kWatchers = 200, kJobs = 5;
  FirstId();
  std::vector<std::unique_ptr<EventsWatcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(std::make_unique<EventsWatcher>(loopback_, After(1)));
  }
  for (int i = 0; i < kJobs; ++i) loopback_.RegisterAll();
  for (const auto& watcher : watchers) {
    for (int i = 0; i < kJobs; ++i) {
      EXPECT_EQ(std::to_string(i + 2) + " job.registered", watcher->Next());
    }
  }
  EXPECT_EQ(static_cast<uint32_t>(kWatchers),
            loopback_.server().Numbers().rpc.open("Fabric.WatchEvents"));
}

TEST_F(WatchEventsTest, ShutdownEndsThemAndAClientThatGoesIsForgotten) {
  FirstId();
  EventsWatcher leaving(loopback_, After(0)), staying(loopback_, After(0));
  EXPECT_EQ("1 sweep.done", leaving.Next());
  EXPECT_EQ("1 sweep.done", staying.Next());
  leaving.Cancel();
  EXPECT_TRUE(absl::IsCancelled(leaving.Finish()));
  loopback_.server().Shutdown(absl::Seconds(5));
  const absl::Status status = staying.Finish();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("after the last event"));
}

}  // namespace
}  // namespace coppice::watch_events_test
