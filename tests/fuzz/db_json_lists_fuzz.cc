// The readers of the lists in the database file: any text is read exactly or refused.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "db/json_lists.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string again;
  if (auto numbers = coppice::ParseNumbers<int64_t>(text); numbers.ok()) {
    coppice::AppendNumbers(*numbers, again);
    if (*coppice::ParseNumbers<int64_t>(again) != *numbers) std::abort();
  }
  if (auto numbers = coppice::ParseNumbers<uint64_t>(text); numbers.ok()) {
    again.clear();
    coppice::AppendNumbers(*numbers, again);
    if (*coppice::ParseNumbers<uint64_t>(again) != *numbers) std::abort();
  }
  if (auto guids = coppice::ParseGuids(text); guids.ok()) {
    again.clear();
    coppice::AppendGuids(*guids, again);
    if (*coppice::ParseGuids(again) != *guids) std::abort();
  }
  if (auto texts = coppice::ParseTexts(text); texts.ok()) {
    again.clear();
    coppice::AppendTexts(*texts, again);
    if (*coppice::ParseTexts(again) != *texts) std::abort();
  }
  coppice::TreeRecord tree, copy;
  if (coppice::ParseTreeNodes(text, tree).ok()) {
    again.clear();
    coppice::AppendTreeNodes(tree, again);
    if (!coppice::ParseTreeNodes(again, copy).ok() || !(copy == tree)) std::abort();
  }
  if (auto forest = coppice::ParseForest(text); forest.ok()) {
    again.clear();
    coppice::AppendForest(*forest, again);
    if (*coppice::ParseForest(again) != *forest) std::abort();
  }
  return 0;
}
