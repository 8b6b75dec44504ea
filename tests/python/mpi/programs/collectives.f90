! Collectives of a program in Fortran: each by the function that a shim may carry, and by the one of the MPI below
! (below.c), on data that differ on every rank. Both must write the same bytes, gaps included. What is in place is compared
! with a call that is not.
!
! BINDING says how MPI comes to the program: 0 by mpif.h, 1 by `use mpi`, 8 by `use mpi_f08`.
#if BINDING == 8
#define COMM type(mpi_comm)
#define DATATYPE type(mpi_datatype)
#define OP type(mpi_op)
#define VALUE(x) x%mpi_val
#else
#define COMM integer
#define DATATYPE integer
#define OP integer
#define VALUE(x) x
#endif
#define HOW VALUE(t), VALUE(o), VALUE(c), e

program collectives
#if BINDING == 8
  use mpi_f08
#elif BINDING == 1
  use mpi
#endif
  implicit none
#if BINDING == 0
  include 'mpif.h'
#endif
  integer, parameter :: most = 8192, kinds = 15
  integer(1) :: send(most), two(most)
  integer(1), asynchronous :: one(most)
  integer :: e, rank, size, own, ranks, i, k, provided
  COMM :: comms(3), c
  DATATYPE :: types(kinds), gaps
  OP :: ops(kinds)

  call mpi_init_thread(MPI_THREAD_FUNNELED, provided, e)
  if (provided < MPI_THREAD_FUNNELED) error stop 'no threads'
  call mpi_comm_rank(MPI_COMM_WORLD, rank, e)
  call mpi_comm_size(MPI_COMM_WORLD, size, e)
  comms(1) = MPI_COMM_WORLD
  call mpi_comm_dup(MPI_COMM_WORLD, comms(2), e)
  ! Pairs of four ranks, else all, in the other order.
  call mpi_comm_split(MPI_COMM_WORLD, merge(rank / 2, 0, size == 4), -rank, comms(3), e)
  types = [MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_INTEGER8, MPI_INTEGER2, &
    MPI_LOGICAL, MPI_2INTEGER, MPI_REAL8, MPI_LOGICAL, MPI_INTEGER1, MPI_INTEGER4, MPI_2REAL, &
    MPI_2DOUBLE_PRECISION]
  ops = [MPI_SUM, MPI_SUM, MPI_MAX, MPI_SUM, MPI_SUM, MPI_PROD, MPI_MIN, MPI_LAND, MPI_MAXLOC, MPI_SUM, MPI_LOR, &
    MPI_BXOR, MPI_BAND, MPI_MINLOC, MPI_MAXLOC]
  call mpi_type_vector(2, 1, 2, MPI_REAL8, gaps, e)
  call mpi_type_commit(gaps, e)

  do i = 1, 3
    c = comms(i)
    call mpi_comm_rank(c, own, e)
    call mpi_comm_size(c, ranks, e)
    call mpi_barrier(c, e)
    do k = i, kinds, merge(1, 4, i == 1)
      call combine(types(k), ops(k), 1 + 5 * k, mod(k, ranks))
      call move(types(k), types(k), 3, 3, mod(k, ranks))
    end do
    ! The same elements, with gaps at one end, or at both.
    call fill(10)
    call move(gaps, gaps, 2, 2, 0)
    call move(gaps, MPI_REAL8, 2, 4, ranks - 1)
    call move_each()
    call move_from_bottom()
  end do

  call mpi_type_free(gaps, e)
  call mpi_comm_free(comms(2), e)
  call mpi_comm_free(comms(3), e)
  call mpi_finalize(e)
  print '(a)', 'right'

