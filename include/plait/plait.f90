! plait.f90 - the module `plait`: Fortran interfaces of plait.h, which has the documentation.
!
! Handles are type(c_ptr). A function that returns a status returns PLAIT_OK (0) or a code;
! plait_last_error() has the sentence. Extents and strides are given outermost first, as in C:
! those of a Fortran array are listed backwards. Strings are ordinary character values; the
! procedures that end in _c take what C takes. Arguments that C allows to be NULL are optional,
! or c_null_ptr for handles and pointers. Arrays of another kind than the tensors of the plan, or
! with fewer elements, are refused, and so is a text with a NUL in it; c_loc(array) is for what has
! no kind here, such as 16-bit types, and is not looked at.
!
!   stat = plait_exec_create(exec, PLAIT_CPU, 0, 'wht:f32:b300:n1024')
!   stat = plait_exec_run(exec, x, y)          ! contiguous arrays of one type, any rank
!   call plait_exec_destroy(exec)
module plait
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! plait_status
  integer(c_int), parameter, public :: PLAIT_OK = 0
  integer(c_int), parameter, public :: PLAIT_ERR_INVALID_ARGUMENT = 1
  integer(c_int), parameter, public :: PLAIT_ERR_INVALID_DESC = 2
  integer(c_int), parameter, public :: PLAIT_ERR_NOT_SUPPORTED = 3
  integer(c_int), parameter, public :: PLAIT_ERR_NO_WISDOM = 4
  integer(c_int), parameter, public :: PLAIT_ERR_WORKSPACE = 5
  integer(c_int), parameter, public :: PLAIT_ERR_POINTER = 6
  integer(c_int), parameter, public :: PLAIT_ERR_OUT_OF_MEMORY = 7
  integer(c_int), parameter, public :: PLAIT_ERR_NO_DEVICE = 8
  integer(c_int), parameter, public :: PLAIT_ERR_DEVICE = 9
  integer(c_int), parameter, public :: PLAIT_ERR_CAPTURING = 10
  integer(c_int), parameter, public :: PLAIT_ERR_IO = 11
  integer(c_int), parameter, public :: PLAIT_ERR_VERSION = 12
  integer(c_int), parameter, public :: PLAIT_ERR_BUFFER_TOO_SMALL = 13
  integer(c_int), parameter, public :: PLAIT_ERR_INTERNAL = 14
  ! plait_backend
  integer(c_int), parameter, public :: PLAIT_CPU = 1
  integer(c_int), parameter, public :: PLAIT_CUDA = 2
  ! plait_dtype
  integer(c_int), parameter, public :: PLAIT_F64 = 1
  integer(c_int), parameter, public :: PLAIT_F32 = 2
  integer(c_int), parameter, public :: PLAIT_F16 = 3
  integer(c_int), parameter, public :: PLAIT_BF16 = 4
  integer(c_int), parameter, public :: PLAIT_E4M3 = 5
  integer(c_int), parameter, public :: PLAIT_C128 = 8
  integer(c_int), parameter, public :: PLAIT_C64 = 9
  integer(c_int), parameter, public :: PLAIT_I32 = 16
  integer(c_int), parameter, public :: PLAIT_I64 = 17
  integer(c_int), parameter, public :: PLAIT_I8 = 18
  integer(c_int), parameter, public :: PLAIT_I16 = 19
  integer(c_int), parameter, public :: PLAIT_B1 = 24
  ! plait_direction
  integer(c_int), parameter, public :: PLAIT_FORWARD = 0
  integer(c_int), parameter, public :: PLAIT_BACKWARD = 1
  integer(c_int), parameter, public :: PLAIT_UPDATE = 2
  ! plait_role
  integer(c_int), parameter, public :: PLAIT_X = 1
  integer(c_int), parameter, public :: PLAIT_Y = 2
  integer(c_int), parameter, public :: PLAIT_W = 3
  integer(c_int), parameter, public :: PLAIT_BIAS = 4
  integer(c_int), parameter, public :: PLAIT_SIGNS = 5
  integer(c_int), parameter, public :: PLAIT_DIAG = 6
  integer(c_int), parameter, public :: PLAIT_OVERFLOW = 7
  integer(c_int), parameter, public :: PLAIT_FACTOR = 8
  integer(c_int), parameter, public :: PLAIT_ROWS = 9
  integer(c_int), parameter, public :: PLAIT_DIAG_IN = 10
  integer(c_int), parameter, public :: PLAIT_DIAG_MID = 11
  integer(c_int), parameter, public :: PLAIT_AMAX = 12
  integer(c_int), parameter, public :: PLAIT_SCALES = 13
  integer(c_int), parameter, public :: PLAIT_HISTOGRAM = 14
  integer(c_int), parameter, public :: PLAIT_Q = 16
  integer(c_int), parameter, public :: PLAIT_K = 17
  integer(c_int), parameter, public :: PLAIT_V = 18
  integer(c_int), parameter, public :: PLAIT_G = 19
  integer(c_int), parameter, public :: PLAIT_BETA = 20
  integer(c_int), parameter, public :: PLAIT_O = 21
  integer(c_int), parameter, public :: PLAIT_A_LOG = 22
  integer(c_int), parameter, public :: PLAIT_DT_BIAS = 23
  integer(c_int), parameter, public :: PLAIT_RESERVE = 24
  integer(c_int), parameter, public :: PLAIT_STATE_IN = 32
  integer(c_int), parameter, public :: PLAIT_STATE_OUT = 33
  integer(c_int), parameter, public :: PLAIT_STATE = 34
  integer(c_int), parameter, public :: PLAIT_POSITION = 35
  integer(c_int), parameter, public :: PLAIT_SLOTS = 36
  integer(c_int), parameter, public :: PLAIT_CU_SEQLENS = 37
  integer(c_int), parameter, public :: PLAIT_SEQ_IDX = 38
  integer(c_int), parameter, public :: PLAIT_STATUS = 39
  integer(c_int), parameter, public :: PLAIT_DX = 257
  integer(c_int), parameter, public :: PLAIT_DY = 258
  integer(c_int), parameter, public :: PLAIT_DW = 259
  integer(c_int), parameter, public :: PLAIT_DBIAS = 260
  integer(c_int), parameter, public :: PLAIT_DQ = 272
  integer(c_int), parameter, public :: PLAIT_DK = 273
  integer(c_int), parameter, public :: PLAIT_DV = 274
  integer(c_int), parameter, public :: PLAIT_DG = 275
  integer(c_int), parameter, public :: PLAIT_DBETA = 276
  integer(c_int), parameter, public :: PLAIT_DO = 277
  integer(c_int), parameter, public :: PLAIT_DA_LOG = 278
  integer(c_int), parameter, public :: PLAIT_DDT_BIAS = 279
  integer(c_int), parameter, public :: PLAIT_DSTATE_IN = 288
  integer(c_int), parameter, public :: PLAIT_DSTATE_OUT = 289
  ! plait_access
  integer(c_int), parameter, public :: PLAIT_READ = 1
  integer(c_int), parameter, public :: PLAIT_WRITE = 2
  integer(c_int), parameter, public :: PLAIT_READ_WRITE = 3
  ! plait_wht_order
  integer(c_int), parameter, public :: PLAIT_NATURAL = 0
  integer(c_int), parameter, public :: PLAIT_SEQUENCY = 1
  integer(c_int), parameter, public :: PLAIT_DYADIC = 2
  ! plait_wht_factor
  integer(c_int), parameter, public :: PLAIT_H1 = 0
  integer(c_int), parameter, public :: PLAIT_H12_PALEY2 = 1
  integer(c_int), parameter, public :: PLAIT_H12_SLOANE = 2
  integer(c_int), parameter, public :: PLAIT_H20_WILLIAMSON = 3
  integer(c_int), parameter, public :: PLAIT_H28_WILLIAMSON = 4
  integer(c_int), parameter, public :: PLAIT_H40 = 5
  integer(c_int), parameter, public :: PLAIT_H4_REGULAR = 6
  integer(c_int), parameter, public :: PLAIT_H20_PALEY1 = 7
  integer(c_int), parameter, public :: PLAIT_H28_PALEY2 = 8
  integer(c_int), parameter, public :: PLAIT_H36_PALEY2 = 9
  integer(c_int), parameter, public :: PLAIT_H52_WILLIAMSON = 10
  integer(c_int), parameter, public :: PLAIT_H60_PALEY1 = 11
  integer(c_int), parameter, public :: PLAIT_H108_PALEY1 = 12
  integer(c_int), parameter, public :: PLAIT_H116_WILLIAMSON = 13
  integer(c_int), parameter, public :: PLAIT_H124_WILLIAMSON = 14
  integer(c_int), parameter, public :: PLAIT_H140_PALEY1 = 15
  integer(c_int), parameter, public :: PLAIT_H156_WILLIAMSON = 16
  integer(c_int), parameter, public :: PLAIT_H172_WILLIAMSON = 17
  ! plait_layout
  integer(c_int), parameter, public :: PLAIT_BCT = 0
  integer(c_int), parameter, public :: PLAIT_BTC = 1
  ! plait_activation
  integer(c_int), parameter, public :: PLAIT_ACT_NONE = 0
  integer(c_int), parameter, public :: PLAIT_ACT_SILU = 1
  ! plait_state_kind
  integer(c_int), parameter, public :: PLAIT_STATE_LINEAR = 0
  integer(c_int), parameter, public :: PLAIT_STATE_RING = 1
  ! plait_state_layout
  integer(c_int), parameter, public :: PLAIT_STATE_KV = 1
  integer(c_int), parameter, public :: PLAIT_STATE_VK = 2
  ! plait_kda_gate
  integer(c_int), parameter, public :: PLAIT_GATE_LOG = 0
  integer(c_int), parameter, public :: PLAIT_GATE_SOFTPLUS = 1
  integer(c_int), parameter, public :: PLAIT_GATE_BOUNDED = 2
  ! plait_rigor
  integer(c_int), parameter, public :: PLAIT_ESTIMATE = 0
  integer(c_int), parameter, public :: PLAIT_MEASURE = 10
  integer(c_int), parameter, public :: PLAIT_EXHAUSTIVE = 20
  ! plait_determinism
  integer(c_int), parameter, public :: PLAIT_ANY_ORDER = 0
  integer(c_int), parameter, public :: PLAIT_RUN_TO_RUN = 1
  ! plait_math
  integer(c_int), parameter, public :: PLAIT_MATH_DEFAULT = 0
  integer(c_int), parameter, public :: PLAIT_MATH_F32 = 1
  integer(c_int), parameter, public :: PLAIT_MATH_TF32 = 2
  ! plait_format
  integer(c_int), parameter, public :: PLAIT_TEXT = 0
  integer(c_int), parameter, public :: PLAIT_JSON = 1
  ! plait_plan_attr
  integer(c_int), parameter, public :: PLAIT_PLAN_STEPS = 1
  integer(c_int), parameter, public :: PLAIT_PLAN_RIGOR = 2
  integer(c_int), parameter, public :: PLAIT_PLAN_FROM_WISDOM = 3
  integer(c_int), parameter, public :: PLAIT_PLAN_BYTES_READ = 16
  integer(c_int), parameter, public :: PLAIT_PLAN_BYTES_WRITTEN = 17
  integer(c_int), parameter, public :: PLAIT_PLAN_FLOPS = 18
  integer(c_int), parameter, public :: PLAIT_PLAN_SECONDS_ESTIMATED = 32
  integer(c_int), parameter, public :: PLAIT_PLAN_SECONDS_MEASURED = 33
  ! bits for plait_set_log
  integer(c_int), parameter, public :: PLAIT_LOG_ERROR = 1
  integer(c_int), parameter, public :: PLAIT_LOG_WARN = 2
  integer(c_int), parameter, public :: PLAIT_LOG_PLAN = 4
  integer(c_int), parameter, public :: PLAIT_LOG_DISPATCH = 8
  integer(c_int), parameter, public :: PLAIT_LOG_EXEC = 16
  ! limits
  integer(c_int), parameter, public :: PLAIT_MAX_RANK = 8
  integer(c_int), parameter, public :: PLAIT_WORKSPACE_ALIGNMENT = 256
  ! Version of plait.h; PLAIT_VERSION would be plait_version(), which is that of the library.
  integer(c_int), parameter, public :: PLAIT_VERSION_MAJOR = 0
  integer(c_int), parameter, public :: PLAIT_VERSION_MINOR = 1
  integer(c_int), parameter, public :: PLAIT_VERSION_PATCH = 0

  type, bind(c), public :: plait_arg
    integer(c_int64_t) :: role
    type(c_ptr) :: ptr
  end type plait_arg

  interface
    function plait_version() bind(c, name='plait_version') result(answer)
      import
      integer(c_int) :: answer
    end function plait_version
    function plait_build_info_c() bind(c, name='plait_build_info') result(answer)
      import
      type(c_ptr) :: answer
    end function plait_build_info_c
    function plait_status_name_c(status) bind(c, name='plait_status_name') result(answer)
      import
      integer(c_int), value :: status
      type(c_ptr) :: answer
    end function plait_status_name_c
    function plait_role_name_c(role) bind(c, name='plait_role_name') result(answer)
      import
      integer(c_int), value :: role
      type(c_ptr) :: answer
    end function plait_role_name_c
    function plait_last_error_c() bind(c, name='plait_last_error') result(answer)
      import
      type(c_ptr) :: answer
    end function plait_last_error_c
    function plait_set_last_error_c(status, sentence) bind(c, &
        name='plait_set_last_error') result(answer)
      import
      integer(c_int), value :: status
      character(kind=c_char), intent(in) :: sentence(*)
      integer(c_int) :: answer
    end function plait_set_last_error_c
    function plait_set_log(bits, fn, user) bind(c, name='plait_set_log') result(answer)
      import
      integer(c_int), value :: bits
      type(c_funptr), value :: fn
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function plait_set_log
    function plait_device_count(backend, count) bind(c, &
        name='plait_device_count') result(answer)
      import
      integer(c_int), value :: backend
      integer(c_int), intent(out) :: count
      integer(c_int) :: answer
    end function plait_device_count
    function plait_context_create(ctx, backend, device) bind(c, &
        name='plait_context_create') result(answer)
      import
      type(c_ptr), intent(out) :: ctx
      integer(c_int), value :: backend
      integer(c_int), value :: device
      integer(c_int) :: answer
    end function plait_context_create
    function plait_context_create_from_profile_c(ctx, profile) bind(c, &
        name='plait_context_create_from_profile') result(answer)
      import
      type(c_ptr), intent(out) :: ctx
      character(kind=c_char), intent(in) :: profile(*)
      integer(c_int) :: answer
    end function plait_context_create_from_profile_c
    function plait_context_profile_c(ctx, buf, cap, size) bind(c, &
        name='plait_context_profile') result(answer)
      import
      type(c_ptr), value :: ctx
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_context_profile_c
    function plait_context_set_allocator(ctx, alloc, dealloc, user) bind(c, &
        name='plait_context_set_allocator') result(answer)
      import
      type(c_ptr), value :: ctx
      type(c_funptr), value :: alloc
      type(c_funptr), value :: dealloc
      type(c_ptr), value :: user
      integer(c_int) :: answer
    end function plait_context_set_allocator
    function plait_context_set_threads(ctx, threads) bind(c, &
        name='plait_context_set_threads') result(answer)
      import
      type(c_ptr), value :: ctx
      integer(c_int), value :: threads
      integer(c_int) :: answer
    end function plait_context_set_threads
    subroutine plait_context_destroy(ctx) bind(c, name='plait_context_destroy')
      import
      type(c_ptr), value :: ctx
    end subroutine plait_context_destroy
    function plait_wht_create(desc, dtype, rank, extents) bind(c, &
        name='plait_wht_create') result(answer)
      import
      type(c_ptr), intent(out) :: desc
      integer(c_int), value :: dtype
      integer(c_int), value :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int) :: answer
    end function plait_wht_create
    function plait_wht_set_axes(desc, axes) bind(c, name='plait_wht_set_axes') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int32_t), value :: axes
      integer(c_int) :: answer
    end function plait_wht_set_axes
    function plait_wht_set_bits(desc, bits) bind(c, name='plait_wht_set_bits') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: bits
      integer(c_int) :: answer
    end function plait_wht_set_bits
    function plait_wht_set_factor(desc, axis, factor) bind(c, &
        name='plait_wht_set_factor') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: axis
      integer(c_int), value :: factor
      integer(c_int) :: answer
    end function plait_wht_set_factor
    function plait_wht_set_factor_order(desc, axis, order) bind(c, &
        name='plait_wht_set_factor_order') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: axis
      integer(c_int), value :: order
      integer(c_int) :: answer
    end function plait_wht_set_factor_order
    function plait_wht_set_order(desc, order) bind(c, name='plait_wht_set_order') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: order
      integer(c_int) :: answer
    end function plait_wht_set_order
    function plait_wht_set_adjoint(desc, enable) bind(c, &
        name='plait_wht_set_adjoint') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: enable
      integer(c_int) :: answer
    end function plait_wht_set_adjoint
    function plait_wht_set_scale(desc, scale) bind(c, name='plait_wht_set_scale') result(answer)
      import
      type(c_ptr), value :: desc
      real(c_double), value :: scale
      integer(c_int) :: answer
    end function plait_wht_set_scale
    function plait_wht_set_bound(desc, bound) bind(c, name='plait_wht_set_bound') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: bound
      integer(c_int) :: answer
    end function plait_wht_set_bound
    function plait_wht_set_rows(desc, count) bind(c, &
        name='plait_wht_set_rows') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: count
      integer(c_int) :: answer
    end function plait_wht_set_rows
    function plait_wht_set_group(desc, length) bind(c, &
        name='plait_wht_set_group') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: length
      integer(c_int) :: answer
    end function plait_wht_set_group
    function plait_wht_set_histogram(desc, bins, first, width) bind(c, &
        name='plait_wht_set_histogram') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: bins
      integer(c_int64_t), value :: first
      integer(c_int64_t), value :: width
      integer(c_int) :: answer
    end function plait_wht_set_histogram
    function plait_conv1d_create(desc, dir, dtype, batch, channels, length, width) bind(c, &
        name='plait_conv1d_create') result(answer)
      import
      type(c_ptr), intent(out) :: desc
      integer(c_int), value :: dir
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: batch
      integer(c_int64_t), value :: channels
      integer(c_int64_t), value :: length
      integer(c_int64_t), value :: width
      integer(c_int) :: answer
    end function plait_conv1d_create
    function plait_conv1d_set_layout(desc, layout) bind(c, &
        name='plait_conv1d_set_layout') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: layout
      integer(c_int) :: answer
    end function plait_conv1d_set_layout
    function plait_conv1d_set_activation(desc, act) bind(c, &
        name='plait_conv1d_set_activation') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: act
      integer(c_int) :: answer
    end function plait_conv1d_set_activation
    function plait_conv1d_set_residual(desc, enable) bind(c, &
        name='plait_conv1d_set_residual') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: enable
      integer(c_int) :: answer
    end function plait_conv1d_set_residual
    function plait_conv1d_set_state(desc, kind, entries) bind(c, &
        name='plait_conv1d_set_state') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: kind
      integer(c_int64_t), value :: entries
      integer(c_int) :: answer
    end function plait_conv1d_set_state
    function plait_kda_create(desc, dir, dtype, batch, length, heads, &
        value_heads, dim_k, dim_v) bind(c, name='plait_kda_create') result(answer)
      import
      type(c_ptr), intent(out) :: desc
      integer(c_int), value :: dir
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: batch
      integer(c_int64_t), value :: length
      integer(c_int64_t), value :: heads
      integer(c_int64_t), value :: value_heads
      integer(c_int64_t), value :: dim_k
      integer(c_int64_t), value :: dim_v
      integer(c_int) :: answer
    end function plait_kda_create
    function plait_kda_set_gate(desc, gate, lower_bound) bind(c, &
        name='plait_kda_set_gate') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: gate
      real(c_double), value :: lower_bound
      integer(c_int) :: answer
    end function plait_kda_set_gate
    function plait_kda_set_beta(desc, is_logit, scale) bind(c, &
        name='plait_kda_set_beta') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: is_logit
      real(c_double), value :: scale
      integer(c_int) :: answer
    end function plait_kda_set_beta
    function plait_kda_set_qk_norm(desc, enable, eps) bind(c, &
        name='plait_kda_set_qk_norm') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: enable
      real(c_double), value :: eps
      integer(c_int) :: answer
    end function plait_kda_set_qk_norm
    function plait_kda_set_scale(desc, scale) bind(c, &
        name='plait_kda_set_scale') result(answer)
      import
      type(c_ptr), value :: desc
      real(c_double), value :: scale
      integer(c_int) :: answer
    end function plait_kda_set_scale
    function plait_kda_set_state(desc, layout) bind(c, &
        name='plait_kda_set_state') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: layout
      integer(c_int) :: answer
    end function plait_kda_set_state
    function plait_desc_use(desc, role, use) bind(c, name='plait_desc_use') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: role
      integer(c_int), value :: use
      integer(c_int) :: answer
    end function plait_desc_use
    function plait_desc_set_varlen(desc, sequences, max_length) bind(c, &
        name='plait_desc_set_varlen') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: sequences
      integer(c_int64_t), value :: max_length
      integer(c_int) :: answer
    end function plait_desc_set_varlen
    function plait_desc_set_slots(desc, count, pad) bind(c, &
        name='plait_desc_set_slots') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: pad
      integer(c_int) :: answer
    end function plait_desc_set_slots
    function plait_desc_set_dtype(desc, role, dtype) bind(c, &
        name='plait_desc_set_dtype') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: role
      integer(c_int), value :: dtype
      integer(c_int) :: answer
    end function plait_desc_set_dtype
    function plait_desc_set_strides(desc, role, rank, strides) bind(c, &
        name='plait_desc_set_strides') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: role
      integer(c_int), value :: rank
      integer(c_int64_t), intent(in) :: strides(*)
      integer(c_int) :: answer
    end function plait_desc_set_strides
    function plait_desc_set_alignment(desc, role, bytes) bind(c, &
        name='plait_desc_set_alignment') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: role
      integer(c_int), value :: bytes
      integer(c_int) :: answer
    end function plait_desc_set_alignment
    function plait_desc_set_alias(desc, out, in) bind(c, &
        name='plait_desc_set_alias') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: out
      integer(c_int), value :: in
      integer(c_int) :: answer
    end function plait_desc_set_alias
    function plait_desc_check(desc) bind(c, name='plait_desc_check') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int) :: answer
    end function plait_desc_check
    function plait_desc_num_tensors(desc, count) bind(c, &
        name='plait_desc_num_tensors') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), intent(out) :: count
      integer(c_int) :: answer
    end function plait_desc_num_tensors
    function plait_desc_tensor(desc, index, role, access, dtype, rank, extents, &
        strides) bind(c, name='plait_desc_tensor') result(answer)
      import
      type(c_ptr), value :: desc
      integer(c_int), value :: index
      integer(c_int), intent(out), optional :: role
      integer(c_int), intent(out), optional :: access
      integer(c_int), intent(out), optional :: dtype
      integer(c_int), intent(out), optional :: rank
      integer(c_int64_t), intent(out), optional :: extents(*)
      integer(c_int64_t), intent(out), optional :: strides(*)
      integer(c_int) :: answer
    end function plait_desc_tensor
    function plait_desc_token_c(desc, buf, cap, size) bind(c, &
        name='plait_desc_token') result(answer)
      import
      type(c_ptr), value :: desc
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_desc_token_c
    function plait_desc_from_token_c(desc, token) bind(c, &
        name='plait_desc_from_token') result(answer)
      import
      type(c_ptr), intent(out) :: desc
      character(kind=c_char), intent(in) :: token(*)
      integer(c_int) :: answer
    end function plait_desc_from_token_c
    subroutine plait_desc_destroy(desc) bind(c, name='plait_desc_destroy')
      import
      type(c_ptr), value :: desc
    end subroutine plait_desc_destroy
    function plait_pref_create(pref) bind(c, name='plait_pref_create') result(answer)
      import
      type(c_ptr), intent(out) :: pref
      integer(c_int) :: answer
    end function plait_pref_create
    function plait_pref_set_rigor(pref, rigor) bind(c, &
        name='plait_pref_set_rigor') result(answer)
      import
      type(c_ptr), value :: pref
      integer(c_int), value :: rigor
      integer(c_int) :: answer
    end function plait_pref_set_rigor
    function plait_pref_set_wisdom_only(pref, enable) bind(c, &
        name='plait_pref_set_wisdom_only') result(answer)
      import
      type(c_ptr), value :: pref
      integer(c_int), value :: enable
      integer(c_int) :: answer
    end function plait_pref_set_wisdom_only
    function plait_pref_set_workspace_limit(pref, bytes) bind(c, &
        name='plait_pref_set_workspace_limit') result(answer)
      import
      type(c_ptr), value :: pref
      integer(c_size_t), value :: bytes
      integer(c_int) :: answer
    end function plait_pref_set_workspace_limit
    function plait_pref_set_time_limit(pref, seconds) bind(c, &
        name='plait_pref_set_time_limit') result(answer)
      import
      type(c_ptr), value :: pref
      real(c_double), value :: seconds
      integer(c_int) :: answer
    end function plait_pref_set_time_limit
    function plait_pref_set_determinism(pref, level) bind(c, &
        name='plait_pref_set_determinism') result(answer)
      import
      type(c_ptr), value :: pref
      integer(c_int), value :: level
      integer(c_int) :: answer
    end function plait_pref_set_determinism
    function plait_pref_set_math(pref, math) bind(c, name='plait_pref_set_math') result(answer)
      import
      type(c_ptr), value :: pref
      integer(c_int), value :: math
      integer(c_int) :: answer
    end function plait_pref_set_math
    function plait_pref_set_candidates_c(pref, pattern) bind(c, &
        name='plait_pref_set_candidates') result(answer)
      import
      type(c_ptr), value :: pref
      character(kind=c_char), intent(in) :: pattern(*)
      integer(c_int) :: answer
    end function plait_pref_set_candidates_c
    subroutine plait_pref_destroy(pref) bind(c, name='plait_pref_destroy')
      import
      type(c_ptr), value :: pref
    end subroutine plait_pref_destroy
    function plait_plan_create(plan, ctx, desc, pref) bind(c, &
        name='plait_plan_create') result(answer)
      import
      type(c_ptr), intent(out) :: plan
      type(c_ptr), value :: ctx
      type(c_ptr), value :: desc
      type(c_ptr), value :: pref
      integer(c_int) :: answer
    end function plait_plan_create
    function plait_plan_retain(plan) bind(c, name='plait_plan_retain') result(answer)
      import
      type(c_ptr), value :: plan
      type(c_ptr) :: answer
    end function plait_plan_retain
    subroutine plait_plan_destroy(plan) bind(c, name='plait_plan_destroy')
      import
      type(c_ptr), value :: plan
    end subroutine plait_plan_destroy
    function plait_plan_workspace_size(plan, bytes) bind(c, &
        name='plait_plan_workspace_size') result(answer)
      import
      type(c_ptr), value :: plan
      integer(c_size_t), intent(out) :: bytes
      integer(c_int) :: answer
    end function plait_plan_workspace_size
    function plait_plan_reserve_size(plan, bytes) bind(c, &
        name='plait_plan_reserve_size') result(answer)
      import
      type(c_ptr), value :: plan
      integer(c_size_t), intent(out) :: bytes
      integer(c_int) :: answer
    end function plait_plan_reserve_size
    function plait_plan_get_i64(plan, attr, value) bind(c, &
        name='plait_plan_get_i64') result(answer)
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: attr
      integer(c_int64_t), intent(out) :: value
      integer(c_int) :: answer
    end function plait_plan_get_i64
    function plait_plan_get_f64(plan, attr, value) bind(c, &
        name='plait_plan_get_f64') result(answer)
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: attr
      real(c_double), intent(out) :: value
      integer(c_int) :: answer
    end function plait_plan_get_f64
    function plait_plan_candidate_c(plan, buf, cap, size) bind(c, &
        name='plait_plan_candidate') result(answer)
      import
      type(c_ptr), value :: plan
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_plan_candidate_c
    function plait_plan_print_c(plan, format, buf, cap, size) bind(c, &
        name='plait_plan_print') result(answer)
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: format
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_plan_print_c
    function plait_candidates_print_c(ctx, desc, pref, format, buf, cap, size) bind(c, &
        name='plait_candidates_print') result(answer)
      import
      type(c_ptr), value :: ctx
      type(c_ptr), value :: desc
      type(c_ptr), value :: pref
      integer(c_int), value :: format
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_candidates_print_c
    function plait_execute(plan, args, nargs, workspace, workspace_bytes, stream) bind(c, &
        name='plait_execute') result(answer)
      import
      type(c_ptr), value :: plan
      type(plait_arg) :: args(*) ! no intent(in): outputs are written through it
      integer(c_int), value :: nargs
      type(c_ptr), value :: workspace
      integer(c_size_t), value :: workspace_bytes
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function plait_execute
    function plait_workspace_alloc(ctx, bytes, stream, ptr) bind(c, &
        name='plait_workspace_alloc') result(answer)
      import
      type(c_ptr), value :: ctx
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
      type(c_ptr), intent(out) :: ptr
      integer(c_int) :: answer
    end function plait_workspace_alloc
    subroutine plait_workspace_free(ctx, ptr, bytes, stream) bind(c, &
        name='plait_workspace_free')
      import
      type(c_ptr), value :: ctx
      type(c_ptr), value :: ptr
      integer(c_size_t), value :: bytes
      type(c_ptr), value :: stream
    end subroutine plait_workspace_free
    function plait_exec_create_c(exec, backend, device, token, stream) bind(c, &
        name='plait_exec_create') result(answer)
      import
      type(c_ptr), intent(out) :: exec
      integer(c_int), value :: backend
      integer(c_int), value :: device
      character(kind=c_char), intent(in) :: token(*)
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function plait_exec_create_c
    function plait_exec_from_plan(exec, plan, stream) bind(c, &
        name='plait_exec_from_plan') result(answer)
      import
      type(c_ptr), intent(out) :: exec
      type(c_ptr), value :: plan
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function plait_exec_from_plan
    function plait_exec_run_c(exec, in, out) bind(c, name='plait_exec_run') result(answer)
      import
      type(c_ptr), value :: exec
      type(c_ptr), value :: in
      type(c_ptr), value :: out
      integer(c_int) :: answer
    end function plait_exec_run_c
    function plait_exec_run_arrays(exec, in_dtype, in, in_elements, out_dtype, out, &
        out_elements) bind(c, name='plait_exec_run_arrays') result(answer)
      import
      type(c_ptr), value :: exec
      integer(c_int), value :: in_dtype
      type(c_ptr), value :: in
      integer(c_int64_t), value :: in_elements
      integer(c_int), value :: out_dtype
      type(c_ptr), value :: out
      integer(c_int64_t), value :: out_elements
      integer(c_int) :: answer
    end function plait_exec_run_arrays
    function plait_exec_run_args(exec, args, nargs) bind(c, &
        name='plait_exec_run_args') result(answer)
      import
      type(c_ptr), value :: exec
      type(plait_arg) :: args(*) ! no intent(in): outputs are written through it
      integer(c_int), value :: nargs
      integer(c_int) :: answer
    end function plait_exec_run_args
    function plait_exec_set_stream(exec, stream) bind(c, &
        name='plait_exec_set_stream') result(answer)
      import
      type(c_ptr), value :: exec
      type(c_ptr), value :: stream
      integer(c_int) :: answer
    end function plait_exec_set_stream
    function plait_exec_plan(exec) bind(c, name='plait_exec_plan') result(answer)
      import
      type(c_ptr), value :: exec
      type(c_ptr) :: answer
    end function plait_exec_plan
    subroutine plait_exec_destroy(exec) bind(c, name='plait_exec_destroy')
      import
      type(c_ptr), value :: exec
    end subroutine plait_exec_destroy
    function plait_wisdom_load_c(ctx, text, loaded, skipped) bind(c, &
        name='plait_wisdom_load') result(answer)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: text(*)
      integer(c_int), intent(out), optional :: loaded
      integer(c_int), intent(out), optional :: skipped
      integer(c_int) :: answer
    end function plait_wisdom_load_c
    function plait_wisdom_load_file_c(ctx, path, loaded, skipped) bind(c, &
        name='plait_wisdom_load_file') result(answer)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), intent(out), optional :: loaded
      integer(c_int), intent(out), optional :: skipped
      integer(c_int) :: answer
    end function plait_wisdom_load_file_c
    function plait_wisdom_save_c(ctx, buf, cap, size) bind(c, &
        name='plait_wisdom_save') result(answer)
      import
      type(c_ptr), value :: ctx
      type(c_ptr), value :: buf
      integer(c_size_t), value :: cap
      integer(c_size_t), intent(out), optional :: size
      integer(c_int) :: answer
    end function plait_wisdom_save_c
    function plait_wisdom_save_file_c(ctx, path) bind(c, &
        name='plait_wisdom_save_file') result(answer)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: answer
    end function plait_wisdom_save_file_c
    subroutine plait_wisdom_clear(ctx) bind(c, name='plait_wisdom_clear')
      import
      type(c_ptr), value :: ctx
    end subroutine plait_wisdom_clear
    pure function c_strlen(text) bind(c, name='strlen') result(answer)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: answer
    end function c_strlen
  end interface

  ! Contiguous arrays, or c_loc and device pointers.
  interface plait_exec_run
    procedure :: plait_exec_run_c
    module procedure run_r4
    module procedure run_r8
    module procedure run_c4
    module procedure run_c8
    module procedure run_i4
    module procedure run_i8
  end interface plait_exec_run

  ! One array for X and Y; the token ends in "y@x".
  interface plait_exec_run_in_place
    module procedure run_in_place_r4
    module procedure run_in_place_r8
    module procedure run_in_place_c4
    module procedure run_in_place_c8
    module procedure run_in_place_i4
    module procedure run_in_place_i8
  end interface plait_exec_run_in_place

  public :: plait_version
  public :: plait_build_info_c
  public :: plait_status_name_c
  public :: plait_role_name_c
  public :: plait_last_error_c
  public :: plait_set_last_error_c
  public :: plait_set_log
  public :: plait_device_count
  public :: plait_context_create
  public :: plait_context_create_from_profile_c
  public :: plait_context_profile_c
  public :: plait_context_set_allocator
  public :: plait_context_set_threads
  public :: plait_context_destroy
  public :: plait_wht_create
  public :: plait_wht_set_axes
  public :: plait_wht_set_bits
  public :: plait_wht_set_factor
  public :: plait_wht_set_factor_order
  public :: plait_wht_set_order
  public :: plait_wht_set_adjoint
  public :: plait_wht_set_scale
  public :: plait_wht_set_bound
  public :: plait_wht_set_rows
  public :: plait_wht_set_group
  public :: plait_wht_set_histogram
  public :: plait_conv1d_create
  public :: plait_conv1d_set_layout
  public :: plait_conv1d_set_activation
  public :: plait_conv1d_set_residual
  public :: plait_conv1d_set_state
  public :: plait_kda_create
  public :: plait_kda_set_gate
  public :: plait_kda_set_beta
  public :: plait_kda_set_qk_norm
  public :: plait_kda_set_scale
  public :: plait_kda_set_state
  public :: plait_desc_use
  public :: plait_desc_set_varlen
  public :: plait_desc_set_slots
  public :: plait_desc_set_dtype
  public :: plait_desc_set_strides
  public :: plait_desc_set_alignment
  public :: plait_desc_set_alias
  public :: plait_desc_check
  public :: plait_desc_num_tensors
  public :: plait_desc_tensor
  public :: plait_desc_token_c
  public :: plait_desc_from_token_c
  public :: plait_desc_destroy
  public :: plait_pref_create
  public :: plait_pref_set_rigor
  public :: plait_pref_set_wisdom_only
  public :: plait_pref_set_workspace_limit
  public :: plait_pref_set_time_limit
  public :: plait_pref_set_determinism
  public :: plait_pref_set_math
  public :: plait_pref_set_candidates_c
  public :: plait_pref_destroy
  public :: plait_plan_create
  public :: plait_plan_retain
  public :: plait_plan_destroy
  public :: plait_plan_workspace_size
  public :: plait_plan_reserve_size
  public :: plait_plan_get_i64
  public :: plait_plan_get_f64
  public :: plait_plan_candidate_c
  public :: plait_plan_print_c
  public :: plait_candidates_print_c
  public :: plait_execute
  public :: plait_workspace_alloc
  public :: plait_workspace_free
  public :: plait_exec_create_c
  public :: plait_exec_from_plan
  public :: plait_exec_run_c
  public :: plait_exec_run_arrays
  public :: plait_exec_run_args
  public :: plait_exec_set_stream
  public :: plait_exec_plan
  public :: plait_exec_destroy
  public :: plait_wisdom_load_c
  public :: plait_wisdom_load_file_c
  public :: plait_wisdom_save_c
  public :: plait_wisdom_save_file_c
  public :: plait_wisdom_clear
  public :: plait_exec_run, plait_exec_run_in_place
  public :: plait_build_info
  public :: plait_status_name
  public :: plait_role_name
  public :: plait_last_error
  public :: plait_set_last_error
  public :: plait_context_create_from_profile
  public :: plait_context_profile
  public :: plait_desc_token
  public :: plait_desc_from_token
  public :: plait_pref_set_candidates
  public :: plait_plan_candidate
  public :: plait_plan_print
  public :: plait_candidates_print
  public :: plait_exec_create
  public :: plait_wisdom_load
  public :: plait_wisdom_load_file
  public :: plait_wisdom_save
  public :: plait_wisdom_save_file

