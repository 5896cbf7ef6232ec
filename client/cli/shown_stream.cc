#include "client/cli/shown_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

bool Put(std::streambuf& target, absl::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return target.sputn(text.data(), size) == size;
}

// How many bytes at the end of `text` may be the beginning of a character.
size_t BegunBytes(absl::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[text.size() - n]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return n < wanted ? n : 0;
  }
  return 0;
}

}  // namespace

ShownStream::~ShownStream() {
  Put(*target_, ShownText(begun_));
  target_->pubsync();
  out_.rdbuf(target_);
}

void ShownStream::Control(std::ostream& out, absl::string_view sequence) {
  auto* const shown = dynamic_cast<ShownStream*>(out.rdbuf());
  Put(shown != nullptr ? *shown->target_ : *out.rdbuf(), sequence);
}

bool ShownStream::Write(absl::string_view text) {
  std::string whole;
  if (!begun_.empty()) {
    whole = absl::StrCat(std::exchange(begun_, ""), text);
    text = whole;
  }
  const size_t begun = BegunBytes(text);
  begun_ = std::string(text.substr(text.size() - begun));
  return Put(*target_, ShownText(text.substr(0, text.size() - begun), TextLines::kMany));
}

int ShownStream::overflow(int c) {
  if (c == traits_type::eof()) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return Write({&one, 1}) ? c : traits_type::eof();
}

std::streamsize ShownStream::xsputn(const char* text, std::streamsize size) {
  return Write({text, static_cast<size_t>(size)}) ? size : 0;
}

int ShownStream::sync() { return target_->pubsync(); }

}  // namespace coppice
