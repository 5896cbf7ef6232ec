// coppicectl events [--follow] | fabric watch: what happened, and what happens.
//
// The daemon has no stream of events, so following lists again every second. It lists small pages
// and begins with the last page that was not full: what is read twice is at most one page.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

using FabricStub = v1::Fabric::StubInterface;

constexpr absl::Duration kLookAgain = absl::Seconds(1);
constexpr int kFollowedPage = 100;

int ListEvents(Session& session, Connection& connection, const v1::ListEventsRequest& request) {
  const auto all = ListAll(connection, connection.fabric(), &FabricStub::ListEvents, request);
  if (!all.ok()) return Fail(all.status());
  if (session.json) return PrintJson(std::cout, *all), 0;
  Table table({"ID", "TIME", "SEVERITY", "KIND", "OBJECT", "MESSAGE"});
  for (const v1::Event& event : all->events()) {
    table.Add({absl::StrCat(event.id()), TimeText(event.time()), event.severity(), event.kind(),
               event.object(), event.message()});
  }
  table.Print(std::cout);
  return 0;
}

// One line an event: JSON, or the columns of the table.
void PrintFollowed(const Session& session, const v1::Event& event) {
  if (session.json) return PrintJsonLine(std::cout, event);
  std::cout << event.id() << "  " << TimeText(event.time()) << "  " << event.severity() << "  "
            << event.kind() << "  " << event.object() << "  " << event.message() << "\n";
}

// Prints events that are newer than `shown`, until a call fails or the output is closed.
int FollowEvents(Session& session, Connection& connection, v1::ListEventsRequest request,
                 int64_t shown) {
  request.set_page_size(kFollowedPage);
  while (true) {
    const auto page = connection.Call(connection.fabric(), &FabricStub::ListEvents, request);
    if (!page.ok()) return Fail(page.status());
    for (const v1::Event& event : page->events()) {
      if (event.id() <= shown) continue;
      PrintFollowed(session, event);
      shown = event.id();
    }
    if (!std::cout.flush()) return 0;
    if (page->next_page_token().empty()) {
      absl::SleepFor(kLookAgain);
    } else {
      request.set_page_token(page->next_page_token());
    }
  }
}

// The newest event of the fabric, then those that follow it.
int WatchFabric(Session& session, Connection& connection) {
  v1::ListEventsRequest request;
  request.set_object("fabric");
  const auto all = ListAll(connection, connection.fabric(), &FabricStub::ListEvents, request);
  if (!all.ok()) return Fail(all.status());
  const int known = all->events_size();
  return FollowEvents(session, connection, request, known > 1 ? all->events(known - 2).id() : 0);
}

}  // namespace

void AddWatchCommand(CLI::App& fabric, Session& session) {
  CLI::App* command =
      fabric.add_subcommand("watch",
                            "The newest change of the fabric, then every further one, "
                            "one line each, until interrupted");
  AddJsonFlag(*command, session);
  command->callback([&session] {
    session.endless = true;
    session.run = [&session](Connection& c) { return WatchFabric(session, c); };
  });
}

void AddEventsCommand(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("events", "What happened, oldest first");
  AddJsonFlag(*command, session);
  auto request = std::make_shared<v1::ListEventsRequest>();
  command->add_option("--kind", *request->mutable_kind_prefix(), "Only kinds that start so: job.");
  command->add_option("--object", *request->mutable_object(), "Only this object: job:7");
  command->add_option("--severity", *request->mutable_min_severity(), "info, warning or error")
      ->check(CLI::IsMember({"info", "warning", "error"}));
  command->add_flag("--follow", session.endless,
                    "Go on with what happens from now on, one line each, until interrupted");
  command->callback([&session, request] {
    session.run = [&session, request](Connection& c) {
      return session.endless ? FollowEvents(session, c, *request, /*shown=*/0)
                             : ListEvents(session, c, *request);
    };
  });
}

}  // namespace coppice
