#include "daemon/rpc/type_table_conversion.h"

#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/rpc/trees_conversion.h"
#include "daemon/tree/closed_form.h"

namespace coppice {
namespace {

void RowToProto(const TypeChoice& choice, v1::TypeTableRow& row) {
  row.set_operation(ToProto(choice.operation));
  row.set_min_bytes(choice.min_bytes);
  row.set_max_bytes(choice.max_bytes);
  row.set_type(ToProto(choice.type));
  row.set_width(choice.widths.best);
  row.set_min_width(choice.widths.min);
  row.set_max_width(choice.widths.max);
  row.set_type_i_us(choice.type_i_us);
  row.set_type_ii_us(choice.type_ii_us);
}

}  // namespace

absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members,
                              v1::TypeTable& message) {
  ASSIGN_OR_RETURN(const std::vector<TypeChoice> table, StaticTypeTable(profile, members));
  message.set_profile(profile.name);
  message.set_members(members);
  for (const TypeChoice& choice : table) RowToProto(choice, *message.add_rows());
  return absl::OkStatus();
}

}  // namespace coppice