contains

  ! Small numbers, so that each order of additions gives the same.
  subroutine fill(k)
    integer, intent(in) :: k
    integer :: n, v, b
    b = 1
    do n = 1, most / 16
      v = mod(7 * n + 13 * rank + 5 * k, 50)
      select case (k)
      case (1, 13); call put(transfer(v, send), b)
      case (2); call put(transfer(real(v), send), b)
      case (3, 10); call put(transfer(real(v, 8), send), b)
      case (4); call put(transfer(cmplx(v, -v), send), b)
      case (5); call put(transfer(cmplx(v, 1, 8), send), b)
      case (6); call put(transfer(int(v, 8), send), b)
      case (7); call put(transfer(int(v, 2), send), b)
      case (8, 11); call put(transfer(mod(v + n, 3) == 0, send), b)
      case (9); call put(transfer([mod(v, 3), rank], send), b)
      case (12); call put(transfer(int(v, 1), send), b)
      case (14); call put(transfer([real(mod(v, 3)), real(rank)], send), b)
      case (15); call put(transfer([dble(mod(v, 3)), dble(rank)], send), b)
      end select
    end do
    one = 77
    two = 77
  end subroutine

  subroutine put(bytes, b)
    integer(1), intent(in) :: bytes(:)
    integer, intent(inout) :: b
    send(b : b + ubound(bytes, 1) - 1) = bytes
    b = b + ubound(bytes, 1)
  end subroutine

  subroutine same(what)
    character(*), intent(in) :: what
    if (all(one == two)) return
    print *, 'rank', rank, what, ' differs, communicator', i, 'type', k
    call mpi_abort(MPI_COMM_WORLD, 3, e)
  end subroutine

  ! Reductions of n elements.
  subroutine combine(t, o, n, root)
    DATATYPE, intent(in) :: t
    OP, intent(in) :: o
    integer, intent(in) :: n, root
    integer :: counts(ranks), r
    counts = [(mod(n + r, 4), r = 1, ranks)]
    call fill(k)
    call mpi_allreduce(send, one, n, t, o, c, e)
    call below_allreduce(send, two, n, HOW)
    call same('allreduce')
    one = send
    call mpi_allreduce(MPI_IN_PLACE, one, n, t, o, c, e)
    two = send
    call below_allreduce(send, two, n, HOW)
    call same('allreduce in place')
    call fill(k)
    call mpi_reduce(send, one, n, t, o, root, c, e)
    call below_reduce(send, two, n, VALUE(t), VALUE(o), root, VALUE(c), e)
    call same('reduce')
    if (own == root) then
      one = send
      two = send
      call mpi_reduce(MPI_IN_PLACE, one, n, t, o, root, c, e)
    else
      call mpi_reduce(send, one, n, t, o, root, c, e)
    end if
    call below_reduce(send, two, n, VALUE(t), VALUE(o), root, VALUE(c), e)
    call same('reduce in place')
    call fill(k)
    call mpi_reduce_scatter_block(send, one, n, t, o, c, e)
    call below_reduce_scatter_block(send, two, n, HOW)
    call same('reduce_scatter_block')
    call mpi_reduce_scatter(send, one, counts, t, o, c, e)
    call below_reduce_scatter(send, two, counts, HOW)
    call same('reduce_scatter')
    call mpi_scan(send, one, n, t, o, c, e)
    call below_scan(send, two, n, HOW)
    call same('scan')
    call mpi_exscan(send, one, n, t, o, c, e)
    call below_exscan(send, two, n, HOW)
    if (own == 0) one = two ! which MPI leaves open
    call same('exscan')
  end subroutine

  ! Moves n elements of s, which are m of t.
  subroutine move(s, t, n, m, root)
    DATATYPE, intent(in) :: s, t
    integer, intent(in) :: n, m, root
    integer(MPI_ADDRESS_KIND) :: lower, extent
    integer :: at, bytes
    if (k <= kinds) call fill(k)
    call mpi_type_get_extent(t, lower, extent, e)
    bytes = int(extent) * m
    at = own * bytes
    one = send
    two = send
    call mpi_bcast(one, m, t, root, c, e)
    call below_bcast(two, m, VALUE(t), root, VALUE(c), e)
    call same('bcast')
    one = 77
    two = 77
    call mpi_gather(send, n, s, one, m, t, root, c, e)
    call below_gather(send, n, VALUE(s), two, m, VALUE(t), root, VALUE(c), e)
    call same('gather')
    call mpi_scatter(send, n, s, one, m, t, root, c, e)
    call below_scatter(send, n, VALUE(s), two, m, VALUE(t), root, VALUE(c), e)
    call same('scatter')
    call mpi_allgather(send, n, s, one, m, t, c, e)
    call below_allgather(send, n, VALUE(s), two, m, VALUE(t), VALUE(c), e)
    call same('allgather')
    call mpi_alltoall(send, n, s, one, m, t, c, e)
    call below_alltoall(send, n, VALUE(s), two, m, VALUE(t), VALUE(c), e)
    call same('alltoall')
    ! In place: this rank's block is where it belongs.
    one = 77
    one(at + 1 : at + bytes) = send(1 : bytes)
    two = one
    call mpi_allgather(MPI_IN_PLACE, 0, t, one, m, t, c, e)
    call below_allgather(send, m, VALUE(t), two, m, VALUE(t), VALUE(c), e)
    call same('allgather in place')
    one = 77
    one(at + 1 : at + bytes) = send(1 : bytes)
    two = one
    if (own == root) then
      call mpi_gather(MPI_IN_PLACE, 0, t, one, m, t, root, c, e)
    else
      call mpi_gather(send, m, t, one, m, t, root, c, e)
    end if
    call below_gather(send, m, VALUE(t), two, m, VALUE(t), root, VALUE(c), e)
    call same('gather in place')
    one = send
    two = send
    if (own == root) then
      call mpi_scatter(send, m, t, MPI_IN_PLACE, m, t, root, c, e)
      one = two
    else
      call mpi_scatter(send, m, t, one, m, t, root, c, e)
    end if
    call below_scatter(send, m, VALUE(t), two, m, VALUE(t), root, VALUE(c), e)
    if (own == root) one = two
    call same('scatter in place')
    one = send
    two = send
    call mpi_alltoall(MPI_IN_PLACE, 0, t, one, m, t, c, e)
    call below_alltoall(send, m, VALUE(t), two, m, VALUE(t), VALUE(c), e)
    call same('alltoall in place')
  end subroutine

  ! What has a count, and a displacement, for each rank.
  subroutine move_each()
    integer :: counts(ranks), places(ranks), to(ranks), from(ranks), twos(ranks), r, n, root
    DATATYPE :: t, all_types(ranks)
    t = MPI_DOUBLE_PRECISION
    all_types = t
    root = ranks - 1
    counts = [(mod(3 * r + 1, 4), r = 1, ranks)]
    places = [(5 * (ranks - r), r = 1, ranks)]
    n = counts(own + 1)
    call fill(3)
    call mpi_gatherv(send, n, t, one, counts, places, t, root, c, e)
    call below_gatherv(send, n, VALUE(t), two, counts, places, VALUE(t), root, VALUE(c), e)
    call same('gatherv')
    call mpi_scatterv(send, counts, places, t, one, n, t, root, c, e)
    call below_scatterv(send, counts, places, VALUE(t), two, n, VALUE(t), root, VALUE(c), e)
    call same('scatterv')
    call mpi_allgatherv(send, n, t, one, counts, places, t, c, e)
    call below_allgatherv(send, n, VALUE(t), two, counts, places, VALUE(t), VALUE(c), e)
    call same('allgatherv')
    to = [(mod(own + 2 * r, 4), r = 1, ranks)]
    from = [(mod(r - 1 + 2 * (own + 1), 4), r = 1, ranks)]
    call mpi_alltoallv(send, to, places, t, one, from, places, t, c, e)
    call below_alltoallv(send, to, places, VALUE(t), two, from, places, VALUE(t), VALUE(c), e)
    call same('alltoallv')
    twos = 2
    one = send
    two = send
    call mpi_alltoallv(MPI_IN_PLACE, to, to, t, one, twos, places, t, c, e)
    call below_alltoallv(send, twos, places, VALUE(t), two, twos, places, VALUE(t), VALUE(c), e)
    call same('alltoallv in place')
    places = 8 * places
    one = send
    two = send
    call mpi_alltoallw(MPI_IN_PLACE, to, to, all_types, one, twos, places, all_types, c, e)
    call below_alltoallw(send, twos, places, VALUE(t), two, twos, places, VALUE(t), VALUE(c), e)
    call same('alltoallw in place')
    call mpi_alltoallw(send, to, places, all_types, one, from, places, all_types, c, e)
    call below_alltoallw(send, to, places, VALUE(t), two, from, places, VALUE(t), VALUE(c), e)
    call same('alltoallw')
  end subroutine

  ! A datatype that says where its elements are.
  subroutine move_from_bottom()
    integer(MPI_ADDRESS_KIND) :: place(1)
    DATATYPE :: absolute
    integer :: length(1)
    call mpi_get_address(one, place(1), e)
    length = 3
    call mpi_type_create_hindexed(1, length, place, MPI_REAL8, absolute, e)
    call mpi_type_commit(absolute, e)
    call fill(10)
    one = send
    two = send
    call mpi_bcast(MPI_BOTTOM, 1, absolute, ranks - 1, c, e)
    call below_bcast(two, 3, VALUE(MPI_REAL8), ranks - 1, VALUE(c), e)
    call same('bcast from MPI_BOTTOM')
    call mpi_type_free(absolute, e)
  end subroutine

end program
