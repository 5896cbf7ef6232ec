! Each collective of Fortran, blocking and nonblocking, and MPI_BARRIER_INIT where it is, with the
! counts and roots of trace_test.py: of mpif.h's functions, or with F08 of the module mpi_f08. What
! each rank sends in them is what collective_calls.cc sends. Neighbours are those in a ring that wraps
! around: a grid, and for alltoallw a distributed graph.
program collective_calls
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: world, ring
  type(MPI_Datatype) :: types(5), own_types(5), ring_types(2), got_types(2)
  type(MPI_Request) :: request
#else
  use mpi
  implicit none
  integer :: world, ring, types(5), own_types(5), ring_types(2), got_types(2), request
#endif
  integer, parameter :: largest = 20000
  character(len=1), asynchronous :: out(largest), in(largest)
  integer :: rank, ranks, error, i, own
  integer :: by_sender(5), by_sender_at(5), sent(5), sent_at(5), got(5), got_at(5)
  integer :: ring_sent(2), ring_got(2), ring_at(2), ring_all(2), neighbours(2)
  integer(kind=MPI_ADDRESS_KIND) :: ring_places(2)
  logical :: periods(1)

  call MPI_INIT(error)
  world = MPI_COMM_WORLD
  call MPI_COMM_RANK(world, rank, error)
  call MPI_COMM_SIZE(world, ranks, error)
  if (ranks /= 5) call MPI_ABORT(world, 3, error)
  out = achar(rank)
  do i = 1, 5
    types(i) = MPI_CHARACTER
    if (mod(i, 2) == 0) types(i) = MPI_INTEGER2
    own_types(i) = MPI_CHARACTER
    if (mod(rank, 2) == 1) own_types(i) = MPI_INTEGER2
  end do

  call MPI_BARRIER(world, error)
  call MPI_IBARRIER(world, request, error)
  call DONE()
#ifdef mpich
  call MPI_BARRIER_INIT(world, MPI_INFO_NULL, request, error)
  call MPI_START(request, error)
  call DONE()
  call MPI_REQUEST_FREE(request, error)
