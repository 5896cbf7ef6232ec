#include "agents/mpi/tree/segment_bytes.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>

namespace coppice::mpi {
namespace {

// Long against what a message costs besides its bytes (some microseconds, so some 10 KiB at 10
// GB/s).
constexpr int kPreset = 32 << 10;
[[maybe_unused]] constexpr int kLeast = 4 << 10, kMost = 60 << 10;
#ifdef OPEN_MPI

// One part of so many of what is sent at once is more than any header takes.
constexpr uint64_t kHeaderShare = 16;

// The value of the MPI library's setting; 0: it has none of that name, or it is no number.
uint64_t Setting(const char* name) {
  int index = 0, count = 0, type_bytes = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return 0;
  int name_length = 0, level = 0, words_length = 0, binding = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (MPI_T_cvar_get_info(index, nullptr, &name_length, &level, &type, nullptr, nullptr,
                          &words_length, &binding, &scope) != MPI_SUCCESS ||
      PMPI_Type_size(type, &type_bytes) != MPI_SUCCESS) {
    return 0;
  }
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return 0;
  uint64_t of_eight = 0;
  uint32_t of_four = 0;
  void* const value = type_bytes == sizeof(of_eight) ? static_cast<void*>(&of_eight) : &of_four;
  const bool is_number =
      count == 1 && (type_bytes == sizeof(of_eight) || type_bytes == sizeof(of_four));
  const bool is_read = is_number && MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return !is_read ? 0 : of_eight + of_four;
}

// What it sends between hosts at once, header included; 0: it does not say. Settings are those of
// the parts in use: ob1 is not among them where UCX or a network of matching messages carries all,
// which do not say. An InfiniBand adapter goes before TCP.
uint64_t SentAtOnce() {
  if (Setting("pml_ob1_priority") == 0) return 0;
  const uint64_t of_adapter = Setting("btl_openib_eager_limit");
  return of_adapter != 0 ? of_adapter : Setting("btl_tcp_eager_limit");
}

#endif  // OPEN_MPI

}  // namespace

int SegmentBytesHere() {
#ifdef OPEN_MPI
  int threads = MPI_THREAD_SINGLE;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS) return kPreset;
  const uint64_t at_once = SentAtOnce();
  MPI_T_finalize();
  if (at_once == 0) return kPreset;
  return static_cast<int>(std::clamp<uint64_t>(at_once - at_once / kHeaderShare, kLeast, kMost));
#else
  return kPreset;  // MPICH has settings of transports that it was not built with, and none of UCX
#endif
}

}  // namespace coppice::mpi
