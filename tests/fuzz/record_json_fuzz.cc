// The reader of the JSON lists in a tree's record: any text is read as what would be written again
// as the same list, or as nothing.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/manager/tree_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<coppice::SizeShare> sizes = coppice::ParseSizes(text);
  if (coppice::ParseSizes(coppice::SizesJson(sizes)).size() > sizes.size()) std::abort();
  const std::vector<coppice::Alternative> all = coppice::ParseAlternatives(text);
  const std::vector<coppice::Alternative> again =
      coppice::ParseAlternatives(coppice::AlternativesJson(all));
  if (again.size() != all.size()) std::abort();
  for (size_t i = 0; i < all.size(); ++i) {
    if (again[i].type != all[i].type || again[i].builder != all[i].builder ||
        again[i].width != all[i].width || again[i].why_not != all[i].why_not) {
      std::abort();
    }
  }
  return 0;
}