#endif
  call MPI_BCAST(out, 100, MPI_CHARACTER, 3, world, error)
  call MPI_IBCAST(out, 100, MPI_CHARACTER, 3, world, request, error)
  call DONE()
  call MPI_REDUCE(out, in, 200, MPI_BYTE, MPI_BOR, 2, world, error)
  call MPI_IREDUCE(out, in, 200, MPI_BYTE, MPI_BOR, 2, world, request, error)
  call DONE()
  call MPI_ALLREDUCE(out, in, 300, MPI_BYTE, MPI_BOR, world, error)
  call MPI_IALLREDUCE(out, in, 300, MPI_BYTE, MPI_BOR, world, request, error)
  call DONE()
  call MPI_SCAN(out, in, 10, MPI_BYTE, MPI_BOR, world, error)
  call MPI_ISCAN(out, in, 10, MPI_BYTE, MPI_BOR, world, request, error)
  call DONE()
  call MPI_EXSCAN(out, in, 11, MPI_BYTE, MPI_BOR, world, error)
  call MPI_IEXSCAN(out, in, 11, MPI_BYTE, MPI_BOR, world, request, error)
  call DONE()

  call SENDERS(12)
  call MPI_REDUCE_SCATTER(out, in, by_sender, MPI_BYTE, MPI_BOR, world, error)
  call MPI_IREDUCE_SCATTER(out, in, by_sender, MPI_BYTE, MPI_BOR, world, request, error)
  call DONE()
  call MPI_REDUCE_SCATTER_BLOCK(out, in, 13, MPI_BYTE, MPI_BOR, world, error)
  call MPI_IREDUCE_SCATTER_BLOCK(out, in, 13, MPI_BYTE, MPI_BOR, world, request, error)
  call DONE()

  call MPI_GATHER(out, 30, MPI_CHARACTER, in, 30, MPI_CHARACTER, 1, world, error)
  call MPI_IGATHER(out, 30, MPI_CHARACTER, in, 30, MPI_CHARACTER, 1, world, request, error)
  call DONE()
  call SENDERS(31)
  call MPI_GATHERV(out, own, MPI_CHARACTER, in, by_sender, by_sender_at, MPI_CHARACTER, 2, world, &
                   error)
  call MPI_IGATHERV(out, own, MPI_CHARACTER, in, by_sender, by_sender_at, MPI_CHARACTER, 2, world, &
                    request, error)
  call DONE()
  call MPI_SCATTER(out, 32, MPI_CHARACTER, in, 32, MPI_CHARACTER, 1, world, error)
  call MPI_ISCATTER(out, 32, MPI_CHARACTER, in, 32, MPI_CHARACTER, 1, world, request, error)
  call DONE()
  call RECEIVERS(33, 1)
  call MPI_SCATTERV(out, sent, sent_at, MPI_CHARACTER, in, got(1), MPI_CHARACTER, 2, world, error)
  call MPI_ISCATTERV(out, sent, sent_at, MPI_CHARACTER, in, got(1), MPI_CHARACTER, 2, world, request, &
                     error)
  call DONE()

  call MPI_ALLGATHER(out, 14, MPI_CHARACTER, in, 14, MPI_CHARACTER, world, error)
  call MPI_IALLGATHER(out, 14, MPI_CHARACTER, in, 14, MPI_CHARACTER, world, request, error)
  call DONE()
  call SENDERS(15)
  call MPI_ALLGATHERV(out, own, MPI_CHARACTER, in, by_sender, by_sender_at, MPI_CHARACTER, world, &
                      error)
  call MPI_IALLGATHERV(out, own, MPI_CHARACTER, in, by_sender, by_sender_at, MPI_CHARACTER, world, &
                       request, error)
  call DONE()
  call MPI_ALLTOALL(out, 16, MPI_CHARACTER, in, 16, MPI_CHARACTER, world, error)
  call MPI_IALLTOALL(out, 16, MPI_CHARACTER, in, 16, MPI_CHARACTER, world, request, error)
  call DONE()
  call RECEIVERS(17, 1)
  call MPI_ALLTOALLV(out, sent, sent_at, MPI_CHARACTER, in, got, got_at, MPI_CHARACTER, world, error)
  call MPI_IALLTOALLV(out, sent, sent_at, MPI_CHARACTER, in, got, got_at, MPI_CHARACTER, world, &
                      request, error)
  call DONE()
  call RECEIVERS(18, 2)
  call MPI_ALLTOALLW(out, sent, sent_at, types, in, got, got_at, own_types, world, error)
  call MPI_IALLTOALLW(out, sent, sent_at, types, in, got, got_at, own_types, world, request, error)
  call DONE()

  periods = .true.
  call MPI_CART_CREATE(world, 1, [ranks], periods, .false., ring, error)
  call MPI_NEIGHBOR_ALLGATHER(out, 19, MPI_CHARACTER, in, 19, MPI_CHARACTER, ring, error)
  call MPI_INEIGHBOR_ALLGATHER(out, 19, MPI_CHARACTER, in, 19, MPI_CHARACTER, ring, request, error)
  call DONE()
  own = 20 * (rank + 1)
  ring_all = 20 * [mod(rank + 4, 5) + 1, mod(rank + 1, 5) + 1]
  call MPI_NEIGHBOR_ALLGATHERV(out, own, MPI_CHARACTER, in, ring_all, [0, 100], MPI_CHARACTER, ring, &
                               error)
  ring_at = [0, 100]
  call MPI_INEIGHBOR_ALLGATHERV(out, own, MPI_CHARACTER, in, ring_all, ring_at, MPI_CHARACTER, ring, &
                                request, error)
  call DONE()
  call MPI_NEIGHBOR_ALLTOALL(out, 21, MPI_CHARACTER, in, 21, MPI_CHARACTER, ring, error)
  call MPI_INEIGHBOR_ALLTOALL(out, 21, MPI_CHARACTER, in, 21, MPI_CHARACTER, ring, request, error)
  call DONE()
  ring_sent = [22, 44]
  ring_got = [44, 22]
  call MPI_NEIGHBOR_ALLTOALLV(out, ring_sent, ring_at, MPI_CHARACTER, in, ring_got, ring_at, &
                              MPI_CHARACTER, ring, error)
  call MPI_INEIGHBOR_ALLTOALLV(out, ring_sent, ring_at, MPI_CHARACTER, in, ring_got, ring_at, &
                               MPI_CHARACTER, ring, request, error)
  call DONE()
  call MPI_COMM_FREE(ring, error)
  ! MPICH's mpi_f08 takes no other topology for this one.
  neighbours = [mod(rank + 1, 5), mod(rank + 4, 5)]
  call MPI_DIST_GRAPH_CREATE_ADJACENT(world, 2, neighbours, MPI_UNWEIGHTED, 2, neighbours, &
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, error)
  ring_sent = [23, 46]
  ring_got = [46, 23]
  ring_places = [0, 100]
  ring_types = [MPI_CHARACTER, MPI_INTEGER2]
  got_types = [MPI_INTEGER2, MPI_CHARACTER]
  call MPI_NEIGHBOR_ALLTOALLW(out, ring_sent, ring_places, ring_types, in, ring_got, ring_places, &
                              got_types, ring, error)
  call MPI_INEIGHBOR_ALLTOALLW(out, ring_sent, ring_places, ring_types, in, ring_got, ring_places, &
                               got_types, ring, request, error)
  call DONE()
  call MPI_COMM_FREE(ring, error)
  call MPI_FINALIZE(error)
contains
  subroutine DONE()
    call MPI_WAIT(request, MPI_STATUS_IGNORE, error)
  end subroutine

  ! Rank r has r * bytes for each.
  subroutine SENDERS(bytes)
    integer, intent(in) :: bytes
    by_sender = [(i * bytes, i = 0, 4)]
    by_sender_at = [(i * 4 * bytes, i = 0, 4)]
    own = rank * bytes
  end subroutine

  ! Each has 3 * to * bytes for rank `to`, elements of up to `width` bytes.
  subroutine RECEIVERS(bytes, width)
    integer, intent(in) :: bytes, width
    sent = [(3 * i * bytes, i = 0, 4)]
    sent_at = [(12 * width * i * bytes, i = 0, 4)]
    got = 3 * rank * bytes
    got_at = sent_at
  end subroutine
end program collective_calls
