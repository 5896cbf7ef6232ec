// coppicectl pattern: communication patterns that the daemon keeps by the name of their
// application.
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using MappingStub = v1::Mapping::StubInterface;

struct PatternFiles {
  v1::PutPatternRequest request;
  std::string file, messages;
};

void PrintPatterns(const v1::ListPatternsResponse& list, bool is_wide) {
  Table table({"APPLICATION", "OWNER", "RANKS", "PAIRS", "BYTES", "MESSAGES", "STORED", "SINCE"},
              {6, 7}, is_wide);
  for (const v1::StoredPattern& pattern : list.patterns()) {
    table.Add({pattern.name(), pattern.owner(), absl::StrCat(pattern.rank_count()),
               absl::StrCat(pattern.pair_count()), absl::StrFormat("%.6g", pattern.total_bytes()),
               absl::StrFormat("%.6g", pattern.total_messages()),
               absl::StrCat(pattern.stored_bytes()), TimeText(pattern.create_time())});
  }
  table.Print(std::cout);
}

int Show(Session& session, const absl::StatusOr<v1::StoredPattern>& pattern) {
  if (const auto status = Settled(session, pattern)) return *status;
  v1::ListPatternsResponse list;
  *list.add_patterns() = *pattern;
  PrintPatterns(list, session.is_wide);
  return 0;
}

int PutPattern(Session& session, Connection& connection, PatternFiles& files) {
  absl::Status status = FillInputFile(files.file, *files.request.mutable_pattern_file());
  if (status.ok() && !files.messages.empty()) {
    status = FillInputFile(files.messages, *files.request.mutable_messages_file());
  }
  if (!status.ok()) return Fail(status);
  return Show(session,
              connection.Call(connection.mapping(), &MappingStub::PutPattern, files.request));
}

int ListPatterns(Session& session, Connection& connection) {
  const auto list = ListAll(connection, connection.mapping(), &MappingStub::ListPatterns,
                            v1::ListPatternsRequest());
  if (const auto status = Settled(session, list)) return *status;
  PrintPatterns(*list, session.is_wide);
  return 0;
}

}  // namespace

void AddPatternCommands(CLI::App& app, Session& session) {
  CLI::App* patterns =
      app.add_subcommand("pattern", "Communication patterns that are kept for later runs");
  patterns->require_subcommand(1);
  auto [put, files] = AddCommand<PatternFiles>(
      *patterns, session, "put", "Keep a pattern, in place of that name's", PutPattern);
  put->add_option("name", *files.request.mutable_name(), "Of the application")->required();
  put->add_option("file", files.file, "As map --pattern takes it; - for stdin")->required();
  put->add_option("--messages", files.messages, "Matrix of message counts beside it");
  AddWideOption(
      *AddCommand(*patterns, session, "list", "Everybody's patterns, by name", ListPatterns),
      session);
  constexpr char kName[] = "Of the application; another's: OWNER:NAME";
  AddWideOption(*AddCommandOn(*patterns, session, "show", "One pattern", "name", kName,
                              [](Session& s, Connection& c, const std::string& name) {
                                v1::GetPatternRequest get;
                                get.set_name(name);
                                return Show(s, c.Call(c.mapping(), &MappingStub::GetPattern, get));
                              }),
                session);
  CLI::App* erase = patterns->add_subcommand("delete", "Forget a pattern");
  auto drop = std::make_shared<v1::DeletePatternRequest>();
  erase->add_option("name", *drop->mutable_name(), kName)->required();
  erase->callback([&session, drop] {
    session.run = [drop](Connection& c) {
      const auto gone = c.Call(c.mapping(), &MappingStub::DeletePattern, *drop);
      return gone.ok() ? 0 : Fail(gone.status());
    };
  });
}

}  // namespace coppice
