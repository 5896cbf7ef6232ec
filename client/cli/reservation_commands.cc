// coppicectl reservation: what is kept for a tenant.
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

constexpr char kMomentMeant[] =
    "a time: 2026-12-01T08:00:00+01:00, 2026-12-01T08:00 of this machine, or 8h from now";

std::optional<absl::Time> ParseMoment(const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  for (const char* const format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    if (absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &error)) return time;
  }
  absl::Duration ahead;
  if (!absl::ParseDuration(text, &ahead) || ahead == absl::InfiniteDuration()) return std::nullopt;
  return absl::Now() + ahead;
}

google::protobuf::Timestamp ToMessage(absl::Time time) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(absl::ToUnixSeconds(time));
  return stamp;
}

// The first few, and how many there are.
template <class Texts>
std::string Some(const Session& session, const Texts& texts) {
  constexpr int kShown = 2;
  const std::vector<std::string> all(texts.begin(), texts.end());
  if (all.empty()) return "-";
  if (session.is_wide || all.size() <= kShown) return absl::StrJoin(all, ",");
  return absl::StrCat(absl::StrJoin(absl::MakeConstSpan(all).first(kShown), ","), " and ",
                      all.size() - kShown, " more");
}

template <class Reservations>
void PrintReservations(const Session& session, const Reservations& reservations) {
  PrintRows(session,
            {"RESERVATION", "TENANT", "ENTRIES", "SWITCHES", "NODES", "LENT", "FROM", "UNTIL"}, {},
            reservations, [&](const v1::Reservation& of) {
              return CellsOf(of.id(), of.tenant(), of.entries(), Some(session, of.switches()),
                             Some(session, of.nodes()), of.lends() ? "yes" : "no",
                             TimeText(of.from_time()), TimeText(of.until_time()));
            });
}

struct ReservationOptions {
  v1::CreateReservationRequest request;
  std::string switches, nodes;
};

int CreateReservation(Session& session, Connection& connection, ReservationOptions& options) {
  v1::CreateReservationRequest& request = options.request;
  for (const absl::string_view guid : absl::StrSplit(options.switches, ',', absl::SkipEmpty())) {
    request.add_switches(std::string(guid));
  }
  if (!options.nodes.empty()) {
    const auto nodes = ReadNodeWords(options.nodes);
    if (!nodes.ok()) return Fail(nodes.status());
    request.mutable_nodes()->Add(nodes->begin(), nodes->end());
  }
  return Show(session, connection.Call(&AdminStub::CreateReservation, request),
              [&](const v1::Reservation& made) {
                PrintReservations(session, absl::MakeConstSpan(&made, 1));
              });
}

int ListReservations(Session& session, Connection& connection) {
  return Show(session, connection.Call(&AdminStub::ListReservations),
              [&](const v1::ListReservationsResponse& list) {
                PrintReservations(session, list.reservations());
              });
}

int DeleteReservation(Session& session, Connection& connection, const std::string& id) {
  v1::DeleteReservationRequest request;
  request.set_id(id);
  return Show(session, connection.Call(&AdminStub::DeleteReservation, request),
              [&](const auto&) { std::cout << "Reservation " << id << " has ended\n"; });
}

}  // namespace

void AddReservationCommands(CLI::App& app, Session& session) {
  CLI::App* reservation = app.add_subcommand(
      "reservation", "Keep entries of switches and nodes for a tenant, for a time");
  reservation->require_subcommand(1);

  auto [create, options] = AddCommand<ReservationOptions>(
      *reservation, session, "create", "Administrators: keep entries or nodes for a tenant",
      CreateReservation);
  v1::CreateReservationRequest& request = options.request;
  create
      ->add_option("--tenant", *request.mutable_tenant(),
                   "Whose: 0x0001, as a partition, or another name")
      ->required();
  AddField(*create, "--entries", request, &v1::CreateReservationRequest::set_entries,
           "Entries of each of the switches");
  create->add_option("--switches", options.switches,
                     "GUIDs, with commas; default all that have entries");
  create->add_option("--nodes", options.nodes, std::string("Hosts, ") + kNodeWordsHelp);
  AddField(*create, "--lend", request, &v1::CreateReservationRequest::set_lends,
           "Others may have the entries that the tenant does not use, until it asks for them");
  const auto add_moment = [command = create](const char* name, const char* help,
                                             std::function<void(absl::Time)> set) {
    return command
        ->add_option_function<std::string>(
            name, [set](const std::string& text) { set(*ParseMoment(text)); }, help)
        ->check(Understood(ParseMoment, kMomentMeant));
  };
  add_moment("--from", "When it begins; default now",
             [&request](absl::Time time) { *request.mutable_from_time() = ToMessage(time); });
  add_moment("--until", "When it ends: a time, or 8h from now", [&request](absl::Time time) {
    *request.mutable_until_time() = ToMessage(time);
  })->required();

  CLI::App* const list =
      AddCommand(*reservation, session, "list", "All that have not ended", ListReservations);
  AddWideOption(*list, session);
  AddCommandOn(*reservation, session, "delete", "Administrators: end one now; trees stay",
               "RESERVATION", "Its number", DeleteReservation);
}

}  // namespace coppice
