#include "db/store.h"

#include <future>
#include <utility>

namespace coppice {

absl::Status Store::Apply(Mutation mutation) {
  std::promise<absl::Status> result;
  Submit(std::move(mutation),
         [&result](absl::Status status) { result.set_value(std::move(status)); });
  return result.get_future().get();
}

}  // namespace coppice
