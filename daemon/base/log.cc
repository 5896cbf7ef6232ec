#include "daemon/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/shown_log.h"

namespace coppice {
namespace {

constexpr char kPriorityFlag = '*';

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

std::unique_ptr<spdlog::formatter> FormatterOf(LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<ShownMessage>(ShownMessage::kFlag);
  if (format == LogFormat::kJournal) {
    formatter->add_flag<Priority>(kPriorityFlag).set_pattern("<%*>%~");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %~");
  }
  return formatter;
}

}  // namespace

absl::Status SetUpLog(const std::string& level, LogFormat format) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(absl::StrCat(
        "log level \"", level, "\": use trace, debug, info, warning, error, critical or off"));
  }
  auto logger = spdlog::stderr_logger_mt("coppice");
  logger->set_level(parsed);
  logger->set_formatter(FormatterOf(format));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void SetLogLevel(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

}  // namespace coppice
