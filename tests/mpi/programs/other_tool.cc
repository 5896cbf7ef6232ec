// Another tool that is preloaded, too, and hands on to PMPI_ what it stands before: MPI_Init, or
// with COPPICE_TOOL_ENDS MPI_Finalize.
#include <mpi.h>

extern "C" {

#ifdef COPPICE_TOOL_ENDS
int MPI_Finalize(void) { return PMPI_Finalize(); }
#else
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
#endif

}  // extern "C"