contains

  function plait_build_info() result(text)
    character(len=:), allocatable :: text
    text = from_c(plait_build_info_c())
  end function plait_build_info

  function plait_status_name(status) result(text)
    integer(c_int), intent(in) :: status
    character(len=:), allocatable :: text
    text = from_c(plait_status_name_c(status))
  end function plait_status_name

  function plait_role_name(role) result(text)
    integer(c_int), intent(in) :: role
    character(len=:), allocatable :: text
    text = from_c(plait_role_name_c(role))
  end function plait_role_name

  function plait_last_error() result(text)
    character(len=:), allocatable :: text
    text = from_c(plait_last_error_c())
  end function plait_last_error

  function plait_set_last_error(status, sentence) result(answer)
    integer(c_int), intent(in) :: status
    character(len=*), intent(in) :: sentence
    integer(c_int) :: answer
    answer = plait_set_last_error_c(status, trim(sentence) // c_null_char)
  end function plait_set_last_error

  function plait_context_create_from_profile(ctx, profile) result(answer)
    type(c_ptr), intent(out) :: ctx
    character(len=*), intent(in) :: profile
    integer(c_int) :: answer
    ctx = c_null_ptr
    answer = whole(profile, 'plait_context_create_from_profile: profile')
    if (answer /= PLAIT_OK) return
    answer = plait_context_create_from_profile_c(ctx, trim(profile) // c_null_char)
  end function plait_context_create_from_profile

  function plait_context_profile(ctx, text) result(answer)
    type(c_ptr), intent(in) :: ctx
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    do ! the text may grow between the two calls
      answer = plait_context_profile_c(ctx, c_null_ptr, 0_c_size_t, size)
      if (answer /= PLAIT_OK) return
      if (allocated(buffer)) deallocate (buffer)
      allocate (buffer(size))
      answer = plait_context_profile_c(ctx, c_loc(buffer), size)
      if (answer /= PLAIT_ERR_BUFFER_TOO_SMALL) exit
    end do
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_context_profile

  function plait_desc_token(desc, text) result(answer)
    type(c_ptr), intent(in) :: desc
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    answer = plait_desc_token_c(desc, c_null_ptr, 0_c_size_t, size)
    if (answer /= PLAIT_OK) return
    allocate (buffer(size))
    answer = plait_desc_token_c(desc, c_loc(buffer), size)
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_desc_token

  function plait_desc_from_token(desc, token) result(answer)
    type(c_ptr), intent(out) :: desc
    character(len=*), intent(in) :: token
    integer(c_int) :: answer
    desc = c_null_ptr
    answer = whole(token, 'plait_desc_from_token: token')
    if (answer /= PLAIT_OK) return
    answer = plait_desc_from_token_c(desc, trim(token) // c_null_char)
  end function plait_desc_from_token

  function plait_pref_set_candidates(pref, pattern) result(answer)
    type(c_ptr), intent(in) :: pref
    character(len=*), intent(in) :: pattern
    integer(c_int) :: answer
    answer = whole(pattern, 'plait_pref_set_candidates: pattern')
    if (answer /= PLAIT_OK) return
    answer = plait_pref_set_candidates_c(pref, trim(pattern) // c_null_char)
  end function plait_pref_set_candidates

  function plait_plan_candidate(plan, text) result(answer)
    type(c_ptr), intent(in) :: plan
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    answer = plait_plan_candidate_c(plan, c_null_ptr, 0_c_size_t, size)
    if (answer /= PLAIT_OK) return
    allocate (buffer(size))
    answer = plait_plan_candidate_c(plan, c_loc(buffer), size)
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_plan_candidate

  function plait_plan_print(plan, format, text) result(answer)
    type(c_ptr), intent(in) :: plan
    integer(c_int), intent(in) :: format
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    answer = plait_plan_print_c(plan, format, c_null_ptr, 0_c_size_t, size)
    if (answer /= PLAIT_OK) return
    allocate (buffer(size))
    answer = plait_plan_print_c(plan, format, c_loc(buffer), size)
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_plan_print

  function plait_candidates_print(ctx, desc, pref, format, text) result(answer)
    type(c_ptr), intent(in) :: ctx
    type(c_ptr), intent(in) :: desc
    type(c_ptr), intent(in) :: pref
    integer(c_int), intent(in) :: format
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    do ! the text may grow between the two calls
      answer = plait_candidates_print_c(ctx, desc, pref, format, c_null_ptr, 0_c_size_t, size)
      if (answer /= PLAIT_OK) return
      if (allocated(buffer)) deallocate (buffer)
      allocate (buffer(size))
      answer = plait_candidates_print_c(ctx, desc, pref, format, c_loc(buffer), size)
      if (answer /= PLAIT_ERR_BUFFER_TOO_SMALL) exit
    end do
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_candidates_print

  function plait_exec_create(exec, backend, device, token, stream) result(answer)
    type(c_ptr), intent(out) :: exec
    integer(c_int), intent(in) :: backend
    integer(c_int), intent(in) :: device
    character(len=*), intent(in) :: token
    type(c_ptr), intent(in), optional :: stream
    integer(c_int) :: answer
    exec = c_null_ptr
    answer = whole(token, 'plait_exec_create: token')
    if (answer /= PLAIT_OK) return
    answer = plait_exec_create_c(exec, backend, device, trim(token) // c_null_char, or_null(stream))
  end function plait_exec_create

  function plait_wisdom_load(ctx, text, loaded, skipped) result(answer)
    type(c_ptr), intent(in) :: ctx
    character(len=*), intent(in) :: text
    integer(c_int), intent(out), optional :: loaded
    integer(c_int), intent(out), optional :: skipped
    integer(c_int) :: answer
    answer = whole(text, 'plait_wisdom_load: text')
    if (answer /= PLAIT_OK) return
    answer = plait_wisdom_load_c(ctx, trim(text) // c_null_char, loaded, skipped)
  end function plait_wisdom_load

  function plait_wisdom_load_file(ctx, path, loaded, skipped) result(answer)
    type(c_ptr), intent(in) :: ctx
    character(len=*), intent(in) :: path
    integer(c_int), intent(out), optional :: loaded
    integer(c_int), intent(out), optional :: skipped
    integer(c_int) :: answer
    answer = whole(path, 'plait_wisdom_load_file: path')
    if (answer /= PLAIT_OK) return
    answer = plait_wisdom_load_file_c(ctx, trim(path) // c_null_char, loaded, skipped)
  end function plait_wisdom_load_file

  function plait_wisdom_save(ctx, text) result(answer)
    type(c_ptr), intent(in) :: ctx
    character(len=:), allocatable, intent(out) :: text
    integer(c_int) :: answer
    character(kind=c_char), allocatable, target :: buffer(:)
    integer(c_size_t) :: size
    text = ''
    do ! the text may grow between the two calls
      answer = plait_wisdom_save_c(ctx, c_null_ptr, 0_c_size_t, size)
      if (answer /= PLAIT_OK) return
      if (allocated(buffer)) deallocate (buffer)
      allocate (buffer(size))
      answer = plait_wisdom_save_c(ctx, c_loc(buffer), size)
      if (answer /= PLAIT_ERR_BUFFER_TOO_SMALL) exit
    end do
    if (answer == PLAIT_OK) text = from_c(c_loc(buffer))
  end function plait_wisdom_save

  function plait_wisdom_save_file(ctx, path) result(answer)
    type(c_ptr), intent(in) :: ctx
    character(len=*), intent(in) :: path
    integer(c_int) :: answer
    answer = whole(path, 'plait_wisdom_save_file: path')
    if (answer /= PLAIT_OK) return
    answer = plait_wisdom_save_file_c(ctx, trim(path) // c_null_char)
  end function plait_wisdom_save_file

  function run_r4(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    real(c_float), contiguous, target, intent(in) :: in(..)
    real(c_float), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_F32, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_r4

  function run_in_place_r4(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    real(c_float), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_F32, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_r4

  function run_r8(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    real(c_double), contiguous, target, intent(in) :: in(..)
    real(c_double), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_F64, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_r8

  function run_in_place_r8(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    real(c_double), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_F64, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_r8

  function run_c4(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    complex(c_float_complex), contiguous, target, intent(in) :: in(..)
    complex(c_float_complex), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_C64, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_c4

  function run_in_place_c4(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    complex(c_float_complex), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_C64, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_c4

  function run_c8(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    complex(c_double_complex), contiguous, target, intent(in) :: in(..)
    complex(c_double_complex), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_C128, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_c8

  function run_in_place_c8(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    complex(c_double_complex), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_C128, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_c8

  function run_i4(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    integer(c_int32_t), contiguous, target, intent(in) :: in(..)
    integer(c_int32_t), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_I32, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_i4

  function run_in_place_i4(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    integer(c_int32_t), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_I32, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_i4

  function run_i8(exec, in, out) result(answer)
    type(c_ptr), intent(in) :: exec
    integer(c_int64_t), contiguous, target, intent(in) :: in(..)
    integer(c_int64_t), contiguous, target, intent(inout) :: out(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_I64, c_loc(in), size(in, kind=c_int64_t), &
                       c_loc(out), size(out, kind=c_int64_t))
  end function run_i8

  function run_in_place_i8(exec, data) result(answer)
    type(c_ptr), intent(in) :: exec
    integer(c_int64_t), contiguous, target, intent(inout) :: data(..)
    integer(c_int) :: answer
    answer = run_array(exec, PLAIT_I64, c_loc(data), size(data, kind=c_int64_t), &
                       c_loc(data), size(data, kind=c_int64_t))
  end function run_in_place_i8

  ! Kind and size go along with the addresses, so that the library refuses what does not fit.
  function run_array(exec, dtype, in, in_size, out, out_size) result(answer)
    type(c_ptr), intent(in) :: exec
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: in, out
    integer(c_int64_t), intent(in) :: in_size, out_size ! negative for an assumed-size array
    integer(c_int) :: answer
    answer = plait_exec_run_arrays(exec, dtype, in, in_size, dtype, out, out_size)
  end function run_array

  ! C would end the text at its first NUL and take what stands before it.
  function whole(text, name) result(answer)
    character(len=*), intent(in) :: text, name
    integer(c_int) :: answer
    answer = PLAIT_OK
    if (index(text, c_null_char) > 0) answer = plait_set_last_error(PLAIT_ERR_INVALID_ARGUMENT, &
      name // ': the text has a NUL in it')
  end function whole

  function or_null(stream) result(answer)
    type(c_ptr), intent(in), optional :: stream
    type(c_ptr) :: answer
    answer = c_null_ptr
    if (present(stream)) answer = stream
  end function or_null

  ! A copy of a C string; empty for NULL.
  function from_c(text) result(answer)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: answer
    character(kind=c_char), pointer :: characters(:)
    integer(c_size_t) :: length, i
    length = 0
    if (c_associated(text)) length = c_strlen(text)
    allocate (character(len=length) :: answer)
    if (length == 0) return
    call c_f_pointer(text, characters, [length])
    do i = 1, length
      answer(i:i) = characters(i)
    end do
  end function from_c

end module plait
