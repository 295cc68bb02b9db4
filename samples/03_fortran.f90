! The Fortran module: columns of an array, a plan that says what it does, and an error.
!
! A Fortran array a(n, columns) is stored column by column, so its extents are named backwards in
! the token: b5 are the five columns, n8 their length. The transform runs down each column.
program wht_fortran
  use, intrinsic :: iso_c_binding
  use plait
  implicit none
  integer, parameter :: n = 8, columns = 5
  real(c_double) :: a(n, columns), spectrum(n, columns), back(n, columns)
  type(c_ptr) :: forward, inverse, refused
  character(len=:), allocatable :: kernel
  integer :: i, j

  do j = 1, columns
    a(:, j) = [(real(i**(j - 1), c_double), i=0, n - 1)] ! column j: the power j - 1
  end do

  call check(plait_exec_create(forward, PLAIT_CPU, 0, 'wht:f64:b5:n8'))
  call check(plait_exec_create(inverse, PLAIT_CPU, 0, 'wht:f64:b5:n8:scale=0.125'))
  call check(plait_exec_run(forward, a, spectrum))
  call check(plait_exec_run(inverse, spectrum, back))
  call check(plait_plan_candidate(plait_exec_plan(forward), kernel))
  call plait_exec_destroy(forward)
  call plait_exec_destroy(inverse)

  ! A polynomial of degree d has no Walsh coefficient with more than d bits in its index.
  do j = 1, columns
    print '(a, i0, a, 8f9.1)', 'i**', j - 1, ':', spectrum(:, j)
    do i = 0, n - 1
      if (popcnt(i) > j - 1 .and. abs(spectrum(i + 1, j)) > 0) error stop 'a coefficient is not 0'
    end do
  end do
  if (any(back /= a)) error stop 'the way back is not exact'
  print '(3a)', 'by ', kernel, ', and back without an error'

  ! Failing calls return a code; plait_last_error() has the sentence.
  if (plait_exec_create(refused, PLAIT_CPU, 0, 'wht:f64:b5:n9') == PLAIT_OK) error stop 'n = 9'
  print '(2a)', 'refused: ', plait_last_error()

contains

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == PLAIT_OK) return
    print '(3a)', plait_status_name(status), ': ', plait_last_error()
    error stop 1
  end subroutine check

end program wht_fortran
