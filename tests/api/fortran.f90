! The module plait in use: constants, texts, errors, every kind of array, handles in the C manner.
program fortran
  use, intrinsic :: iso_c_binding
  use plait
  implicit none
  integer :: failures = 0

  call texts_and_errors
  call descriptors
  call every_kind_of_array
  call what_does_not_fit
  call plans
  call convolution
  call attention
  call wisdom
  if (failures > 0) error stop 1
  print '(a)', 'Fortran: ok'

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    failures = failures + 1
    print '(4a)', 'failed: ', what, ': ', plait_last_error()
  end subroutine expect

  subroutine texts_and_errors
    type(c_ptr) :: desc
    integer(c_int) :: count
    expect_version: block
      integer(c_int) :: version
      version = PLAIT_VERSION_MAJOR * 10000 + PLAIT_VERSION_MINOR * 100 + PLAIT_VERSION_PATCH
      call expect(plait_version() == version, 'version')
    end block expect_version
    call expect(index(plait_build_info(), 'plait ') == 1, 'build info')
    call expect(plait_status_name(PLAIT_ERR_IO) == 'io', 'status name')
    call expect(plait_role_name(PLAIT_SIGNS) == 'signs', 'role name')
    call expect(len(plait_role_name(99_c_int)) == 0, 'no role')
    call expect(plait_desc_from_token(desc, 'wht:f32:x8') == PLAIT_ERR_INVALID_ARGUMENT, 'token')
    call expect(.not. c_associated(desc), 'no handle')
    call expect(index(plait_last_error(), 'plait_desc_from_token') > 0, 'sentence')
    call expect(plait_device_count(PLAIT_CPU, count) == PLAIT_OK .and. count == 1, 'count')
    call expect(plait_set_log(0_c_int, c_null_funptr, c_null_ptr) == PLAIT_OK, 'log')
  end subroutine texts_and_errors

  subroutine descriptors
    type(c_ptr) :: desc
    character(len=:), allocatable :: token
    integer(c_int) :: count, role, rank
    integer(c_int64_t) :: extents(PLAIT_MAX_RANK)
    call expect(plait_wht_create(desc, PLAIT_F32, 2_c_int, [4_c_int64_t, 64_c_int64_t]) == &
                PLAIT_OK, 'create')
    call expect(plait_wht_set_scale(desc, 0.125d0) == PLAIT_OK, 'scale')
    call expect(plait_desc_use(desc, PLAIT_SIGNS, 1_c_int) == PLAIT_OK, 'use')
    call expect(plait_desc_check(desc) == PLAIT_OK, 'check')
    call expect(plait_desc_token(desc, token) == PLAIT_OK, 'token')
    call expect(token == 'wht:f32:b4:n64:scale=0.125:+signs', 'text of the token')
    call expect(plait_desc_num_tensors(desc, count) == PLAIT_OK .and. count == 3, 'tensors')
    call expect(plait_desc_tensor(desc, 2_c_int, role=role, rank=rank, extents=extents) == &
                PLAIT_OK, 'tensor')
    call expect(role == PLAIT_SIGNS .and. rank == 2 .and. extents(2) == 64, 'its fields')
    call plait_desc_destroy(desc)
    call expect(plait_wht_create(desc, PLAIT_I16, 1_c_int, [24_c_int64_t]) == PLAIT_OK, 'i16')
    call expect(plait_wht_set_factor_order(desc, 0_c_int, 12_c_int) == PLAIT_OK, 'factor order')
    call expect(plait_wht_set_rows(desc, 6_c_int64_t) == PLAIT_OK, 'rows')
    call expect(plait_wht_set_group(desc, 3_c_int64_t) == PLAIT_OK, 'group')
    call expect(plait_wht_set_histogram(desc, 5_c_int64_t, -2_c_int64_t, 1_c_int64_t) == PLAIT_OK, &
                'histogram')
    call expect(plait_desc_use(desc, PLAIT_AMAX, 1_c_int) == PLAIT_OK, 'amax')
    call expect(plait_desc_check(desc) == PLAIT_OK, 'check')
    call expect(plait_desc_token(desc, token) == PLAIT_OK, 'token')
    call expect(token == 'wht:i16:n24.m12:rows=6:group=3:hist=5.-2.1:+amax', token)
    call plait_desc_destroy(desc)
    call expect(plait_desc_token(c_null_ptr, token) == PLAIT_ERR_INVALID_ARGUMENT, 'NULL')
    call expect(len(token) == 0, 'empty text')
  end subroutine descriptors

  ! n = 4: the transform of (1, 2, 3, 4) is (10, -2, -4, 0).
  subroutine every_kind_of_array
    real(c_float) :: r4(4), o4(2, 2)
    real(c_double) :: r8(4), o8(4)
    complex(c_float_complex) :: c4(4), p4(4)
    complex(c_double_complex) :: c8(4), p8(4)
    integer(c_int32_t) :: i4(4), q4(4)
    integer(c_int64_t) :: i8(4), q8(4)
    type(c_ptr) :: exec
    r4 = [1, 2, 3, 4]
    r8 = r4
    c4 = r4
    c8 = r4
    i4 = int(r4)
    i8 = int(r4)
    exec = made('wht:f32:n4:x.a4:y.a4@x')
    call expect(plait_exec_run(exec, r4, o4) == PLAIT_OK, 'f32')
    call expect(all(reshape(o4, [4]) == [10, -2, -4, 0]), 'f32 values')
    call expect(plait_exec_run_in_place(exec, r4) == PLAIT_OK, 'f32 in place')
    call expect(all(r4 == [10, -2, -4, 0]), 'f32 values in place')
    call plait_exec_destroy(exec)
    exec = made('wht:f64:n4:x.a8:y.a8@x')
    call expect(plait_exec_run(exec, r8, o8) == PLAIT_OK, 'f64')
    call expect(all(o8 == [10, -2, -4, 0]), 'f64 values')
    call expect(plait_exec_run_in_place(exec, r8) == PLAIT_OK, 'f64 in place')
    call plait_exec_destroy(exec)
    exec = made('wht:c64:n4:x.a4:y.a4@x')
    call expect(plait_exec_run(exec, c4, p4) == PLAIT_OK, 'c64')
    call expect(all(real(p4) == [10, -2, -4, 0]), 'c64 values')
    call expect(plait_exec_run_in_place(exec, c4) == PLAIT_OK, 'c64 in place')
    call plait_exec_destroy(exec)
    exec = made('wht:c128:n4:x.a8:y.a8@x')
    call expect(plait_exec_run(exec, c8, p8) == PLAIT_OK, 'c128')
    call expect(all(real(p8) == [10, -2, -4, 0]), 'c128 values')
    call expect(plait_exec_run_in_place(exec, c8) == PLAIT_OK, 'c128 in place')
    call plait_exec_destroy(exec)
    exec = made('wht:i32:n4:x.a4:y.a4@x')
    call expect(plait_exec_run(exec, i4, q4) == PLAIT_OK, 'i32')
    call expect(all(q4 == [10, -2, -4, 0]), 'i32 values')
    call expect(plait_exec_run_in_place(exec, i4) == PLAIT_OK, 'i32 in place')
    call plait_exec_destroy(exec)
    exec = made('wht:i64:n4:x.a8:y.a8@x')
    call expect(plait_exec_run(exec, i8, q8) == PLAIT_OK, 'i64')
    call expect(all(q8 == [10, -2, -4, 0]), 'i64 values')
    call expect(plait_exec_run_in_place(exec, i8) == PLAIT_OK, 'i64 in place')
    call plait_exec_destroy(exec)
  end subroutine every_kind_of_array

  ! Kinds and sizes that are not those of the plan, and texts that C would cut.
  subroutine what_does_not_fit
    real(c_float) :: r4(40), o4(32), small(4)
    real(c_double) :: r8(32), o8(32)
    type(c_ptr) :: exec, desc
    r4 = 1
    r8 = 1
    o4 = -99
    o8 = -99
    small = -99
    exec = made('wht:f32:b8:n4:x.s5.1.a4:y.a4')
    call refused(plait_exec_run(exec, r8, o8), 'plait_exec_run_arrays: the array of x is f64')
    call refused(plait_exec_run(exec, r4, small), 'the array of y has 4 elements; the plan needs 32')
    call refused(plait_exec_run(exec, r4(1:38), o4), 'of x has 38 elements; the plan needs 39')
    call expect(all(o4 == -99) .and. all(o8 == -99) .and. all(small == -99), 'nothing written')
    call expect(plait_exec_run(exec, r4(1:39), o4) == PLAIT_OK, 'exactly what is needed')
    call expect(all(o4 == [4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, &
                           4, 0, 0, 0, 4, 0, 0, 0]), 'values')
    o4 = -99
    call without_sizes(exec, r4, o4)
    call expect(all(o4(1:4) == [4, 0, 0, 0]), 'values without sizes')
    call plait_exec_destroy(exec)
    call refused(plait_exec_run(c_null_ptr, r4, o4), 'exec=NULL')
    call refused(plait_desc_from_token(desc, 'wht:f32:n4' // c_null_char // ':y@x'), &
                 'plait_desc_from_token: token: the text has a NUL in it')
    call expect(.not. c_associated(desc), 'no descriptor')
    call refused(plait_exec_create(exec, PLAIT_CPU, 0_c_int, 'wht:f32:n4' // c_null_char), &
                 'plait_exec_create: token: the text has a NUL in it')
    call expect(.not. c_associated(exec), 'no exec')
  end subroutine what_does_not_fit

  subroutine without_sizes(exec, x, y)
    type(c_ptr), intent(in) :: exec
    real(c_float), target :: x(*), y(*)
    call expect(plait_exec_run(exec, x, y) == PLAIT_OK, 'assumed size')
  end subroutine without_sizes

  subroutine refused(answer, sentence)
    integer(c_int), intent(in) :: answer
    character(len=*), intent(in) :: sentence
    call expect(answer == PLAIT_ERR_INVALID_ARGUMENT, sentence)
    call expect(index(plait_last_error(), sentence) > 0, sentence)
  end subroutine refused

  function made(token) result(exec)
    character(len=*), intent(in) :: token
    type(c_ptr) :: exec
    call expect(plait_exec_create(exec, PLAIT_CPU, 0_c_int, token) == PLAIT_OK, token)
  end function made

  ! Context, preferences, plan and execute, as in C.
  subroutine plans
    type(c_ptr) :: ctx, desc, pref, plan, exec, work
    type(plait_arg) :: args(2)
    real(c_float), target :: x(4), y(4)
    character(len=:), allocatable :: text
    integer(c_size_t) :: bytes
    integer(c_int64_t) :: steps
    real(c_double) :: seconds
    call expect(plait_context_create(ctx, PLAIT_CPU, 0_c_int) == PLAIT_OK, 'context')
    call expect(plait_context_set_threads(ctx, 1_c_int) == PLAIT_OK, 'threads')
    call expect(plait_context_profile(ctx, text) == PLAIT_OK, 'profile')
    call expect(index(text, 'threads 1') > 0, 'text of the profile')
    call expect(plait_desc_from_token(desc, 'wht:f32:n4:x.a4:y.a4') == PLAIT_OK, 'desc')
    call expect(plait_pref_create(pref) == PLAIT_OK, 'pref')
    call expect(plait_pref_set_candidates(pref, 'wht.cpu.ref') == PLAIT_OK, 'candidates')
    call expect(plait_plan_create(plan, ctx, desc, pref) == PLAIT_OK, 'plan')
    call expect(plait_plan_candidate(plan, text) == PLAIT_OK .and. text == 'wht.cpu.ref', 'name')
    call expect(plait_plan_print(plan, PLAIT_TEXT, text) == PLAIT_OK, 'print')
    call expect(plait_candidates_print(ctx, desc, c_null_ptr, PLAIT_JSON, text) == PLAIT_OK, 'all')
    call expect(text(1:1) == '{', 'JSON')
    call expect(plait_plan_get_i64(plan, PLAIT_PLAN_STEPS, steps) == PLAIT_OK, 'steps')
    call expect(steps >= 1, 'number of steps')
    call expect(plait_plan_get_f64(plan, PLAIT_PLAN_SECONDS_ESTIMATED, seconds) == PLAIT_OK, 's')
    call expect(plait_plan_reserve_size(plan, bytes) == PLAIT_OK, 'size of the reserve')
    call expect(bytes == 0, 'no reserve')
    call expect(plait_plan_workspace_size(plan, bytes) == PLAIT_OK, 'size')
    call expect(plait_workspace_alloc(ctx, bytes, c_null_ptr, work) == PLAIT_OK, 'workspace')
    x = [1, 2, 3, 4]
    y = -99
    args(1) = plait_arg(PLAIT_X, c_loc(x))
    args(2) = plait_arg(PLAIT_Y, c_loc(y))
    call expect(plait_execute(plan, args, 2_c_int, work, bytes, c_null_ptr) == PLAIT_OK, 'execute')
    call expect(all(y == [10, -2, -4, 0]), 'values')
    call expect(plait_exec_from_plan(exec, plan, c_null_ptr) == PLAIT_OK, 'exec')
    y = 0
    call expect(plait_exec_run(exec, c_loc(x), c_loc(y)) == PLAIT_OK, 'run')
    call expect(all(y == [10, -2, -4, 0]), 'values of the exec')
    call expect(plait_exec_run_args(exec, args, 2_c_int) == PLAIT_OK, 'run args')
    call plait_exec_destroy(exec)
    call plait_workspace_free(ctx, work, bytes, c_null_ptr)
    call plait_plan_destroy(plan)
    call plait_pref_destroy(pref)
    call plait_desc_destroy(desc)
    call plait_context_destroy(ctx)
  end subroutine plans

  ! Two rows, one channel, two taps: y(t) = 10 x(t-1) + x(t), first behind a state, then step by step.
  subroutine convolution
    type(c_ptr) :: desc, exec
    character(len=:), allocatable :: token
    real(c_float), target :: x(3, 1, 2), y(3, 1, 2), w(2, 1), state(1, 1, 2), x1(1, 1, 2), y1(1, 1, 2)
    x = reshape([1, 2, 3, 4, 5, 6], [3, 1, 2])
    y = -99
    y1 = -99
    state = -99
    w = reshape([10, 1], [2, 1])
    call expect(plait_conv1d_create(desc, PLAIT_FORWARD, PLAIT_F32, 2_c_int64_t, 1_c_int64_t, &
                3_c_int64_t, 2_c_int64_t) == PLAIT_OK, 'conv1d')
    call expect(plait_conv1d_set_layout(desc, PLAIT_BCT) == PLAIT_OK, 'layout')
    call expect(plait_conv1d_set_activation(desc, PLAIT_ACT_NONE) == PLAIT_OK, 'activation')
    call expect(plait_conv1d_set_residual(desc, 0_c_int) == PLAIT_OK, 'residual')
    call expect(plait_conv1d_set_state(desc, PLAIT_STATE_LINEAR, 1_c_int64_t) == PLAIT_OK, 'state')
    call expect(plait_desc_use(desc, PLAIT_STATE_OUT, 1_c_int) == PLAIT_OK, 'state_out')
    call expect(plait_desc_token(desc, token) == PLAIT_OK, 'token of conv1d')
    call expect(token == 'conv1d.fwd:f32:b2:c1:t3:k2:+state_out', token)
    call expect(plait_desc_set_slots(desc, 4_c_int64_t, -1_c_int32_t) == PLAIT_OK, 'slots')
    call expect(plait_desc_set_varlen(desc, 2_c_int64_t, 3_c_int64_t) == PLAIT_OK, 'varlen')
    call expect(plait_desc_check(desc) == PLAIT_ERR_INVALID_DESC, 'batch of packed sequences')
    call plait_desc_destroy(desc)
    exec = made(token // ':x.a4:y.a4:w.a4:state_out.a4')
    call expect(plait_exec_run_args(exec, [plait_arg(PLAIT_X, c_loc(x)), &
      plait_arg(PLAIT_Y, c_loc(y)), plait_arg(PLAIT_W, c_loc(w)), &
      plait_arg(PLAIT_STATE_OUT, c_loc(state))], 4_c_int) == PLAIT_OK, 'forward')
    call expect(all(reshape(y, [6]) == [1, 12, 23, 4, 45, 56]), 'values of the convolution')
    call expect(all(reshape(state, [2]) == [3, 6]), 'values of the state')
    call plait_exec_destroy(exec)
    exec = made('conv1d.update:f32:b2:c1:t1:k2:x.a4:y.a4:w.a4:state.a4')
    x1 = reshape([7, 8], [1, 1, 2])
    call expect(plait_exec_run_args(exec, [plait_arg(PLAIT_X, c_loc(x1)), &
      plait_arg(PLAIT_Y, c_loc(y1)), plait_arg(PLAIT_W, c_loc(w)), &
      plait_arg(PLAIT_STATE, c_loc(state))], 4_c_int) == PLAIT_OK, 'update')
    call expect(all(reshape(y1, [2]) == [37, 68]), 'values of the update')
    call expect(all(reshape(state, [2]) == [7, 8]), 'state behind the update')
    call plait_exec_destroy(exec)
  end subroutine convolution

  ! One channel of keys and values: the state halves, then beta = 1/2 of what it lacks is added.
  subroutine attention
    type(c_ptr) :: desc, exec
    character(len=:), allocatable :: token
    real(c_float), target :: q(2), k(2), v(2), g(2), beta(2), o(2), state(1)
    q = 1
    k = 1
    v = [4, 6]
    g = log(0.5)
    beta = 0.5
    o = -99
    state = -99
    call expect(plait_kda_create(desc, PLAIT_FORWARD, PLAIT_F32, 1_c_int64_t, 2_c_int64_t, &
                1_c_int64_t, 1_c_int64_t, 1_c_int64_t, 1_c_int64_t) == PLAIT_OK, 'kda')
    call expect(plait_kda_set_gate(desc, PLAIT_GATE_LOG, 0.0_c_double) == PLAIT_OK, 'gate')
    call expect(plait_kda_set_beta(desc, 0_c_int, 1.0_c_double) == PLAIT_OK, 'beta')
    call expect(plait_kda_set_qk_norm(desc, 0_c_int, 0.0_c_double) == PLAIT_OK, 'norm')
    call expect(plait_kda_set_scale(desc, 2.0_c_double) == PLAIT_OK, 'scale')
    call expect(plait_kda_set_state(desc, PLAIT_STATE_VK) == PLAIT_OK, 'orientation')
    call expect(plait_desc_use(desc, PLAIT_STATE_OUT, 1_c_int) == PLAIT_OK, 'state_out of kda')
    call expect(plait_desc_token(desc, token) == PLAIT_OK, 'token of kda')
    call plait_desc_destroy(desc)
    call expect(token == 'kda.fwd:f32:b1:t2:h1:k1:v1:gate=log:scale=2:state=vk:+state_out', token)
    exec = made(token // ':q.a4:k.a4:v.a4:g.a4:beta.a4:o.a4:state_out.a4')
    call expect(plait_exec_run_args(exec, [plait_arg(PLAIT_Q, c_loc(q)), &
      plait_arg(PLAIT_K, c_loc(k)), plait_arg(PLAIT_V, c_loc(v)), plait_arg(PLAIT_G, c_loc(g)), &
      plait_arg(PLAIT_BETA, c_loc(beta)), plait_arg(PLAIT_O, c_loc(o)), &
      plait_arg(PLAIT_STATE_OUT, c_loc(state))], 7_c_int) == PLAIT_OK, 'attention')
    call expect(all(abs(o - [4, 7]) < 1e-5), 'values of the attention')
    call expect(abs(state(1) - 3.5) < 1e-5, 'state of the attention')
    call plait_exec_destroy(exec)
  end subroutine attention

  subroutine wisdom
    type(c_ptr) :: ctx
    character(len=:), allocatable :: text
    integer(c_int) :: loaded, skipped
    call expect(plait_context_create(ctx, PLAIT_CPU, 0_c_int) == PLAIT_OK, 'context')
    call expect(plait_wisdom_save(ctx, text) == PLAIT_OK, 'save')
    call expect(plait_wisdom_load(ctx, text, loaded, skipped) == PLAIT_OK, 'load')
    call expect(loaded == 0 .and. skipped == 0, 'nothing there')
    call expect(plait_wisdom_load_file(ctx, 'no/such/file') == PLAIT_ERR_IO, 'no file')
    call blank_padded(ctx)
    call plait_wisdom_clear(ctx)
    call plait_context_destroy(ctx)
  end subroutine wisdom

  ! What stands in variables of a fixed length has blanks behind it, which C would take for its own.
  subroutine blank_padded(ctx)
    type(c_ptr), intent(in) :: ctx
    character(len=40) :: path, token, pattern
    character(len=4000) :: words
    character(len=:), allocatable :: text
    type(c_ptr) :: desc, pref, exec, other
    logical :: there
    integer :: file
    path = 'fortran_wisdom.txt'
    token = 'wht:f32:n4'
    pattern = 'wht.cpu.ref'
    call expect(plait_wisdom_save_file(ctx, path) == PLAIT_OK, 'save to a padded path')
    inquire (file=trim(path), exist=there)
    call expect(there, 'file without blanks')
    call expect(plait_wisdom_load_file(ctx, path) == PLAIT_OK, 'load from a padded path')
    if (there) then
      open (newunit=file, file=trim(path))
      close (file, status='delete')
    end if
    call expect(plait_desc_from_token(desc, token) == PLAIT_OK, 'padded token')
    call plait_desc_destroy(desc)
    call expect(plait_exec_create(exec, PLAIT_CPU, 0_c_int, token) == PLAIT_OK, 'padded exec')
    call plait_exec_destroy(exec)
    call expect(plait_pref_create(pref) == PLAIT_OK, 'pref')
    call expect(plait_pref_set_candidates(pref, pattern) == PLAIT_OK, 'padded pattern')
    call plait_pref_destroy(pref)
    call expect(plait_wisdom_save(ctx, text) == PLAIT_OK, 'save')
    words = text
    call expect(plait_wisdom_load(ctx, words) == PLAIT_OK, 'padded wisdom')
    call expect(plait_context_profile(ctx, text) == PLAIT_OK, 'profile')
    words = text
    call expect(plait_context_create_from_profile(other, words) == PLAIT_OK, 'padded profile')
    call plait_context_destroy(other)
  end subroutine blank_padded

end program fortran
