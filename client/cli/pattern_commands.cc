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

absl::Status Fill(const std::string& path, v1::InputFile& to) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  to.set_origin(path);
  to.set_text(*std::move(text));
  return absl::OkStatus();
}

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
  if (!pattern.ok()) return Fail(pattern.status());
  if (session.json) return PrintJson(std::cout, *pattern), 0;
  v1::ListPatternsResponse list;
  *list.add_patterns() = *pattern;
  PrintPatterns(list, session.is_wide);
  return 0;
}

int Put(Session& session, Connection& connection, PatternFiles& files) {
  absl::Status status = Fill(files.file, *files.request.mutable_pattern_file());
  if (status.ok() && !files.messages.empty()) {
    status = Fill(files.messages, *files.request.mutable_messages_file());
  }
  if (!status.ok()) return Fail(status);
  return Show(session,
              connection.Call(connection.mapping(), &MappingStub::PutPattern, files.request));
}

int ListPatterns(Session& session, Connection& connection) {
  const auto list = ListAll(connection, connection.mapping(), &MappingStub::ListPatterns,
                            v1::ListPatternsRequest());
  if (!list.ok()) return Fail(list.status());
  if (session.json) return PrintJson(std::cout, *list), 0;
  PrintPatterns(*list, session.is_wide);
  return 0;
}

void AddPut(CLI::App& patterns, Session& session) {
  CLI::App* command = patterns.add_subcommand("put", "Keep a pattern, in place of that name's");
  AddJsonFlag(*command, session);
  auto files = std::make_shared<PatternFiles>();
  command->add_option("name", *files->request.mutable_name(), "Of the application")->required();
  command->add_option("file", files->file, "As map --pattern takes it; - for stdin")->required();
  command->add_option("--messages", files->messages, "Matrix of message counts beside it");
  command->callback([&session, files] {
    session.run = [&session, files](Connection& c) { return Put(session, c, *files); };
  });
}

}  // namespace

void AddPatternCommands(CLI::App& app, Session& session) {
  CLI::App* patterns =
      app.add_subcommand("pattern", "Communication patterns that are kept for later runs");
  patterns->require_subcommand(1);
  AddPut(*patterns, session);
  CLI::App* list = patterns->add_subcommand("list", "Everybody's patterns, by name");
  AddJsonFlag(*list, session);
  AddWideOption(*list, session);
  list->callback(
      [&session] { session.run = [&](Connection& c) { return ListPatterns(session, c); }; });

  CLI::App* show = patterns->add_subcommand("show", "One pattern");
  AddJsonFlag(*show, session);
  AddWideOption(*show, session);
  auto get = std::make_shared<v1::GetPatternRequest>();
  show->add_option("name", *get->mutable_name(), "Of the application; another's: OWNER:NAME")
      ->required();
  show->callback([&session, get] {
    session.run = [&session, get](Connection& c) {
      return Show(session, c.Call(c.mapping(), &MappingStub::GetPattern, *get));
    };
  });

  CLI::App* erase = patterns->add_subcommand("delete", "Forget a pattern");
  auto drop = std::make_shared<v1::DeletePatternRequest>();
  erase->add_option("name", *drop->mutable_name(), "Of the application; another's: OWNER:NAME")
      ->required();
  erase->callback([&session, drop] {
    session.run = [drop](Connection& c) {
      const auto gone = c.Call(c.mapping(), &MappingStub::DeletePattern, *drop);
      return gone.ok() ? 0 : Fail(gone.status());
    };
  });
}

}  // namespace coppice
