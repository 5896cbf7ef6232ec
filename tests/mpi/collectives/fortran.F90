! The collectives that trees carry, called by a Fortran program: of mpif.h's functions, or with F08 of
! the module mpi_f08. From and to every rank a broadcast, sums in place at the root and elsewhere, a
! sum in place at all, logicals, a barrier; an operation of the program's own on halves of the world,
! whose ranks are in the opposite order; and a broadcast of a type whose addresses are absolute, from
! MPI_BOTTOM.
!
! Ends with status 3 where a result is another than it should be.
program collectives
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: half
  type(MPI_Op) :: op
  type(MPI_Datatype) :: apart
#else
  use mpi
  implicit none
  integer :: half, op, apart
#endif
  integer, parameter :: length = 5000
  integer, target, asynchronous :: numbers(length)
  integer :: rank, ranks, error, root, wanted, sums(length)
  integer(kind=MPI_ADDRESS_KIND) :: places(2)
  double precision :: own(3), all(3)
  logical :: own_truths(4), truths(4)

  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
  do root = 0, ranks - 1
    numbers = rank
    call MPI_BCAST(numbers, length, MPI_INTEGER, root, MPI_COMM_WORLD, error)
    call CHECK(all_are(numbers, root))

    own = rank
    call MPI_ALLREDUCE(MPI_IN_PLACE, own, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call CHECK(own(1) == ranks * (ranks - 1) / 2 .and. own(3) == own(1))

    own = rank
    all = -1
    if (rank == root) then
      all = rank
      call MPI_REDUCE(MPI_IN_PLACE, all, 3, MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD, error)
      call CHECK(all(1) == ranks * (ranks - 1) / 2 .and. all(3) == all(1))
    else
      call MPI_REDUCE(own, all, 3, MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD, error)
      call CHECK(all(1) == -1 .and. all(3) == -1)
    end if

    own_truths = [ .true., rank == 0, .false., rank /= 0 ]
    call MPI_ALLREDUCE(own_truths, truths, 4, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, error)
    call CHECK(truths(1) .and. .not. (truths(2) .or. truths(3) .or. truths(4)))
    call MPI_BARRIER(MPI_COMM_WORLD, error)
  end do

  call MPI_GET_ADDRESS(numbers(2), places(1), error)
  call MPI_GET_ADDRESS(numbers(length), places(2), error)
  call MPI_TYPE_CREATE_STRUCT(2, [3, 1], places, [MPI_INTEGER, MPI_INTEGER], apart, error)
  call MPI_TYPE_COMMIT(apart, error)
  numbers = rank
  call MPI_BCAST(MPI_BOTTOM, 1, apart, 1, MPI_COMM_WORLD, error)
  call CHECK(all_are(numbers([2, 3, 4, length]), 1) .and. all_are(numbers([1, 5, length - 1]), rank))
  call MPI_TYPE_FREE(apart, error)

  call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)
  call MPI_OP_CREATE(ADD, .true., op, error)
  numbers = rank
  call MPI_ALLREDUCE(numbers, sums, length, MPI_INTEGER, op, half, error)
  wanted = 0
  do root = mod(rank, 2), ranks - 1, 2
    wanted = wanted + root
  end do
  call CHECK(all_are(sums, wanted))
  call MPI_OP_FREE(op, error)
  call MPI_COMM_FREE(half, error)
  call MPI_FINALIZE(error)
contains
  logical function all_are(values, value)
    integer, intent(in) :: values(:), value
    all_are = count(values /= value) == 0
  end function

  subroutine CHECK(holds)
    logical, intent(in) :: holds
    if (.not. holds) call MPI_ABORT(MPI_COMM_WORLD, 3, error)
  end subroutine

#ifdef F08
  subroutine ADD(in, inout, length, type)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: given(:), sum(:)
    call c_f_pointer(in, given, [length])
    call c_f_pointer(inout, sum, [length])
    sum = given + sum
  end subroutine
#else
  subroutine ADD(in, inout, length, type)
    integer :: length, type
    integer :: in(length), inout(length)
    inout = in + inout
  end subroutine
#endif
end program collectives
