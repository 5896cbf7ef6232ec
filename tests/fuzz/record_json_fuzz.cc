// The readers of the JSON texts in a tree's row: any text is read as what would be written again as
// the same, or as nothing.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "db/tree_texts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<coppice::SizeShare> sizes = coppice::ParseSizes(text);
  if (coppice::ParseSizes(coppice::SizesText(sizes)).size() > sizes.size()) std::abort();
  const std::vector<coppice::Alternative> all = coppice::ParseAlternatives(text);
  const std::vector<coppice::Alternative> again =
      coppice::ParseAlternatives(coppice::AlternativesText(all));
  if (again.size() != all.size()) std::abort();
  for (size_t i = 0; i < all.size(); ++i) {
    if (again[i].type != all[i].type || again[i].builder != all[i].builder ||
        again[i].width != all[i].width || again[i].why_not != all[i].why_not) {
      std::abort();
    }
  }
  coppice::TreeRecord record, same;
  coppice::ParseSpec(text, record);
  coppice::ParseSpec(coppice::SpecText(record), same);
  // Compared as text: a weight that is no number equals nothing.
  if (coppice::SpecText(same) != coppice::SpecText(record)) std::abort();
  return 0;
}
