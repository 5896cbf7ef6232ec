// Writes a pattern as a trace file, whose format daemon/mapping/input/trace_file.h defines. The
// file takes the place of an older one only when it is whole and on the disk.
#ifndef COPPICE_AGENTS_MPI_TRACE_TRACE_FILE_WRITER_H_
#define COPPICE_AGENTS_MPI_TRACE_TRACE_FILE_WRITER_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "agents/mpi/trace/pair_table.h"

namespace coppice::mpi {

class TraceFileWriter final {
 public:
  TraceFileWriter(const std::string& path, const std::string& application, int ranks);
  ~TraceFileWriter();  // what is not finished is removed
  TraceFileWriter(const TraceFileWriter&) = delete;
  TraceFileWriter& operator=(const TraceFileWriter&) = delete;

  // What `sender` sends, by receiver; each sender once, in ascending order. Nothing: no row.
  void Row(int sender, const std::vector<PairSum>& pairs);
  // "": the file is there; else why it is not, with its name.
  std::string Finish();

 private:
  void Fail(const char* what);

  const std::string path_, partial_path_;
  std::FILE* file_ = nullptr;
  uint64_t pairs_ = 0;
  std::string error_;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TRACE_TRACE_FILE_WRITER_H_
