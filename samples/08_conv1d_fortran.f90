! A causal convolution in pieces: a long signal is filtered chunk by chunk, each chunk handing its
! last samples on to the next, and then sample by sample. The pieces equal one call over all.
!
! A Fortran array x(time, channels, rows) has time inside: the layout b, c, t of the token. Its
! taps are w(taps, channels); the last tap meets the current sample.
program conv1d_fortran
  use, intrinsic :: iso_c_binding
  use plait
  implicit none
  integer, parameter :: length = 1000, chunk = 250, channels = 3, rows = 2, taps = 8
  real(c_double), target :: x(length, channels, rows), y(length, channels, rows)
  real(c_double), target :: pieces(length, channels, rows), w(taps, channels)
  real(c_double), target :: x1(chunk, channels, rows), y1(chunk, channels, rows)
  real(c_double), target :: step_x(1, channels, rows), step_y(1, channels, rows)
  real(c_double), target :: state(taps - 1, channels, rows)
  type(c_ptr) :: whole, part, step
  character(len=:), allocatable :: kernel
  integer :: c, k, t

  call random_number(x)
  do c = 1, channels ! channel c: the mean of the last c samples
    w(:, c) = [(merge(1.0_c_double / c, 0.0_c_double, taps - k < c), k=1, taps)]
  end do

  call check(plait_exec_create(whole, PLAIT_CPU, 0, 'conv1d.fwd:f64:b2:c3:t1000:k8'))
  call check(plait_plan_candidate(plait_exec_plan(whole), kernel))
  call check(plait_exec_run_args(whole, [plait_arg(PLAIT_X, c_loc(x)), &
    plait_arg(PLAIT_Y, c_loc(y)), plait_arg(PLAIT_W, c_loc(w))], 3_c_int))
  call plait_exec_destroy(whole)
  print '(3a, 3f8.4)', 'by ', kernel, '; last means of 1, 2 and 3 samples:', y(length, :, 1)
  do c = 1, channels
    if (abs(y(length, c, 1) - sum(x(length - c + 1:, c, 1)) / c) > 1d-14) error stop 'no mean'
  end do

  ! Chunks: each reads the state of the one before it and leaves its own in the same place.
  call check(plait_exec_create(part, PLAIT_CPU, 0, &
    'conv1d.fwd:f64:b2:c3:t250:k8:+state_in+state_out:state_out@state_in'))
  state = 0
  do t = 1, length / 2, chunk
    x1 = x(t:t + chunk - 1, :, :)
    call check(plait_exec_run_args(part, [plait_arg(PLAIT_X, c_loc(x1)), &
      plait_arg(PLAIT_Y, c_loc(y1)), plait_arg(PLAIT_W, c_loc(w)), &
      plait_arg(PLAIT_STATE_IN, c_loc(state)), plait_arg(PLAIT_STATE_OUT, c_loc(state))], 5_c_int))
    pieces(t:t + chunk - 1, :, :) = y1
  end do
  call plait_exec_destroy(part)

  ! The second half, one sample of every channel at a time.
  call check(plait_exec_create(step, PLAIT_CPU, 0, 'conv1d.update:f64:b2:c3:t1:k8'))
  do t = length / 2 + 1, length
    step_x = x(t:t, :, :)
    call check(plait_exec_run_args(step, [plait_arg(PLAIT_X, c_loc(step_x)), &
      plait_arg(PLAIT_Y, c_loc(step_y)), plait_arg(PLAIT_W, c_loc(w)), &
      plait_arg(PLAIT_STATE, c_loc(state))], 4_c_int))
    pieces(t:t, :, :) = step_y
  end do
  call plait_exec_destroy(step)

  if (any(pieces /= y)) error stop 'the pieces differ from one call over all'
  print '(a, i0, a)', 'two chunks and ', length / 2, ' steps equal one call over all'

contains

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == PLAIT_OK) return
    print '(3a)', plait_status_name(status), ': ', plait_last_error()
    error stop 1
  end subroutine check

end program conv1d_fortran
