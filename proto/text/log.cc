#include "proto/text/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr char kMessageFlag = '~', kPriorityFlag = '*';

// The message as it may be shown: a log line is one line, whatever the texts in it hold.
class ShownMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string shown = ShownText({message.payload.data(), message.payload.size()});
    line.append(shown.data(), shown.data() + shown.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<ShownMessage>();
  }
};

// The level as the number of syslog(3).
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    // trace and debug: 7, info: 6, warning: 4, error: 3, critical: 2
    constexpr std::array<char, 7> kNumbers = {'7', '7', '6', '4', '3', '2', '6'};
    line.push_back(kNumbers[static_cast<size_t>(message.level)]);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
         absl::StrCat(info.st_dev, ":", info.st_ino) == stream;
}

std::unique_ptr<spdlog::formatter> MakeFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<ShownMessage>(kMessageFlag);
  if (StderrIsJournal()) {
    formatter->add_flag<Priority>(kPriorityFlag).set_pattern("<%*>%~");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %~");
  }
  return formatter;
}

}  // namespace

absl::Status SetUpLog(const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(absl::StrCat(
        "log level \"", level, "\": use trace, debug, info, warning, error, critical or off"));
  }
  auto logger = spdlog::stderr_logger_mt("coppice");
  logger->set_level(parsed);
  logger->set_formatter(MakeFormatter());
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void SetLogLevel(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

}  // namespace coppice
