// What the commands of coppicectl and coppice-plan are made of: their calls, and how answers are
// shown.
#ifndef COPPICE_CLIENT_CLI_COMMANDS_H_
#define COPPICE_CLIENT_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "client/connection.h"

namespace coppice {

// Adds a subcommand with --json. Once the line is read, `prepare` is called, which may throw what
// CLI11 throws, and `action` is what is to be done; it returns the exit status.
CLI::App* AddCommand(CLI::App& parent, Session& session, const char* name, const char* help,
                     std::function<int(Session&, Connection&)> action,
                     std::function<void()> prepare = nullptr);

// The same with options of its own, which live as long as the command.
template <class Options>
std::pair<CLI::App*, Options&> AddCommand(
    CLI::App& parent, Session& session, const char* name, const char* help,
    std::function<int(Session&, Connection&, Options&)> action,
    std::function<void(Options&)> prepare = nullptr) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command = AddCommand(
      parent, session, name, help,
      [options, action](Session& s, Connection& c) { return action(s, c, *options); },
      [options, prepare] {
        if (prepare) prepare(*options);
      });
  return {command, *options};
}

// A command on the object that its one argument names, which `meaning` tells of.
CLI::App* AddCommandOn(CLI::App& parent, Session& session, const char* name, const char* help,
                       const char* argument, const char* meaning,
                       std::function<int(Session&, Connection&, const std::string&)> action);

// Adds an option that sets a number of `message`, or a flag that sets it to true.
template <class Message, class Value>
CLI::Option* AddField(CLI::App& command, const char* name, Message& message,
                      void (Message::*set)(Value), const std::string& help) {
  if constexpr (std::is_same_v<Value, bool>) {
    return command.add_flag_callback(
        name, [&message, set] { (message.*set)(true); }, help);
  } else {
    return command.add_option_function<Value>(
        name, [&message, set](Value value) { (message.*set)(value); }, help);
  }
}

// Adds --partition, as ParsePartition reads it. `preset`: which one it is otherwise.
void AddPartitionOption(CLI::App& command, const std::string& preset,
                        std::function<void(uint32_t)> set);

// Adds -o wide, behind --json: what is shown without it leaves out what 80 columns do not hold.
void AddWideOption(CLI::App& command, Session& session);

// `option` has no effect where `other` is `value`, which it is if given or by default.
struct OptionWithoutEffect {
  const char* option;
  const char* other;
  const char* value;
  const char* of = "";  // what it is an option of, to say why
};
// Throws what CLI11 throws if an option of `command`, or of those above it, has no effect by one of
// the rules. One that is given what it is by default asks for nothing. What excludes or needs
// another option whatever its value, says so itself.
void RefuseWithoutEffect(const CLI::App& command, absl::Span<const OptionWithoutEffect> rules);

// The answer as JSON, or as `print(*answer)` has it for people; returns the exit status.
template <class Message, class Print>
int Show(const Session& session, const absl::StatusOr<Message>& answer, const Print& print) {
  if (!answer.ok()) return Fail(answer.status());
  session.json ? PrintJson(std::cout, *answer) : static_cast<void>(print(*answer));
  return 0;
}

// A row for each of `items` with the cells that `cells(item)` gives (CellsOf); without `rest` those
// of its columns, unless all are wanted.
template <class Items, class Cells>
void PrintRows(const Session& session, std::vector<std::string> heading, std::vector<size_t> rest,
               const Items& items, const Cells& cells) {
  Table table(std::move(heading), std::move(rest), session.is_wide);
  for (const auto& item : items) table.Add(cells(item));
  table.Print(std::cout);
}

// Calls a method whose request names an object.
template <class Stub, class Request, class Response>
absl::StatusOr<Response> CallOn(Connection& connection, const std::string& id,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*)) {
  Request request;
  request.set_id(id);
  return connection.Call(method, request);
}

// All pages of a listing in one response. A listing that the fabric moved under begins again, a few
// times.
template <class Stub, class Request, class Response>
absl::StatusOr<Response> ListAll(Connection& connection,
                                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                                 Request request = {}) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    Response all;
    absl::Status status;
    request.clear_page_token();
    do {
      absl::StatusOr<Response> page = connection.Call(method, request);
      if (!(status = page.status()).ok()) break;
      request.set_page_token(page->next_page_token());
      all.MergeFrom(*page);
    } while (!request.page_token().empty());
    all.clear_next_page_token();
    if (status.ok()) return all;
    if (!absl::IsAborted(status) || attempt == kAttempts) return status;
  }
}

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_COMMANDS_H_
