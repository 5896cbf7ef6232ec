// A log line is one line, whatever the texts in it hold: the flag of a pattern of spdlog that
// stands for the message as it may be shown.
#ifndef COPPICE_PROTO_TEXT_SHOWN_LOG_H_
#define COPPICE_PROTO_TEXT_SHOWN_LOG_H_

#include <spdlog/pattern_formatter.h>

#include <ctime>
#include <memory>
#include <string>

#include "proto/text/plain_text.h"

namespace coppice {

// "%~" where "%v" would be, after add_flag<ShownMessage>(ShownMessage::kFlag).
class ShownMessage final : public spdlog::custom_flag_formatter {
 public:
  static constexpr char kFlag = '~';

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string shown = ShownText({message.payload.data(), message.payload.size()});
    line.append(shown.data(), shown.data() + shown.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<ShownMessage>();
  }
};

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_SHOWN_LOG_H_
