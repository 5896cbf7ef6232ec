// coppicectl events [--follow] | fabric watch: what happened, and what happens.
//
// Following goes by the ids of events, which outlive the daemon: when the stream breaks off,
// because the daemon is restarted, it is opened again after the last event that was printed, so
// each is printed once.
#include <array>
#include <iostream>
#include <memory>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using FabricStub = v1::Fabric::StubInterface;

// Short: until its next call this program does not see that a server takes leave, which waits for
// it.
constexpr absl::Duration kFollowAgain = absl::Milliseconds(200);
// Kinds of events that `fabric watch` shows.
constexpr std::array<absl::string_view, 6> kOfFabric = {"sweep.",  "link.", "node.",
                                                        "switch.", "sm.",   "lids."};

struct EventOptions {
  v1::ListEventsRequest request;
  int64_t after = 0;
};

int ListEvents(Session& session, Connection& connection, const v1::ListEventsRequest& request) {
  const auto all = ListAll(connection, connection.fabric(), &FabricStub::ListEvents, request);
  if (const auto status = Settled(session, all)) return *status;
  Table table({"ID", "TIME", "SEVERITY", "KIND", "OBJECT", "BY", "MESSAGE"}, {0, 4, 5},
              session.is_wide);
  for (const v1::Event& event : all->events()) {
    table.Add({absl::StrCat(event.id()), TimeText(event.time()), event.severity(), event.kind(),
               event.object(), event.actor(), event.message()});
  }
  table.Print(std::cout);
  return 0;
}

// One line an event: JSON, or the columns of the table.
void PrintFollowed(const Session& session, const v1::Event& event) {
  if (session.json) return PrintJsonLine(std::cout, event);
  std::cout << event.id() << "  " << TimeText(event.time()) << "  " << event.severity() << "  "
            << event.kind() << "  " << ShownText(event.object())
            << (event.actor().empty() ? "" : "  by " + ShownText(event.actor())) << "  "
            << ShownText(event.message()) << "\n";
}

// What to do after a stream that broke off with `status`: the exit status, or none and it is to be
// opened again.
std::optional<int> AfterBreak(const absl::Status& status, bool& is_told,
                              v1::WatchEventsRequest& request) {
  if (absl::IsOutOfRange(status)) {
    // Dropped while nobody listened. Ids only rise, so all that is left comes after them.
    std::cerr << "events are missing here: " << status.message() << "\n";
    request.set_after_id(0);
    return std::nullopt;
  }
  // A server that is about to go cancels calls that come on an old connection.
  if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) return Fail(status);
  if (!std::exchange(is_told, true)) {
    std::cerr << "waiting for the daemon: " << status.message() << "\n";
  }
  absl::SleepFor(kFollowAgain);
  return std::nullopt;
}

// Once the daemon has answered: prints the events that are `wanted`, from where `request` begins,
// until a call fails for good or the output is closed.
int Follow(Session& session, Connection& connection, v1::WatchEventsRequest request,
           const std::function<bool(const v1::Event&)>& wanted) {
  bool is_told = false;
  const std::function<bool(const v1::Event&)> print = [&](const v1::Event& event) {
    is_told = false;
    request.set_after_id(event.id());
    if (!wanted(event)) return true;
    PrintFollowed(session, event);
    return static_cast<bool>(std::cout.flush());
  };
  while (true) {
    const absl::Status status =
        connection.Watch(connection.fabric(), &FabricStub::WatchEvents, request, print);
    if (status.ok()) return 0;
    if (const auto over = AfterBreak(status, is_told, request)) return *over;
  }
}

// What there is, then what comes.
int FollowEvents(Session& session, Connection& connection, v1::ListEventsRequest request,
                 int64_t after) {
  request.set_page_size(1);
  const auto answer = connection.Call(connection.fabric(), &FabricStub::ListEvents, request);
  if (!answer.ok()) return Fail(answer.status());
  v1::WatchEventsRequest watch;
  watch.set_kind_prefix(request.kind_prefix());
  watch.set_object(request.object());
  watch.set_min_severity(request.min_severity());
  watch.set_after_id(after);
  return Follow(session, connection, watch, [](const v1::Event&) { return true; });
}

// The newest fabric version, then all that happens to the fabric.
int WatchFabric(Session& session, Connection& connection) {
  v1::ListEventsRequest request;
  request.set_object("fabric");
  request.set_kind_prefix("sweep.done");
  const auto all = ListAll(connection, connection.fabric(), &FabricStub::ListEvents, request);
  if (!all.ok()) return Fail(all.status());
  v1::WatchEventsRequest watch;
  watch.set_after_id(all->events().empty() ? 0 : all->events().rbegin()->id() - 1);
  return Follow(session, connection, watch, [](const v1::Event& event) {
    return absl::c_any_of(kOfFabric, [&](absl::string_view prefix) {
      return absl::StartsWith(event.kind(), prefix);
    });
  });
}

}  // namespace

void AddWatchCommand(CLI::App& fabric, Session& session) {
  AddCommand(fabric, session, "watch",
             "The newest version of the fabric, then everything that happens to it, one line each, "
             "until interrupted",
             WatchFabric, [&session] { session.endless = true; });
}

void AddEventsCommand(CLI::App& app, Session& session) {
  auto [command, options] = AddCommand<EventOptions>(
      app, session, "events", "What happened, oldest first",
      [](Session& s, Connection& c, EventOptions& o) {
        return s.endless ? FollowEvents(s, c, o.request, o.after) : ListEvents(s, c, o.request);
      });
  AddWideOption(*command, session);
  v1::ListEventsRequest& request = options.request;
  command->add_option("--kind", *request.mutable_kind_prefix(), "Only kinds that start so: job.");
  command->add_option("--object", *request.mutable_object(), "Only this object: job:7");
  command->add_option("--severity", *request.mutable_min_severity(), "info, warning or error")
      ->check(CLI::IsMember({"info", "warning", "error"}));
  CLI::Option* follow =
      command
          ->add_flag("--follow", session.endless,
                     "Go on with what happens from now on, one line each, until interrupted; "
                     "also over a restart of the daemon")
          ->excludes("--output");
  command->add_option("--after", options.after, "Only events after the one with this id")
      ->check(CLI::NonNegativeNumber)
      ->needs(follow);
}

}  // namespace coppice
