// The readers of the JSON texts in the rows of trees and placements: what is read of any text is
// written so that it reads back the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "db/json_lists.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto sizes = coppice::ParseSizes(text);
  if (sizes.ok() && coppice::ParseSizes(coppice::SizesText(*sizes)).value() != *sizes) std::abort();
  const auto all = coppice::ParseAlternatives(text);
  if (all.ok() && coppice::ParseAlternatives(coppice::AlternativesText(*all)).value() != *all) {
    std::abort();
  }
  coppice::TreeRecord record, same;
  coppice::ParseSpec(text, record);
  coppice::ParseSpec(coppice::SpecText(record), same);
  // Compared as text: a weight that is no number equals nothing.
  if (coppice::SpecText(same) != coppice::SpecText(record)) std::abort();
  coppice::PlacementRecord placement, again;
  coppice::ParseMeasures(text, placement);
  coppice::ParseMeasures(coppice::MeasuresText(placement), again);
  if (!(again == placement)) std::abort();
  return 0;
}
