// coppicectl events [--follow] | fabric watch: what happened, and what happens.
//
// Following goes by the ids of events, which outlive the daemon: when the stream breaks off,
// because the daemon is restarted, it is opened again after the last event that was printed, so
// each is printed once.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/option_words.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// Short: until its next call this program does not see that a server takes leave, which waits for
// it.
constexpr absl::Duration kFollowAgain = absl::Milliseconds(200);
constexpr char kFabricPublished[] = "sweep.done", kFabricObject[] = "fabric";
// Kinds of events that `fabric watch` shows.
constexpr std::array<absl::string_view, 6> kOfFabric = {"sweep.",  "link.", "node.",
                                                        "switch.", "sm.",   "lids."};

struct EventOptions {
  v1::ListEventsRequest request;
  int64_t after = 0;
};

int ListEvents(Session& session, Connection& connection, const v1::ListEventsRequest& request) {
  const auto all = ListAll(connection, &FabricStub::ListEvents, request);
  return Show(session, all, [&](const v1::ListEventsResponse& list) {
    PrintRows(session, {"ID", "TIME", "SEVERITY", "KIND", "OBJECT", "BY", "MESSAGE"}, {0, 4, 5},
              list.events(), [](const v1::Event& event) {
                return CellsOf(event.id(), TimeText(event.time()), event.severity(), event.kind(),
                               event.object(), event.actor(), event.message());
              });
  });
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
  const auto print = [&](const v1::Event& event) {
    is_told = false;
    request.set_after_id(event.id());
    if (!wanted(event)) return true;
    PrintFollowed(session, event);
    return static_cast<bool>(std::cout.flush());
  };
  while (true) {
    const absl::Status status = connection.Watch(&FabricStub::WatchEvents, request, print);
    if (status.ok()) return 0;
    if (const auto over = AfterBreak(status, is_told, request)) return *over;
  }
}

// What there is, then what comes.
int FollowEvents(Session& session, Connection& connection, v1::ListEventsRequest request,
                 int64_t after) {
  request.set_page_size(1);
  const auto answer = connection.Call(&FabricStub::ListEvents, request);
  if (!answer.ok()) return Fail(answer.status());
  v1::WatchEventsRequest watch;
  watch.set_kind_prefix(request.kind_prefix());
  watch.set_object(request.object());
  watch.set_min_severity(request.min_severity());
  watch.set_after_id(after);
  return Follow(session, connection, watch, [](const v1::Event&) { return true; });
}

// Of the newest event of a fabric that was published; 0: there is none.
absl::StatusOr<int64_t> NewestFabricEvent(Connection& connection) {
  v1::ListEventsRequest request;
  request.set_kind_prefix(kFabricPublished);
  request.set_object(kFabricObject);
  const auto all = ListAll(connection, &FabricStub::ListEvents, request);
  if (!all.ok()) return all.status();
  return all->events().empty() ? 0 : all->events().rbegin()->id();
}

// The newest fabric version, then all that happens to the fabric.
int WatchFabric(Session& session, Connection& connection) {
  const auto newest = NewestFabricEvent(connection);
  if (!newest.ok()) return Fail(newest.status());
  v1::WatchEventsRequest watch;
  watch.set_after_id(std::max<int64_t>(0, *newest - 1));
  return Follow(session, connection, watch, [](const v1::Event& event) {
    return absl::c_any_of(kOfFabric, [&](absl::string_view prefix) {
      return absl::StartsWith(event.kind(), prefix);
    });
  });
}

// Files that others read while this program writes them anew.

constexpr mode_t kModeOfNew = 0644;

// The file that a link leads to; the path itself if nothing is there.
std::string Resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real == nullptr ? path : std::string(real.get());
}

