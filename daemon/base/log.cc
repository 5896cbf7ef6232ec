#include "daemon/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include "absl/strings/str_cat.h"

namespace coppice {

absl::Status SetUpLog(const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(absl::StrCat(
        "log level \"", level, "\": use trace, debug, info, warning, error, critical or off"));
  }
  auto logger = spdlog::stderr_logger_mt("coppice");
  logger->set_level(parsed);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace coppice
