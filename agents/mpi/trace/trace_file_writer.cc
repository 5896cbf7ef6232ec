#include "agents/mpi/trace/trace_file_writer.h"

#include <errno.h>
#include <unistd.h>

#include <cinttypes>
#include <cstring>

namespace coppice::mpi {
namespace {

// On one line.
std::string Printable(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return name;
}

}  // namespace

TraceFileWriter::TraceFileWriter(const std::string& path, const std::string& application, int ranks)
    : path_(path), partial_path_(path + "." + std::to_string(getpid()) + ".partial") {
  file_ = std::fopen(partial_path_.c_str(), "we");
  if (file_ == nullptr) {
    Fail("cannot be created");
    return;
  }
  std::fprintf(file_, "coppice-trace 1\napplication %s\nranks %d\n", Printable(application).c_str(),
               ranks);
}

TraceFileWriter::~TraceFileWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(partial_path_.c_str());
}

void TraceFileWriter::Fail(const char* what) {
  if (error_.empty()) {
    error_ = "trace file " + path_ + " " + what + ": " + std::strerror(errno) +
             "; set COPPICE_TRACE to a file that rank 0 may write";
  }
}

void TraceFileWriter::Row(int sender, const std::vector<PairSum>& pairs) {
  if (file_ == nullptr || pairs.empty()) return;
  std::fprintf(file_, "%d", sender);
  for (const PairSum& pair : pairs) {
    std::fprintf(file_, " %" PRId32 " %" PRIu64 " %" PRIu64, pair.to, pair.messages, pair.bytes);
  }
  std::fputc('\n', file_);
  pairs_ += pairs.size();
}

std::string TraceFileWriter::Finish() {
  if (file_ == nullptr) return error_;
  std::fprintf(file_, "end %" PRIu64 "\n", pairs_);
  if (std::fflush(file_) != 0 || std::ferror(file_) || fsync(fileno(file_)) != 0) {
    Fail("cannot be written");
    return error_;
  }
  std::fclose(file_);
  file_ = nullptr;
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    Fail("cannot take its name");
    unlink(partial_path_.c_str());
  }
  return error_;
}

}  // namespace coppice::mpi
