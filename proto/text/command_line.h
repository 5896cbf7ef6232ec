// What the command lines of all programs have in common: the form of --help, values that are texts
// or counts, and standard output that is written whole or told to be not.
#ifndef COPPICE_PROTO_TEXT_COMMAND_LINE_H_
#define COPPICE_PROTO_TEXT_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// Standard streams that the caller closed (`>&-`) fail from now on, instead of leading into the
// first files that are opened. What every program begins with.
void GuardStandardStreams();

// As many descriptors as the process may have; a shell's soft limit is 1024.
void RaiseDescriptorLimit();

// --help of `app`, and of the commands that are added later, stays within a terminal's width where
// people look (text_table.h). Elsewhere it is CLI11's, of which manual pages are made. What is said
// of a line that is wrong is UsageError's, of FaultOf.
void FitHelp(CLI::App& app);

// What is wrong with a line that `app` could not read.
std::string FaultOf(const CLI::App& app, const CLI::Error& error);

// Reads the line of a program without commands, and tells variables that nothing reads. An exit
// status if that was all.
std::optional<int> ParseProgram(CLI::App& app, int argc, char** argv);

// For a line that CLI11 ends: prints help or version, or says what is wrong; returns the exit
// status (exit_status.h).
int EndLine(const CLI::App& app, const CLI::ParseError& error);

// DATA_LOSS: not all that was printed could be written; the disk is full, say.
absl::Status FlushOutput();
// Writes `text` to standard output as it may be shown (plain_text.h). Errors as FlushOutput.
absl::Status PrintText(absl::string_view text);

// Adds an option whose value is any text but the empty one: an empty value is a shell variable that
// was never set, and must not pass for an option that was never given.
CLI::Option* AddText(CLI::App& command, const std::string& name, std::string& value,
                     const std::string& meaning);

// Adds an option whose value is a whole number from `least` to `most` in decimal digits.
CLI::Option* AddCount(CLI::App& command, const std::string& name, std::optional<uint32_t>& value,
                      const std::string& meaning, uint32_t least = 0, uint32_t most = UINT32_MAX);

// For a line that was read; `others` are options that the command may have. They throw
// CLI::ExcludesError(said, NAME) for the first of `others` that was given; the same for the first
// option but `name` that was given and is none of `others`; and CLI::RequiresError if `name` was
// given and none of `others`.
void CheckNoneOf(const CLI::App& command, const std::string& said,
                 std::initializer_list<const char*> others);
void CheckNoneBut(const CLI::App& command, const std::string& name,
                  std::initializer_list<const char*> others);
void CheckNeedsOneOf(const CLI::App& command, const std::string& name,
                     std::initializer_list<const char*> others);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_COMMAND_LINE_H_
