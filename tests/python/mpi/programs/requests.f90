! Collectives that do not block, of a program in Fortran, with a receive and a send among them, ended by each of the
! functions that end requests. Results are compared with those of the MPI below (below.c).
!
! BINDING says how MPI comes to the program: 0 by mpif.h, 1 by `use mpi`, 8 by `use mpi_f08`. EXTENSION says that
! persistent collectives are one, as in Open MPI 4.
#ifdef EXTENSION
#define NAMED(x) mpix_/**/x
#else
#define NAMED(x) mpi_/**/x
#endif
#if BINDING == 8
#define COMM type(mpi_comm)
#define DATATYPE type(mpi_datatype)
#define OP type(mpi_op)
#define REQUEST type(mpi_request)
#define VALUE(x) x%mpi_val
#define STATUSES(n) type(mpi_status) :: statuses(n)
#define STATUS(i) statuses(i)
#define SOURCE_OF(i) statuses(i)%mpi_source
#define TAG_OF(i) statuses(i)%mpi_tag
#else
#define COMM integer
#define DATATYPE integer
#define OP integer
#define REQUEST integer
#define VALUE(x) x
#define STATUSES(n) integer :: statuses(mpi_status_size, n)
#define STATUS(i) statuses(:, i)
#define SOURCE_OF(i) statuses(mpi_source, i)
#define TAG_OF(i) statuses(mpi_tag, i)
#endif

program requests
#if BINDING == 8
  use mpi_f08
#ifdef EXTENSION
  use mpi_f08_ext
#endif
#elif BINDING == 1
  use mpi
#ifdef EXTENSION
  use mpi_ext
#endif
#endif
  implicit none
#if BINDING == 0
  include 'mpif.h'
#endif
  ! Requests: of 17 collectives, of a receive and a send, and one that is none.
  integer, parameter :: receive = 18, none = 20, n = 5, most = 64, long = 40000
  REQUEST :: made(none)
  STATUSES(none)
  integer :: a(most), two(most), sent(long), e, rank, size, way, i
  integer, asynchronous :: b(most, receive), received(long)
  ! Calls that do not block look at them until they end.
  integer, allocatable, asynchronous :: counts(:), places(:), twos(:), bytes(:)
  DATATYPE, allocatable, asynchronous :: types(:)
  DATATYPE :: t
  COMM :: c
  logical :: flag, ended(none)

  call mpi_init(e)
  c = MPI_COMM_WORLD
  t = MPI_INTEGER
  call mpi_comm_rank(c, rank, e)
  call mpi_comm_size(c, size, e)
  counts = [(mod(i, 3) + 1, i = 1, size)]
  places = [(4 * (size - i), i = 1, size)]
  twos = [(2, i = 1, size)]
  bytes = 4 * places
  types = [(t, i = 1, size)]
  do way = 1, 9
    call start()
    ended = .false.
    call finish()
    call check()
  end do
  call persistent()
  call own_operator()
  call mpi_finalize(e)
  print '(a)', 'right'