// Whether the file that `about` is of has this text. Never reads further than the text is long.
bool Holds(const std::string& path, const struct stat& about, absl::string_view text) {
  if (about.st_size != static_cast<off_t>(text.size())) return false;
  std::ifstream file(path, std::ios::binary);
  std::string held(text.size(), '\0');
  return file.read(held.data(), about.st_size) && held == text;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Before the mode is set, which a change of the owner takes bits from. Whoever may not give files
// away keeps at least the group, or has the file: it is right all the same.
bool KeepOwner(int fd, const struct stat& old) {
  return fchown(fd, old.st_uid, old.st_gid) == 0 ||
         fchown(fd, static_cast<uid_t>(-1), old.st_gid) == 0;
}

// The name is durable when its directory is. Not all file systems can; the file is whole anyway.
void SyncDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Makes the file hold `text`, at once: a reader sees what was there or all that is new, also after
// a crash. Its mode stays, and its owner where the caller may keep it; a new one is readable by
// all. A link is followed. False: that was its text already, and it was not touched. The message
// names the file. INVALID_ARGUMENT: it is a folder, a device or a pipe; NOT_FOUND,
// PERMISSION_DENIED or another code of absl::ErrnoToStatus: nothing can be made beside it;
// DATA_LOSS: not all can be written.
absl::StatusOr<bool> ReplaceFile(const std::string& path, absl::string_view text) {
  const std::string target = Resolved(path);
  struct stat old;
  const bool is_old = stat(target.c_str(), &old) == 0;
  if (is_old && !S_ISREG(old.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file; give the path of one, or - to print"));
  }
  if (is_old && Holds(target, old, text)) return false;
  const mode_t mode = is_old ? old.st_mode & 07777 : kModeOfNew;
  std::string beside = target + ".XXXXXX";
  const int fd = mkostemp(beside.data(), O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written beside"));
  if (is_old) KeepOwner(fd, old);
  const bool is_written = fchmod(fd, mode) == 0 && WriteAll(fd, text) && fsync(fd) == 0;
  const int error = errno;
  const bool is_closed = close(fd) == 0;
  if (!is_written) errno = error;
  if (!is_written || !is_closed || rename(beside.c_str(), target.c_str()) != 0) {
    const absl::Status status =
        absl::DataLossError(absl::StrCat(path, ": cannot be replaced: ", strerror(errno)));
    unlink(beside.c_str());
    return status;
  }
  SyncDirectory(target);
  return true;
}

constexpr absl::Duration kRetryPause = absl::Milliseconds(500);
constexpr absl::Duration kRunAgain = absl::Seconds(5);  // a command that failed

struct ExportOptions {
  v1::ExportTopologyRequest request;
  std::string output;   // empty: standard output
  std::string command;  // empty: none
};

// Runs what the user gave with --exec. Whoever reads the file must hear of it, but the file is
// right all the same: a failure is told, and that is all.
bool RunCommand(const std::string& command) {
  std::cout.flush();
  const int status = std::system(command.c_str());
  if (status == 0) return true;
  std::cerr << "--exec " << command << ": ";
  if (status != -1 && WIFEXITED(status)) {
    std::cerr << "exit status " << WEXITSTATUS(status) << "\n";
  } else {
    std::cerr << "did not run to its end\n";
  }
  return false;
}

void TellWritten(const Session& session, const ExportOptions& options, bool is_new,
                 v1::ExportTopologyResponse& response) {
  if (session.json) {
    response.clear_text();  // it is in the file
    return PrintJsonLine(std::cout, response);
  }
  std::cout << options.output << (is_new ? ": written" : ": unchanged") << ", fabric version "
            << response.fabric_version() << ", " << Counted(response.host_count(), "host")
            << " below " << Counted(response.switch_count(), "switch", "es") << "\n";
  for (const std::string& host : response.left_out()) {
    std::cerr << "left out, no name for Slurm: \"" << host << "\"\n";
  }
}

// One export, to where the options say. The command runs if the file has changed, or it is owed.
absl::Status Export(const Session& session, Connection& connection, const ExportOptions& options,
                    bool& is_owed) {
  auto response = connection.Call(&FabricStub::ExportTopology, options.request);
  if (!response.ok()) return response.status();
  if (options.output.empty() || options.output == "-") {
    session.json ? PrintJson(std::cout, *response) : void(std::cout << response->text());
    return absl::OkStatus();
  }
  const absl::StatusOr<bool> is_new = ReplaceFile(options.output, response->text());
  if (!is_new.ok()) return is_new.status();
  TellWritten(session, options, *is_new, *response);
  is_owed = (is_owed || *is_new) && !options.command.empty();
  if (is_owed) is_owed = !RunCommand(options.command);
  std::cout.flush();
  return absl::OkStatus();
}

// Until the stream breaks off, or an export or its command fails.
absl::Status FollowOnce(const Session& session, Connection& connection,
                        const ExportOptions& options, bool& is_told, bool& is_owed) {
  const absl::StatusOr<int64_t> newest = NewestFabricEvent(connection);
  if (!newest.ok()) return newest.status();
  absl::Status status = Export(session, connection, options, is_owed);
  if (!status.ok()) return status;
  is_told = false;
  if (is_owed) return status;
  v1::WatchEventsRequest watch;
  watch.set_kind_prefix(kFabricPublished);
  watch.set_object(kFabricObject);
  watch.set_after_id(*newest);
  const absl::Status end = connection.Watch(&FabricStub::WatchEvents, watch, [&](const v1::Event&) {
    status = Export(session, connection, options, is_owed);
    return status.ok() && !is_owed;
  });
  return status.ok() && !is_owed ? end : status;
}

// A daemon that is away, restarted, or has not swept yet is waited for.
bool MayComeBack(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsOutOfRange(status) || absl::IsAborted(status);
}

int FollowFabric(const Session& session, Connection& connection, const ExportOptions& options) {
  bool is_owed = true;
  for (bool is_told = false;;) {
    const absl::Status status = FollowOnce(session, connection, options, is_told, is_owed);
    if (!MayComeBack(status)) return Fail(status);
    if (!status.ok() && !std::exchange(is_told, true)) {
      std::cerr << "waiting for the daemon: " << status.message() << "\n";
    }
    absl::SleepFor(status.ok() && is_owed ? kRunAgain : kRetryPause);
  }
}

int ExportOnce(const Session& session, Connection& connection, const ExportOptions& options) {
  bool is_owed = false;
  const absl::Status status = Export(session, connection, options, is_owed);
  if (!status.ok()) return Fail(status);
  return is_owed ? 1 : 0;
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
      ->check(Understood(
          [](const std::string& text) {
            uint64_t number = 0;
            return absl::SimpleAtoi(text, &number);
          },
          "the number of an event"))
      ->needs(follow);
}

// coppicectl export slurm-topology: the fabric as Slurm's topology.conf, once or kept fresh.
//
// Following goes by the events of published fabrics. Each time that the daemon answers anew, the
// newest event is noted first, the file is written next, and what comes after the event is watched
// last: no change falls between. The command is owed from each change, and from the start, until it
// went well: a run that was interrupted may have written the file and not come to run it.

void AddExportCommands(CLI::App& app, Session& session) {
  CLI::App* all = app.add_subcommand("export", "The fabric as the files of schedulers");
  all->require_subcommand(1);
  auto [command, options] = AddCommand<ExportOptions>(
      *all, session, "slurm-topology",
      "topology.conf of Slurm: a tree of switches for topology/tree",
      [](Session& s, Connection& c, const ExportOptions& o) {
        return s.endless ? FollowFabric(s, c, o) : ExportOnce(s, c, o);
      },
      [all](ExportOptions&) {
        RefuseWithoutEffect(*all->get_subcommand("slurm-topology"), {{"--exec", "--output", "-"}});
      });
  options.request.set_format(v1::TOPOLOGY_FORMAT_SLURM);
  CLI::Option* output = command->add_option(
      "--output", options.output,
      "File to write, at once and only if that changes it; default, and with -, standard output");
  command
      ->add_flag("--follow", session.endless,
                 "Go on until interrupted: write the file again when the fabric has changed, also "
                 "over a restart of the daemon")
      ->needs(output);
  command
      ->add_option("--exec", options.command,
                   "Have the shell run this after each change of the file, such as \"scontrol "
                   "reconfigure\"; with --follow also at the start, and again until it succeeds")
      ->needs(output);
}

}  // namespace coppice
