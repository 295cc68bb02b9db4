! The same transform as in main.c, through the Fortran module.
program main
  use, intrinsic :: iso_c_binding
  use plait
  implicit none
  real(c_float) :: x(8) = [1, 2, 3, 4, 5, 6, 7, 8], y(8) = 0
  real(c_float), parameter :: expected(8) = [36, -4, -8, 0, -16, 0, 0, 0]
  type(c_ptr) :: exec
  if (plait_exec_create(exec, PLAIT_CPU, 0, 'wht:f32:n8') /= PLAIT_OK) error stop 'create'
  if (plait_exec_run(exec, x, y) /= PLAIT_OK) error stop 'run'
  call plait_exec_destroy(exec)
  if (any(y /= expected)) error stop 'wrong result'
  print '(a)', 'Fortran: ok'
end program main