contains

  subroutine need(what, is)
    character(*), intent(in) :: what
    logical, intent(in) :: is
    if (is) return
    print *, 'rank', rank, ' ', what, ' is wrong, way', way
    call mpi_abort(MPI_COMM_WORLD, 3, e)
  end subroutine

  subroutine start()
    integer :: next
    next = modulo(rank + 1, size)
    a = [(i * 3 + rank * 17 + way, i = 1, most)]
    sent = [(i + rank + way, i = 1, long)]
    b = -1
    received = -1
    b(1:n, 2) = a(1:n)
    call mpi_irecv(received, long, t, modulo(rank - 1, size), way, c, made(receive), e)
    call mpi_ibarrier(c, made(1), e)
    call mpi_ibcast(b(:, 2), n, t, size - 1, c, made(2), e)
    call mpi_ireduce(a, b(:, 3), n, t, MPI_SUM, 0, c, made(3), e)
    call mpi_iallreduce(a, b(:, 4), n, t, MPI_MAX, c, made(4), e)
    call mpi_ireduce_scatter_block(a, b(:, 5), n, t, MPI_SUM, c, made(5), e)
    call mpi_ireduce_scatter(a, b(:, 6), counts, t, MPI_SUM, c, made(6), e)
    call mpi_iscan(a, b(:, 7), n, t, MPI_SUM, c, made(7), e)
    call mpi_iexscan(a, b(:, 8), n, t, MPI_SUM, c, made(8), e)
    call mpi_igather(a, n, t, b(:, 9), n, t, 0, c, made(9), e)
    call mpi_igatherv(a, counts(rank + 1), t, b(:, 10), counts, places, t, 0, c, made(10), e)
    call mpi_iscatter(a, n, t, b(:, 11), n, t, 0, c, made(11), e)
    call mpi_iscatterv(a, counts, places, t, b(:, 12), counts(rank + 1), t, 0, c, made(12), e)
    call mpi_isend(sent, long, t, next, way, c, made(receive + 1), e)
    call mpi_iallgather(a, n, t, b(:, 13), n, t, c, made(13), e)
    call mpi_iallgatherv(a, counts(rank + 1), t, b(:, 14), counts, places, t, c, made(14), e)
    call mpi_ialltoall(a, n, t, b(:, 15), n, t, c, made(15), e)
    call mpi_ialltoallv(a, twos, places, t, b(:, 16), twos, places, t, c, made(16), e)
    call mpi_ialltoallw(a, twos, bytes, types, b(:, 17), twos, bytes, types, c, made(17), e)
    made(none) = MPI_REQUEST_NULL
  end subroutine

  ! MPICH 4.0 adds one to what is no index, too.
  logical function is_none(index)
    integer, intent(in) :: index
    is_none = index == MPI_UNDEFINED .or. index == MPI_UNDEFINED + 1
  end function

  subroutine mark(index)
    integer, intent(in) :: index
    call need('an index', index >= 1 .and. index < none)
    call need('an index that comes twice', .not. ended(index))
    ended(index) = .true.
    call need('a request that has ended', made(index) == MPI_REQUEST_NULL)
  end subroutine

  subroutine finish()
    integer :: index, indices(none), done, r
    select case (way)
    case (1)
      call mpi_waitall(none, made, statuses, e)
      call from_before(receive)
    case (2)
      do
        call mpi_waitany(none, made, index, STATUS(1), e)
        if (is_none(index)) exit
        if (index == receive) call from_before(1)
        call mark(index)
      end do
      call need('number of indices', count(ended) == none - 1)
    case (3)
      do
        call mpi_waitsome(none, made, done, indices, statuses, e)
        if (done == MPI_UNDEFINED) exit
        do r = 1, done
          if (indices(r) == receive) call from_before(r)
          call mark(indices(r))
        end do
      end do
      call need('number of indices', count(ended) == none - 1)
    case (4)
      flag = .false.
      do while (.not. flag)
        call mpi_testall(none, made, flag, statuses, e)
      end do
      call from_before(receive)
    case (5)
      do
        call mpi_testany(none, made, index, flag, STATUS(1), e)
        if (.not. flag) cycle
        if (is_none(index)) exit
        if (index == receive) call from_before(1)
        call mark(index)
      end do
      call need('number of indices', count(ended) == none - 1)
    case (6)
      do
        call mpi_testsome(none, made, done, indices, statuses, e)
        if (done == MPI_UNDEFINED) exit
        do r = 1, done
          if (indices(r) == receive) call from_before(r)
          call mark(indices(r))
        end do
      end do
      call need('number of indices', count(ended) == none - 1)
    case (7)
      do r = none, 1, -1
        flag = .false.
        do while (.not. flag)
          call mpi_request_get_status(made(r), flag, STATUS(r), e)
        end do
        call mpi_wait(made(r), STATUS(r), e)
      end do
      call from_before(receive)
    case (8)
      do r = 1, none
        flag = .false.
        do while (.not. flag)
          call mpi_test(made(r), flag, MPI_STATUS_IGNORE, e)
        end do
      end do
    case (9)
      call mpi_waitall(none, made, MPI_STATUSES_IGNORE, e)
    end select
    do r = 1, none
      call need('a request that has ended', made(r) == MPI_REQUEST_NULL)
    end do
  end subroutine

  ! The status of the receive.
  subroutine from_before(at)
    integer, intent(in) :: at
    integer :: elements
    call need('a source', SOURCE_OF(at) == modulo(rank - 1, size))
    call need('a tag', TAG_OF(at) == way)
    call mpi_get_count(STATUS(at), t, elements, e)
    call need('a count', elements == long)
  end subroutine

  subroutine same(what, column)
    character(*), intent(in) :: what
    integer, intent(in) :: column
    call need(what, all(b(:, column) == two))
    two = -1
  end subroutine

  subroutine check()
    call need('what was received', all(received == [(i + modulo(rank - 1, size) + way, i = 1, long)]))
    two = -1
    two(1:n) = a(1:n)
    call below_bcast(two, n, VALUE(t), size - 1, VALUE(c), e)
    call same('ibcast', 2)
    call below_reduce(a, two, n, VALUE(t), VALUE(MPI_SUM), 0, VALUE(c), e)
    call same('ireduce', 3)
    call below_allreduce(a, two, n, VALUE(t), VALUE(MPI_MAX), VALUE(c), e)
    call same('iallreduce', 4)
    call below_reduce_scatter_block(a, two, n, VALUE(t), VALUE(MPI_SUM), VALUE(c), e)
    call same('ireduce_scatter_block', 5)
    call below_reduce_scatter(a, two, counts, VALUE(t), VALUE(MPI_SUM), VALUE(c), e)
    call same('ireduce_scatter', 6)
    call below_scan(a, two, n, VALUE(t), VALUE(MPI_SUM), VALUE(c), e)
    call same('iscan', 7)
    call below_exscan(a, two, n, VALUE(t), VALUE(MPI_SUM), VALUE(c), e)
    if (rank == 0) two = b(:, 8) ! which MPI leaves open
    call same('iexscan', 8)
    call below_gather(a, n, VALUE(t), two, n, VALUE(t), 0, VALUE(c), e)
    call same('igather', 9)
    call below_gatherv(a, counts(rank + 1), VALUE(t), two, counts, places, VALUE(t), 0, VALUE(c), e)
    call same('igatherv', 10)
    call below_scatter(a, n, VALUE(t), two, n, VALUE(t), 0, VALUE(c), e)
    call same('iscatter', 11)
    call below_scatterv(a, counts, places, VALUE(t), two, counts(rank + 1), VALUE(t), 0, VALUE(c), e)
    call same('iscatterv', 12)
    call below_allgather(a, n, VALUE(t), two, n, VALUE(t), VALUE(c), e)
    call same('iallgather', 13)
    call below_allgatherv(a, counts(rank + 1), VALUE(t), two, counts, places, VALUE(t), VALUE(c), e)
    call same('iallgatherv', 14)
    call below_alltoall(a, n, VALUE(t), two, n, VALUE(t), VALUE(c), e)
    call same('ialltoall', 15)
    call below_alltoallv(a, twos, places, VALUE(t), two, twos, places, VALUE(t), VALUE(c), e)
    call same('ialltoallv', 16)
    call below_alltoallw(a, twos, bytes, VALUE(t), two, twos, bytes, VALUE(t), VALUE(c), e)
    call same('ialltoallw', 17)
  end subroutine

  ! Requests that are used again.
  subroutine persistent()
    integer, parameter :: of = 4
    integer :: r
    call mpi_send_init(sent, long, t, modulo(rank + 1, size), 1, c, made(1), e)
    call mpi_recv_init(received, long, t, modulo(rank - 1, size), 1, c, made(2), e)
    call NAMED(allreduce_init)(a, b(:, 4), n, t, MPI_SUM, c, MPI_INFO_NULL, made(3), e)
    call NAMED(barrier_init)(c, MPI_INFO_NULL, made(4), e)
    do way = 1, 3
      sent = rank + way
      a = rank + 2 * way
      if (way == 1) then
        call mpi_startall(of, made, e)
      else
        do r = 1, of
          call mpi_start(made(r), e)
        end do
      end if
      call mpi_waitall(of, made, MPI_STATUSES_IGNORE, e)
      call need('a request that stays', made(2) /= MPI_REQUEST_NULL)
      call need('what was received', all(received == modulo(rank - 1, size) + way))
      call need('a sum', b(1, 4) == 2 * way * size + size * (size - 1) / 2)
    end do
    do r = 1, of
      call mpi_request_free(made(r), e)
      call need('a request that was freed', made(r) == MPI_REQUEST_NULL)
    end do
  end subroutine

  ! One that is associative and no more: of two, the first.
  subroutine own_operator()
    OP :: o
#if BINDING == 8
    procedure(mpi_user_function) :: first
#else
    external first
#endif
    call mpi_op_create(first, .false., o, e)
    a = rank + 5
    b = -1
    call mpi_allreduce(a, b(:, 1), n, t, o, c, e)
    call need('the first', all(b(1:n, 1) == 5) .and. b(n + 1, 1) == -1)
    call mpi_iscan(a, b(:, 2), n, t, o, c, made(1), e)
    call mpi_wait(made(1), MPI_STATUS_IGNORE, e)
    call need('the first of a scan', all(b(1:n, 2) == 5) .and. b(n + 1, 2) == -1)
    call mpi_op_free(o, e)
  end subroutine

end program

subroutine first(in, inout, length, of)
#if BINDING == 8
  use mpi_f08
  use iso_c_binding
  type(c_ptr), value :: in, inout
  integer :: length
  type(mpi_datatype) :: of
  integer, pointer :: from(:), to(:)
  call c_f_pointer(in, from, [length])
  call c_f_pointer(inout, to, [length])
  to = from
#else
  integer :: length, of, in(length), inout(length)
  inout = in
#endif
end subroutine
