! A known pattern of Fortran: of mpif.h's functions, or with F08 of the module mpi_f08.
!
! Each rank sends the next one 40 bytes by MPI_SEND and 80 by MPI_ISEND, and three times 120 by a
! persistent request; then a broadcast of 400 bytes from rank 1, an allreduce of 16 bytes in place, an
! alltoall of 24 bytes in place, and along a ring that is made by MPI_CART_CREATE 8 bytes each way.
! Last, 4 bytes from the first rank to the second of five more communicators: all ranks, those of
! MPI_COMM_SPLIT_TYPE in the opposite order. And sends that fail, which no trace has.
program known_patterns
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: grid, part
  type(MPI_Group) :: group
  type(MPI_Request) :: request, persistent
#else
  use mpi
  implicit none
  integer :: grid, part, group, request, persistent
#endif
  integer :: rank, ranks, next, last, round, error
  integer :: buffer(1000), other(1000)
  double precision :: sums(2), all(3000)
  logical :: periods(1)

  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
  next = mod(rank + 1, ranks)
  last = mod(rank + ranks - 1, ranks)
  buffer = rank

  call MPI_IRECV(other, 10, MPI_INTEGER, last, 0, MPI_COMM_WORLD, request, error)
  call MPI_SEND(buffer, 10, MPI_INTEGER, next, 0, MPI_COMM_WORLD, error)
  call MPI_WAIT(request, MPI_STATUS_IGNORE, error)
  if (other(10) /= last) call MPI_ABORT(MPI_COMM_WORLD, 3, error)

  call MPI_ISEND(buffer, 20, MPI_INTEGER, next, 1, MPI_COMM_WORLD, request, error)
  call MPI_RECV(other, 20, MPI_INTEGER, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_WAIT(request, MPI_STATUS_IGNORE, error)

  call MPI_SEND_INIT(buffer, 30, MPI_INTEGER, next, 2, MPI_COMM_WORLD, persistent, error)
  do round = 1, 3
    call MPI_START(persistent, error)
    call MPI_RECV(other, 30, MPI_INTEGER, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_WAIT(persistent, MPI_STATUS_IGNORE, error)
  end do
  call MPI_REQUEST_FREE(persistent, error)

  call MPI_BCAST(buffer, 100, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  if (buffer(100) /= 1) call MPI_ABORT(MPI_COMM_WORLD, 4, error)

  sums = rank
  call MPI_ALLREDUCE(MPI_IN_PLACE, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (sums(2) /= ranks * (ranks - 1) / 2) call MPI_ABORT(MPI_COMM_WORLD, 5, error)

  all = rank
  call MPI_ALLTOALL(MPI_IN_PLACE, 0, MPI_DOUBLE_PRECISION, all, 3, MPI_DOUBLE_PRECISION, &
                    MPI_COMM_WORLD, error)
  if (all(3 * last + 1) /= last) call MPI_ABORT(MPI_COMM_WORLD, 6, error)

  periods = .true.
  call MPI_CART_CREATE(MPI_COMM_WORLD, 1, [ranks], periods, .true., grid, error)
  call MPI_NEIGHBOR_ALLGATHER(sums, 1, MPI_DOUBLE_PRECISION, all, 1, MPI_DOUBLE_PRECISION, grid, error)
  if (any(all(1:2) /= sums(1))) call MPI_ABORT(MPI_COMM_WORLD, 7, error)

  call MPI_CART_SUB(grid, periods, part, error)
  call SEND_ON(part)
  call MPI_COMM_SPLIT_TYPE(grid, MPI_COMM_TYPE_SHARED, ranks - rank, MPI_INFO_NULL, part, error)
  call SEND_ON(part)
  call MPI_COMM_DUP_WITH_INFO(grid, MPI_INFO_NULL, part, error)
  call SEND_ON(part)
  call MPI_COMM_GROUP(grid, group, error)
  call MPI_COMM_CREATE_GROUP(grid, group, 9, part, error)
  call MPI_GROUP_FREE(group, error)
  call SEND_ON(part)
  call MPI_DIST_GRAPH_CREATE_ADJACENT(grid, 1, [last], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, &
                                      MPI_INFO_NULL, .true., part, error)
  call SEND_ON(part)
  call MPI_COMM_FREE(grid, error)

  call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  call MPI_SEND(buffer, 10, MPI_INTEGER, next, -5, MPI_COMM_WORLD, error)
  if (error == MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 8, error)
  call MPI_ISEND(buffer, 10, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, request, error)
  if (error == MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 9, error)
  call MPI_SEND_INIT(buffer, 10, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, persistent, error)
  if (error == MPI_SUCCESS) call MPI_ABORT(MPI_COMM_WORLD, 10, error)
  call MPI_FINALIZE(error)
contains
  ! 4 bytes from rank 0 to rank 1 of a communicator, which is freed.
  subroutine SEND_ON(comm)
#ifdef F08
    type(MPI_Comm), intent(inout) :: comm
#else
    integer, intent(inout) :: comm
#endif
    integer :: own
    call MPI_COMM_RANK(comm, own, error)
    if (own == 0) call MPI_SEND(buffer, 1, MPI_INTEGER, 1, 4, comm, error)
    if (own == 1) call MPI_RECV(other, 1, MPI_INTEGER, 0, 4, comm, MPI_STATUS_IGNORE, error)
    call MPI_COMM_FREE(comm, error)
  end subroutine
end program known_patterns
