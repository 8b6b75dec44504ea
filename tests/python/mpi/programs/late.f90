! A library in Fortran that a program in C loads while it runs (late.c), as Python loads its modules. Returns how much
! is wrong.
integer function late() bind(c)
  use mpi
  implicit none
  integer :: rank, ranks, error, twin, half, part, grid, row, all(2), left, right
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  late = 0

  call MPI_Comm_dup(MPI_COMM_WORLD, twin, error)
  if (error /= MPI_SUCCESS) late = late + 1
  all = [rank, 1]
  call MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INTEGER, MPI_SUM, twin, error)
  if (any(all /= [ranks * (ranks - 1) / 2, ranks])) late = late + 10

  call MPI_Comm_split(twin, mod(rank, 2), -rank, half, error)
  part = 1
  call MPI_Allreduce(MPI_IN_PLACE, part, 1, MPI_INTEGER, MPI_SUM, half, error)
  if (part /= (ranks + 1 - mod(rank, 2)) / 2) late = late + 100

  call MPI_Cart_create(twin, 1, [ranks], [.true.], .false., grid, error)
  call MPI_Cart_shift(grid, 0, 1, left, right, error)
  call MPI_Cart_sub(grid, [.true.], row, error)
  if (right /= mod(rank + 1, ranks)) late = late + 1000
  call MPI_Comm_free(row, error)
  call MPI_Comm_free(grid, error)
  call MPI_Comm_free(half, error)
  call MPI_Comm_free(twin, error)
end function
