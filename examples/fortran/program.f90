! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program that passes its communicator to a C++ library built on rankmesh.
!
!   mpirun -n 6 fortran_program
!
! Fortran's communicators are integers; the C++ side turns them into C's with MPI_Comm_f2c.
program fortran_program
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'  ! every MPI library has it, whatever compiler built it

  interface
    ! bridge.cpp. Collective over the communicator. They return 0 on success.
    function model_begin(comm) bind(c, name='model_begin') result(status)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: status
    end function
    function model_average(values, count) bind(c, name='model_average') result(status)
      import :: c_int, c_double
      real(c_double), intent(inout) :: values(*)
      integer(c_int), value :: count
      integer(c_int) :: status
    end function
    function model_end() bind(c, name='model_end') result(status)
      import :: c_int
      integer(c_int) :: status
    end function
  end interface

  integer :: error, rank, size, mine
  real(c_double) :: values(2), expected

  call MPI_Init(error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  ! Half of the world, in reverse: any communicator will do.
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, mine, error)

  values = [real(rank, c_double), 1.0_c_double]
  if (model_begin(int(mine, c_int)) /= 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  if (model_average(values, 2_c_int) /= 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  if (model_end() /= 0) call MPI_Abort(MPI_COMM_WORLD, 1, error)

  ! The mean of the ranks of this half.
  expected = mod(rank, 2) + real((size - 1 - mod(rank, 2)) / 2, c_double)
  if (abs(values(1) - expected) > 1e-12 .or. abs(values(2) - 1) > 1e-12) then
    print '(a,i0,a,f8.3,a,f8.3)', 'rank ', rank, ': mean ', values(1), ', expected ', expected
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end if
  if (rank == 0) print '(a,f0.1)', 'mean of the even ranks ', values(1)
  call MPI_Comm_free(mine, error)
  call MPI_Finalize(error)
end program
