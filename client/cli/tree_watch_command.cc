// coppicectl tree watch: what becomes of granted trees, one line each.
#include <iostream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

using TreesStub = v1::Trees::StubInterface;

// TREE_CHANGE_KIND_REVISED: "revised".
std::string KindWord(v1::TreeChangeKind kind) {
  const std::string& name = v1::TreeChangeKind_Name(kind);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "TREE_CHANGE_KIND_"));
}

void PrintChange(const v1::TreeChange& change) {
  std::cout << KindWord(change.kind());
  if (change.has_tree()) {
    const v1::Tree& tree = change.tree();
    std::cout << "  tree " << tree.id() << "  job " << tree.job_id() << "  revision "
              << tree.revision() << "  type " << Word(tree.type()) << "  ranks "
              << tree.rank_count() << "  switches " << tree.switch_count();
  }
  if (!change.reason().empty()) std::cout << "  " << ShownText(change.reason());
  if (!change.resume_token().empty()) std::cout << "  [" << change.resume_token() << "]";
  std::cout << "\n";
}

int Watch(const Session& session, Connection& connection, const v1::WatchTreesRequest& request) {
  const std::function<bool(const v1::TreeChange&)> print = [&](const v1::TreeChange& change) {
    if (session.json) {
      PrintJsonLine(std::cout, change);
    } else {
      PrintChange(change);
    }
    return static_cast<bool>(std::cout.flush());
  };
  const absl::Status status =
      connection.Watch(connection.trees(), &TreesStub::WatchTrees, request, print);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

void AddTreeWatchCommand(CLI::App& tree, Session& session) {
  CLI::App* command = tree.add_subcommand(
      "watch",
      "Granted trees, then all that becomes of them, one line each, until interrupted or the job "
      "is over");
  AddJsonFlag(*command, session);
  auto request = std::make_shared<v1::WatchTreesRequest>();
  command->add_option("--job", *request->mutable_job_id(), "Only this job's");
  command->add_option("--resume", *request->mutable_resume_token(),
                      "Go on after the change that came with this token");
  command->callback([&session, request] {
    session.endless = true;
    session.run = [&session, request](Connection& c) { return Watch(session, c, *request); };
  });
}

}  // namespace coppice
