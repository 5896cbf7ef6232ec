// How long a segment of a long message may be: shorter than what the transport between hosts sends
// at once. A longer one waits until its receiver has said where it goes, which costs a round trip
// for each segment and at each step of a tree: twice the time, in all.
#ifndef COPPICE_AGENTS_MPI_TREE_SEGMENT_BYTES_H_
#define COPPICE_AGENTS_MPI_TREE_SEGMENT_BYTES_H_

namespace coppice::mpi {

// As this process's MPI library says (MPI_T), the library's own header taken off; 32 KiB where it
// does not. Between 4 and 60 KiB.
int SegmentBytesHere();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_SEGMENT_BYTES_H_
